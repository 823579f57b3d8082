"""The console's views for the platform's own people."""

import time

import pytest
from conftest import Shop, call, constant, css, wait
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select
from test_dashboard import check, press, reads
from test_dashboard_bangla import english
from test_people import WORDS, be, provider, sign_in  # noqa: F401
from test_support import Desk, failing  # noqa: F401

VIEWS = ["notices", "payouts", "settlements", "refunds", "disputes", "reviews", "gateways", "coverage", "workspaces",
         "sessions", "audit"]
HEADER = "id,kind,reference,gross,fee,net,currency,date\n"
# Names that Bangla writes in Latin letters as well.
NAMES = ["SSLCommerz", "Stripe", "Card"]


@pytest.fixture(scope="module")
def platform(tmp_path_factory, provider, failing):  # noqa: F811
    directory = tmp_path_factory.mktemp("platform")
    secret = directory / "secret"
    secret.write_text(constant("oidc.rs", "CLIENT_SECRET"))
    shop = Shop(directory / "data", PAYMENTS_OIDC_ISSUER=provider, PAYMENTS_OIDC_CLIENT_ID=constant("oidc.rs", "CLIENT_ID"),
                PAYMENTS_OIDC_CLIENT_SECRET_FILE=str(secret), PAYMENTS_PAYOUT_KEY="a key of the platform for numbers of accounts",
                PAYMENTS_OIDC_ROLES="viewers=viewer,accounts=finance,owners=admin")
    shop.desk = Desk(shop, failing[0])
    key = shop.desk.key
    account = {"holder": "Karim Stores", "bank": "010271234", "number": "1234567890123"}
    assert shop.api("/payouts/destinations", {"currency": "BDT", "bankAccount": account}, key)[0] == 200
    status, shop.payout = call(f"{shop.url}/api/v1/payouts", {"currency": "BDT", "amount": 300}, key=key, **{"idempotency-key": "p-1"})
    assert status == 201, shop.payout
    statement = directory / "before.csv"
    statement.write_text(HEADER + "OLD-1,payment,TX0,50,1,49,BDT,2026-03-01\n" + f"OLD-2,payment,{shop.desk.unheard['id']},1250,10,1240,BDT,2026-03-01\n")
    shop.administer("settlements", "import", "--gateway", "bkash", str(statement))
    yield shop
    shop.stop()


def enter(browser, shop, provider, group, language="en"):  # noqa: F811
    be(provider, group)
    sign_in(browser, shop, WORDS[language], language)
    css(browser, "#platform").send_keys(Keys.ENTER)
    wait(browser, lambda: css(browser, "#nav").is_displayed(), "the menu")
    loaded(browser)


def loaded(browser):
    wait(browser, lambda: browser.find_elements(By.CSS_SELECTOR, "#main h1") and not browser.find_elements(By.CSS_SELECTOR, "#main[aria-busy]"), "the view")
    assert not browser.find_elements(By.CSS_SELECTOR, "#main > .fault"), css(browser, "#main").text


def go(browser, place):
    browser.execute_script("location.hash = '#/platform/' + arguments[0]", place)
    wait(browser, lambda: css(browser, "nav [aria-current]").get_attribute("href").endswith("/" + place.split("?")[0]), place)
    loaded(browser)


def views(browser):
    links = browser.find_elements(By.CSS_SELECTOR, "nav a[href*='#/platform/']")
    return [link.get_attribute("href").rsplit("/", 1)[1] for link in links]


def dialog(browser):
    wait(browser, lambda: browser.find_elements(By.TAG_NAME, "dialog"), "the dialog")
    return css(browser, "dialog")


def answer(browser, **values):
    """Fills in the dialog's fields and sends them."""
    dialog(browser)
    for name, value in values.items():
        field = css(browser, f"dialog [name={name}]")
        if field.tag_name == "select":
            Select(field).select_by_value(value)
        else:
            field.send_keys(value)
    css(browser, "dialog [type=submit]").click()


def closed(browser):
    wait(browser, lambda: not browser.find_elements(By.TAG_NAME, "dialog"), "the dialog to close")
    wait(browser, lambda: css(browser, "#said").text, "the confirmation")
    loaded(browser)


