"""A large store beside a small one, by turns over one connection each: the median in milliseconds and the ratio.

latency.py LARGE_PORT SMALL_PORT [ROUNDS]
"""
import http.client
import json
import socket
import statistics
import sys
import time

HEADERS = {"Authorization": "Bearer sk_test_demo", "Content-Type": "application/json"}
BODY = json.dumps({"amount": 750, "success_url": "https://shop.example/paid", "cancel_url": "https://shop.example/cart"})
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 400


class Server:
    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port)
        self.connection.connect()
        self.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, method, path, body=None):
        headers = dict(HEADERS)
        if body:
            headers["Idempotency-Key"] = f"latency-{time.time_ns()}"
        begun = time.perf_counter()
        self.connection.request(method, "/api/v1" + path, body, headers)
        answer = self.connection.getresponse()
        text = answer.read()
        took = (time.perf_counter() - begun) * 1000
        assert answer.status in (200, 201), (answer.status, text)
        return took, json.loads(text)

    def payments(self, count):
        """So many ids, from all over the list."""
        total = self.ask("GET", "/payments?limit=1")[1]["total"]
        pages = max(1, total // 20)
        step = max(1, pages // (count // 20 + 1))
        ids = []
        for page in range(1, pages + 1, step):
            ids += [item["id"] for item in self.ask("GET", f"/payments?page={page}")[1]["items"]]
        return ids[:count]


def row(name, large, small):
    times = {"large": [], "small": []}
    for nth in range(ROUNDS):
        times["large"].append(large(nth))
        times["small"].append(small(nth))
    first, second = (statistics.median(times[which]) for which in ("large", "small"))
    print(f"{name}: {first:.3f} ms, {second:.3f} ms: {first / second:.2f}")


large, small = Server(int(sys.argv[1])), Server(int(sys.argv[2]))
for _ in range(min(200, ROUNDS)):
    small.ask("POST", "/payments", BODY)
ids, few = large.payments(400), small.payments(100)
row("create", lambda _: large.ask("POST", "/payments", BODY)[0], lambda _: small.ask("POST", "/payments", BODY)[0])
row("retrieve, each another", lambda nth: large.ask("GET", f"/payments/{ids[nth % len(ids)]}")[0],
    lambda nth: small.ask("GET", f"/payments/{few[nth % len(few)]}")[0])
page = lambda server, query: server.ask("GET", "/payments?" + query)[0]
row("first page", lambda _: page(large, ""), lambda _: page(small, ""))
row("page 5000 beside page 1, all", lambda _: page(large, "page=5000"), lambda _: page(large, "page=1"))
row("page 5000 beside page 1, pending", lambda _: page(large, "page=5000&status=pending"),
    lambda _: page(large, "page=1&status=pending"))
