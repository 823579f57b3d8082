"""The developer console in Bangla."""

import re

import pytest
from conftest import css, wait
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from test_dashboard import HOSTILE, check, endpoint as receiver_of, press, reads, sign_in


@pytest.fixture
def key(shop):
    """A test key of a workspace of its own."""
    workspace = shop.administer("workspaces", "create", "--name", "Karim")
    shop.administer("keys", "create", "--workspace", workspace, "--environment", "live", "--name", "the shop")
    return shop.administer("keys", "create", "--workspace", workspace, "--environment", "test")


@pytest.fixture
def gone():
    yield from receiver_of(410)


# Texts that are not the console's: ids, codes, times, and what people or the server wrote.
NOT_OURS = "code, pre, time, q[lang=en], [translate=no], #language, script, style, option[value^=wh_]"
# Names that Bangla writes in Latin letters as well.
LATIN = ["BDT", "USD", "HTTPS", "JSON", "CSV", "test.ping", "payment.created", "payment.completed",
         "payment.partially_refunded", "payment.refunded", "payment.refund_failed",
         "payment.disputed", "payment.dispute_closed", "payout.created", "payout.approved", "payout.paid",
         "payout.failed", "payout.cancelled", "payout.returned"]


def english(browser):
    """The English texts of the page, its names for screen readers included."""
    found = browser.execute_script("""
        const texts = [document.title.split(" · ")[1]];
        const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        for (let node; (node = walker.nextNode());) if (!node.parentElement.closest(arguments[0])) texts.push(node.data);
        for (const element of document.querySelectorAll("[aria-label]")) texts.push(element.getAttribute("aria-label"));
        return texts""", NOT_OURS)
    words = [word.strip(".,:()।") for text in found for word in text.split()]
    return [word for word in words if re.search("[A-Za-z]{2,}", word) and word not in LATIN]


@pytest.mark.parametrize("width,dark", [(1280, False), (390, True)])
def test_the_whole_console_speaks_bangla(open_browser, shop, key, gone, width, dark):
    payment = shop.create(key=key, description=HOSTILE, customer={"name": "Asha", "email": "a@example.com"})
    url, got = gone
    endpoint = shop.api("/webhooks", {"url": url, "events": "*", "retries": "standard"}, key)[1]
    shop.create(key=key)
    shop.api(f"/checkout/{payment['id']}/simulate", {"status": "completed"})
    shop.administer("disputes", "open", payment["id"], "--amount", "5", "--reference", "CB-1", "--reason", "never came",
                    "--evidence-due", "2030-01-01")
    account = {"holder": HOSTILE, "bank": "010271234", "number": "1234567890123"}
    shop.api("/payouts/destinations", {"currency": "BDT", "bankAccount": account}, key)
    shop.api("/payouts/schedules", {"currency": "BDT", "interval": "weekly", "minimum": 5}, key)
    shop.api("/payouts", {"currency": "BDT", "amount": 5}, key)
    unreachable = shop.api("/webhooks", {"url": "http://127.0.0.1:9/", "events": "*"}, key)[1]
    shop.api(f"/webhooks/{unreachable['id']}/test", method="POST", key=key)
    delivery = shop.api("/webhooks/deliveries", key=key)[1]["items"][0]
    browser = open_browser(width=width, height=900, dark=dark, language="bn-BD")
    browser.get(f"{shop.url}/dashboard#/keys")
    wait(browser, lambda: browser.find_elements(By.NAME, "key"), "the form")
    assert css(browser, "html").get_attribute("lang") == "bn", "by the browser's language"
    assert english(browser) == []
    check(browser, shop, f"bn-sign-in-{width}")
    css(browser, "input[name=key]").send_keys("sk_test_wrong" + Keys.ENTER)
    reads(browser, "সার্ভার এই কী চেনে না")
    assert english(browser) == []
    css(browser, "input[name=key]").clear()
    css(browser, "input[name=key]").send_keys(key + Keys.ENTER)
    reads(browser, key[-4:])
    for place, text in [
        ("keys", "এই কী"), ("payments", "পৃষ্ঠা 1"), ("payments?status=expired", "কিছু মেলেনি"), ("payments?currency=BDT", "এগুলোই শেষ"),
        (f"payments/{payment['id']}", "পেমেন্ট পরিশোধ হয়েছে"), (f"payments/{payment['id']}x", "সার্ভার এটি গ্রহণ করেনি"),
        ("deliveries", "পৃষ্ঠা 1"), (f"deliveries?webhookId={endpoint['id']}&open={delivery['id']}", "এন্ডপয়েন্ট"),
        (f"deliveries?webhookId={unreachable['id']}", "পৃষ্ঠা 1"), ("webhooks", "এন্ডপয়েন্ট যোগ করুন"), ("balances", "টাকায় ব্যালেন্স"),
        ("payouts", "প্রতি রবিবার"), ("payouts?edit=BDT&kind=wallet", "মোবাইল নম্বর"), ("payouts?edit=USD", "সুইফট কোড"),
        ("transactions", "CSV ডাউনলোড করুন"), ("requests", "গত সাত দিনে"), ("requests?failed=true", "ত্রুটি"), ("simulator", "ডেমো সেশন"),
    ]:
        browser.get(f"{shop.url}/dashboard#/{place}")
        reads(browser, text)
        wait(browser, lambda: not browser.find_elements(By.CSS_SELECTOR, "main[aria-busy]"), f"{place} to load")
        assert english(browser) == [], place
        check(browser, shop, f"bn-{re.sub('[^a-z]+', '-', place.split('_')[0])}-{width}")
        browser.refresh()
        reads(browser, text)
    press(browser, "ডেমো সেশন তৈরি করুন")
    reads(browser, "test_pay_")
    assert english(browser) == []
    browser.refresh()
    reads(browser, "test_pay_")
    browser.get(f"{shop.url}/dashboard#/webhooks")
    reads(browser, url)
    press(browser, "মুছুন")
    wait(browser, lambda: browser.find_elements(By.TAG_NAME, "dialog"), "the dialog")
    assert english(browser) == [] and browser.axe() == []
    browser.find_element(By.XPATH, "//dialog//button[.='না, থাক']").click()


def test_a_chosen_language_is_remembered_and_keeps_the_view(browser, shop, key):
    sign_in(browser, shop, key, "#/keys")
    reads(browser, "this key")
    assert "the shop" not in css(browser, "table").text, "a key of the other environment"
    check(browser, shop, "keys")
    css(browser, "#language").click()
    reads(browser, "এই কী")
    assert browser.current_url.endswith("/dashboard?lang=bn#/keys"), browser.current_url
    assert css(browser, "html").get_attribute("lang") == "bn"
    browser.get(f"{shop.url}/dashboard#/balances")
    reads(browser, "টাকায় ব্যালেন্স")
    css(browser, "#language").click()
    reads(browser, "Balance in taka")
    # The skip link goes to the content, and not to another view.
    css(browser, ".skip").send_keys(Keys.ENTER)
    assert browser.switch_to.active_element.get_attribute("id") == "main"
    assert browser.current_url.endswith("#/balances")
