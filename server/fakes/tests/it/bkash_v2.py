"""A small client of bKash tokenized checkout v2, and a payment that checks the shape of each reply.

It is written from the facts about v2 that are public, not from the fake. No public client speaks v2 for payments.
"""

import json
import re
import sys
import urllib.error
import urllib.parse
import urllib.request

URL, APP_KEY, APP_SECRET, USERNAME, PASSWORD = sys.argv[1:]

AMOUNT = re.compile(r"\d+\.\d\d")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d:\d{3} GMT\+0600")
TEXT = re.compile(r".+")
FAILURE = {"internalCode": re.compile("[a-z_0-9]+"), "externalCode": re.compile(r"\d{3,4}"), "errorMessageEn": TEXT,
           "errorMessageBn": re.compile("[\u0980-\u09ff ,।]+")}
TOKEN = {"statusCode": "0000", "statusMessage": TEXT, "id_token": TEXT, "token_type": "Bearer", "expires_in": 3600,
         "refresh_token": TEXT}
CREATED = {"paymentId": TEXT, "bkashURL": re.compile("https?://.+"), "callbackURL": TEXT, "successCallbackURL": TEXT,
           "failureCallbackURL": TEXT, "cancelledCallbackURL": TEXT, "amount": AMOUNT, "intent": "sale",
           "currency": "BDT", "paymentCreateTime": TIME, "transactionStatus": "Initiated",
           "merchantInvoiceNumber": TEXT, "signature": TEXT}
EXECUTED = {"paymentId": TEXT, "trxId": TEXT, "transactionStatus": "Completed", "amount": AMOUNT, "currency": "BDT",
            "intent": "sale", "paymentExecuteTime": TIME, "merchantInvoiceNumber": TEXT, "payerReference": TEXT,
            "payerType": TEXT, "payerAccount": TEXT, "maxRefundableAmount": AMOUNT}
QUERIED = {"paymentId": TEXT, "paymentCreateTime": TIME, "verificationStatus": re.compile("Complete|Incomplete"),
           "transactionStatus": re.compile("Initiated|Completed"), "amount": AMOUNT, "currency": "BDT",
           "intent": "sale", "merchantInvoice": TEXT, "payerReference": TEXT}
PAYER = {"payerType": TEXT, "payerAccount": TEXT}
FOUND = {"trxId": TEXT, "transactionStatus": "Completed", "amount": AMOUNT, "currency": "BDT",
         "transactionType": "bKash Tokenized Checkout via API", "initiationTime": TIME, "completedTime": TIME,
         "payerAccount": TEXT}
REFUNDED = {"originalTrxId": TEXT, "refundTrxId": TEXT, "refundTransactionStatus": "Completed",
            "originalTrxAmount": AMOUNT, "refundAmount": AMOUNT, "currency": "BDT", "completedTime": TIME,
            "sku": TEXT, "reason": TEXT}
REFUND = {"refundTrxId": TEXT, "refundTransactionStatus": "Completed", "refundAmount": AMOUNT, "completedTime": TIME}


class Refused(Exception):
    def __init__(self, status, body):
        super().__init__(status, body)
        self.status, self.body = status, body


def has_shape(body, shape):
    """Checks that a body has exactly these fields, and each field its value or pattern."""
    assert set(body) == set(shape), (set(body) ^ set(shape), body)
    for name, wanted in shape.items():
        if isinstance(wanted, re.Pattern):
            assert isinstance(body[name], str) and wanted.fullmatch(body[name]), (name, body[name])
        else:
            assert type(body[name]) is type(wanted) and body[name] == wanted, (name, body[name])


