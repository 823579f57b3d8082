"""What endpoints that hang cost the others: three servers on this machine are given payments by turns.

One has 50 endpoints that answer, one has 100, one has 50 that answer and 50 that accept and say nothing. Printed are the
medians and the slowest twentieth of a create, and of the time from its answer to the arrival of its event at an endpoint
that answers.

hanging.py [SECONDS]        after cargo build --release -p payments-server
"""
import asyncio
import concurrent.futures
import json
import statistics
import sys
import tempfile
import time
import urllib.request

from serving import BUILT, Server

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 30
SERVERS = {"50 answer": (18201, 50, 0), "100 answer": (18202, 100, 0), "50 answer, 50 hang": (18203, 50, 50)}
ANSWERS, HANGS = 18210, 18211
PAYMENT = {"amount": 750, "success_url": "https://shop.example/paid", "cancel_url": "https://shop.example/cart"}
arrivals = {}


def ask(port, path, body):
    headers = {"Authorization": "Bearer sk_test_demo", "Content-Type": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/api/v1{path}", json.dumps(body).encode(), headers)
    return json.load(urllib.request.urlopen(request))


async def answer(reader, writer):
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = int(head.split("content-length: ")[1].split("\r\n")[0])
            event = json.loads(await reader.readexactly(length))
            arrivals.setdefault(event["data"]["id"], []).append(time.perf_counter())
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
        writer.close()


async def hang(reader, writer):
    try:
        await reader.read()
    except (ConnectionError, asyncio.CancelledError):
        pass
    writer.close()


def sell(seconds):
    """Creates payments, in a process of its own: what this one does with the events must not delay it."""
    creates, answered = {name: [] for name in SERVERS}, {name: {} for name in SERVERS}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for name, (port, _, _) in SERVERS.items():
            begun = time.perf_counter()
            payment = ask(port, "/payments", PAYMENT)
            answered[name][payment["id"]] = time.perf_counter()
            creates[name].append((answered[name][payment["id"]] - begun) * 1000)
            time.sleep(0.2)
    return creates, answered


async def main():
    await asyncio.start_server(answer, "127.0.0.1", ANSWERS, backlog=1024)
    await asyncio.start_server(hang, "127.0.0.1", HANGS, backlog=1024)
    directory = tempfile.TemporaryDirectory()
    running = []
    for port, answering, hanging in SERVERS.values():
        running.append(Server(BUILT, port, "--data-dir", f"{directory.name}/{port}"))
    for port, answering, hanging in SERVERS.values():
        for target, count in ((ANSWERS, answering), (HANGS, hanging)):
            for nth in range(count):
                endpoint = {"url": f"http://127.0.0.1:{target}/{nth}", "events": ["*"]}
                await asyncio.to_thread(ask, port, "/webhooks", endpoint)
    with concurrent.futures.ProcessPoolExecutor(1) as shop:
        creates, answered = await asyncio.get_running_loop().run_in_executor(shop, sell, SECONDS)
    await asyncio.sleep(3)
    for server in running:
        server.stop()
    for name, (_, answering, _) in SERVERS.items():
        delays = [(at - done) * 1000 for id, done in answered[name].items() for at in arrivals.get(id, [])]
        complete = sum(len(arrivals.get(id, [])) == answering for id in answered[name])
        spread = lambda times: f"{statistics.median(times):.1f} ms, {statistics.quantiles(times, n=20)[-1]:.1f} ms"
        print(f"{name}: {len(creates[name])} creates {spread(creates[name])}; {len(delays)} deliveries {spread(delays)}; "
              f"{complete} payments told to all that answer")


if __name__ == "__main__":
    asyncio.run(main())
