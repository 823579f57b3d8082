"""Verifies each case that Rust made with Stripe's own library, and says where the two disagree.

The scheme is the same: t and v1 in one header, HMAC-SHA256 over time, dot and body. Reads JSON lines with the fields
secret, header, body (hex), tolerance, valid; prints the number of cases, or the first disagreements and exits with 1.
"""

import json
import sys

import stripe


def stripe_says(case):
    # Stripe takes the body as text; it encodes it as UTF-8 again, which leaves these bodies as they are.
    body = bytes.fromhex(case["body"]).decode("utf-8")
    try:
        return bool(
            stripe.WebhookSignature.verify_header(body, case["header"], case["secret"], case["tolerance"])
        )
    except stripe.SignatureVerificationError:
        return False


def main():
    disagreements = []
    counts = {True: 0, False: 0}
    for line in sys.stdin:
        case = json.loads(line)
        counts[case["valid"]] += 1
        if stripe_says(case) != case["valid"]:
            disagreements.append(case)
    for case in disagreements[:5]:
        print("disagree:", json.dumps(case))
    print(f"{counts[True]} valid, {counts[False]} refused, {len(disagreements)} disagreements")
    return 1 if disagreements else 0


if __name__ == "__main__":
    sys.exit(main())
