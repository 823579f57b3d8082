"""Verifies each case with Stripe's library and compares the result with webhook-verify's.

Reads JSON lines with the fields secret, header, body (hex), tolerance and valid. Prints the number of cases and the
first disagreements, and exits with 1 if there are any.
"""

import json
import sys

import stripe


def stripe_accepts(case):
    # Stripe takes the body as text and encodes it as UTF-8.
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
        if stripe_accepts(case) != case["valid"]:
            disagreements.append(case)
    for case in disagreements[:5]:
        print("disagree:", json.dumps(case))
    print(f"{counts[True]} valid, {counts[False]} invalid, {len(disagreements)} disagreements")
    return 1 if disagreements else 0


if __name__ == "__main__":
    sys.exit(main())
