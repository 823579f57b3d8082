"""What the description cannot say in JSON Schema: addresses that are addresses, amounts of whole paisa, and fields that must
fit other fields or the payment."""

import itertools
import string

import schemathesis
from hypothesis import strategies as st

HOST = st.text(string.ascii_lowercase, min_size=1, max_size=10)
PATH = st.text(string.ascii_letters + string.digits + "-_/", max_size=20)
schemathesis.openapi.format("web-url", st.builds("https://{}.example/{}".format, HOST, PATH))
# Nobody listens there, so a ping ends at once.
schemathesis.openapi.format("webhook-url", st.builds("http://127.0.0.1:9/{}".format, PATH))
schemathesis.openapi.format("bd-mobile", st.from_regex(r"\A01[3-9][0-9]{8}\Z"))


@schemathesis.hook
def map_body(context, body):
    """A sum like 0.07 is no multiple of 0.01 in binary; written with two decimals it is one."""
    if isinstance(body, dict) and isinstance(body.get("amount"), float):
        body["amount"] = max(round(body["amount"], 2), 0.01) if body["amount"] > 0 else body["amount"]
    return body


def fit_the_payment(path, body):
    """A refund's amount is the payment's, redirectUrl has the shop's origin, and both names of a customer's field agree."""
    if path.endswith("/refund"):
        body.pop("amount", None)
    if path.endswith("/pay"):
        body.pop("redirectUrl", None)
    customer = body.get("customer")
    if path.endswith("/payments") and isinstance(customer, dict):
        for nested in ["name", "email", "phone"]:
            flat = "customer" + nested.capitalize()
            if customer.get(nested) is not None and body.get(flat) is not None:
                body[flat] = customer[nested]


fresh = itertools.count()


@schemathesis.hook
def before_call(context, case, kwargs):
    """Each request under a key of its own: the same key with another body is refused, and has tests of its own."""
    if case.meta and case.meta.generation.mode.is_positive and isinstance(case.body, dict):
        fit_the_payment(case.operation.path, case.body)
    if case.headers and case.headers.get("Idempotency-Key"):
        case.headers["Idempotency-Key"] = (case.headers["Idempotency-Key"] + f"-{next(fresh)}")[-255:]
