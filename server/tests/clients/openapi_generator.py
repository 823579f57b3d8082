"""Calls every operation with the Python client from openapi-generator."""

import hashlib
import hmac
import json
import sys

import openapi_client as api

url, key = sys.argv[1:]
client = api.ApiClient(api.Configuration(host=url, access_token=key))
payments, checkout = api.PaymentsApi(client), api.CheckoutApi(client)
account, webhooks = api.AccountApi(client), api.WebhooksApi(client)


def refused(status, call, *arguments, **named):
    """The error body of a call that must fail with this status."""
    try:
        call(*arguments, **named)
    except api.ApiException as error:
        assert error.status == status and error.data.status_code == status, error
        return error.data
    raise AssertionError(f"not refused with {status}")


# Create, and repeat with the same Idempotency-Key.
order = api.CreatePayment(
    amount=37.5,
    currency="USD",
    success_url="https://shop.example/paid",
    cancel_url="https://shop.example/cart",
    customer=api.CreatePaymentCustomer(name="Karim"),
    metadata={"order": 1017},
)
payment = payments.create_payment(order, idempotency_key="order-1017")
assert (payment.amount, payment.currency, payment.status) == (37.5, "USD", "pending")
assert payment.platform_fee_amount + payment.net_amount == 37.5
assert payment.checkout_url == f"{url}/checkout/{payment.id}"
assert (payment.customer.name, payment.metadata) == ("Karim", {"order": 1017})
assert payments.create_payment(order, idempotency_key="order-1017") == payment
order.amount = 40
conflict = refused(422, payments.create_payment, order, idempotency_key="order-1017")
assert isinstance(conflict.message.actual_instance, str)
assert conflict.code == "idempotency_key_reused"
# The client checks the document's pattern itself.
try:
    order.cancel_url = "cart"
except ValueError:
    order.cancel_url = "https://["
assert order.cancel_url == "https://["
invalid = refused(400, payments.create_payment, order)
assert "cancel_url" in invalid.message.actual_instance[0]
# The generator renames `field`, which is a word of its library.
assert [(field.var_field, field.code) for field in invalid.fields] == [("cancel_url", "url_invalid")]

# Pay one, fail another.
assert checkout.retrieve_checkout(payment.id).customer_name == "Karim"
paid = checkout.pay_checkout(payment.id, api.Pay())
assert (paid.success, paid.status) == (True, "paid") and paid.redirect_url.startswith(order.success_url)
# The result of a live session has only redirectUrl.
assert api.PayResult.from_dict({"redirectUrl": url}).success is None
other = api.CreatePayment(amount=5, success_url=order.success_url, cancel_url=order.success_url)
other = payments.create_payment(other)
failed = checkout.simulate_checkout(other.id, api.Simulate(action="fail"))
assert (failed.success, failed.status) == (False, "failed")

# List, and read back.
page = payments.list_payments(status="completed", limit=10)
assert (page.total, page.page, page.limit) == (1, 1, 10)
read = payments.retrieve_payment(payment.id)
assert page.items == [read] and (read.status, read.raw_status) == ("completed", "paid") and read.paid_at
assert refused(409, payments.refund_payment, payment.id, create_refund=api.CreateRefund(reason="damaged")).error
assert refused(404, payments.retrieve_payment, "pay_0").error

# The account.
assert account.retrieve_balance().usd_balance == read.net_amount
assert account.retrieve_account().volume.total_payments == 1
assert account.list_apps() == []

# Webhooks.
every = webhooks.create_webhook(api.CreateWebhook(url="http://127.0.0.1:9/", events=api.CreateWebhookEvents("*")))
some = api.CreateWebhookEvents(["payment.completed", "payment.refunded"])
webhooks.create_webhook(api.CreateWebhook(url="http://127.0.0.1:9/", events=some))
assert [hook.events for hook in webhooks.list_webhooks()] == [["*"], some.actual_instance]
updated = webhooks.update_webhook(every.id, api.UpdateWebhook(description="a note"))
assert (updated.description, updated.secret, updated.events) == ("a note", every.secret, ["*"])
ping = webhooks.test_webhook(every.id)
assert (ping.event, ping.status, ping.payload["event"]) == ("test.ping", "failed", "test.ping")
deliveries = webhooks.list_deliveries(webhook_id=every.id)
assert [delivery.id for delivery in deliveries.items] == [ping.id]
again = webhooks.resend_delivery(ping.id)
assert (again.status, again.payload) == ("pending", ping.payload)
assert webhooks.remove_webhook(every.id).success is True
verdict = webhooks.verify_signature(api.CheckSignature(payload="a", signature="t=1,v1=00", secret=every.secret))
assert (verdict.valid, verdict.reason) == (False, "timestamp_outside_tolerance")
genuine = "t=1,v1=" + hmac.digest(every.secret.encode(), b"1.a", hashlib.sha256).hex()
verdict = webhooks.verify_signature(
    api.CheckSignature(payload="a", signature=genuine, secret=every.secret, tolerance=0)
)
assert (verdict.valid, verdict.timestamp, verdict.reason) == (True, 1, None)

# A demo session, and the OpenAPI document.
demo = checkout.create_demo_session(api.DemoSession(amount=5))
assert demo.is_simulated is True and demo.checkout_url == f"/checkout/{demo.id}"
assert api.DescriptionApi(client).retrieve_description()["openapi"] == "3.1.0"

# Answers of a later version, with unknown fields and words.
with open("later.json") as file:
    later = json.load(file)
later["Payment"] = read.to_dict() | later["Payment"]
later = {name: getattr(api, name).from_dict(answer) for name, answer in later.items()}
assert (later["Payment"].id, later["Payment"].refunds[0].status) == (read.id, "a_later_status")
assert (later["Event"].event, later["TimelineEntry"].kind) == ("payment.of_later", "a_later_kind")
assert (later["Transaction"].kind, later["Transaction"].payment_id) == ("a_later_kind", None)
assert (later["Balances"].usd_balance, later["Error"].code) == (37.5, "some_later_code")
