"""The API reference, its guides and the page at `/` in a real browser."""

import re

from conftest import wait
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

GUIDES = [f"/docs/{name}" for name in ["first-payment", "webhooks", "refunds", "testing", "going-live"]]


def test_the_front_page_leads_to_the_console_and_the_reference(open_browser, shop):
    for name, width, dark in [("phone", 360, False), ("wide", 1280, False), ("dark", 1280, True)]:
        browser = open_browser(width=width, height=1200, dark=dark)
        browser.get(f"{shop.url}/")
        browser.picture(f"home-{name}")
        assert browser.axe() == []
        assert not browser.scrolls_sideways()
        assert browser.origins() <= {shop.url}
        pages = browser.execute_script("return [...document.querySelectorAll('main a')].map((a) => a.getAttribute('href'))")
        assert pages == ["/dashboard", "/docs", *GUIDES]


SIZES = [("phone", 390, False), ("phone-dark", 390, True), ("wide", 1280, False), ("dark", 1280, True)]


def test_the_reference_and_the_guides_are_legible_and_complete(open_browser, shop):
    for name, width, dark in SIZES:
        browser = open_browser(width=width, height=1200, dark=dark)
        for page in ["/docs", *GUIDES]:
            browser.get(f"{shop.url}{page}")
            browser.picture(f"{page[1:].replace('/', '-')}-{name}")
            # The reference takes axe half a minute: each width and each theme once.
            if page != "/docs" or name in ("phone", "dark"):
                assert browser.axe() == [], page
            assert not browser.scrolls_sideways(), page
            assert browser.origins() <= {shop.url}
            script = """return [...document.querySelectorAll('a[href^="#"]')]
                .filter((a) => !document.getElementById(a.hash.slice(1))).map((a) => a.hash)"""
            assert browser.execute_script(script) == []
            ids = browser.execute_script("return [...document.querySelectorAll('[id]')].map((it) => it.id)")
            assert len(ids) == len(set(ids)), [it for it in ids if ids.count(it) > 1]
        browser.get(f"{shop.url}/docs#createPayment")
        browser.picture(f"docs-operation-{name}")
        assert is_open(browser, "#contents") == (width > 1000)


def is_open(browser, selector):
    return browser.execute_script("return document.querySelector(arguments[0]).open", selector)


def press(browser, keys):
    ActionChains(browser).send_keys(keys).perform()


def test_search_finds_operations_fields_and_codes_by_the_keyboard(open_browser, shop):
    browser = open_browser(width=390, height=900)
    browser.get(f"{shop.url}/docs")
    for query, first, hash in [
        ("refund a pay", "Refund a payment", "#refundPayment"),
        ("merchantTransactionIdMustBe", "merchantTransactionIdMustBeUnique", "#createPayment-merchantTransactionIdMustBeUnique"),
        ("payment_not_refundable", "payment_not_refundable", "#code-payment_not_refundable"),
    ]:
        press(browser, "/")
        press(browser, query)
        found = browser.find_elements("css selector", ".results a")
        assert found[0].find_element("css selector", "strong").text == first
        browser.picture(f"docs-search-{hash[1:5]}")
        assert browser.axe("nav") == []
        press(browser, Keys.ARROW_DOWN)
        assert browser.switch_to.active_element.get_attribute("href").endswith(hash)
        press(browser, Keys.ENTER)
        assert browser.execute_script("return location.hash") == hash
        top = browser.execute_script("return document.querySelector(':target').getBoundingClientRect().top")
        bar = browser.execute_script("return document.querySelector('nav').getBoundingClientRect().bottom")
        assert bar <= top < 450, (bar, top)
    press(browser, "/")
    press(browser, "nothing like this")
    assert browser.find_element("css selector", ".results").text == "Nothing has this name."
    press(browser, Keys.ESCAPE)
    assert not browser.find_element("css selector", ".results").is_displayed()
    assert browser.find_element("id", "search").get_attribute("value") == ""


