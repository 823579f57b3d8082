"""The server on PostgreSQL, by turns with pgbench on the same database and with the embedded store on the same disk.

on_postgres.py [--server BINARY] [--seconds S] [--rounds N] [--merchants N] [--standbys] [--disk DIRECTORY]

pgbench commits three rows as long as a create's from 32 clients, in one round trip. With --standbys, every commit waits for one
of two standbys on the same disk. Needs wrk and PostgreSQL (Debian: apt-get install wrk postgresql); as root it runs PostgreSQL
as the user postgres.
"""
import argparse
import pathlib
import re
import shutil
import statistics
import tempfile

from serving import BUILT, Cluster, Server, median_ms, processor_time, rate, run

arguments = argparse.ArgumentParser()
arguments.add_argument("--server", default=BUILT)
arguments.add_argument("--seconds", type=int, default=8)
arguments.add_argument("--rounds", type=int, default=4)
arguments.add_argument("--merchants", type=int, default=64)
arguments.add_argument("--standbys", action="store_true")
arguments.add_argument("--disk", default="/tmp")
arguments = arguments.parse_args()


def merchants(*store):
    """The keys of many merchants."""
    keys = []
    for number in range(arguments.merchants):
        workspace = run(arguments.server, "workspaces", "create", "--name", f"Shop {number}", *store).strip()
        key = run(arguments.server, "keys", "create", "--workspace", workspace, "--environment", "test", *store)
        keys.append(re.search(r"sk_test_\w+", key).group())
    return keys


directory = pathlib.Path(tempfile.mkdtemp(prefix="bench.", dir=arguments.disk))
directory.chmod(0o777)
cluster = Cluster(directory, 2 if arguments.standbys else 0)
servers = []
try:
    cluster.make_tables_of_pgbench()
    cluster.sql("CREATE DATABASE payments")
    store = ("--database-url", cluster.url("payments"))
    servers += [Server(arguments.server, port, *store) for port in (18080, 18081)]
    keys = merchants(*store)
    servers.append(Server(arguments.server, 18082, "--data-dir", directory / "data"))
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
        alone = [(median_ms(one.creates(1, 1)), median_ms(embedded.creates(1, 1))) for _ in range(max(1, seconds // 2))]
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