@pytest.mark.parametrize("language,width,dark", [("en", 1280, False), ("bn", 375, True), ("bn", 1280, True), ("en", 375, False)])
def test_every_view_is_readable_in_both_languages_and_themes(open_browser, platform, provider, language, width, dark):  # noqa: F811
    browser = open_browser(width=width, height=900, language=language, dark=dark)
    enter(browser, platform, provider, "owners", language)
    assert views(browser) == VIEWS
    lists = ["payouts?show=cancelled", "settlements?show=matched", "settlements?show=ours"]
    for place in VIEWS + lists:
        go(browser, place)
        check(browser, platform, f"platform-{place.replace('?show=', '-')}-{language}-{width}")
        if language == "bn":
            assert [word for word in english(browser) if word not in NAMES] == [], place
    for place in ["payouts", "settlements", "refunds", "reviews", "disputes", "gateways", "workspaces", "sessions"]:
        go(browser, place)
        for nth in range(min(3, len(browser.find_elements(By.CSS_SELECTOR, "main :is(.row, td) button")))):
            button = browser.find_elements(By.CSS_SELECTOR, "main :is(.row, td) button")[nth]
            button.send_keys(Keys.ENTER)
            inside = dialog(browser)
            wait(browser, lambda: browser.execute_script("return arguments[0].contains(document.activeElement)", inside), "the focus")
            check(browser, platform, f"platform-{place}-dialog-{nth}-{language}-{width}")
            if language == "bn":
                assert [word for word in english(browser) if word not in NAMES] == [], place
            browser.switch_to.active_element.send_keys(Keys.ESCAPE)
            wait(browser, lambda: not browser.find_elements(By.TAG_NAME, "dialog"), "the dialog to close")
            assert browser.switch_to.active_element == button


def test_a_viewer_sees_what_waits_and_may_do_nothing(open_browser, platform, provider):  # noqa: F811
    browser = open_browser(width=1280)
    enter(browser, platform, provider, "viewers")
    assert views(browser) == [view for view in VIEWS if view not in ("sessions", "audit")]
    for view in views(browser):
        go(browser, view)
        # A viewer reads the limits of a workspace.
        labels = {button.text for button in browser.find_elements(By.CSS_SELECTOR, "main :is(.row, td) button")}
        assert labels <= {"Limits"}, (view, labels)
    go(browser, "workspaces")
    press(browser, "Limits")
    assert dialog(browser).text.endswith("Close")
    assert not browser.find_elements(By.CSS_SELECTOR, "dialog [type=submit], dialog input:not([readonly])")
    check(browser, platform, "platform-viewer-limits")
    approve = """return fetch("/admin/v1/payouts/outcomes", { method: "POST", headers: { "x-csrf": "1" }, body: JSON.stringify(
        { isCheck: false, rows: [{ payout: arguments[0], outcome: { approved: { by: "me" } } }] }) }).then((it) => it.status)"""
    assert browser.execute_script(approve, platform.payout["id"]) == 403
    browser.execute_script("location.hash = '#/platform/sessions'")
    wait(browser, lambda: "Notices" in css(browser, "main h1").text, "the first view instead of one that is not there")


