"""A database with many payments beside one with few: how quickly they answer, and what the tables hold.

million_on_postgres.py [--server BINARY] [--payments N] [--seconds S] [--rounds N] [--disk DIRECTORY]

It needs wrk and PostgreSQL.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

from serving import BUILT, HERE, KEY, Cluster, Server, rate

arguments = argparse.ArgumentParser()
arguments.add_argument("--server", default=BUILT)
arguments.add_argument("--payments", type=int, default=1_000_000)
arguments.add_argument("--seconds", type=int, default=20)
arguments.add_argument("--rounds", type=int, default=400)
arguments.add_argument("--disk", default="/tmp")
arguments = arguments.parse_args()

SIZES = """SELECT c.relname, pg_table_size(c.oid) / 1048576, coalesce(sum(pg_relation_size(i.indexrelid)) / 1048576, 0)::bigint
    FROM pg_class c LEFT JOIN pg_index i ON i.indrelid = c.oid WHERE c.relnamespace = 'payments'::regnamespace AND c.relkind = 'r'
    GROUP BY c.oid HAVING pg_table_size(c.oid) > 1048576 ORDER BY 2 DESC"""


def total(server):
    request = urllib.request.Request(server.url + "/api/v1/payments?limit=1", headers=dict([KEY.split(": ", 1)]))
    return json.load(urllib.request.urlopen(request))["total"]


directory = pathlib.Path(tempfile.mkdtemp(prefix="million.", dir=arguments.disk))
directory.chmod(0o777)
cluster = Cluster(directory)
servers = []
try:
    for number, name in enumerate(("large", "small")):
        cluster.sql(f"CREATE DATABASE {name}")
        servers.append(Server(arguments.server, 18080 + 2 * number, "--database-url", cluster.url(name)))
    begun = time.time()
    while total(servers[0]) < arguments.payments:
        print(f"{rate(servers[0].creates(arguments.seconds)):.0f} creates a second", flush=True)
    print(f"{total(servers[0])} payments in {time.time() - begun:.0f} s")
    cluster.sql("CHECKPOINT", "large")
    print("table, MiB, indexes in MiB")
    print(cluster.tool("psql", "-At", "-h", cluster.directory, "-p", "15432", "-U", "postgres", "-d", "large", "-c", SIZES))
    print("large, small: ratio", flush=True)
    subprocess.run([sys.executable, HERE / "latency.py", "18080", "18082", str(arguments.rounds)], check=True)
finally:
    for server in servers:
        server.stop()
    cluster.stop()
    shutil.rmtree(directory)
