"""The hosted checkout page in a real browser, on a phone's screen."""

import time

import pytest
from conftest import SANDBOX_KEY, call, css, wait
from selenium.webdriver.common.by import By


def text(browser):
    return css(browser, "main").text


def click_back(browser, shop):
    """Clicks the link back to the shop. The page of a test session shows its host and waits for the click."""
    wait(browser, lambda: f"This link goes to localhost:{shop.port}" in text(browser), "the shop's host")
    time.sleep(1)
    assert "/checkout/" in browser.current_url, "the page redirected without a click"
    css(browser, "a.button").click()


def check(browser, shop, name):
    """Checks accessibility, layout and origins of the page."""
    browser.picture(name)
    assert browser.axe() == []
    assert not browser.scrolls_sideways()
    assert browser.origins() <= {shop.url}


@pytest.mark.parametrize("button,status,back", [("success", "paid", "paid"), ("fail", "failed", "left"),
                                               ("cancel", "cancelled", "left")])
def test_each_simulator_button_ends_the_payment_and_a_link_returns_to_the_shop(browser, shop, button, status, back):
    payment = shop.create()
    browser.get(payment["checkoutUrl"])
    assert "No money moves" in text(browser) and "৳1,250.00" in text(browser)
    check(browser, shop, "simulator")
    css(browser, f"button[value={button}]").click()
    click_back(browser, shop)
    wait(browser, lambda: f"/healthz?{back}" in browser.current_url, "the shop")
    assert f"payment_id={payment['id']}" in browser.current_url
    assert shop.status(payment, SANDBOX_KEY) == status
    browser.get(payment["checkoutUrl"])
    check(browser, shop, status)
    assert browser.find_elements(By.CSS_SELECTOR, "form, [name=action]") == []
    assert ("Receipt" in text(browser)) == (status == "paid")


@pytest.mark.parametrize("script", [True, False])
@pytest.mark.parametrize("currency", ["BDT", "USD"])
def test_a_live_customer_pays_returns_to_the_shop_and_gets_a_refund(open_browser, shop, currency, script):
    browser = open_browser(script=script)
    payment = shop.create(key=shop.live_key, currency=currency)
    browser.get(payment["checkoutUrl"])
    if script:
        check(browser, shop, f"choice-{currency}")
    if currency == "BDT":
        css(browser, "#phone").send_keys("+880 1770-618575")
    css(browser, "button.go").click()
    wait(browser, lambda: "(fake)" in browser.title, "the gateway's page")
    css(browser, "#confirm" if currency == "BDT" else "#pay").click()
    wait(browser, lambda: "/healthz?paid" in browser.current_url, "the shop")
    assert "status=completed" in browser.current_url
    assert shop.status(payment, shop.live_key) == "paid"
    browser.get(payment["checkoutUrl"])
    assert "Paid" in text(browser)
    status, refunded = shop.api(f"/payments/{payment['id']}/refund", {"reason": "damaged"}, shop.live_key)
    assert status == 200 and refunded["status"] == "refunded", refunded
    assert refunded["refund"]["requiresManualSettlement"] == (currency == "BDT")
    browser.refresh()
    assert "refunded" in text(browser)
    if script:
        check(browser, shop, f"refunded-{currency}")


def test_the_page_says_that_a_cancelled_payment_took_no_money(browser, shop):
    payment = shop.create(key=shop.live_key)
    browser.get(payment["checkoutUrl"])
    css(browser, "button.go").click()
    wait(browser, lambda: "(fake)" in browser.title, "the gateway's page")
    css(browser, "#cancel").click()
    wait(browser, lambda: "No money was taken" in browser.page_source, "the cancelled page")
    check(browser, shop, "cancelled-live")
    css(browser, "a.button").click()
    wait(browser, lambda: "/healthz?left" in browser.current_url, "the shop")


@pytest.mark.parametrize("language,dark", [("en-GB", False), ("bn-BD", True)])
def test_a_customer_with_an_empty_wallet_tries_again_or_goes_back_to_the_shop(open_browser, shop, language, dark):
    browser = open_browser(language=language, dark=dark)

    def fail(payment):
        browser.get(payment["checkoutUrl"])
        css(browser, "button.go").click()
        wait(browser, lambda: "(fake)" in browser.title, "the gateway's page")
        wallet = css(browser, "input[name=wallet]")
        wallet.clear()
        wallet.send_keys(shop.empty_wallet)
        css(browser, "#confirm").click()
        wait(browser, lambda: browser.find_elements(By.CSS_SELECTOR, ".fault[role=alert]"), "the page with the fault")

    payment = shop.create(key=shop.live_key)
    fail(payment)
    assert shop.status(payment, shop.live_key) == "pending"
    assert ("আবার চেষ্টা" if language == "bn-BD" else "try again") in text(browser)
    check(browser, shop, f"try-again-{language}")
    css(browser, "button.go").click()
    wait(browser, lambda: "(fake)" in browser.title, "the gateway's page")
    css(browser, "#confirm").click()
    wait(browser, lambda: "/healthz?paid" in browser.current_url, "the shop")

    payment = shop.create(key=shop.live_key)
    fail(payment)
    css(browser, "button[value=leave]").click()
    wait(browser, lambda: "/healthz?left" in browser.current_url, "the shop")
    assert shop.status(payment, shop.live_key) == "cancelled"


