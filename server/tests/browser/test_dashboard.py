"""The developer console in a real browser."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from conftest import SANDBOX_KEY, call, css, wait
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

HOSTILE = "\"><img src=x onerror=alert(1)><script>alert(1)</script>{{7*7}}"


def press(browser, label):
    path = f"//main//button[normalize-space()='{label}']"
    wait(browser, lambda: browser.find_elements(By.XPATH, path), f"the button {label}")
    button = browser.find_element(By.XPATH, path)
    # Not below a message at the foot of the window.
    browser.execute_script("arguments[0].scrollIntoView({ block: 'center' })", button)
    button.click()


def reads(browser, words):
    wait(browser, lambda: words in css(browser, "main").text, words)


def row_link(browser):
    return browser.find_element(By.XPATH, "//tr[td='payment.created']//a")


def check(browser, shop, name):
    browser.picture(f"console-{name}")
    assert browser.axe() == []
    assert not browser.scrolls_sideways()
    assert browser.origins() <= {shop.url}


def sign_in(browser, shop, key, place=""):
    browser.get(f"{shop.url}/dashboard{place}")
    css(browser, "input[name=key]").send_keys(key + Keys.ENTER)
    wait(browser, lambda: css(browser, "#nav").is_displayed(), "the menu")


@pytest.fixture
def receiver():
    yield from endpoint(200)


@pytest.fixture
def gone():
    yield from endpoint(410)


def endpoint(status):
    got = []

    class Endpoint(BaseHTTPRequestHandler):
        def do_POST(self):
            got.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(b"thank you")

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Endpoint)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/hook", got
    server.shutdown()


def test_the_console_checks_the_key_and_stores_it_only_for_the_session(browser, shop):
    browser.get(f"{shop.url}/dashboard")
    check(browser, shop, "sign-in")
    css(browser, "input[name=key]").send_keys("sk_test_wrong" + Keys.ENTER)
    wait(browser, lambda: "does not know this key" in css(browser, "main").text, "the refusal")
    assert css(browser, "input[name=key]").get_attribute("value") == "sk_test_wrong", "it can be corrected"
    css(browser, "input[name=key]").clear()
    sign_in(browser, shop, shop.test_key)
    reads(browser, "Nothing here yet")
    assert "no money moves" in css(browser, "#environment").text
    assert browser.execute_script("return sessionStorage.length") == 1
    assert browser.execute_script("return localStorage.length + document.cookie.length") == 0
    assert shop.test_key not in browser.current_url
    browser.refresh()
    reads(browser, "Nothing here yet")
    css(browser, "#leave").click()
    wait(browser, lambda: browser.find_elements(By.NAME, "key"), "the form")
    assert browser.execute_script("return sessionStorage.length") == 0


@pytest.mark.parametrize("width,dark", [(1280, False), (360, True)])
def test_the_console_lists_filters_opens_and_simulates_payments(open_browser, shop, width, dark):
    browser = open_browser(width=width, height=900, dark=dark)
    payment = shop.create(key=shop.test_key, amount=999999999999.99, description=HOSTILE,
                          customer={"name": HOSTILE, "email": "k@example.com"}, metadata={"exact": 1, HOSTILE: HOSTILE})
    for number in range(22):
        shop.create(key=shop.test_key, amount=number + 0.5)
    sign_in(browser, shop, shop.test_key)
    reads(browser, "Page 1 of")
    check(browser, shop, f"payments-{width}")
    press(browser, "Older")
    reads(browser, "৳999,999,999,999.99")
    browser.get(f"{shop.url}/dashboard#/payments/{payment['id']}")
    reads(browser, "API object")
    assert HOSTILE in css(browser, "main").text
    check(browser, shop, f"payment-{width}")
    press(browser, "Simulate: completed")
    wait(browser, lambda: browser.find_elements(By.CSS_SELECTOR, ".badge.completed"), "the new status")
    reads(browser, "The outcome was simulated.")
    browser.get(f"{shop.url}/dashboard#/transactions?currency=BDT")
    reads(browser, payment["id"])
    assert [row.text.split()[0] for row in browser.find_elements(By.CSS_SELECTOR, "tbody tr")][:2] == ["fee", "payment"]
    check(browser, shop, f"transactions-{width}")
    browser.get(f"{shop.url}/dashboard#/transactions?until=2020-01-01")
    reads(browser, "Nothing matches")
    browser.get(f"{shop.url}/dashboard#/requests")
    reads(browser, "/api/v1/payments")
    check(browser, shop, f"requests-{width}")
    browser.get(f"{shop.url}/dashboard#/requests?failed=true")
    reads(browser, "Errors")
    browser.get(f"{shop.url}/dashboard#/payments?status=completed")
    reads(browser, payment["id"])
    css(browser, "#choice-status").send_keys("expired")
    reads(browser, "Nothing matches")
    # Found by what the shop knows of it; the address keeps the filters.
    browser.get(f"{shop.url}/dashboard#/payments")
    reads(browser, "Page 1 of")
    css(browser, "input[name=search]").send_keys("K@Example.com" + Keys.ENTER)
    reads(browser, payment["id"])
    browser.refresh()
    reads(browser, payment["id"])
    browser.get(f"{shop.url}/dashboard#/payments?currency=BDT")
    reads(browser, "There may be more")
    newest = browser.find_elements(By.CSS_SELECTOR, "td a")[0].text
    press(browser, "Older")
    wait(browser, lambda: "after=" in browser.current_url and newest not in css(browser, "main").text, "older payments")
    check(browser, shop, f"payments-found-{width}")
    press(browser, "Newest")
    reads(browser, newest)
    browser.get(f"{shop.url}/dashboard#/payments?from=2026-01-01&until=2026-01-02")
    reads(browser, "Nothing matches")


def test_a_key_that_may_not_read_the_account_signs_in_and_sees_what_it_may(browser, shop):
    key = shop.administer("keys", "create", "--workspace", shop.workspace, "--environment", "test", "--scope", "webhooks:read")
    sign_in(browser, shop, key)
    reads(browser, "lacks the scope payments:read")
    browser.find_element(By.LINK_TEXT, "Deliveries").click()
    reads(browser, "in total")


def test_the_console_shows_metadata_numbers_exactly(browser, shop):
    import urllib.request

    body = b'{"amount":5,"success_url":"https://shop.example","cancel_url":"https://shop.example","metadata":{"n":1.10,"big":12345678901234567890123}}'
    request = urllib.request.Request(f"{shop.url}/api/v1/payments", body,
                                     {"x-api-key": shop.test_key, "content-type": "application/json"})
    payment = json.load(urllib.request.urlopen(request))
    sign_in(browser, shop, shop.test_key, f"#/payments/{payment['id']}")
    reads(browser, "12345678901234567890123")
    assert "1.10" in css(browser, "pre").text


def test_the_console_adds_pings_shows_and_removes_an_endpoint(open_browser, shop, receiver):
    url, got = receiver
    browser = open_browser(width=1280, height=900)
    sign_in(browser, shop, shop.test_key, "#/webhooks")
    reads(browser, "Add an endpoint")
    css(browser, "input[name=url]").send_keys("ftp://shop.example" + Keys.ENTER)
    wait(browser, lambda: "url must" in css(browser, "main").text, "the refusal")
    css(browser, "input[name=url]").clear()
    css(browser, "input[name=url]").send_keys(url + Keys.ENTER)
    reads(browser, "every event")
    assert "whsec_" not in css(browser, "main").text
    press(browser, "Show or hide the secret")
    assert "whsec_" in css(browser, "main").text
    press(browser, "Send a test event")
    reads(browser, "response 200")
    assert got[-1]["event"] == "test.ping"
    check(browser, shop, "webhooks")
    shop.create(key=shop.test_key, description=HOSTILE)
    wait(browser, lambda: any(event["event"] == "payment.created" for event in got), "the event")
    browser.get(f"{shop.url}/dashboard#/deliveries")
    reads(browser, "test.ping")
    row_link(browser).click()
    reads(browser, "thank you")
    assert browser.switch_to.active_element.get_attribute("id") == "detail"
    row = browser.find_element(By.XPATH, "//tr[@id='detail']/preceding-sibling::tr[1]")
    assert "payment.created" in row.text, "the details are below their delivery"
    check(browser, shop, "deliveries")
    browser.refresh()
    reads(browser, "thank you")
    link = row_link(browser)
    assert link.size["height"] >= 24 and link.get_attribute("aria-expanded") == "true"
    link.click()
    wait(browser, lambda: not browser.find_elements(By.ID, "detail"), "the details to close")
    browser.get(f"{shop.url}/dashboard#/webhooks")
    reads(browser, url)
    press(browser, "Remove")
    wait(browser, lambda: browser.find_elements(By.TAG_NAME, "dialog"), "the dialog")
    css(browser, "dialog .danger").click()
    reads(browser, "No endpoints yet")


def test_the_console_offers_retries_and_says_why_an_endpoint_was_disabled(open_browser, shop, gone):
    url, got = gone
    browser = open_browser(width=1280, height=900)
    sign_in(browser, shop, shop.test_key, "#/webhooks")
    reads(browser, "Add an endpoint")
    css(browser, "#choice-retries").send_keys("Repeated")
    css(browser, "input[name=url]").send_keys(url + Keys.ENTER)
    reads(browser, "repeated for up to 18 hours")
    shop.create(key=shop.test_key)
    wait(browser, lambda: got, "the event")
    wait(browser, lambda: (browser.refresh(), reads(browser, url), "Disabled because" in css(browser, "main").text)[2], "the reason")
    assert "it responded with 410 (gone)" in css(browser, "main").text
    browser.find_element(By.LINK_TEXT, "Edit").click()
    wait(browser, lambda: browser.switch_to.active_element.get_attribute("id") == "edit", "the form to have the focus")
    browser.refresh()
    wait(browser, lambda: browser.find_elements(By.ID, "choice-newRetries"), "the form after a reload")
    check(browser, shop, "webhook-disabled")
    css(browser, "#choice-newRetries").send_keys("Not")
    press(browser, "Save")
    wait(browser, lambda: "18 hours" not in css(browser, "dl").text, "no retries")
    assert not browser.find_elements(By.ID, "edit"), "the form closes"
    browser.get(f"{shop.url}/dashboard#/deliveries")
    reads(browser, "payment.created")
    row_link(browser).click()
    reads(browser, "Attempt 1")
    check(browser, shop, "delivery-attempts")
    browser.get(f"{shop.url}/dashboard#/webhooks")
    press(browser, "Turn on")
    wait(browser, lambda: "Disabled because" not in css(browser, "main").text, "the endpoint to be on")
    press(browser, "Remove")
    wait(browser, lambda: browser.find_elements(By.TAG_NAME, "dialog"), "the dialog")
    css(browser, "dialog .danger").click()
    reads(browser, "No endpoints yet")


def test_the_console_simulator_creates_a_demo_session_with_a_wrapped_event(open_browser, shop, receiver):
    url, got = receiver
    shop.api("/webhooks", {"url": url, "events": "*"})
    browser = open_browser(width=1280, height=900)
    browser.get(f"{shop.url}/dashboard#/simulator")
    press(browser, "Use the sandbox key")
    reads(browser, "Creates a demo session")
    css(browser, "input[name=description]").send_keys(HOSTILE)
    press(browser, "Create a demo session")
    reads(browser, "test_pay_")
    check(browser, shop, "simulator")
    press(browser, "Simulate: completed")
    wait(browser, lambda: browser.find_elements(By.CSS_SELECTOR, ".badge.paid"), "the new status")
    wait(browser, lambda: len(got) >= 2, "both events")
    created = next(event for event in got if event["event"] == "payment.created")
    assert set(created["data"]) == {"event", "payment"} and created["data"]["payment"]["description"] == HOSTILE
    browser.get(f"{shop.url}/dashboard#/balances")
    reads(browser, "Balance in taka")
    check(browser, shop, "balances")


@pytest.mark.parametrize("width, dark", [(1280, False), (390, False), (1280, True), (390, True)])
def test_the_console_shows_the_activity_as_a_chart_and_as_a_table(open_browser, shop, width, dark):
    for amount, pays in [(1250, True), (640.5, True), (99, False)]:
        payment = shop.create(amount)
        if pays:
            shop.api(f"/checkout/{payment['id']}/simulate", {"status": "completed"})
    today = shop.api("/account/activity?days=7")[1]["days"][-1]
    browser = open_browser(width=width, height=900, dark=dark)
    sign_in(browser, shop, SANDBOX_KEY, "#/balances?days=7")
    wait(browser, lambda: browser.find_elements(By.CSS_SELECTOR, "svg.activity rect title"), "the chart")
    bar = css(browser, "svg.activity rect title").get_attribute("textContent")
    bdt = today["bdt"]
    assert bar.startswith(today["date"]) and bar.endswith(f"{bdt['paid']} of {bdt['created']} paid")
    reads(browser, f"{bdt['paid']} of {bdt['created']} payments created in this period are paid.")
    assert css(browser, "svg.activity").rect["width"] <= width
    style = "return getComputedStyle(document.querySelector('svg.activity text')).fill"
    ink = browser.execute_script("return getComputedStyle(document.querySelector('.soft')).color")
    assert browser.execute_script(style) == ink, "the page's own colours"
    kind = f"activity-{width}{'-dark' if dark else ''}"
    check(browser, shop, kind)
    summary = css(browser, "details.days summary")
    summary.send_keys(Keys.ENTER)
    row = css(browser, ".days tbody tr").text
    assert today["date"] in row and f"{100 * bdt['paid'] / bdt['created']:.1f} %" in row
    assert len(browser.find_elements(By.CSS_SELECTOR, ".days tbody tr")) == 7
    browser.execute_script("document.querySelector('details.days').scrollIntoView()")
    check(browser, shop, kind + "-table")
    period = css(browser, "select[name=days]")
    period.send_keys("365")
    wait(browser, lambda: "days=365" in browser.current_url, "the address")
    wait(browser, lambda: len(browser.find_elements(By.CSS_SELECTOR, ".days tbody tr")) == 365, "a year")
    assert browser.switch_to.active_element.get_attribute("name") == "days"
    css(browser, "select[name=currency]").send_keys("USD")
    wait(browser, lambda: "currency=USD" in browser.current_url, "the address")
    browser.refresh()
    reads(browser, "Show as a table")
    assert css(browser, "select[name=currency]").get_attribute("value") == "USD"
    assert css(browser, "select[name=days]").get_attribute("value") == "365"
    check(browser, shop, kind + "-year")


def test_the_console_refunds_a_live_payment_after_confirmation(browser, shop):
    payment = shop.create(key=shop.live_key)
    url = call(f"{shop.url}/api/v1/checkout/{payment['id']}/pay", {})[1]["redirectUrl"]
    call(f"{shop.bkash}/_control/approve", {"paymentID": url.rsplit("/", 1)[1]})
    wait(browser, lambda: shop.status(payment, shop.live_key) == "paid", "the payment")
    sign_in(browser, shop, shop.live_key, f"#/payments/{payment['id']}")
    reads(browser, "Raw status")
    assert "real money" in css(browser, "#environment").text
    press(browser, "Refund")
    wait(browser, lambda: browser.find_elements(By.TAG_NAME, "dialog"), "the dialog")
    assert browser.axe() == []
    browser.find_element(By.XPATH, "//dialog//button[.='Cancel']").click()
    assert shop.status(payment, shop.live_key) == "paid"
    amount = css(browser, "input[name=amount]")
    amount.clear()
    amount.send_keys("0.25")
    css(browser, "input[name=reason]").send_keys("one cup broke")
    press(browser, "Refund")
    wait(browser, lambda: browser.find_elements(By.TAG_NAME, "dialog"), "the dialog")
    css(browser, "dialog .danger").click()
    reads(browser, "one cup broke (sent by hand)")
    assert shop.status(payment, shop.live_key) == "paid"
    press(browser, "Refund")
    wait(browser, lambda: browser.find_elements(By.TAG_NAME, "dialog"), "the dialog")
    css(browser, "dialog .danger").click()
    wait(browser, lambda: shop.status(payment, shop.live_key) == "refunded", "the rest to be refunded")
    reads(browser, "from the console (sent by hand)")
    assert browser.axe() == []


def test_the_console_shows_a_dispute_and_offers_to_refund_what_it_leaves(browser, shop):
    payment = shop.create(key=shop.live_key)
    url = call(f"{shop.url}/api/v1/checkout/{payment['id']}/pay", {})[1]["redirectUrl"]
    call(f"{shop.bkash}/_control/approve", {"paymentID": url.rsplit("/", 1)[1]})
    wait(browser, lambda: shop.status(payment, shop.live_key) == "paid", "the payment")
    shop.administer("disputes", "open", payment["id"], "--amount", "250", "--reference", "CB-2", "--reason", "never came",
                    "--evidence-due", "2030-01-01")
    sign_in(browser, shop, shop.live_key, f"#/payments/{payment['id']}")
    reads(browser, "never came evidence is due by")
    reads(browser, "The customer disputes 250 BDT: never came.")
    assert css(browser, "input[name=amount]").get_attribute("value") == "1000.00"
    check(browser, shop, "dispute")
    shop.administer("disputes", "close", payment["id"], "--as", "won")
    browser.refresh()
    reads(browser, "The dispute of 250 BDT was won.")
    assert css(browser, "input[name=amount]").get_attribute("value") == "1250.00"


def test_the_console_simulates_what_happens_to_a_paid_test_payment(browser, shop):
    payment = shop.create()
    sign_in(browser, shop, SANDBOX_KEY, f"#/payments/{payment['id']}")
    reads(browser, "Simulate: completed")
    press(browser, "Simulate: completed")
    reads(browser, "Simulate: inquiry")
    press(browser, "Simulate: inquiry")
    reads(browser, "Simulate: dispute won")
    press(browser, "Simulate: disputed")
    reads(browser, "needs_response")
    press(browser, "Simulate: dispute won")
    reads(browser, "won")
    press(browser, "Simulate: refunded")
    reads(browser, "Simulate: refund failed")
    press(browser, "Simulate: refund failed")
    reads(browser, "Simulate: disputed")
    check(browser, shop, "simulated")


def test_the_console_works_by_keyboard_and_reports_an_unreachable_server(browser, shop):
    sign_in(browser, shop, SANDBOX_KEY)
    reads(browser, "Page 1 of")
    link = browser.find_element(By.LINK_TEXT, "Balances")
    link.send_keys(Keys.ENTER)
    reads(browser, "Volume in taka")
    assert browser.switch_to.active_element.get_attribute("id") == "main"
    assert link.get_attribute("aria-current") == "page"
    # The heading is that of the view that loads, and an answer that comes too late changes nothing.
    browser.execute_script("""
        const original = window.fetch;
        window.fetch = (path, given) => path.includes("/account") ?
            new Promise((done) => setTimeout(() => done(original(path, given)), 700)) : original(path, given)""")
    browser.find_element(By.LINK_TEXT, "Simulator").click()
    reads(browser, "Creates a demo session")
    link.click()
    assert css(browser, "h1").text == "Balances" and "Loading" in css(browser, "main").text
    browser.find_element(By.LINK_TEXT, "Requests").click()
    reads(browser, "in the last seven days")
    time.sleep(1)
    assert css(browser, "h1").text == "Requests"
    browser.execute_script("window.fetch = () => Promise.reject(new TypeError('gone'))")
    browser.find_element(By.LINK_TEXT, "Webhooks").click()
    reads(browser, "The server is not responding")
    assert css(browser, "h1").text == "Webhooks"
    assert browser.find_elements(By.XPATH, "//button[.='Try again']")
