"""The server on PostgreSQL, by turns with pgbench on the same database and with the embedded store on the same disk.

on_postgres.py [--server BINARY] [--seconds S] [--rounds N] [--standbys] [--disk DIRECTORY]

pgbench commits three rows as long as a create's from 32 clients, in one round trip. With --standbys, every commit waits for one
of two standbys on the same disk. Needs wrk and PostgreSQL (Debian: apt-get install wrk postgresql); as root it runs PostgreSQL
as the user postgres.
"""
import argparse
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).parent
BIN = max(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
MERCHANTS = 64
KEY = "Authorization: Bearer sk_test_demo"
PAYMENT = b'{"amount": 750, "success_url": "https://shop.example/paid", "cancel_url": "https://shop.example/cart"}'

arguments = argparse.ArgumentParser()
arguments.add_argument("--server", default=HERE.parent.parent / "target/release/payments-server")
arguments.add_argument("--seconds", type=int, default=8)
arguments.add_argument("--rounds", type=int, default=4)
arguments.add_argument("--standbys", action="store_true")
arguments.add_argument("--disk", default="/tmp")
arguments = arguments.parse_args()


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True, **options).stdout


class Cluster:
    """PostgreSQL with its defaults, in a directory."""

    def __init__(self, directory):
        self.directory = directory
        self.user = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.getuid() == 0 else {}
        self.begin("primary", 15432)
        self.nodes = ["primary"]
        if arguments.standbys:
            for number in (1, 2):
                self.follow(f"standby{number}", 15432 + number)
            self.sql("ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (standby1, standby2)'")
            self.sql("SELECT pg_reload_conf()")

    def tool(self, name, *rest):
        return run(BIN / name, *rest, cwd=self.directory, **self.user)

    def begin(self, node, port):
        if node == "primary":
            self.tool("initdb", "-D", node, "-U", "postgres", "-A", "trust")
        log, options = self.directory / f"{node}.log", f"-k {self.directory} -p {port} -c listen_addresses="
        # Without the pipe of its output, which the cluster would keep open.
        subprocess.run([BIN / "pg_ctl", "-D", node, "-o", options, "-l", log, "-w", "start"], cwd=self.directory, check=True,
                       stdout=subprocess.DEVNULL, **self.user)

    def follow(self, node, port):
        source = f"host={self.directory} port=15432 user=postgres application_name={node}"
        self.tool("pg_basebackup", "-R", "-D", node, "-d", source, "-c", "fast")
        self.begin(node, port)
        self.nodes.append(node)

    def sql(self, text, database="postgres"):
        self.tool("psql", "-q", "-h", self.directory, "-p", "15432", "-U", "postgres", "-d", database, "-c", text)

    def url(self, database):
        return f"postgres://postgres@/{database}?host={self.directory}&port=15432"

    def pgbench(self, seconds):
        said = self.tool("pgbench", "-h", self.directory, "-p", "15432", "-U", "postgres", "-n", "-c", "32", "-j", "2", "-T",
                         seconds, "-f", HERE / "postgres.sql", "postgres")
        return float(re.search(r"tps = ([\d.]+)", said).group(1))

    def stop(self):
        for node in reversed(self.nodes):
            self.tool("pg_ctl", "-D", node, "-m", "immediate", "stop")

    def seconds(self):
        """Processor time so far of all processes of the primary, and of those that have ended."""
        pid = int((self.directory / "primary/postmaster.pid").read_text().split()[0])
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return processor_time(pid, True) + sum(processor_time(int(child)) for child in children)


def processor_time(pid, with_ended=False):
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except FileNotFoundError:
        return 0
    return sum(map(int, fields[11 : 15 if with_ended else 13])) / os.sysconf("SC_CLK_TCK")


