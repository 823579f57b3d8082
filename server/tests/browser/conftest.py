"""Starts a real server, the gateway fakes, and Debian's Chromium.

A test fails if it leaves an error in the browser's console, such as a violation of the content security policy.
"""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import urllib.error
import urllib.request

import axe_playwright_python
import pytest
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

ROOT = pathlib.Path(__file__).resolve().parents[3]
BINARIES = ROOT / "target" / "debug"
SCREENSHOTS = ROOT / "target" / "screenshots"
AXE = (pathlib.Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
SANDBOX_KEY = "sk_test_demo"


def start(name, *arguments, **environment):
    """Starts a program and reads its address from its first line of output."""
    log = tempfile.NamedTemporaryFile(prefix=name, suffix=".log", delete=False)
    process = subprocess.Popen(
        [BINARIES / name, *arguments], stdout=subprocess.PIPE, stderr=log, env={**os.environ, **environment}, text=True
    )
    line = process.stdout.readline()
    if not line.startswith("listening on "):
        raise RuntimeError(f"{name} did not start: {pathlib.Path(log.name).read_text()}")
    return process, line.split()[-1]


def call(url, body=None, method=None, key=None, **more):
    """Sends a JSON request and returns the response's status and body."""
    headers = {"content-type": "application/json", **more}
    if key:
        headers["authorization"] = f"Bearer {key}"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, headers, method=method or ("GET" if body is None else "POST"))
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"null")


def css(browser, selector):
    return browser.find_element(By.CSS_SELECTOR, selector)


def wait(browser, condition, what, seconds=20):
    # While the browser loads the next page, an element of the last one fails in several ways, not only as a stale one.
    WebDriverWait(browser, seconds, ignored_exceptions=[WebDriverException]).until(lambda _: condition(), what)


def constant(file, name):
    """A constant of the fakes."""
    source = ROOT / "server" / "fakes" / "src" / file
    return re.search(rf'const {name}: &str = "(.*?)"', source.read_text())[1]


class Shop:
    """A server with gateways for both currencies and a merchant with keys for both environments. `more` are settings."""

    def __init__(self, directory, **more):
        self.bkash_process, self.bkash = start("fake-bkash")
        self.stripe_process, self.stripe = start("fake-stripe")
        self.wallet = constant("bkash/known.rs", "WALLET")
        self.empty_wallet = constant("bkash/known.rs", "POOR_WALLET")
        self.process, self.url = start(
            "payments-server", "serve", "--listen", "127.0.0.1:0", "--data-dir", str(directory), "--rate-limit", "0",
            "--keyless-rate-limit", "0", "--notices-every", "1",
            PAYMENTS_BKASH_BASE_URL=f"{self.bkash}/v1.2.0-beta",
            PAYMENTS_BKASH_APP_KEY=constant("bkash/known.rs", "APP_KEY"),
            PAYMENTS_BKASH_APP_SECRET=constant("bkash/known.rs", "APP_SECRET"),
            PAYMENTS_BKASH_USERNAME=constant("bkash/known.rs", "USERNAME"),
            PAYMENTS_BKASH_PASSWORD=constant("bkash/known.rs", "PASSWORD"),
            PAYMENTS_STRIPE_BASE_URL=self.stripe,
            PAYMENTS_STRIPE_SECRET_KEY=constant("stripe/known.rs", "SECRET_KEY"),
            PAYMENTS_STRIPE_WEBHOOK_SECRET=constant("stripe/known.rs", "WEBHOOK_SECRET"),
            **more,
        )
        call(f"{self.stripe}/_control/events", {"url": f"{self.url}/gateways/stripe/webhook", "times": 2})
        self.directory = directory
        self.workspace = self.administer("workspaces", "create", "--name", "Rahim & Sons Tea")
        self.live_key = self.administer("keys", "create", "--workspace", self.workspace, "--environment", "live")
        self.test_key = self.administer("keys", "create", "--workspace", self.workspace, "--environment", "test")

    def administer(self, *arguments):
        command = [BINARIES / "payments-server", *arguments, "--data-dir", str(self.directory)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def api(self, path, body=None, key=SANDBOX_KEY, method=None):
        return call(f"{self.url}/api/v1{path}", body, method, key)

    def create(self, amount=1250, key=SANDBOX_KEY, **more):
        """Creates a payment whose shop is a page of this server, so that the browser can return to it."""
        body = {"amount": amount, "success_url": f"http://localhost:{self.port}/healthz?paid",
                "cancel_url": f"http://localhost:{self.port}/healthz?left", "description": "Two cups of tea", **more}
        status, payment = self.api("/payments", body, key)
        assert status == 201, payment
        return payment

    @property
    def port(self):
        return self.url.rsplit(":", 1)[1]

    def status(self, payment, key):
        return self.api(f"/payments/{payment['id']}", key=key)[1]["rawStatus"]

    def stop(self):
        for process in [self.process, self.bkash_process, self.stripe_process]:
            process.kill()
            process.wait()


@pytest.fixture(scope="session")
def shop(tmp_path_factory):
    shop = Shop(tmp_path_factory.mktemp("server") / "data")
    yield shop
    shop.stop()


class Browser(webdriver.Chrome):
    """Chromium with checks of a page."""

    def axe(self, within="html"):
        """The accessibility violations that axe rates moderate or worse, in the elements that `within` selects."""
        self.execute_script(AXE)
        script = "const [within, done] = arguments; axe.run(within, {resultTypes: ['violations']}).then(done)"
        found = self.execute_async_script(script, within)["violations"]
        return [(one["id"], [node["html"] for node in one["nodes"]]) for one in found
                if one["impact"] in ("serious", "critical", "moderate")]

    def picture(self, name):
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.save_screenshot(str(SCREENSHOTS / f"{name}.png"))

    def scrolls_sideways(self):
        return self.execute_script("return document.documentElement.scrollWidth > document.documentElement.clientWidth")

    def origins(self):
        """The origins of the page's resources."""
        script = "return performance.getEntriesByType('resource').map((entry) => new URL(entry.name).origin)"
        return set(self.execute_script(script))

    def faults(self):
        return [entry for entry in self.get_log("browser") if entry["level"] == "SEVERE"]


@pytest.fixture
def open_browser():
    """Opens browsers with given options and checks their consoles after the test."""
    opened = []

    def open_one(width=360, height=740, language="en-GB", dark=False, script=True):
        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        for argument in ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                         "--disable-background-networking", "--disable-component-update", "--disable-sync",
                         "--hide-scrollbars", f"--lang={language}", f"--accept-lang={language}"]:
            options.add_argument(argument)
        preferences = {"intl.accept_languages": language}
        if not script:
            preferences["profile.managed_default_content_settings.javascript"] = 2
        options.add_experimental_option("prefs", preferences)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        browser = Browser(options=options, service=Service("/usr/bin/chromedriver"))
        opened.append(browser)
        browser.set_script_timeout(120)
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
        return browser

    yield open_one
    faults = [fault for browser in opened for fault in browser.faults()]
    for browser in opened:
        browser.quit()
    # Chromium logs the server's error responses, which some tests cause on purpose, as network errors.
    faults = [fault for fault in faults if fault["source"] != "network" and "favicon" not in fault["message"]]
    assert not faults, faults


@pytest.fixture
def browser(open_browser):
    return open_browser()
