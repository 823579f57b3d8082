"""Runs independent clients of bKash and Stripe against the fakes."""

import asyncio
import json
import queue
import sys
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer

import stripe
from bkash_pgw_tokenized import Bkash, ipn, sns_verify

BKASH_URL, STRIPE_URL, APP_KEY, APP_SECRET, USERNAME, PASSWORD, SECRET_KEY, WEBHOOK_SECRET = sys.argv[1:]


def control(base, path, body):
    request = urllib.request.Request(f"{base}/_control/{path}", json.dumps(body).encode(), method="POST")
    return json.load(urllib.request.urlopen(request))


async def bkash():
    config = {"app_key": APP_KEY, "app_secret": APP_SECRET, "username": USERNAME, "password": PASSWORD}
    client = Bkash({**config, "base_url": f"{BKASH_URL}/v1.2.0-beta"})
    granted = await client.grant_token()
    assert granted["statusCode"] == "0000" and granted["expires_in"] == 3600, granted
    renewed = await client.refresh_token(granted["refresh_token"])
    token = renewed["id_token"]
    assert token and token != granted["id_token"]
    order = dict(
        mode="0011", payer_reference="01770618575", callback_url="https://shop.example/back", amount="15.00",
        currency="BDT", intent="sale", merchant_invoice_number="invoice-1",
    )
    payment = await client.create_payment(token, **order)
    assert payment["statusCode"] == "0000" and payment["transactionStatus"] == "Initiated", payment
    assert (await client.create_payment(token, **order))["externalCode"] == "2029"
    early = await client.execute_payment(token, payment["paymentID"])
    assert early["statusCode"] == "2060", early
    back = control(BKASH_URL, "approve", {"paymentID": payment["paymentID"]})["location"]
    assert back.startswith("https://shop.example/back?paymentID=") and "status=success" in back
    control(BKASH_URL, "notices", {"url": Notices.start(), "times": 2})
    done = await client.execute_payment(token, payment["paymentID"])
    assert done["transactionStatus"] == "Completed" and done["amount"] == "15.00" and done["trxID"], done
    notices(done["trxID"])
    again = await client.execute_payment(token, payment["paymentID"])
    assert again["statusCode"] == "2062", again
    status = await client.payment_status(token, payment["paymentID"])
    assert status["trxID"] == done["trxID"] and status["merchantInvoice"] == "invoice-1", status
    found = await client.search_transaction(token, done["trxID"])
    assert found["transactionStatus"] == "Completed", found
    blocked = await client.grant_token()
    assert "blocked" in blocked["statusMessage"], blocked


def fetch_certificate(url):
    sns_verify._validate_signing_cert_url(url)
    path = url.removeprefix("https://sns.ap-southeast-1.amazonaws.com")
    return sns_verify._cert_from_aws_sns(urllib.request.urlopen(BKASH_URL + path).read())


def notices(transaction):
    """Checks the two deliveries of a payment's notice. The certificate comes from the fake, as its address is at AWS."""
    sns_verify.fetch_signing_certificate = fetch_certificate
    body, headers = Notices.received.get(timeout=20)
    assert Notices.received.get(timeout=20)[0] == body
    envelope = json.loads(body)
    assert headers["x-amz-sns-message-type"] == envelope["Type"] == "Notification"
    sns_verify.verify_sns_signature(envelope)
    try:
        sns_verify.verify_sns_signature({**envelope, "Message": "{}"})
        raise SystemExit("a changed notice was accepted")
    except sns_verify.SnsVerificationError:
        pass
    inner = ipn.extract_inner_from_sns_envelope(envelope)
    assert ipn.ipn_inner_is_success(inner) == (True, None), inner
    assert inner["trxID"] == transaction and inner["merchantInvoiceNumber"] == "invoice-1", inner


class Receiver(BaseHTTPRequestHandler):

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.received.put((body, self.headers))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass

    @classmethod
    def start(cls):
        server = HTTPServer(("127.0.0.1", 0), cls)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}/"


class Notices(Receiver):
    received = queue.Queue()


class Events(Receiver):
    received = queue.Queue()


def event(kind):
    body, headers = Events.received.get(timeout=20)
    event = stripe.Webhook.construct_event(body, headers["stripe-signature"], WEBHOOK_SECRET)
    assert event["type"] == kind, event
    return event