class Server:
    """A server on a store."""

    def __init__(self, port, *store):
        self.url = f"http://127.0.0.1:{port}"
        settings = {**os.environ, "PAYMENTS_RATE_LIMIT": "1000000000", "PAYMENTS_LOG": "error"}
        self.process = subprocess.Popen([arguments.server, "serve", "--listen", self.url[7:], *map(str, store)], env=settings,
                                        stdout=subprocess.DEVNULL)
        while True:
            try:
                urllib.request.urlopen(self.url + "/readyz")
                return
            except OSError:
                time.sleep(0.05)

    def wrk(self, seconds, connections, path, *rest):
        command = ["wrk", f"-t{min(connections, 2)}", f"-c{connections}", f"-d{seconds}s", "--latency", "-H", KEY, *rest[:2]]
        return subprocess.Popen([*map(str, command), self.url + path, *rest[2:]], stdout=subprocess.PIPE, text=True)

    def creates(self, seconds, connections=128, keys=("sk_test_demo",)):
        run = f"{time.time_ns()}"
        return self.wrk(seconds, connections, "", "-s", HERE / "create.lua", "--", run, ",".join(keys))

    def stop(self):
        self.process.terminate()
        self.process.wait()


def rate(load):
    said = load.communicate()[0]
    assert "Non-2xx" not in said, said
    return float(re.search(r"Requests/sec: +([\d.]+)", said).group(1))


def median_ms(load):
    number, unit = re.search(r" 50% +([\d.]+)(us|ms|s)", load.communicate()[0]).groups()
    return float(number) * {"us": 0.001, "ms": 1, "s": 1000}[unit]


def merchants(*store):
    """The keys of many merchants."""
    keys = []
    for number in range(MERCHANTS):
        workspace = run(arguments.server, "workspaces", "create", "--name", f"Shop {number}", *store).strip()
        key = run(arguments.server, "keys", "create", "--workspace", workspace, "--environment", "test", *store)
        keys.append(re.search(r"sk_test_\w+", key).group())
    return keys


directory = pathlib.Path(tempfile.mkdtemp(prefix="bench.", dir=arguments.disk))
directory.chmod(0o777)
cluster = Cluster(directory)
servers = []
try:
    run(BIN / "psql", "-q", "-h", directory, "-p", "15432", "-U", "postgres", "-f", HERE / "postgres-schema.sql")
    cluster.sql("CREATE DATABASE payments")
    store = ("--database-url", cluster.url("payments"))
    servers += [Server(18080, *store), Server(18081, *store)]
    keys = merchants(*store)
    servers.append(Server(18082, "--data-dir", directory / "data"))
    one, two, embedded = servers
    figures = []
    print("pgbench/s | creates/s many, one merchant, two servers | us a create: database, server, two servers | alone ms: "
          "PostgreSQL, embedded")
    for turn in range(arguments.rounds):
        seconds = arguments.seconds
        commits = cluster.pgbench(seconds)
        before = (cluster.seconds(), processor_time(one.process.pid))
        many = rate(one.creates(seconds, keys=keys))
        after = (cluster.seconds(), processor_time(one.process.pid))
        database, server = ((b - a) / (many * seconds) * 1e6 for a, b in zip(before, after))
        hot = rate(one.creates(seconds))
        before = processor_time(one.process.pid) + processor_time(two.process.pid) + cluster.seconds()
        loads = [server.creates(seconds, keys=keys) for server in (one, two)]
        both = sum(map(rate, loads))
        after = processor_time(one.process.pid) + processor_time(two.process.pid) + cluster.seconds()
        pair = (after - before) / (both * seconds) * 1e6
        # By turns, since the disk changes from second to second.
        alone = [(median_ms(one.creates(1, 1)), median_ms(embedded.creates(1, 1))) for _ in range(4)]
        there, here = map(statistics.median, zip(*alone))
        figures.append((many / commits, hot / many, both / many, there - here))
        print(f"{commits:.0f} | {many:.0f} {hot:.0f} {both:.0f} | {database:.0f} {server:.0f} {pair:.0f} | {there:.2f} {here:.2f}",
              flush=True)
    for name, values in zip(("creates to pgbench", "one merchant to many", "two servers to one", "alone, ms more"), zip(*figures)):
        print(f"{name:22} {statistics.median(values):.2f}   ({min(values):.2f} to {max(values):.2f})")
finally:
    for server in servers:
        server.stop()
    cluster.stop()
    shutil.rmtree(directory)
