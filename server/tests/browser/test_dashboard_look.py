"""What a new visitor, a phone and a restricted key see of the console."""

import pytest
from conftest import SANDBOX_KEY, css, wait
from selenium.webdriver.common.by import By
from test_dashboard import check, reads, sign_in


@pytest.fixture
def workspace(shop):
    return shop.administer("workspaces", "create", "--name", "Asha's Books")


def new_key(shop, workspace, *scopes):
    arguments = [argument for scope in scopes for argument in ("--scope", scope)]
    return shop.administer("keys", "create", "--workspace", workspace, "--environment", "test", *arguments)


def test_a_phone_shows_a_payment_on_its_first_screen_with_its_order_and_customer(open_browser, shop, workspace):
    key = new_key(shop, workspace)
    shop.create(key=key, merchantTransactionId="A-1017", customer={"name": "Asha Rahman"})
    browser = open_browser(width=375, height=667)
    sign_in(browser, shop, key)
    reads(browser, "A-1017")
    assert "Asha Rahman" in css(browser, "tbody tr").text
    row = css(browser, "tbody tr").rect
    assert row["y"] + row["height"] <= 667, "the whole payment"
    navigation = css(browser, "#nav").rect
    assert navigation["height"] < 60, "one line"
    assert not css(browser, "input[name=from]").is_displayed(), "filters are folded"
    check(browser, shop, "first-screen")
    css(browser, "details.folded summary").click()
    assert css(browser, "input[name=from]").is_displayed()
    browser.get(f"{shop.url}/dashboard#/payments?currency=BDT")
    reads(browser, "These are the last")
    assert css(browser, "input[name=from]").is_displayed(), "filters in use are shown"
    wide = open_browser(width=1280, height=900)
    sign_in(wide, shop, key)
    reads(wide, "A-1017")
    assert css(wide, "input[name=from]").is_displayed()


def test_the_sign_in_is_one_block_and_says_where_keys_come_from(open_browser, shop):
    browser = open_browser(width=1280, height=900)
    browser.get(f"{shop.url}/dashboard")
    reads(browser, "payments-server keys create")
    title, card = css(browser, "h1").rect, css(browser, "main .card").rect
    assert title["x"] == card["x"] and title["y"] + title["height"] <= card["y"]
    check(browser, shop, "sign-in-wide")


def test_a_demo_payment_is_offered_in_the_sandbox_only_and_not_first(open_browser, shop, workspace):
    browser = open_browser(width=1280, height=900)
    sign_in(browser, shop, new_key(shop, workspace))
    reads(browser, "Nothing here yet")
    assert "demo payment" not in css(browser, "main").text
    browser = open_browser(width=1280, height=900)
    sign_in(browser, shop, SANDBOX_KEY)
    wait(browser, lambda: browser.find_elements(By.LINK_TEXT, "Create a demo payment"), "the link")
    assert "go" not in browser.find_element(By.LINK_TEXT, "Create a demo payment").get_attribute("class").split()


def test_an_empty_list_says_what_comes_and_how(browser, shop, workspace):
    sign_in(browser, shop, new_key(shop, workspace))
    for place, text in [("payments", "The guide to a first payment shows how"), ("deliveries", "Add an endpoint under Webhooks"),
                        ("transactions", "once a payment is paid"), ("requests?failed=", "in the last seven days"),
                        ("webhooks", "An endpoint is a URL of your server"),
                        ("payouts", "to your bank account or wallet")]:
        browser.get(f"{shop.url}/dashboard#/{place}")
        reads(browser, text)
        if place == "payments":
            assert css(browser, "main .soft a").get_attribute("href").endswith("/docs/first-payment")
        check(browser, shop, f"empty-{place.split('?')[0]}")


def test_a_cancelled_payment_has_no_fee_net_or_way_to_pay(browser, shop, workspace):
    key = new_key(shop, workspace)
    for status, has_fee in [("cancelled", False), ("failed", False), ("completed", True)]:
        payment = shop.create(key=key)
        shop.api(f"/checkout/{payment['id']}/simulate", {"status": status})
        if status == "cancelled":
            sign_in(browser, shop, key)
        browser.get(f"{shop.url}/dashboard#/payments/{payment['id']}")
        reads(browser, payment["id"])
        reads(browser, "Raw status")
        heads = [head.text for head in browser.find_elements(By.CSS_SELECTOR, "dt")]
        assert [name in heads for name in ("Fee", "Net", "Paid by", "Paid")] == [has_fee] * 4, (status, heads)


def test_a_restricted_key_sees_no_form_that_it_may_not_send_and_reads_which_scope_it_lacks(browser, shop, workspace):
    url = "http://127.0.0.1:9/hook"
    shop.api("/webhooks", {"url": url, "events": "*"}, new_key(shop, workspace))
    for scopes in [("webhooks:read",), ("webhooks:read", "account:read")]:
        browser.get(f"{shop.url}/healthz")
        browser.execute_script("sessionStorage.clear()")
        sign_in(browser, shop, new_key(shop, workspace, *scopes), "#/webhooks")
        reads(browser, url)
        text = css(browser, "main").text
        assert not any(word in text for word in ("Add an endpoint", "Remove", "Edit", "Send a test event", "Turn off")), text
        browser.get(f"{shop.url}/dashboard#/payments")
        reads(browser, "it lacks the scope payments:read")
    browser.refresh()
    reads(browser, "it lacks the scope payments:read")
    browser.get(f"{shop.url}/dashboard#/webhooks")
    reads(browser, url)
    assert "Add an endpoint" not in css(browser, "main").text