def cards():
    stripe.api_key = SECRET_KEY
    stripe.api_base = STRIPE_URL
    stripe.max_network_retries = 0
    control(STRIPE_URL, "events", {"url": Events.start(), "times": 1})
    order = dict(
        payment_intent_data={"metadata": {"payment_id": "pay_1"}},
        mode="payment", client_reference_id="pay_1", metadata={"payment_id": "pay_1"},
        expires_at=int(time.time()) + 3600, success_url="https://shop.example/ok", cancel_url="https://shop.example/no",
        line_items=[{"quantity": 1, "price_data": {
            "currency": "usd", "unit_amount": 1250, "product_data": {"name": "Two cups"}}}],
    )
    session = stripe.checkout.Session.create(**order, idempotency_key="k-1")
    assert (session.status, session.payment_status, session.amount_total) == ("open", "unpaid", 1250)
    assert stripe.checkout.Session.create(**order, idempotency_key="k-1").id == session.id
    for wrong, kind in [
        ({**order, "cancel_url": "https://other.example"}, stripe.IdempotencyError),
    ]:
        try:
            stripe.checkout.Session.create(**wrong, idempotency_key="k-1")
            raise SystemExit("a key was accepted for another request")
        except kind:
            pass
    for change, code in [
        ({"colour": "red"}, "parameter_unknown"),
        ({"expires_at": int(time.time()) + 60}, None),
        ({"line_items": []}, "parameter_missing"),
        ({"success_url": "nowhere"}, "url_invalid"),
    ]:
        try:
            stripe.checkout.Session.create(**{**order, **change})
            raise SystemExit(f"{change} was accepted")
        except stripe.InvalidRequestError as error:
            assert error.code == code, (change, error.code)
    control(STRIPE_URL, "pay", {"session": session.id})
    assert event("checkout.session.completed").data.object.id == session.id
    paid = stripe.checkout.Session.retrieve(session.id)
    assert (paid.status, paid.payment_status) == ("complete", "paid") and paid.payment_intent
    try:
        stripe.Refund.create(payment_intent=paid.payment_intent, reason="damaged")
        raise SystemExit("an unknown refund reason was accepted")
    except stripe.InvalidRequestError:
        pass
    refund = stripe.Refund.create(payment_intent=paid.payment_intent, metadata={"reason": "damaged"}, idempotency_key="r-1")
    assert refund.status == "succeeded" and refund.amount == 1250
    assert event("refund.created").data.object.id == refund.id
    assert event("charge.refunded").data.object.amount_refunded == 1250
    assert stripe.Refund.retrieve(refund.id).metadata["reason"] == "damaged"
    try:
        stripe.Refund.create(payment_intent=paid.payment_intent)
        raise SystemExit("a charge was refunded twice")
    except stripe.InvalidRequestError as error:
        assert error.code == "charge_already_refunded", error.code
    intent = stripe.PaymentIntent.retrieve(paid.payment_intent, expand=["latest_charge.balance_transaction"])
    assert intent.metadata["payment_id"] == intent.latest_charge.metadata["payment_id"] == "pay_1"
    assert intent.latest_charge.refunded and intent.latest_charge.balance_transaction.net == 1250 - 66
    listed = stripe.Refund.list(payment_intent=intent.id, created={"gte": 1}, expand=["data.payment_intent"])
    assert [it.payment_intent.id for it in listed.data] == [intent.id]
    control(STRIPE_URL, "fail_refund", {"refund": refund.id})
    event("refund.updated")
    assert event("refund.failed").data.object.failure_reason == "expired_or_canceled_card"
    for minor in range(1, 6):
        control(STRIPE_URL, "refund_by_hand", {"reference": "pay_1", "minor": minor})
        event("refund.created")
        event("charge.refunded")
    every = stripe.Refund.list(payment_intent=intent.id, limit=2).auto_paging_iter()
    assert [it.amount for it in every] == [5, 4, 3, 2, 1, 1250]
    found = stripe.checkout.Session.list(payment_intent=intent.id)
    assert [it.id for it in found.data] == [session.id]
    opened = control(STRIPE_URL, "open_dispute", {"of": intent.id, "minor": 700})["id"]
    assert event("charge.dispute.created").data.object.id == opened
    assert event("charge.dispute.funds_withdrawn").data.object.status == "needs_response"
    try:
        stripe.Refund.create(payment_intent=intent.id, amount=1)
        raise SystemExit("a disputed charge was refunded")
    except stripe.InvalidRequestError as error:
        assert error.code == "charge_disputed", error.code
    control(STRIPE_URL, "close_dispute", {"dispute": opened, "won": True})
    event("charge.dispute.closed")
    assert event("charge.dispute.funds_reinstated").data.object.status == "won"
    dispute = stripe.Dispute.retrieve(opened)
    assert [it.net for it in dispute.balance_transactions] == [-700 - 1500, 700]
    assert [it.id for it in stripe.Dispute.list(charge=dispute.charge).auto_paging_iter()] == [opened]
    # The dispute's fee is more than is left, so another customer has to pay.
    control(STRIPE_URL, "pay", {"session": stripe.checkout.Session.create(**order).id})
    event("checkout.session.completed")
    control(STRIPE_URL, "make_available", {})
    paid_out = control(STRIPE_URL, "pay_out", {})["id"]
    assert event("payout.created").data.object.id == paid_out
    event("payout.paid")
    assert event("payout.reconciliation_completed").data.object.reconciliation_status == "completed"
    rows = stripe.BalanceTransaction.list(payout=paid_out, limit=3, expand=["data.source"])
    rows = list(rows.auto_paging_iter())
    assert sum(row.net for row in rows) == 0 and rows[0].source.id == paid_out
    kinds = {row.reporting_category for row in rows}
    assert kinds == {"payout", "charge", "refund", "refund_failure", "dispute", "dispute_reversal"}, kinds
    assert stripe.Payout.retrieve(paid_out).amount == sum(row.net for row in rows[1:])
    assert [it.id for it in stripe.Payout.list().data] == [paid_out]
    other = stripe.checkout.Session.create(**order)
    assert stripe.checkout.Session.expire(other.id).status == "expired"
    event("checkout.session.expired")
    try:
        stripe.checkout.Session.expire(other.id)
        raise SystemExit("an expired session expired again")
    except stripe.InvalidRequestError:
        pass
    stripe.api_key = "sk_test_another"
    try:
        stripe.checkout.Session.retrieve(session.id)
        raise SystemExit("a wrong secret key was accepted")
    except stripe.AuthenticationError:
        pass


asyncio.run(bkash())
cards()
print("both clients passed")
