"""The checkout page in a merchant's colours, the order's lines, the time left and the receipt."""

import http.server
import threading
import time

import pytest
from conftest import SANDBOX_KEY, call, css, start, wait
from selenium.webdriver.common.by import By
from test_checkout import check, text

LOGO = b'''<svg xmlns="http://www.w3.org/2000/svg" width="160" height="48" viewBox="0 0 160 48"><rect width="160" height="48"
rx="8" fill="#7a1f3d"/><text x="80" y="32" font-size="24" font-family="sans-serif" fill="#fff" text-anchor="middle">Rahim</text></svg>'''
LINES = [{"name": "দার্জিলিং চা, ২৫০ গ্রাম", "quantity": 2, "amount": 1100}, {"name": "A very long name " + "x" * 60, "amount": 150},
         {"name": "Gift wrapping", "quantity": 1}]


@pytest.fixture
def logos():
    """A web server with a logo at /logo.svg and nothing anywhere else. Its `seen` has the headers of each request."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.seen.append(dict(self.headers))
            found = self.path == "/logo.svg"
            self.send_response(200 if found else 404)
            self.send_header("content-type", "image/svg+xml" if found else "text/plain")
            self.end_headers()
            self.wfile.write(LOGO if found else b"nothing here")

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.seen, server.url = [], f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def branded_key(shop, logo, colour, environment="test"):
    """A key of a new app with this logo and colour."""
    workspace = shop.administer("workspaces", "create", "--name", "Rahim & Sons Tea")
    app = shop.administer("apps", "create", "--workspace", workspace, "--name", "Till", "--logo-url", logo, "--colour", colour)
    return shop.administer("keys", "create", "--workspace", workspace, "--environment", environment, "--app", app)


def width_of_logo(browser):
    return browser.execute_script("return document.querySelector('header img').getBoundingClientRect().width")


@pytest.mark.parametrize("colour,dark,text_colour", [("#7a1f3d", False, "rgb(255, 255, 255)"), ("#7a1f3d", True, "rgb(255, 255, 255)"),
                                                    ("#ffd400", False, "rgb(0, 0, 0)")])
def test_a_merchants_logo_and_colour_are_shown_and_the_logos_host_learns_no_payment(
        open_browser, shop, logos, colour, dark, text_colour):
    browser = open_browser(dark=dark)
    payment = shop.create(key=branded_key(shop, f"{logos.url}/logo.svg", colour, "live"), lineItems=LINES)
    browser.get(payment["checkoutUrl"])
    wait(browser, lambda: width_of_logo(browser) > 100, "the logo")
    assert "Rahim & Sons Tea" in text(browser)
    style = lambda name: css(browser, "button.go").value_of_css_property(name)
    assert [int(colour[at:at + 2], 16) for at in (1, 3, 5)] == [int(part) for part in style("background-color")[5:-1].split(",")[:3]]
    assert style("color").replace("rgba", "rgb").replace(", 1)", ")") == text_colour
    browser.picture(f"brand-{colour[1:]}-{'dark' if dark else 'light'}")
    assert browser.axe() == [] and not browser.scrolls_sideways()
    assert browser.origins() <= {shop.url, logos.url}
    assert logos.seen and all("Referer" not in headers for headers in logos.seen)
    assert payment["id"] not in str(logos.seen)


def test_a_broken_logo_leaves_a_whole_page(browser, shop, logos):
    payment = shop.create(key=branded_key(shop, f"{logos.url}/gone.svg", "#0a7d4f"))
    browser.get(payment["checkoutUrl"])
    wait(browser, lambda: logos.seen, "the request for the logo")
    wait(browser, lambda: width_of_logo(browser) == 0, "no room for the logo")
    assert "Rahim & Sons Tea" in text(browser)
    browser.picture("brand-broken")
    assert browser.axe() == [] and not browser.scrolls_sideways()


@pytest.mark.parametrize("language,dark,width", [("en-GB", False, 1280), ("bn-BD", True, 390)])
def test_a_paid_page_is_a_receipt_that_prints_in_black_on_white(open_browser, shop, language, dark, width):
    browser = open_browser(language=language, dark=dark, width=width, height=900)
    payment = shop.create(lineItems=LINES, merchantTransactionId="A-1017")
    browser.get(payment["checkoutUrl"])
    assert "A-1017" in text(browser) and "২৫০ গ্রাম" in text(browser)
    check(browser, shop, f"lines-{language}")
    css(browser, "button.go").click()
    wait(browser, lambda: browser.find_elements(By.TAG_NAME, "dl"), "the receipt")
    assert "A-1017" in css(browser, "dl").text and ("৳১,২৫০.০০" if language == "bn-BD" else "৳1,250.00") in css(browser, "dl").text
    assert css(browser, "#print").is_displayed()
    check(browser, shop, f"receipt-{language}")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {
        "media": "print", "features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
    for selector in ["#print", "a.button", "a.language"]:
        assert not css(browser, selector).is_displayed(), selector
    colours = [css(browser, "body").value_of_css_property(name) for name in ("color", "background-color")]
    assert [colour.replace("rgba", "rgb").replace(", 1)", ")") for colour in colours] == ["rgb(0, 0, 0)", "rgb(255, 255, 255)"]
    assert payment["id"] in text(browser)
    browser.picture(f"receipt-print-{language}")


def test_a_receipt_needs_no_javascript(open_browser, shop):
    browser = open_browser(script=False)
    payment = shop.create()
    browser.get(payment["checkoutUrl"])
    assert "Pay by" in text(browser) and "time left" not in text(browser)
    css(browser, "button.go").click()
    wait(browser, lambda: browser.find_elements(By.TAG_NAME, "dl"), "the receipt")
    assert not css(browser, "#print").is_displayed()


def test_the_time_left_counts_down_and_the_page_then_says_expired(open_browser, tmp_path):
    process, url = start("payments-server", "serve", "--listen", "127.0.0.1:0", "--data-dir", str(tmp_path / "data"),
                         "--session-ttl", "8")
    try:
        body = {"amount": 5, "success_url": "https://shop.example/ok", "cancel_url": "https://shop.example/no"}
        payment = call(f"{url}/api/v1/payments", body, key=SANDBOX_KEY)[1]
        browser = open_browser()
        browser.get(payment["checkoutUrl"])
        seconds = lambda: int(css(browser, "#left b").text.split(":")[1])
        first = seconds()
        assert 0 < first <= 8
        browser.picture("time-left")
        assert browser.axe() == []
        time.sleep(1.1)
        assert seconds() < first
        wait(browser, lambda: "expired" in text(browser), "the page of the expired payment")
        assert browser.find_elements(By.CSS_SELECTOR, "#left, form") == []
    finally:
        process.kill()
        process.wait()
