"""Two server binaries by turns: the processor time that each takes for a request, and the median of the ratios.

turns.py BEFORE AFTER [ROUNDS] [SECONDS]        needs wrk; each binary serves a new store of its own
"""
import json
import os
import re
import statistics
import sys
import tempfile
import urllib.request

import serving
from serving import HERE, KEY, processor_time

BINARIES, ROUNDS = sys.argv[1:3], int(sys.argv[3]) if len(sys.argv) > 3 else 6
SECONDS = int(sys.argv[4]) if len(sys.argv) > 4 else 3
CREATE = HERE / "create.lua"
PAYMENT = b'{"amount": 750, "success_url": "https://shop.example/paid", "cancel_url": "https://shop.example/cart"}'


class Server(serving.Server):
    """A server with one payment."""

    def __init__(self, binary, number, directory):
        super().__init__(binary, 18300 + number, "--data-dir", f"{directory}/{number}")
        headers = {"Authorization": KEY.split(": ")[1], "Content-Type": "application/json"}
        request = urllib.request.Request(self.url + "/api/v1/payments", PAYMENT, headers)
        self.payment = json.load(urllib.request.urlopen(request))["id"]

    def cost(self, path, *load):
        """Microseconds of processor time for a request."""
        before = processor_time(self.process.pid)
        said = self.wrk(SECONDS, 64, path, *load).communicate()[0]
        if "Non-2xx" in said:
            sys.exit(said)
        return (processor_time(self.process.pid) - before) / int(re.search(r"(\d+) requests in", said).group(1)) * 1e6


with tempfile.TemporaryDirectory() as directory:
    servers = [Server(binary, number, directory) for number, binary in enumerate(BINARIES)]
    try:
        figures = {}
        for turn in range(ROUNDS):
            for number in (0, 1) if turn % 2 else (1, 0):
                server = servers[number]
                for name, path, load in (
                    ("healthz", "/healthz", ()),
                    ("get", f"/api/v1/payments/{server.payment}", ()),
                    ("create", "", ("-s", CREATE, "--", f"{turn}-{os.getpid()}")),
                    ("list of twenty", "/api/v1/payments?limit=20", ()),
                ):
                    figures.setdefault(name, ([], []))[number].append(server.cost(path, *load))
        for name, (before, after) in figures.items():
            ratio = statistics.median(b / a for a, b in zip(before, after))
            print(f"{name:15} {statistics.median(before):7.1f} {statistics.median(after):7.1f} us   {ratio:.2f}")
    finally:
        for server in servers:
            server.process.kill()
            server.process.wait()
