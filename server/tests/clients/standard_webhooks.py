"""Verifies a delivery with the Python library of Standard Webhooks."""

import http.server
import json
import sys
import threading
import urllib.request

from standardwebhooks import Webhook, WebhookVerificationError

url, key = sys.argv[1:]
received = []


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        received.append((self.rfile.read(int(self.headers["content-length"])), dict(self.headers)))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *arguments):
        pass


def post(path, body):
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    request = urllib.request.Request(f"{url}/api/v1{path}", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


with http.server.HTTPServer(("127.0.0.1", 0), Receiver) as server:
    threading.Thread(target=server.handle_request).start()
    address = f"http://127.0.0.1:{server.server_port}/"
    endpoint = post("/webhooks", {"url": address, "events": "*", "signature": "standard"})
    assert post(f"/webhooks/{endpoint['id']}/test", {})["status"] == "success"

[(body, headers)] = received
webhook = Webhook(endpoint["secret"])
assert webhook.verify(body, headers)["event"] == "test.ping"
try:
    webhook.verify(body + b" ", headers)
    raise SystemExit("a changed body is verified")
except WebhookVerificationError:
    pass
