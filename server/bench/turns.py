"""Two server binaries by turns: the processor time that each takes for a request, and the median of the ratios.

turns.py BEFORE AFTER [ROUNDS]        needs wrk; each binary serves a new store of its own
"""
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

BINARIES, ROUNDS = sys.argv[1:3], int(sys.argv[3]) if len(sys.argv) > 3 else 6
CREATE = pathlib.Path(__file__).with_name("create.lua")
KEY = "Authorization: Bearer sk_test_demo"
PAYMENT = b'{"amount": 750, "success_url": "https://shop.example/paid", "cancel_url": "https://shop.example/cart"}'


class Server:
    def __init__(self, binary, number, directory):
        self.url = f"http://127.0.0.1:{18300 + number}"
        settings = {"PAYMENTS_RATE_LIMIT": "1000000000", "PAYMENTS_LOG": "error"}
        command = [binary, "serve", "--listen", self.url[7:], "--data-dir", f"{directory}/{number}"]
        self.process = subprocess.Popen(command, env={**os.environ, **settings}, stdout=subprocess.DEVNULL)
        while True:
            try:
                urllib.request.urlopen(self.url + "/readyz")
                break
            except OSError:
                time.sleep(0.05)
        headers = {"Authorization": KEY.split(": ")[1], "Content-Type": "application/json"}
        request = urllib.request.Request(self.url + "/api/v1/payments", PAYMENT, headers)
        answer = urllib.request.urlopen(request).read().decode()
        self.payment = re.search(r'"id":"(pay_[^"]*)"', answer).group(1)

    def seconds(self):
        """Processor time so far, in user and kernel mode."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def cost(self, path, *load):
        """Microseconds of processor time for a request."""
        before = self.seconds()
        command = ["wrk", "-t2", "-c64", "-d3s", "-H", KEY, *load[:2], self.url + path, *load[2:]]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        if "Non-2xx" in said:
            sys.exit(said)
        return (self.seconds() - before) / int(re.search(r"(\d+) requests in", said).group(1)) * 1e6


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
