"""The console's payouts and the statement of one."""

import pytest
from conftest import css, wait
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from test_dashboard import HOSTILE, check, press, reads, sign_in

DESTINATION = {"currency": "BDT", "bankAccount": {"holder": HOSTILE, "bank": "010271234", "number": "1234567890123"}}


@pytest.fixture
def key(shop):
    """A test key of a merchant with a balance of 1187.50 taka."""
    workspace = shop.administer("workspaces", "create", "--name", HOSTILE)
    key = shop.administer("keys", "create", "--workspace", workspace, "--environment", "test")
    payment = shop.create(key=key)
    shop.api(f"/checkout/{payment['id']}/simulate", {"status": "completed"})
    return key


def statuses(shop, key):
    return [payout["status"] for payout in shop.api("/payouts", key=key)[1]["items"]]


def confirm(browser):
    wait(browser, lambda: browser.find_elements(By.TAG_NAME, "dialog"), "the dialog")
    assert browser.axe() == []
    css(browser, "dialog .danger").click()


@pytest.mark.parametrize("width,dark", [(1280, False), (320, True)])
def test_a_merchant_sets_a_destination_requests_a_payout_and_prints_its_statement(open_browser, shop, key, width, dark):
    browser = open_browser(width=width, height=900, dark=dark)
    sign_in(browser, shop, key, "#/payouts")
    reads(browser, "৳1,187.50")
    assert not browser.find_elements(By.NAME, "amount"), "there is no destination yet"
    check(browser, shop, f"payouts-new-{width}")
    browser.find_element(By.LINK_TEXT, "Set a destination").send_keys(Keys.ENTER)
    wait(browser, lambda: browser.switch_to.active_element.get_attribute("id") == "edit", "the form to have the focus")
    kind = css(browser, "select[name=kind]")
    kind.send_keys("Mobile")
    wait(browser, lambda: browser.switch_to.active_element.get_attribute("id") == "choice-kind"
         and browser.find_elements(By.ID, "choice-institution"), "the wallet's fields")
    css(browser, "#choice-institution").send_keys("Nagad")
    css(browser, "input[name=holder]").send_keys(HOSTILE)
    css(browser, "input[name=number]").send_keys("123" + Keys.ENTER)
    reads(browser, "wallet.number must")
    css(browser, "input[name=number]").clear()
    css(browser, "input[name=number]").send_keys("01712345678" + Keys.ENTER)
    reads(browser, "…5678")
    assert HOSTILE in css(browser, "main").text and "Only by a request" in css(browser, "main").text
    browser.find_element(By.LINK_TEXT, "Edit").send_keys(Keys.ENTER)
    wait(browser, lambda: browser.find_elements(By.ID, "choice-interval"), "the schedule")
    check(browser, shop, f"payouts-edit-{width}")
    css(browser, "#choice-interval").send_keys("On the first")
    css(browser, "input[name=minimum]").send_keys("500" + Keys.ENTER)
    reads(browser, "On the first day of each month, from ৳500.00")
    reads(browser, "Next payout")
    css(browser, "input[name=amount]").send_keys("9999" + Keys.ENTER)
    confirm(browser)
    reads(browser, "1187.5 BDT is available for a payout")
    css(browser, "input[name=amount]").clear()
    css(browser, "input[name=amount]").send_keys("250" + Keys.ENTER)
    confirm(browser)
    reads(browser, "৳937.50")
    wait(browser, lambda: statuses(shop, key) == ["paid"], "the sandbox to pay it")
    browser.refresh()
    reads(browser, "TEST-po_")
    check(browser, shop, f"payouts-{width}")
    press(browser, "Download as CSV")
    wait(browser, lambda: not browser.find_elements(By.CSS_SELECTOR, "main button:disabled:not(.between *)"), "the table")
    assert css(browser, "#said").text == ""
    press(browser, "Statement")
    wait(browser, lambda: len(browser.window_handles) == 2, "the statement's window")
    browser.switch_to.window(browser.window_handles[1])
    wait(browser, lambda: browser.find_elements(By.TAG_NAME, "h1"), "the statement")
    text = css(browser, "main").text
    for shown in ["Payout statement", HOSTILE, "Test payout", "…5678", "Opening balance", "−৳62.50", "−৳250.00", "৳937.50"]:
        assert shown in text, shown
    wait(browser, lambda: browser.execute_script("return document.styleSheets.length") == 1, "its styles")
    check(browser, shop, f"statement-{width}")
    browser.close()
    browser.switch_to.window(browser.window_handles[0])
    browser.get(f"{shop.url}/dashboard#/transactions")
    reads(browser, "po_")
    assert "−৳250.00" in css(browser, "tbody tr").text
    check(browser, shop, f"transactions-payout-{width}")


def test_a_merchant_cancels_a_payout_that_is_not_sent(browser, shop, key):
    shop.api("/payouts/destinations", DESTINATION, key)
    sign_in(browser, shop, key, "#/payouts")
    # The sandbox's bank pays every five seconds: the next payout waits that long.
    shop.api("/payouts", {"currency": "BDT", "amount": 5}, key)
    wait(browser, lambda: statuses(shop, key) == ["paid"], "the first payout")
    assert shop.api("/payouts", {"currency": "BDT"}, key)[0] == 201
    browser.refresh()
    reads(browser, "Cancel the payout")
    press(browser, "Cancel the payout")
    confirm(browser)
    reads(browser, "cancelled")
    assert statuses(shop, key) == ["cancelled", "paid"]
    reads(browser, "৳1,182.50")
    assert "Cancel the payout" not in css(browser, "main").text


def test_a_key_that_may_only_read_payouts_sees_no_form(browser, shop, key):
    shop.api("/payouts/destinations", DESTINATION, key)
    workspace = shop.api("/account", key=key)[1]["workspace"]["id"]
    reader = shop.administer("keys", "create", "--workspace", workspace, "--environment", "test", "--scope", "payouts:read")
    sign_in(browser, shop, reader, "#/payouts")
    reads(browser, "…0123")
    assert not browser.find_elements(By.CSS_SELECTOR, "main form, main a.button")
