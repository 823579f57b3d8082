"""The choice among several ways to pay, and a payment by each of them, in a real browser."""

import json
import re
import urllib.parse
import urllib.request

import pytest
from conftest import Shop, call, constant, css, start, wait
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from test_checkout import text

STORE = {
    "store_id": constant("sslcommerz/known.rs", "STORE_ID"),
    "store_passwd": constant("sslcommerz/known.rs", "STORE_PASSWORD"),
}
# The buttons with which the gateways' customers pay.
PAY = "#confirm, #pay"


@pytest.fixture(scope="module")
def market(tmp_path_factory):
    """A shop that also takes cards, banks and wallets in taka."""
    process, url = start("fake-sslcommerz")
    shop = Shop(
        tmp_path_factory.mktemp("market") / "data",
        PAYMENTS_SSLCOMMERZ_BASE_URL=url,
        PAYMENTS_SSLCOMMERZ_STORE_ID=STORE["store_id"],
        PAYMENTS_SSLCOMMERZ_STORE_PASSWORD=STORE["store_passwd"],
    )
    shop.portal = url
    yield shop
    shop.stop()
    process.kill()
    process.wait()


def ways(market, currency):
    payment = market.create(key=market.live_key, currency=currency)
    return [way["name"] for way in market.api(f"/checkout/{payment['id']}")[1]["ways"]]


def fill_in(browser):
    for name, value in [("customerName", "Karim"), ("customerEmail", "karim@example.com"), ("phoneNumber", "01770618575")]:
        for field in browser.find_elements(By.NAME, name):
            if field.is_displayed() and not field.get_attribute("value"):
                field.send_keys(value)


def refund(market, payment, amount):
    url = f"{market.url}/api/v1/payments/{payment['id']}/refund"
    headers = {"content-type": "application/json", "authorization": f"Bearer {market.live_key}",
               "idempotency-key": f"{payment['id']}-{amount}"}
    request = urllib.request.Request(url, json.dumps({"amount": amount}).encode(), headers, method="POST")
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read())


def statement(market):
    """The statement of SSLCommerz by its books and its API, and what it will keep for refunds that it has accepted."""
    rows = ["val_id,type,tran_id,amount,store_amount,currency,tran_date"]
    taken = [entry for entry in call(f"{market.portal}/_control/books", {})[1] if entry["taken"]]
    for entry in taken:
        query = urllib.parse.urlencode({**STORE, "tran_id": entry["reference"], "format": "json"})
        [row] = call(f"{market.portal}/validator/api/merchantTransIDvalidationAPI.php?{query}")[1]["element"]
        row["type"], row["currency"] = "sale", "BDT"
        rows.append(",".join(row[name] for name in rows[0].split(",")))
    return rows, sum(entry["refundedMinor"] for entry in taken) // 100


@pytest.mark.parametrize("script", [True, False])
def test_a_customer_pays_by_each_way_and_gets_a_part_of_it_back_and_the_books_close(
    open_browser, market, tmp_path, script
):
    browser = open_browser(script=script)
    for currency in ["BDT", "USD"]:
        for way in ways(market, currency):
            payment = market.create(key=market.live_key, currency=currency)
            browser.get(payment["checkoutUrl"])
            for choice in browser.find_elements(By.CSS_SELECTOR, f"input[type=radio][value={way}]"):
                choice.click()
            fill_in(browser)
            css(browser, "button.go").click()
            wait(browser, lambda: "(fake)" in browser.title, f"the page of {way}")
            css(browser, PAY).click()
            # Without scripts the customer presses the gateway's button to go back.
            for button in browser.find_elements(By.ID, "continue"):
                if not script:
                    button.click()
            wait(browser, lambda: "/healthz?paid" in browser.current_url, f"the shop after {way}")
            assert market.status(payment, market.live_key) == "paid", way
            assert refund(market, payment, 250)["amountRefunded"] == 250, way
    file = tmp_path / "statement.csv"
    rows, kept = statement(market)
    file.write_text("\n".join(rows) + "\n")
    imported = market.administer(
        "settlements", "import", "--gateway", "sslcommerz", "--columns", "sslcommerz", str(file)
    )
    assert "matched" in imported and "differs" not in imported, imported
    report = market.administer("settlements", "report")
    assert re.search(rf"^sslcommerz BDT: .* = -{kept} owed now, as its account says$", report, re.MULTILINE), report
    assert "but its account" not in report, report


@pytest.mark.parametrize("language,dark", [("en-GB", False), ("bn-BD", True)])
def test_the_choice_fits_a_small_screen_and_needs_only_a_keyboard(open_browser, market, language, dark):
    browser = open_browser(width=320, language=language, dark=dark)
    payment = market.create(key=market.live_key)
    browser.get(payment["checkoutUrl"])
    first, second = browser.find_elements(By.CSS_SELECTOR, "input[type=radio]")
    assert first.is_selected() and not css(browser, "#email").is_displayed()
    browser.picture(f"ways-{language}")
    assert browser.axe() == [] and not browser.scrolls_sideways()
    first.send_keys(Keys.ARROW_DOWN)
    assert second.is_selected() and css(browser, "#email").is_displayed()
    browser.picture(f"ways-second-{language}")
    assert browser.axe() == [] and not browser.scrolls_sideways()
    # The server asks for what is missing, and keeps what was chosen.
    css(browser, "button.go").send_keys(Keys.ENTER)
    wait(browser, lambda: browser.find_elements(By.CSS_SELECTOR, ".fault[role=alert]"), "the field that is missing")
    assert css(browser, "input[type=radio]:checked").get_attribute("value") == second_name(market)
    assert ("এটি লাগবে" if language == "bn-BD" else "needs it") in text(browser)
    browser.picture(f"ways-missing-{language}")
    assert browser.axe() == [] and not browser.scrolls_sideways()
    fill_in(browser)
    css(browser, "button.go").send_keys(Keys.ENTER)
    wait(browser, lambda: "(fake)" in browser.title, "the gateway's page")


def second_name(market):
    return ways(market, "BDT")[1]
