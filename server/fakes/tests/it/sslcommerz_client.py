"""Runs an independent client of SSLCommerz against the fake."""

import json
import queue
import sys
import threading
import urllib.parse
import urllib.request
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx
from jukto.exceptions import InvalidRequestError, ProviderAuthenticationError
from jukto.payments import (
    PaymentCustomer, PaymentReference, PaymentRequest, PaymentStatus, PaymentURLs, PaymentVerificationError,
    RefundRequest, RefundStatus,
)
from jukto.providers.payments.sslcommerz import SSLCommerzClient

URL, STORE_ID, STORE_PASSWORD = sys.argv[1:]
SANDBOX = "https://sandbox.sslcommerz.com"


class ToTheFake(httpx.HTTPTransport):
    """The client insists on the sandbox's host, also in the address of the page."""

    def handle_request(self, request):
        request.url = httpx.URL(str(request.url).replace(SANDBOX, URL))
        response = super().handle_request(request)
        return httpx.Response(response.status_code, text=response.read().decode().replace(URL, SANDBOX))


class Notices(BaseHTTPRequestHandler):
    received = queue.Queue()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        # The gateway answers a merchant that asks before it has answered the notice.
        tran_id = dict(urllib.parse.parse_qsl(body.decode()))["tran_id"]
        query = {"store_id": STORE_ID, "store_passwd": STORE_PASSWORD, "tran_id": tran_id}
        found = urllib.request.urlopen(f"{URL}/validator/api/merchantTransIDvalidationAPI.php?{urllib.parse.urlencode(query)}")
        assert json.load(found)["no_of_trans_found"] >= 1
        self.received.put(body)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


def control(name, **order):
    request = urllib.request.Request(f"{URL}/_control/{name}", json.dumps(order).encode(), method="POST")
    return json.load(urllib.request.urlopen(request))


receiver = HTTPServer(("127.0.0.1", 0), Notices)
threading.Thread(target=receiver.serve_forever, daemon=True).start()


class ToTheReceiver(ToTheFake):
    """The client insists on https for the merchant's addresses too."""

    def handle_request(self, request):
        body = request.read().replace(
            urllib.parse.quote_plus("https://shop.example/ipn").encode(),
            urllib.parse.quote_plus(f"http://127.0.0.1:{receiver.server_port}/").encode(),
        )
        headers = {**request.headers, "content-length": str(len(body))}
        return super().handle_request(httpx.Request(request.method, request.url, headers=headers, content=body))


def client(password=STORE_PASSWORD):
    return SSLCommerzClient(STORE_ID, password, http_client=httpx.Client(transport=ToTheReceiver()))


def begin(shop, reference):
    return shop.initiate(PaymentRequest(
        reference=reference,
        customer=PaymentCustomer("Rahim", "rahim@shop.example", "01711111111", "Road 1", "Dhaka", "1207", "Bangladesh"),
        urls=PaymentURLs(*(f"https://shop.example/{name}" for name in ("paid", "failed", "cancelled", "ipn"))),
        product_name="Cup & saucer", product_category="Cups",
    ))


def press(page, button):
    """Presses a button of the customer's page, as a browser does. The merchant has the notice before the browser goes back."""
    page = page.replace(SANDBOX, URL)
    assert f"id={button}" in urllib.request.urlopen(page).read().decode()
    shown = urllib.request.urlopen(page, urllib.parse.urlencode({"action": button}).encode()).read().decode()
    assert "method=post" in shown, shown
    return shop.parse_notification(Notices.received.get_nowait())


def fails_with(error, call):
    try:
        call()
    except error:
        return
    raise SystemExit(f"{error.__name__} was expected")


shop = client()
cup = PaymentReference("order-1", Decimal("145.50"), "BDT")
begun = begin(shop, cup)
assert begun.status == PaymentStatus.REQUIRES_ACTION, begun
assert shop.query_session(begun.session_id, cup).status == PaymentStatus.PENDING
assert shop.query_transaction(cup).attempts == ()

notice = press(begun.customer_action_url, "confirm")
paid = shop.verify_notification(notice, cup)
assert paid.can_fulfill and paid.provider_status == "VALID", paid
assert shop.verify(notice["val_id"], cup).provider_status == "VALIDATED"
assert shop.query_session(begun.session_id, cup).status == PaymentStatus.PAID
assert [it.status for it in shop.query_transaction(cup).attempts] == [PaymentStatus.PAID]
for name, value in [("amount", "1455.00"), ("status", "FAILED"), ("verify_sign", "0" * 32), ("tran_id", "order-2")]:
    fails_with(PaymentVerificationError, lambda: shop.verify_notification({**notice, name: value}, cup))
fails_with(PaymentVerificationError, lambda: shop.verify("unknown", cup))
control("falsify_amount", session=begun.session_id, amount=14549)
fails_with(PaymentVerificationError, lambda: shop.verify(notice["val_id"], cup))
control("falsify_amount", session=begun.session_id, amount=14550)

# The second customer's bank declines, and the third customer cancels.
for number, button, word in [(2, "fail", "FAILED"), (3, "cancel", "CANCELLED")]:
    other = PaymentReference(f"order-{number}", Decimal("10"), "BDT")
    notice = press(begin(shop, other).customer_action_url, button)
    assert notice["status"] == word
    assert [it.status for it in shop.verify_notification(notice, other).attempts] == [PaymentStatus.FAILED]

risky = PaymentReference("order-4", Decimal("500000"), "BDT")
begun = begin(shop, risky)
control("set_risk", session=begun.session_id)
held = shop.verify_notification(press(begun.customer_action_url, "confirm"), risky)
assert held.status == PaymentStatus.PAID and not held.can_fulfill, held
control("repeat_notice", session=begun.session_id)
assert shop.parse_notification(Notices.received.get(timeout=20))["val_id"] == held.validation_id


def refund(number, amount):
    return shop.refund(RefundRequest(cup, paid.bank_transaction_id, f"ref_{number}", Decimal(amount), "damaged"))


first = refund(1, "45.50")
assert first.status == RefundStatus.PENDING and first.provider_status == "success", first
assert refund(1, "1").status == RefundStatus.FAILED, "the id is used"
assert refund(2, "100.01").status == RefundStatus.FAILED, "it is more than is left"
control("next_refund", status="processing")
second = refund(2, "100")
assert second.status == RefundStatus.PENDING and second.provider_status == "processing", second
control("finish_refund", refund=first.provider_refund_id, status="refunded")
control("finish_refund", refund="ref_2", status="cancelled")
ended = [shop.query_refund(it.provider_refund_id, paid.bank_transaction_id) for it in (first, second)]
assert [it.status for it in ended] == [RefundStatus.REFUNDED, RefundStatus.UNKNOWN], ended
assert ended[0].merchant_transaction_id == "order-1"
fails_with(InvalidRequestError, lambda: shop.query_refund("unknown", paid.bank_transaction_id))

thief = client("wrong")
assert begin(thief, cup).status == PaymentStatus.FAILED
fails_with(ProviderAuthenticationError, lambda: thief.query_transaction(cup))
print("the client passed")
