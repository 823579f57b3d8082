"""The store on PostgreSQL without HTTP, by turns with pgbench on the same database.

store_on_postgres.py [--creates N] [--seconds S] [--rounds N] [--tests BINARY] [--disk DIRECTORY]

128 tasks make N creates each, by a test of the store, which is built in release unless --tests names its binary; pgbench
commits the same three rows from 32 clients. Needs PostgreSQL (Debian: apt-get install postgresql); as root it runs PostgreSQL as the user
postgres.
"""
import argparse
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile

from serving import HERE, Cluster

arguments = argparse.ArgumentParser()
arguments.add_argument("--creates", type=int, default=400)
arguments.add_argument("--seconds", type=int, default=5)
arguments.add_argument("--rounds", type=int, default=5)
arguments.add_argument("--tests")
arguments.add_argument("--disk", default="/tmp")
arguments = arguments.parse_args()

directory = pathlib.Path(tempfile.mkdtemp(prefix="bench.", dir=arguments.disk))
directory.chmod(0o777)
cluster = Cluster(directory)
tests = [arguments.tests] if arguments.tests else ["cargo", "test", "--release", "-p", "payments-store", "--test", "contract", "--"]
test = [*tests, "--nocapture", "many_creates"]
settings = {**os.environ, "STORE_CREATES": str(arguments.creates), "STORE_AT": cluster.url("payments")}
try:
    cluster.make_tables_of_pgbench()
    cluster.sql("CREATE DATABASE payments")
    ratios = []
    for turn in range(arguments.rounds):
        commits = cluster.pgbench(arguments.seconds)
        said = subprocess.run(test, env=settings, cwd=HERE, check=True, capture_output=True, text=True).stderr
        creates = float(re.search(r"(\d+) creates a second", said).group(1))
        ratios.append(creates / commits)
        print(f"pgbench {commits:.0f}/s, store {creates:.0f}/s: {ratios[-1]:.2f}", flush=True)
    print(f"median {statistics.median(ratios):.2f}   ({min(ratios):.2f} to {max(ratios):.2f})")
finally:
    cluster.stop()
    shutil.rmtree(directory)
