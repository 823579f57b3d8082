"""The API reference and the page at `/` in a real browser."""


def test_the_front_page_leads_to_the_console_and_the_reference(open_browser, shop):
    for name, width, dark in [("phone", 360, False), ("wide", 1280, False), ("dark", 1280, True)]:
        browser = open_browser(width=width, height=1200, dark=dark)
        browser.get(f"{shop.url}/")
        browser.picture(f"home-{name}")
        assert browser.axe() == []
        assert not browser.scrolls_sideways()
        assert browser.origins() <= {shop.url}
        pages = browser.execute_script("return [...document.querySelectorAll('main a')].map((a) => a.getAttribute('href'))")
        assert pages == ["/dashboard", "/docs"]


def test_the_reference_is_legible_and_complete(open_browser, shop):
    for name, width, dark in [("phone", 360, False), ("wide", 1280, False), ("dark", 1280, True)]:
        browser = open_browser(width=width, height=1200, dark=dark)
        browser.get(f"{shop.url}/docs")
        browser.picture(f"docs-{name}")
        assert browser.axe() == []
        assert not browser.scrolls_sideways()
        assert browser.origins() <= {shop.url}
        anchors = browser.execute_script("return [...document.querySelectorAll('a[href^=\"#\"]')].filter((a) => !document.getElementById(a.hash.slice(1))).map((a) => a.hash)")
        assert anchors == []
    browser.get(f"{shop.url}/docs#createPayment")
    browser.picture("docs-operation")
