"""People who sign in to the console at a provider."""

import pytest
from conftest import Shop, call, constant, css, start, wait
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select
from test_dashboard import check, press, reads
from test_dashboard_bangla import english

CUSTOMER = {"name": "Ayesha Begum", "email": "ayesha@example.com", "phone": "01712345678"}
# What the console says, in each language.
WORDS = {
    "en": {"open": "Open", "in": "You are signed in as", "out": "Sign out", "ended": "Your session has ended",
           "refused": "The sign-in was refused", "none": "Your account has no role here", "role": "viewer"},
    "bn": {"open": "খুলুন", "in": "হিসেবে প্রবেশ করেছেন", "out": "বেরিয়ে যান", "ended": "আপনার সেশন শেষ হয়েছে",
           "refused": "প্রবেশ গ্রহণ করা হয়নি", "none": "ভূমিকা নেই", "role": "দর্শক"},
}


@pytest.fixture(scope="module")
def provider():
    process, url = start("fake-oidc")
    yield url
    process.kill()
    process.wait()


@pytest.fixture(scope="module")
def people(tmp_path_factory, provider):
    directory = tmp_path_factory.mktemp("people")
    secret = directory / "secret"
    secret.write_text(constant("oidc.rs", "CLIENT_SECRET"))
    shop = Shop(directory / "data", PAYMENTS_OIDC_ISSUER=provider, PAYMENTS_OIDC_CLIENT_ID=constant("oidc.rs", "CLIENT_ID"),
                PAYMENTS_OIDC_CLIENT_SECRET_FILE=str(secret), PAYMENTS_OIDC_ROLES="viewers=viewer,helpdesk=support")
    shop.payment = shop.create(key=shop.test_key, customer=CUSTOMER, metadata={"note": "for Karim"})
    yield shop
    shop.stop()


def be(provider, *groups):
    call(f"{provider}/_control/person", {"subject": "mita", "name": "Mita", "groups": groups})


def sign_in(browser, shop, words, language):
    browser.get(f"{shop.url}/dashboard?lang={language}")
    wait(browser, lambda: browser.find_elements(By.ID, "provider"), "the way to the provider")
    css(browser, "#provider").click()
    reads(browser, words["in"])


def open_workspace(browser, shop, words):
    Select(css(browser, "select[name=workspace]")).select_by_value(shop.workspace)
    Select(css(browser, "select[name=environment]")).select_by_value("test")
    press(browser, words["open"])
    wait(browser, lambda: css(browser, "#nav").is_displayed(), "the menu")


@pytest.mark.parametrize("language,width,dark", [("en", 1280, False), ("bn", 375, True)])
def test_a_viewer_sees_a_workspace_without_its_customers(open_browser, people, provider, language, width, dark):
    browser, words = open_browser(width=width, language=language, dark=dark), WORDS[language]
    be(provider, "viewers")
    browser.get(f"{people.url}/dashboard?lang={language}")
    wait(browser, lambda: browser.find_elements(By.ID, "provider"), "the way to the provider")
    check(browser, people, f"people-{language}-before")
    sign_in(browser, people, words, language)
    assert words["role"] in css(browser, "select[name=workspace]").text
    check(browser, people, f"people-{language}-workspaces")
    if language == "bn":
        # The names of the workspaces are the merchants.
        assert [word for word in english(browser) if word not in ("Rahim", "Sons", "Tea", "Sandbox", "Karim")] == []
    open_workspace(browser, people, words)
    seen = ""
    for place in ["payments", f"payments/{people.payment['id']}", "deliveries", "webhooks", "balances", "payouts",
                  "transactions", "requests", "keys"]:
        browser.execute_script(f"location.hash = '#/{place}'")
        wait(browser, lambda: not css(browser, "#main").get_attribute("aria-busy"), place)
        wait(browser, lambda: browser.find_elements(By.CSS_SELECTOR, "#main h1"), place)
        assert not browser.find_elements(By.CSS_SELECTOR, "#main .fault:not([hidden])"), css(browser, "#main").text
        seen += browser.page_source
        if place.startswith("payments/"):
            reads(browser, "•••")
            check(browser, people, f"people-{language}-payment")
    for secret in [*CUSTOMER.values(), "for Karim"]:
        assert secret not in seen, secret
    css(browser, "#leave").click()
    wait(browser, lambda: browser.find_elements(By.ID, "provider"), "the way to the provider")
    browser.get(f"{people.url}/dashboard?lang={language}")
    wait(browser, lambda: browser.find_elements(By.ID, "provider"), "the way to the provider again")


@pytest.mark.parametrize("language", ["en", "bn"])
def test_a_failed_sign_in_and_a_revoked_session_say_why(open_browser, people, provider, language):
    browser, words = open_browser(width=375, language=language), WORDS[language]
    for groups, wrong, said in [((), None, words["none"]), (("viewers",), "audience", words["refused"])]:
        be(provider, *groups)
        if wrong:
            call(f"{provider}/_control/next", {"wrong": wrong})
        browser.get(f"{people.url}/dashboard?lang={language}")
        wait(browser, lambda: browser.find_elements(By.ID, "provider"), "the way to the provider")
        css(browser, "#provider").click()
        reads(browser, said)
        check(browser, people, f"people-{language}-failed")
    sign_in(browser, people, words, language)
    open_workspace(browser, people, words)
    people.administer("sessions", "revoke", "--person", "mita@platform.example")
    browser.execute_script("location.hash = '#/balances'")
    reads(browser, words["ended"])
    assert browser.find_elements(By.ID, "provider")


def test_support_sees_customers_and_goes_from_one_workspace_to_another(open_browser, people, provider):
    other = people.administer("workspaces", "create", "--name", "Karim")
    browser, words = open_browser(width=1280), WORDS["en"]
    be(provider, "helpdesk")
    sign_in(browser, people, words, "en")
    open_workspace(browser, people, words)
    browser.execute_script(f"location.hash = '#/payments/{people.payment['id']}'")
    reads(browser, CUSTOMER["email"])
    css(browser, "#switch").click()
    wait(browser, lambda: browser.find_elements(By.CSS_SELECTOR, "select[name=workspace]"), "the workspaces")
    Select(css(browser, "select[name=workspace]")).select_by_value(other)
    press(browser, words["open"])
    wait(browser, lambda: "Karim" in css(browser, "#environment").text, "the other workspace")
    browser.execute_script("location.hash = '#/payments'")
    reads(browser, "Nothing here yet.")
    assert css(browser, ".environment-live").is_displayed()
