"""Ten questions that support gets, answered on the console's screens alone."""

import time

import pytest
from conftest import call, css, wait
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from test_dashboard import check, endpoint, reads, sign_in


@pytest.fixture(scope="module")
def failing():
    yield from endpoint(500)


class Desk:
    """A merchant with one payment for each question, and what its customer reads out."""

    def __init__(self, shop, endpoint):
        self.shop = shop
        workspace = shop.administer("workspaces", "create", "--name", "Support Tea")
        self.key, self.test_key = [
            shop.administer("keys", "create", "--workspace", workspace, "--environment", one) for one in ("live", "test")]
        self.refunded = self.paid("A-3")
        refund = f"{shop.url}/api/v1/payments/{self.refunded['id']}/refund"
        status, refunded = call(refund, {"amount": 250}, key=self.key, **{"idempotency-key": "r-1"})
        assert status == 200, refunded
        self.failed = self.create("A-4", customer={"email": "Asha@shop.example"})
        attempt = self.attempt(self.failed)
        self.go(self.approve(attempt, shop.empty_wallet))
        self.twice = self.create("A-2", customer={"phone": "01712345678"})
        first = self.attempt(self.twice)
        self.go(self.approve(first, shop.empty_wallet))
        self.go(self.approve(self.attempt(self.twice)))
        call(f"{shop.bkash}/_control/take", {"paymentID": first})
        self.disputed = self.paid("A-9")
        shop.administer("disputes", "open", self.disputed["id"], "--amount", "1250", "--reference", "CB-9", "--reason",
                        "never came", "--evidence-due", time.strftime("%Y-%m-%d", time.gmtime(time.time() + 2 * 86400)))
        self.reviewed = self.create("A-10")
        attempt = self.attempt(self.reviewed)
        call(f"{shop.bkash}/_control/falsify_amount", {"paymentID": attempt, "amount": "1.00"})
        self.go(self.approve(attempt))
        self.expired = self.create("A-7", key=self.test_key)
        assert shop.api("/sandbox/advance", {"seconds": 4000}, self.test_key)[0] == 200
        shop.api("/webhooks", {"url": endpoint, "events": "*"}, self.key)
        self.unheard = self.paid("A-1")
        self.until(lambda: "answered 500" in str(self.summary(self.unheard)))
        self.until(lambda: "does not fit" in str(self.summary(self.twice)))
        self.until(lambda: "does not fit" in str(self.summary(self.reviewed)))
        self.until(lambda: shop.api("/account/notices", key=self.key)[1])

    def until(self, holds):
        until = time.time() + 60
        while not holds():
            assert time.time() < until
            time.sleep(0.5)

    def create(self, order, key=None, **more):
        return self.shop.create(key=key or self.key, merchantTransactionId=order, **more)

    def attempt(self, payment):
        url = call(f"{self.shop.url}/api/v1/checkout/{payment['id']}/pay", {})[1]["redirectUrl"]
        return url.rsplit("/", 1)[1]

    def approve(self, attempt, wallet=None):
        body = {"paymentID": attempt, **({"wallet": wallet} if wallet else {})}
        return call(f"{self.shop.bkash}/_control/approve", body)[1]["location"]

    def go(self, location):
        """Returns from the gateway as the customer's browser does. Where the shop sends it does not matter."""
        try:
            call(location)
        except ValueError:
            pass

    def paid(self, order):
        payment = self.create(order)
        self.go(self.approve(self.attempt(payment)))
        self.until(lambda: self.read(payment)["rawStatus"] == "paid")
        return payment

    def read(self, payment):
        return self.shop.api(f"/payments/{payment['id']}", key=self.key)[1]

    def summary(self, payment):
        return self.shop.api(f"/payments/{payment['id']}/timeline", key=self.key)[1]["summary"]


@pytest.fixture(scope="module")
def desk(shop, failing):
    return Desk(shop, failing[0])


def find(browser, text):
    """Types what the customer said into the search, from wherever the console is."""
    browser.get(browser.current_url.split("#")[0] + "#/payments")
    wait(browser, lambda: browser.find_elements(By.CSS_SELECTOR, "input[name=search]"), "the list")
    field = css(browser, "input[name=search]")
    field.clear()
    field.send_keys(text + Keys.ENTER)
    wait(browser, lambda: "#/payments/" in browser.current_url and css(browser, "#story").text, text)


@pytest.mark.parametrize("width,dark,language", [(375, False, "en-GB"), (375, True, "bn-BD"), (1280, True, "en-GB"),
                                                 (1280, False, "bn-BD")])
def test_ten_questions_are_answered_on_the_screen_of_a_payment(open_browser, shop, desk, width, dark, language):
    browser = open_browser(width=width, height=900, dark=dark, language=language)
    is_english = language == "en-GB"
    transaction = desk.read(desk.refunded)["gatewayTransactionId"]
    sign_in(browser, shop, desk.key)
    for question, typed, english, bangla in [
        ("1-and-6-says-paid", "A-1", "Fix your endpoint, which answered 500", "ওয়েবহুক ঠিকানা ঠিক করুন"),
        ("2-paid-twice", "+880 1712-345678", "took the money of an earlier attempt too", "মেলে না"),
        ("3-and-8-refund", transaction, "৳1,000.00 can still be refunded", "আরও ৳১,০০০.০০ ফেরত দেওয়া যাবে"),
        ("4-failed", "asha@SHOP.example", "refused the payment", "পেমেন্টটি নেয়নি"),
        ("9-disputed", "A-9", "Send the platform what shows that the order was delivered", "পণ্য দেওয়ার প্রমাণ"),
        ("10-review", desk.reviewed["id"], "the platform looks into it", "প্ল্যাটফর্ম বিষয়টি দেখছে"),
    ]:
        find(browser, typed)
        reads(browser, english if is_english else bangla)
        check(browser, shop, f"support-{question}-{width}-{language}")
    # Question 5: the order of a transaction id.
    find(browser, transaction)
    reads(browser, "A-3")
    # What the merchant must look at is above every view.
    wait(browser, lambda: desk.disputed["id"] in css(browser, "#notices").text, "the notice of the dispute")
    browser.get(f"{shop.url}/dashboard#/payments?search=A-99")
    reads(browser, "Nothing matches" if is_english else "কিছু মেলেনি")
    log = shop.api("/requests?limit=100", key=desk.key)[1]["items"]
    assert log and not any(it["path"].endswith("/account/keys") for it in log), "the console's reads are not logged"


def test_an_expired_payment_says_to_send_a_new_link(browser, shop, desk):
    sign_in(browser, shop, desk.test_key)
    find(browser, "A-7")
    reads(browser, "chose no way to pay before the payment page closed")
    reads(browser, "make a new payment and send its link")
    check(browser, shop, "support-7-expired")
