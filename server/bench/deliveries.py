"""How fast deliveries go out, and what a large backlog of them costs.

deliveries.py [BINARY [SECONDS]]      after cargo build --release -p payments-server; needs wrk
deliveries.py backlog [BINARY [PAYMENTS [ENDPOINTS [SECONDS]]]]
                                      a million pending deliveries to a thousand endpoints that hang; takes some minutes

The first prints deliveries a second to one endpoint that takes 5 ms for each, to one that answers at once and to ten of
them, while a backlog lasts, and the server's processor time for each. The endpoints are a Python process of their own.
The second prints the server's memory with the backlog, and how long it takes to start with it.
"""
import asyncio
import functools
import json
import multiprocessing
import pathlib
import re
import sys
import tempfile
import time
import urllib.request

from serving import BUILT, KEY, Server, processor_time, rate

HANGS = 18420


def endpoints(delays, counts):
    """Answers each request after the delay of its port, and counts the requests."""

    class Endpoint(asyncio.Protocol):
        def __init__(self, number, delay):
            self.number, self.delay, self.held = number, delay, b""

        def connection_made(self, transport):
            self.transport = transport

        def data_received(self, data):
            self.held += data
            while (end := self.held.find(b"\r\n\r\n")) >= 0:
                length = int(re.search(rb"content-length: (\d+)", self.held[:end].lower()).group(1))
                if len(self.held) < end + 4 + length:
                    return
                self.held = self.held[end + 4 + length :]
                asyncio.get_running_loop().call_later(self.delay, self.answer)

        def answer(self):
            counts[self.number] += 1
            self.transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

    async def serve():
        loop = asyncio.get_running_loop()
        for number, delay in enumerate(delays):
            protocol = functools.partial(Endpoint, number, delay)
            await loop.create_server(protocol, "127.0.0.1", HANGS + 1 + number)
        hang = await asyncio.start_server(lambda reader, writer: reader.read(), "127.0.0.1", HANGS)
        await hang.serve_forever()

    asyncio.run(serve())


def ask(server, path, body):
    headers = {"Authorization": KEY.split(": ")[1], "Content-Type": "application/json"}
    request = urllib.request.Request(f"{server.url}/api/v1{path}", json.dumps(body).encode(), headers)
    return json.load(urllib.request.urlopen(request))


def subscribe(server, port, number):
    ask(server, "/webhooks", {"url": f"http://127.0.0.1:{port}/{number}", "events": ["payment.created"]})


def rates(binary, seconds=4):
    for name, delays in (("one of 5 ms", [0.005]), ("one", [0]), ("ten", [0] * 10)):
        counts = multiprocessing.Array("q", len(delays), lock=False)
        receiver = multiprocessing.Process(target=endpoints, args=(delays, counts), daemon=True)
        receiver.start()
        with tempfile.TemporaryDirectory() as directory:
            server = Server(binary, 18400, "--data-dir", f"{directory}/store")
            try:
                for number in range(len(delays)):
                    subscribe(server, HANGS + 1 + number, number)
                rate(server.creates(seconds))
                time.sleep(0.5)
                sent, spent, begun = sum(counts), processor_time(server.process.pid), time.perf_counter()
                time.sleep(int(seconds))
                sent, spent = sum(counts) - sent, processor_time(server.process.pid) - spent
                took = time.perf_counter() - begun
                print(f"{name:12} {sent / took:8.0f}/s {spent / max(sent, 1) * 1e6:8.1f} us of processor time each")
            finally:
                server.process.kill()
                server.process.wait()
                receiver.kill()
                receiver.join()


def metric(server, name):
    with urllib.request.urlopen(server.url + "/metrics") as said:
        return float(re.search(rf"^{name} (\S+)$", said.read().decode(), re.M).group(1))


def ended(server):
    with urllib.request.urlopen(server.url + "/metrics") as said:
        return sum(map(float, re.findall(r"^payments_deliveries_total\{.*\} (\S+)$", said.read().decode(), re.M)))


def memory(server):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{server.process.pid}/status").read_text()).group(1)) >> 10


def backlog(binary, payments=1000, hanging=1000, seconds=5):
    payments, hanging, seconds = int(payments), int(hanging), int(seconds)
    receiver = multiprocessing.Process(target=endpoints, args=([], []), daemon=True)
    receiver.start()
    with tempfile.TemporaryDirectory() as directory:
        store = "--data-dir", f"{directory}/store", "--max-webhook-endpoints", hanging
        server = Server(binary, 18400, *store)
        print(f"empty: {memory(server)} MiB")
        for number in range(hanging):
            subscribe(server, HANGS, number)
        payment = {"amount": 750, "success_url": "https://shop.example/paid", "cancel_url": "https://shop.example/cart"}
        for _ in range(payments):
            ask(server, "/payments", payment)
        begun = time.perf_counter()
        while (pending := metric(server, "payments_outbox_deliveries")) + ended(server) < payments * hanging:
            time.sleep(1)
        print(f"{pending:.0f} pending after {time.perf_counter() - begun:.0f} s: {memory(server)} MiB")
        for how in ("kill", "terminate"):
            getattr(server.process, how)()
            server.process.wait()
            begun = time.perf_counter()
            server = Server(binary, 18400, *store)
            took = time.perf_counter() - begun
            time.sleep(seconds)
            print(f"ready {took:.2f} s after {how}; {memory(server)} MiB {seconds} s later")
        server.process.kill()
        server.process.wait()
    receiver.kill()


if __name__ == "__main__":
    arguments = sys.argv[1:]
    work = rates
    if arguments[:1] == ["backlog"]:
        work, arguments = backlog, arguments[1:]
    work(*(arguments or [BUILT]))