class Client:
    """The calls of v2. A call that fails raises `Refused`."""

    def __init__(self, host):
        self.base = f"{host}/v2/tokenized-checkout"
        self.token = self.refresh = None

    def post(self, path, body, headers):
        headers = {"Content-Type": "application/json", "Accept": "application/json", **headers}
        request = urllib.request.Request(self.base + path, json.dumps(body).encode(), headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                assert response.status == 200, response.status
                return json.load(response)
        except urllib.error.HTTPError as error:
            body = json.load(error)
            has_shape(body, {"message": TEXT} if error.code == 401 else FAILURE)
            assert 400 <= error.code < 500, error.code
            raise Refused(error.code, body) from None

    def take_token(self, path, more):
        secrets = {"username": USERNAME, "password": PASSWORD}
        granted = self.post(path, {"app_key": APP_KEY, "app_secret": APP_SECRET, **more}, secrets)
        has_shape(granted, TOKEN)
        self.token, self.refresh = granted["id_token"], granted["refresh_token"]

    def grant(self):
        self.take_token("/auth/grant-token", {})

    def renew(self):
        self.take_token("/auth/refresh-token", {"refresh_token": self.refresh})

    def call(self, path, shape, body):
        reply = self.post(path, body, {"Authorization": self.token, "X-App-Key": APP_KEY})
        if shape is not None:
            has_shape(reply, shape)
        return reply

    def create(self, invoice, amount, callback, payer):
        return self.call("/payment/create", CREATED, {
            "payerReference": payer, "callbackURL": callback, "amount": amount, "currency": "BDT", "intent": "sale",
            "merchantInvoiceNumber": invoice})

    def execute(self, payment):
        return self.call("/payment/execute", EXECUTED, {"paymentId": payment})

    def query(self, payment, name="paymentId"):
        reply = self.call("/query/payment", None, {name: payment})
        payer = PAYER if reply["verificationStatus"] == "Complete" else {}
        paid = {"trxId": TEXT} if reply["transactionStatus"] == "Completed" else {}
        has_shape(reply, {**QUERIED, **payer, **paid})
        return reply

    def search(self, transaction):
        return self.call("/general/search-transaction", FOUND, {"trxId": transaction})

    def refund(self, payment, transaction, amount, sku="cups", reason="damaged"):
        return self.call("/refund/payment/transaction", REFUNDED, {
            "paymentId": payment, "trxId": transaction, "refundAmount": amount, "sku": sku, "reason": reason})

    def refunds(self, payment, transaction):
        reply = self.call("/refund/payment/status", None, {"paymentId": payment, "trxId": transaction})
        refunds = reply["refundTransactions"]
        has_shape({**reply, "refundTransactions": ""}, {
            "originalTrxId": transaction, "originalTrxAmount": AMOUNT, "originalTrxCompletedTime": TIME,
            "refundTransactions": ""})
        for refund in refunds:
            has_shape(refund, REFUND)
        return refunds


def refused(code, call, *arguments):
    try:
        raise SystemExit(f"{call.__name__}{arguments} was accepted: {call(*arguments)}")
    except Refused as refusal:
        assert refusal.body.get("externalCode") == code, (code, refusal)


def control(path, body):
    request = urllib.request.Request(f"{URL}/_control/{path}", json.dumps(body).encode(), method="POST")
    return json.load(urllib.request.urlopen(request))


def main():
    client = Client(URL)
    client.token = "none"
    refused(None, client.query, "TR0011")
    client.grant()
    first = client.token
    client.renew()
    assert client.token != first
    callback = "https://shop.example/back?order=1"
    made = client.create("invoice-1", "15.00", callback, "01770618575")
    payment = made["paymentId"]
    assert made["callbackURL"] == callback and made["merchantInvoiceNumber"] == "invoice-1"
    refused("2029", client.create, "invoice-1", "15.00", callback, "01770618575")
    refused("2006", client.create, "invoice-2", "0.99", callback, "01770618575")
    refused("2002", client.execute, "TR0011unknown")
    before = client.query(payment)
    assert (before["verificationStatus"], before["transactionStatus"]) == ("Incomplete", "Initiated"), before
    back = control("approve", {"paymentID": payment})["location"]
    query = urllib.parse.parse_qs(urllib.parse.urlsplit(back).query)
    assert query == {"order": ["1"], "paymentID": [payment], "status": ["success"], "signature": [made["signature"]]}
    approved = client.query(payment, "paymentID")
    assert (approved["verificationStatus"], approved["transactionStatus"]) == ("Complete", "Initiated"), approved
    done = client.execute(payment)
    assert done["amount"] == done["maxRefundableAmount"] == "15.00" and done["paymentId"] == payment
    refused("2062", client.execute, payment)
    transaction = done["trxId"]
    assert client.query(payment)["trxId"] == client.search(transaction)["trxId"] == transaction
    refused("2033", client.search, "UNKNOWN")
    assert client.refunds(payment, transaction) == []
    part = client.refund(payment, transaction, "5.00")
    assert part["originalTrxId"] == transaction and part["originalTrxAmount"] == "15.00" and part["refundAmount"] == "5.00"
    client.refund(payment, transaction, "10.00")
    assert [it["refundAmount"] for it in client.refunds(payment, transaction)] == ["5.00", "10.00"]
    refused("2072", client.refund, payment, transaction, "0.01")
    early = client.create("invoice-3", "20.00", callback, "01770618575")["paymentId"]
    refused("2056", client.execute, early)
    assert client.query(early)["transactionStatus"] == "Initiated"
    refused("9999", client.grant)


main()
print("the client of v2 passed")
