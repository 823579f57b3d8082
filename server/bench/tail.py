"""How long the slowest creates take under 128 connections: on quiet cores, and beside a busy loop on each core.

tail.py [ROUNDS] [SECONDS] [BINARY]     after cargo build --release -p payments-server; needs wrk

It prints the mean, the slowest hundredth and the slowest of all as wrk sees them, the slowest hundredth by the server's own
clock, and that of the journal's syncs. The last two are read between the bounds of /metrics' buckets.
"""
import multiprocessing
import os
import re
import sys
import tempfile
import urllib.request

from serving import BUILT, Server

UNITS = {"us": 0.001, "ms": 1, "s": 1000, "m": 60000}


def milliseconds(number, unit):
    return float(number) * UNITS[unit]


def latency(load):
    """Creates a second, and the mean, the slowest hundredth and the slowest in milliseconds."""
    said = load.communicate()[0]
    assert "Non-2xx" not in said, said
    row = re.search(r"Latency +([\d.]+)(us|ms|s) +[\d.]+(?:us|ms|s) +([\d.]+)(us|ms|s|m)", said)
    slow = re.search(r" 99% +([\d.]+)(us|ms|s|m)", said)
    rate = float(re.search(r"Requests/sec: +([\d.]+)", said).group(1))
    return rate, milliseconds(*row.group(1, 2)), milliseconds(*slow.group(1, 2)), milliseconds(*row.group(3, 4))


def times(server, metric, labels=""):
    """How many have taken at most so many milliseconds."""
    with urllib.request.urlopen(server.url + "/metrics") as said:
        rows = re.findall(rf'^payments_{metric}_seconds_bucket{{le="([^"]+)"(.*)}} (\d+)', said.read().decode(), re.M)
    return [(float(bound) * 1000, int(count)) for bound, others, count in rows if labels in others]


def both(server):
    return times(server, "request_duration", 'route="/api/v1/payments"'), times(server, "commit_sync")


def hundredth(before, after):
    """The time that all but a hundredth since `before` took at most, and the bound that none exceeded."""
    new = [(bound, count - dict(before).get(bound, 0)) for bound, count in after]
    (low, under), (high, until) = next(pair for pair in zip([(0, 0), *new], new) if pair[1][1] >= 0.99 * new[-1][1])
    share = (0.99 * new[-1][1] - under) / (until - under)
    return low + (high - low) * share, next(bound for bound, count in new if count == new[-1][1])


def spin():
    while True:
        pass


def main(rounds=3, seconds=8, binary=BUILT):
    with tempfile.TemporaryDirectory() as directory:
        server = Server(binary, 18600, "--data-dir", f"{directory}/store")
        try:
            latency(server.creates(2))
            for turn in range(int(rounds)):
                for where, loops in (("quiet", 0), ("beside busy loops", os.cpu_count())):
                    busy = [multiprocessing.Process(target=spin, daemon=True) for _ in range(loops)]
                    for loop in busy:
                        loop.start()
                    before = both(server)
                    rate, mean, slow, slowest = latency(server.creates(seconds))
                    (request, _), (sync, longest) = (hundredth(*pair) for pair in zip(before, both(server)))
                    for loop in busy:
                        loop.kill()
                    print(f"{where:18} {rate:7.0f}/s  mean {mean:6.2f} ms  hundredth {slow:7.2f} ms ({slow / mean:.2f} of the "
                          f"mean)  slowest {slowest:7.1f} ms  hundredth in the server {request:.1f} ms, of syncs {sync:.1f} ms "
                          f"(the longest at most {longest:.1f})", flush=True)
        finally:
            server.process.kill()
            server.process.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
