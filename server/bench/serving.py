"""PostgreSQL and servers for measurements.

BUILT_IN names the folder of another build than target/release, and PICTURES the one that pictures are drawn in.
"""
import os
import pathlib
import re
import subprocess
import time
import urllib.request

HERE = pathlib.Path(__file__).parent
BIN = max(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
BUILT = pathlib.Path(os.environ.get("BUILT_IN", HERE.parent.parent / "target/release")) / "payments-server"
PICTURES = pathlib.Path(os.environ.get("PICTURES", HERE.parent / "docs"))
KEY = "Authorization: Bearer sk_test_demo"


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True, **options).stdout


class Cluster:
    """PostgreSQL with its defaults, in a directory."""

    def __init__(self, directory, standbys=0):
        self.directory = directory
        self.user = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.getuid() == 0 else {}
        self.begin("primary", 15432)
        self.nodes = ["primary"]
        for number in range(1, standbys + 1):
            self.follow(f"standby{number}", 15432 + number)
        if standbys:
            self.sql(f"ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 ({', '.join(self.nodes[1:])})'")
            self.sql("SELECT pg_reload_conf()")

    def tool(self, name, *rest):
        return run(BIN / name, *rest, cwd=self.directory, **self.user)

    def begin(self, node, port):
        if node == "primary":
            self.tool("initdb", "-D", node, "-U", "postgres", "-A", "trust", "--no-sync")
        log, options = self.directory / f"{node}.log", f"-k {self.directory} -p {port} -c listen_addresses="
        # Without the pipe of its output, which the cluster would keep open.
        subprocess.run([BIN / "pg_ctl", "-D", node, "-o", options, "-l", log, "-w", "start"], cwd=self.directory, check=True,
                       stdout=subprocess.DEVNULL, **self.user)

    def follow(self, node, port):
        source = f"host={self.directory} port=15432 user=postgres application_name={node}"
        self.tool("pg_basebackup", "--no-sync", "-R", "-D", node, "-d", source, "-c", "fast")
        self.begin(node, port)
        self.nodes.append(node)

    def sql(self, text, database="postgres"):
        self.tool("psql", "-q", "-h", self.directory, "-p", "15432", "-U", "postgres", "-d", database, "-c", text)

    def url(self, database):
        return f"postgres://postgres@/{database}?host={self.directory}&port=15432"

    def make_tables_of_pgbench(self):
        self.tool("psql", "-q", "-h", self.directory, "-p", "15432", "-U", "postgres", "-f", HERE / "postgres-schema.sql")

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
    # Gone before the file was opened, or while it was read.
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(map(int, fields[11 : 15 if with_ended else 13])) / os.sysconf("SC_CLK_TCK")


class Server:
    """A server on a store."""

    def __init__(self, binary, port, *store):
        self.url = f"http://127.0.0.1:{port}"
        settings = {**os.environ, "PAYMENTS_RATE_LIMIT": "1000000000", "PAYMENTS_LOG": "error"}
        self.process = subprocess.Popen([binary, "serve", "--listen", self.url[7:], *map(str, store)], env=settings,
                                        stdout=subprocess.DEVNULL)
        while True:
            try:
                urllib.request.urlopen(self.url + "/readyz")
                return
            except OSError:
                assert self.process.poll() is None, "the server ended"
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
