"""Generates values that JSON Schema cannot describe: URLs, amounts in whole minor units, and fields that depend on other
fields or on the payment."""

import functools
import itertools
import string

import schemathesis
from hypothesis import strategies as st

HOST = st.text(string.ascii_lowercase, min_size=1, max_size=10)
PATH = st.text(string.ascii_letters + string.digits + "-_/", max_size=20)
schemathesis.openapi.format("web-url", st.builds("https://{}.example/{}".format, HOST, PATH))
# Nothing listens on this port, so a ping ends at once.
schemathesis.openapi.format("webhook-url", st.builds("http://127.0.0.1:9/{}".format, PATH))
schemathesis.openapi.format("phone", st.from_regex(r"\A\+?[0-9]{0,5}[0-9 ()-]{0,20}\Z"))
schemathesis.openapi.format("bd-mobile", st.from_regex(r"\A01[3-9][0-9]{8}\Z"))


def close(document, value, closed):
    """Closes the schemas within a value and those that it refers to."""
    if isinstance(value, dict):
        pointer = value.get("$ref")
        if pointer and pointer not in closed:
            closed.add(pointer)
            close(document, functools.reduce(dict.__getitem__, pointer.split("/")[1:], document), closed)
        if "type" in value and "properties" in value and "additionalProperties" not in value:
            value["unevaluatedProperties"] = False
        if "x-extensible-enum" in value:
            value["enum"] = value["x-extensible-enum"]
    for inner in list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []:
        close(document, inner, closed)


@schemathesis.hook
def before_load_schema(context, raw_schema):
    """Responses are open to later fields and words. This version's server answers with nothing that the document lacks."""
    closed = set()
    for methods in raw_schema["paths"].values():
        for operation in methods.values():
            close(raw_schema, operation["responses"], closed)


@schemathesis.hook
def map_body(context, body):
    """Rounds amounts to two decimals: in binary, 0.07 is not a multiple of 0.01. Fits those in dollars to Stripe's limits."""
    if isinstance(body, dict) and isinstance(body.get("amount"), float):
        body["amount"] = max(round(body["amount"], 2), 0.01) if body["amount"] > 0 else body["amount"]
    if isinstance(body, dict) and body.get("currency") == "USD" and isinstance(body.get("amount"), int | float):
        # An amount that the document refuses stays one.
        is_valid = 0 < body["amount"] <= 999_999_999_999.99
        body["amount"] = min(max(body["amount"], 0.5), 999_999.99) if is_valid else body["amount"]
    return body


def fit_the_payment(path, body):
    """Removes a refund's amount and a redirectUrl, which must match the payment, and the amount of a simulated event that has
    none. Lets a simulation name an outcome, and makes both names of a customer's field agree. Nothing is unique without a
    reference."""
    if path.endswith("/refund"):
        body.pop("amount", None)
    if path.endswith("/pay"):
        body.pop("redirectUrl", None)
    if path.endswith("/checkout/{id}/simulate") and body and body.get("status") is None and body.get("action") is None:
        body["action"] = "fail"
    if path.endswith("/payments/{id}/simulate") and body.get("event") not in ["refunded", "inquired", "disputed"]:
        body.pop("amount", None)
    if body.get("merchantTransactionIdMustBeUnique") and not (body.get("merchantTransactionId") or "").strip("\0"):
        body["merchantTransactionIdMustBeUnique"] = False
    customer = body.get("customer")
    if path.endswith("/payments") and isinstance(customer, dict):
        for nested in ["name", "email", "phone"]:
            flat = "customer" + nested.capitalize()
            if customer.get(nested) is not None and body.get(flat) is not None:
                body[flat] = customer[nested]


def fit_the_destination(path, body):
    """Leaves one of a bank account and a wallet, with the numbers of its currency."""
    if not path.endswith("/payouts/destinations"):
        return
    is_taka = body.get("currency") == "BDT"
    if is_taka and isinstance(body.get("wallet"), dict):
        body.pop("bankAccount", None)
        body["wallet"].update(holder="Karim", number="01712345678")
    else:
        body.pop("wallet", None)
        bank = "010271234" if is_taka else "DBBLBDDH"
        body["bankAccount"] = {"holder": "Karim", "bank": bank, "number": "1234567890123"}


def fit_the_list(query):
    """Removes a cursor, which only an earlier answer tells, and a page's number, which filters do not allow."""
    for cursor in ["after", "before"]:
        query.pop(cursor, None)
    if set(query) - {"page", "limit", "status", "webhookId"}:
        query.pop("page", None)


def stay_here(path, body):
    """Sends webhooks to this machine, where nothing listens. Hosts of the document would be looked up in the DNS."""
    if "/webhooks" in path and str(body.get("url")).lower().startswith(("https://", "http://")):
        body["url"] = "http://127.0.0.1:9/hook"


fresh = itertools.count()


@schemathesis.hook
def before_call(context, case, kwargs):
    """Gives each request its own key: the server refuses a key that was used with another body."""
    if case.meta and case.meta.generation.mode.is_positive and isinstance(case.body, dict):
        fit_the_payment(case.operation.path, case.body)
        fit_the_destination(case.operation.path, case.body)
        stay_here(case.operation.path, case.body)
    if case.meta and case.meta.generation.mode.is_positive and case.query:
        fit_the_list(case.query)
    if case.headers and case.headers.get("Idempotency-Key"):
        case.headers["Idempotency-Key"] = (case.headers["Idempotency-Key"] + f"-{next(fresh)}")[-255:]