def test_the_chosen_language_is_remembered_and_copied(open_browser, shop):
    browser = open_browser(width=1280, height=900)
    browser.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
    browser.get(f"{shop.url}/docs#createPayment")
    shown = lambda id: [it.text for it in browser.find_elements("css selector", f"#{id}, [id^={id}-]") if it.is_displayed()
                        and it.get_attribute("role") == "tabpanel"]
    assert [text.startswith("curl ") for text in shown("createPayment")] == [True]
    browser.find_element("id", "createPayment-curl-tab").send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert browser.switch_to.active_element.text == "Python"
    assert [text.startswith("import json") for text in shown("createPayment")] == [True]
    browser.get(f"{shop.url}/docs")
    assert [text.startswith("import json") for text in shown("refundPayment")] == [True]
    code = browser.find_element("id", "refundPayment-python")
    code.find_element("css selector", ".copy").click()
    wait(browser, lambda: code.find_element("css selector", ".copy").text == "Copied", "Copied", seconds=10)
    copied = browser.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
    assert copied == code.find_element("css selector", "code").text
    browser.picture("docs-python")
    assert browser.axe("#refundPayment, [id^=refundPayment-]") == []


def test_an_operation_can_be_tried_and_its_id_is_offered_to_the_next(open_browser, shop):
    browser = open_browser(width=390, height=1400, dark=True)
    browser.get(f"{shop.url}/docs")
    find = lambda id, selector: browser.find_element("css selector", f"[data-try={id}] {selector}")

    all_of = lambda id, selector: browser.find_elements("css selector", f"[data-try={id}] {selector}")

    def send(id):
        button, before = find(id, "form > button"), all_of(id, ".tried pre")
        browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
        button.click()
        wait(browser, lambda: all_of(id, ".tried pre") not in ([], before), "the answer", seconds=10)
        return find(id, ".tried").text

    def unfold(id):
        browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", find(id, "summary"))
        find(id, "summary").click()
        # The form is made when the browser tells that the details are open, a moment after the click.
        wait(browser, lambda: all_of(id, "form"), "the form", seconds=10)

    unfold("createPayment")
    answer = send("createPayment")
    assert answer.startswith("201 Created") and '"rawStatus": "created"' in answer and "x-request-id: " in answer
    id = re.search(r'"id": "(pay_[0-9a-f]+)"', answer)[1]
    again = send("createPayment")
    assert id in again and "idempotent-replayed: true" in again
    browser.picture("docs-tried")
    assert browser.axe("[data-try=createPayment]") == []
    assert not browser.scrolls_sideways()
    unfold("simulateCheckout")
    assert find("simulateCheckout", "input").get_attribute("value") == id
    assert send("simulateCheckout").startswith("200 OK")
    unfold("retrievePayment")
    assert '"status": "completed"' in send("retrievePayment")
    unfold("refundPayment")
    assert "payment_not_refundable" in send("refundPayment")
    for never in ["removeWebhook", "resetSandbox", "payCheckout"]:
        assert browser.find_elements("css selector", f"[data-try={never}]") == []


def test_without_scripts_everything_is_there_to_read(open_browser, shop):
    browser = open_browser(width=390, height=1200, script=False)
    browser.get(f"{shop.url}/docs#createPayment")
    browser.picture("docs-without-scripts")
    assert browser.find_elements("id", "search") == []
    snippets = browser.find_elements("css selector", "details[name=createPayment]")
    assert [snippet.find_element("css selector", "summary").text for snippet in snippets] == [
        "curl", "Rust", "Python", "JavaScript", "PHP"]
    assert snippets[0].find_element("css selector", "pre").is_displayed()
    snippets[4].find_element("css selector", "summary").click()
    assert snippets[4].find_element("css selector", "pre").text.startswith("<?php")


def test_on_paper_there_is_no_navigation_and_nothing_is_cut_off(open_browser, shop):
    browser = open_browser(width=1280, height=900)
    browser.get(f"{shop.url}/docs")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert not browser.find_element("css selector", "nav").is_displayed()
    cut_off = """return [...document.querySelectorAll('pre')].filter((pre) => pre.checkVisibility()
        && (pre.scrollWidth > pre.clientWidth || pre.scrollHeight > pre.clientHeight)).length"""
    assert browser.execute_script(cut_off) == 0
