"""What the description cannot say in JSON Schema: addresses that are addresses, and amounts of whole paisa."""

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


fresh = itertools.count()


@schemathesis.hook
def before_call(context, case, kwargs):
    """Each request under a key of its own: the same key with another body is refused, and has tests of its own."""
    if case.headers and case.headers.get("Idempotency-Key"):
        case.headers["Idempotency-Key"] = (case.headers["Idempotency-Key"] + f"-{next(fresh)}")[-255:]
