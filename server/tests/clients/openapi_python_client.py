"""Calls every operation with the client from openapi-python-client."""

import hashlib
import hmac
import json
import sys

import payments_api_client as api
import payments_api_client.types
from payments_api_client import models
from payments_api_client.api.account import list_apps, retrieve_account, retrieve_balance
from payments_api_client.api.checkout import create_demo_session, pay_checkout, retrieve_checkout, simulate_checkout
from payments_api_client.api.description import retrieve_description
from payments_api_client.api.payments import create_payment, list_payments, refund_payment, retrieve_payment
from payments_api_client.api.webhooks import (
    create_webhook,
    list_deliveries,
    list_webhooks,
    remove_webhook,
    resend_delivery,
    test_webhook,
    update_webhook,
    verify_signature,
)

url, key = sys.argv[1:]
client = api.AuthenticatedClient(base_url=url, token=key, raise_on_unexpected_status=True)


def call(operation, *arguments, **named):
    """The response body of a successful call."""
    answer = operation.sync(*arguments, client=client, **named)
    assert answer is not None and not isinstance(answer, models.Error), answer
    return answer


def refused(status, operation, *arguments, **named):
    """The error body of a call that must fail with this status."""
    answer = operation.sync_detailed(*arguments, client=client, **named)
    assert answer.status_code == status and isinstance(answer.parsed, models.Error), answer
    assert answer.parsed.status_code == status
    return answer.parsed


# Create, and repeat with the same Idempotency-Key.
order = models.CreatePayment(
    amount=37.5,
    currency=models.CreatePaymentCurrencyType1.USD,
    success_url="https://shop.example/paid",
    cancel_url="https://shop.example/cart",
    customer=models.CreatePaymentCustomerType0(name="Karim"),
    metadata=models.CreatePaymentMetadataType0.from_dict({"order": 1017}),
)
payment = call(create_payment, body=order, idempotency_key="order-1017")
assert (payment.amount, payment.currency, payment.status) == (37.5, "USD", "pending")
assert payment.platform_fee_amount + payment.net_amount == 37.5
assert payment.checkout_url == f"{url}/checkout/{payment.id}"
assert (payment.customer.name, payment.metadata.to_dict()) == ("Karim", {"order": 1017})
assert call(create_payment, body=order, idempotency_key="order-1017") == payment
order.amount = 40
assert isinstance(refused(422, create_payment, body=order, idempotency_key="order-1017").message, str)
order.cancel_url = "cart"
assert "cancel_url" in refused(400, create_payment, body=order).message[0]

# Pay one, fail another.
assert call(retrieve_checkout, payment.id).customer_name == "Karim"
paid = call(pay_checkout, payment.id, body=models.Pay())
assert (paid.success, paid.status) == (True, "paid") and paid.redirect_url.startswith(order.success_url)
# The result of a live session has only redirectUrl.
assert models.PayResult.from_dict({"redirectUrl": url}).success is api.types.UNSET
other = models.CreatePayment(amount=5, success_url=order.success_url, cancel_url=order.success_url)
other = call(create_payment, body=other)
fail = models.Simulate(action=models.SimulateActionType1.FAIL)
failed = call(simulate_checkout, other.id, body=fail)
assert (failed.success, failed.status) == (False, "failed")

# List, and read back.
page = call(list_payments, status=models.ListPaymentsStatus.COMPLETED, limit=10)
assert (page.total, page.page, page.limit) == (1, 1, 10)
read = call(retrieve_payment, payment.id)
assert page.items == [read] and (read.status, read.raw_status) == ("completed", "paid") and read.paid_at
assert refused(409, refund_payment, payment.id, body=models.CreateRefund(reason="damaged")).error
assert refused(404, retrieve_payment, "pay_0").error

# The account.
assert call(retrieve_balance).usd_balance == read.net_amount
assert call(retrieve_account).volume.total_payments == 1
assert call(list_apps) == []

# Webhooks.
every = models.CreateWebhook(url="http://127.0.0.1:9/", events=models.CreateWebhookEventsType0("*"))
every = call(create_webhook, body=every)
names = [models.CreateWebhookEventsType1Item.PAYMENT_COMPLETED, models.CreateWebhookEventsType1Item.PAYMENT_REFUNDED]
call(create_webhook, body=models.CreateWebhook(url="http://127.0.0.1:9/", events=names))
assert [hook.events for hook in call(list_webhooks)] == [["*"], names]
updated = call(update_webhook, every.id, body=models.UpdateWebhook(description="a note"))
assert (updated.description, updated.secret, updated.events) == ("a note", every.secret, ["*"])
ping = call(test_webhook, every.id)
assert (ping.event, ping.status, ping.payload["event"]) == ("test.ping", "failed", "test.ping")
deliveries = call(list_deliveries, webhook_id=every.id)
assert [delivery.id for delivery in deliveries.items] == [ping.id]
again = call(resend_delivery, ping.id)
assert (again.status, again.payload) == ("pending", ping.payload)
assert call(remove_webhook, every.id).success is True
verdict = call(verify_signature, body=models.CheckSignature(payload="a", signature="t=1,v1=00", secret=every.secret))
assert (verdict.valid, verdict.reason) == (False, "timestamp_outside_tolerance")
genuine = "t=1,v1=" + hmac.digest(every.secret.encode(), b"1.a", hashlib.sha256).hex()
check = models.CheckSignature(payload="a", signature=genuine, secret=every.secret, tolerance=0)
verdict = call(verify_signature, body=check)
assert (verdict.valid, verdict.timestamp, verdict.reason) == (True, 1, api.types.UNSET)

# A demo session, and the OpenAPI document.
demo = call(create_demo_session, body=models.DemoSession(amount=5))
assert demo.is_simulated is True and demo.checkout_url == f"/checkout/{demo.id}"
assert call(retrieve_description).to_dict()["openapi"] == "3.1.0"

# Answers of a later version, with unknown fields and words.
with open("later.json") as file:
    later = json.load(file)
later["Payment"] = read.to_dict() | later["Payment"]
later = {name: getattr(models, name).from_dict(answer) for name, answer in later.items()}
assert (later["Payment"].id, later["Payment"].refunds[0].status) == (read.id, "a_later_status")
assert (later["Event"].event, later["TimelineEntry"].kind) == ("payment.of_later", "a_later_kind")
assert (later["Transaction"].kind, later["Transaction"].payment_id) == ("a_later_kind", api.types.UNSET)
assert (later["Balances"].usd_balance, later["Error"].code) == (37.5, "some_later_code")