def test_a_double_click_a_reload_and_the_back_button_make_one_gateway_attempt(browser, shop):
    before = len(call(f"{shop.bkash}/_control/books", {})[1])
    payment = shop.create(key=shop.live_key)
    browser.get(payment["checkoutUrl"])
    browser.execute_script("const go = document.querySelector('button.go'); go.click(); go.click()")
    wait(browser, lambda: "(fake)" in browser.title, "the gateway's page")
    gateway = browser.current_url
    browser.back()
    wait(browser, lambda: "checking your payment" in browser.page_source, "the waiting page")
    check(browser, shop, "processing")
    browser.refresh()
    css(browser, "a.button").click()
    wait(browser, lambda: browser.current_url == gateway, "the same page of the gateway")
    css(browser, "#confirm").click()
    wait(browser, lambda: "/healthz?paid" in browser.current_url, "the shop")
    browser.back()
    browser.get(payment["checkoutUrl"])
    assert "Paid" in text(browser)
    books = call(f"{shop.bkash}/_control/books", {})[1]
    assert len(books) == before + 1 and sum(entry["taken"] for entry in books if payment["id"] in entry["reference"]) == 1


def test_a_waiting_page_updates_when_the_gateway_tab_was_closed(browser, shop):
    payment = shop.create(key=shop.live_key)
    browser.get(payment["checkoutUrl"])
    css(browser, "button.go").click()
    wait(browser, lambda: "(fake)" in browser.title, "the gateway's page")
    attempt = browser.current_url.rsplit("/", 1)[1]
    browser.get(payment["checkoutUrl"])
    wait(browser, lambda: "checking your payment" in browser.page_source, "the waiting page")
    call(f"{shop.bkash}/_control/approve", {"paymentID": attempt})
    wait(browser, lambda: "Thank you" in browser.page_source, "the page to update")


def test_the_page_reports_a_wrong_number_in_bangla_and_keeps_the_input(open_browser, shop):
    browser = open_browser(language="bn-BD")
    payment = shop.create(key=shop.live_key)
    browser.get(payment["checkoutUrl"])
    assert css(browser, "html").get_attribute("lang") == "bn"
    check(browser, shop, "choice-bangla")
    css(browser, "#phone").send_keys("12345")
    css(browser, "button.go").click()
    wait(browser, lambda: browser.find_elements(By.ID, "phone-fault"), "the error")
    assert css(browser, "#phone").get_attribute("value") == "12345"
    assert browser.switch_to.active_element.get_attribute("id") == "phone"
    check(browser, shop, "wrong-number-bangla")
    css(browser, "a.language").click()
    wait(browser, lambda: css(browser, "html").get_attribute("lang") == "en", "English")


def test_the_page_reports_a_failing_gateway_and_its_button_works_again(browser, shop):
    payment = shop.create(key=shop.live_key)
    browser.get(payment["checkoutUrl"])
    call(f"{shop.bkash}/_control/faults", {"next": "create", "kind": "error_before"})
    css(browser, "button.go").click()
    wait(browser, lambda: browser.find_elements(By.CSS_SELECTOR, "[role=alert]"), "the error")
    check(browser, shop, "no-answer")
    css(browser, "button.go").click()
    wait(browser, lambda: "(fake)" in browser.title, "the gateway's page")


def test_the_page_is_legible_in_dark_mode_and_at_every_width(open_browser, shop):
    payment = shop.create(key=shop.live_key, description="চা, দুই কাপ · " + "a-very-long-word" * 8)
    for name, width, dark in [("dark", 360, True), ("wide", 1280, False), ("narrow", 280, False)]:
        browser = open_browser(width=width, dark=dark)
        browser.get(payment["checkoutUrl"])
        check(browser, shop, f"choice-{name}")
        browser.get(f"{shop.url}/checkout/pay_unknown")
        assert "no payment at this address" in text(browser)
        check(browser, shop, f"unknown-{name}")


def test_the_simulator_works_without_javascript_and_shows_progress_with_it(open_browser, shop):
    browser = open_browser(script=False)
    payment = shop.create()
    browser.get(payment["checkoutUrl"])
    css(browser, "button.go").click()
    click_back(browser, shop)
    wait(browser, lambda: "/healthz?paid" in browser.current_url, "the shop")

    browser = open_browser()
    payment = shop.create()
    browser.get(payment["checkoutUrl"])
    # Block the submit, so that the page keeps showing progress.
    browser.execute_script("document.querySelector('form').addEventListener('submit', (event) => event.preventDefault())")
    css(browser, "button.go").click()
    wait(browser, lambda: css(browser, ".progress").is_displayed(), "the progress")
    assert not css(browser, "button.go").is_enabled()
    browser.picture("progress")


def test_the_page_of_an_expired_payment_says_expired(open_browser, shop, tmp_path):
    from conftest import start

    process, url = start("payments-server", "serve", "--listen", "127.0.0.1:0", "--data-dir", str(tmp_path / "data"),
                         "--session-ttl", "1")
    try:
        body = {"amount": 5, "success_url": "https://shop.example/ok", "cancel_url": "https://shop.example/no"}
        payment = call(f"{url}/api/v1/payments", body, key=SANDBOX_KEY)[1]
        time.sleep(1.2)
        browser = open_browser()
        browser.get(payment["checkoutUrl"])
        assert "expired" in text(browser) and browser.find_elements(By.TAG_NAME, "button") == []
        browser.picture("expired")
        assert browser.axe() == []
    finally:
        process.kill()
        process.wait()