def test_finance_does_the_daily_work_without_a_command_line(open_browser, platform, provider, tmp_path):  # noqa: F811
    browser, desk = open_browser(width=1280, height=900), platform.desk
    enter(browser, platform, provider, "accounts")
    go(browser, "payouts")
    press(browser, "Approve")
    answer(browser)
    closed(browser)
    assert desk.shop.api(f"/payouts/{platform.payout['id']}", key=desk.key)[1]["status"] == "approved"
    press(browser, "Cancel the payout")
    answer(browser, reason="a typo")
    closed(browser)
    reads(browser, "Nothing here yet.")
    Select(css(browser, "#choice-show")).select_by_value("cancelled")
    reads(browser, platform.payout["id"])
    assert browser.switch_to.active_element.get_attribute("id") == "choice-show"
    # What the server refuses is said in the dialog, here because the merchant was faster.
    status, second = call(f"{platform.url}/api/v1/payouts", {"currency": "BDT", "amount": 5}, key=desk.key, **{"idempotency-key": "p-2"})
    assert status == 201, second
    go(browser, "payouts")
    press(browser, "Approve")
    assert second["id"] in dialog(browser).text
    assert platform.api(f"/payouts/{second['id']}/cancel", {}, desk.key)[0] == 200
    answer(browser)
    wait(browser, lambda: "is cancelled cannot become approved" in dialog(browser).text, "the refusal")
    css(browser, "dialog [type=button]").click()

    go(browser, "refunds")
    reads(browser, "৳250.00")
    press(browser, "Record: sent")
    answer(browser, reference="TRX-99")
    closed(browser)
    reads(browser, "Nothing here yet.")
    assert desk.read(desk.refunded)["refunds"][0]["status"] == "succeeded"

    go(browser, "settlements")
    wrong, right = tmp_path / "wrong.csv", tmp_path / "right.csv"
    wrong.write_text(HEADER + "NEW-1,payment,TX9,12.505,0,12,BDT,2026-03-01\n")
    # As a spreadsheet writes it.
    right.write_text(HEADER + f"NEW-1,payment,TX9,1250,10,1240,BDT,2026-03-01\nNEW-2,payment,{desk.disputed['id']},1250,10,1240,BDT,2026-03-01\n", "utf-16")
    press(browser, "Import a statement")
    answer(browser, gateway="bkash", text=str(wrong))
    wait(browser, lambda: css(browser, "dialog .fault").is_displayed(), "the fault")
    assert css(browser, "dialog .fault").text == 'line 2, column "gross": "12.505" is no amount with at most two decimals, such as 1250.50'
    check(browser, platform, "platform-import-wrong")
    answer(browser, text=str(right))
    wait(browser, lambda: "2 rows, 0 of them imported before: 1 matched, 0 of them with another amount; 1 without" in dialog(browser).text, "the question")
    check(browser, platform, "platform-import-question")
    assert "NEW-1" not in css(browser, "main").text
    answer(browser)
    closed(browser)
    reads(browser, "NEW-1")
    row = browser.find_element(By.XPATH, "//tr[contains(., 'NEW-1')]//button")
    row.click()
    answer(browser, payment="pay_unknown")
    wait(browser, lambda: css(browser, "dialog .fault").is_displayed(), "the fault")
    css(browser, "dialog [name=payment]").clear()
    answer(browser, payment=desk.refunded["id"])
    closed(browser)
    assert "NEW-1" not in css(browser, "main").text
    go(browser, "settlements?show=matched")
    reads(browser, "NEW-1")

    go(browser, "disputes")
    press(browser, "Record: won")
    answer(browser)
    closed(browser)
    assert desk.read(desk.disputed)["disputes"][0]["status"] == "won"
    go(browser, "reviews")
    reads(browser, "৳1,250.00")
    browser.find_element(By.XPATH, f"//tr[contains(., '{desk.reviewed['id']}')]//button").click()
    answer(browser, outcome="failed", note="No money at bKash.")
    closed(browser)
    assert desk.read(desk.reviewed)["rawStatus"] == "failed"
    go(browser, "audit")
    reads(browser, "POST /admin/v1/settlements/gateways/{gateway}/file")
    reads(browser, "mita@platform.example")


def test_an_owner_pauses_a_gateway_sets_limits_and_ends_a_session(open_browser, platform, provider):  # noqa: F811
    browser = open_browser(width=1280, height=900)
    enter(browser, platform, provider, "owners")
    go(browser, "gateways")
    browser.find_element(By.XPATH, "//tr[contains(., 'bKash')]//button[.='Pause']").click()
    dialog(browser)
    until = time.strftime("%Y-%m-%dT%H:%M", time.localtime(time.time() + 7200))
    browser.execute_script("document.querySelector('dialog [name=until]').value = arguments[0]", until)
    answer(browser)
    closed(browser)
    assert "bKash" in css(browser, "main").text and "bkash" in platform.administer("gateways", "list")
    press(browser, "Resume")
    answer(browser)
    closed(browser)
    assert not browser.find_elements(By.XPATH, "//button[.='Resume']")
    go(browser, "workspaces")
    row = "//tr[contains(., 'Support Tea')]//button"
    browser.find_element(By.XPATH, row).click()
    answer(browser, paymentAtMostBDT="5000.50", keys="7")
    closed(browser)
    assert platform.api("/account", key=platform.desk.key)[1]["limits"]["keys"] == 7
    browser.find_element(By.XPATH, row).click()
    dialog(browser)
    assert css(browser, "dialog [name=paymentAtMostBDT]").get_attribute("value") == "5000.5"
    css(browser, "dialog [name=keys]").clear()
    answer(browser)
    closed(browser)
    assert platform.api("/account", key=platform.desk.key)[1]["limits"]["keys"] is None
    # Back to the workspaces, which are a page of their own.
    css(browser, "#switch").click()
    wait(browser, lambda: browser.find_elements(By.CSS_SELECTOR, "select[name=workspace]"), "the workspaces")
    assert "#" not in browser.current_url
    css(browser, "#platform").click()
    loaded(browser)
    go(browser, "sessions")
    press(browser, "End all of the person")
    answer(browser)
    reads(browser, "Your session has ended")
