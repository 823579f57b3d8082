"""Ten million changes on the tables of PostgreSQL: what each table and its indexes hold for a row, as they go by.

changes_on_postgres.py [--server BINARY] [--changes N] [--disk DIRECTORY]

Each transaction creates a hundred payments under new keys, pays a hundred earlier ones and sends the delivery of each, as the
server's batches do. Keys are dropped, oldest first, beyond the last 200,000, as the server drops them after a day.
"""
import argparse
import pathlib
import shutil
import subprocess
import tempfile
import time

from serving import BIN, BUILT, Cluster, Server

arguments = argparse.ArgumentParser()
arguments.add_argument("--server", default=BUILT)
arguments.add_argument("--changes", type=int, default=10_000_000)
arguments.add_argument("--disk", default="/tmp")
arguments = arguments.parse_args()

BATCH, KEPT, LAG = 100, 200_000, 5_000
CHANGES_OF_A_BATCH = 4 * BATCH
SQL = f"""
SELECT nextval('batches') AS batch \\gset
\\set slot random(0, 3)
BEGIN;
INSERT INTO idempotency (developer, environment, digest, responded_at, response, payment)
    SELECT 'dev_' || n % 50, 'test', decode(md5('key' || :batch || '/' || n) || md5('more' || :batch || '/' || n), 'hex'),
    :batch * {BATCH} + n, '{{"fingerprint":"' || md5(n::text) || md5(n::text) || '","createdAt":"2026-11-22T10:00:00.000Z"}}',
    'pay_' || lpad(to_hex(:batch * {BATCH} + n), 32, '0') FROM generate_series(1, {BATCH}) n;
INSERT INTO payment (id, developer, environment, status, version, expires_at, needs_settlement, needs_review, body)
    SELECT 'pay_' || lpad(to_hex(:batch * {BATCH} + n), 32, '0'), 'dev_' || n % 50, 'test', 'pending', 0, :batch * {BATCH} + n,
    false, false, rpad('{{"session":', 600, md5(n::text)) FROM generate_series(1, {BATCH}) n;
UPDATE payment p SET status = 'completed', version = 1, expires_at = NULL, body = rpad(body, 900, 'paid') FROM
    generate_series(1, {BATCH}) n WHERE p.id = 'pay_' || lpad(to_hex((:batch - {LAG // BATCH}) * {BATCH} + n), 32, '0');
INSERT INTO posting (payment, version, body) SELECT 'pay_' || lpad(to_hex(:batch * {BATCH} + n), 32, '0'), 1,
    '[["merchant",71250],["fee",3750],["gateway",-75000]]' FROM generate_series(1, {BATCH}) n;
INSERT INTO delivery (id, developer, environment, endpoint, payment, version, is_pending, body) SELECT
    'whd_' || lpad(to_hex(:batch * {BATCH} + n), 32, '0'), 'dev_' || n % 50, 'test', 'whk_' || n % 50,
    'pay_' || lpad(to_hex(:batch * {BATCH} + n), 32, '0'), 0, true, rpad('{{"delivery":', 350, md5(n::text))
    FROM generate_series(1, {BATCH}) n;
UPDATE delivery d SET is_pending = false, version = 1, body = rpad(body, 500, 'sent') FROM
    generate_series(1, {BATCH}) n WHERE d.id = 'whd_' || lpad(to_hex((:batch - {LAG // BATCH}) * {BATCH} + n), 32, '0');
INSERT INTO total (developer, environment, name, slot, value) SELECT 'dev_' || n, 'test', name, :slot, 2
    FROM generate_series(0, 49) n, unnest(ARRAY['payments', 'payments/pending', 'payments/completed', 'bdt']) name
    ORDER BY 1, 3 ON CONFLICT (developer, environment, name, slot) DO UPDATE SET value = total.value + excluded.value;
WITH old AS (SELECT developer, environment, digest FROM idempotency WHERE responded_at < :batch * {BATCH} - {KEPT}
    ORDER BY responded_at LIMIT 2 * {BATCH} FOR UPDATE SKIP LOCKED)
    DELETE FROM idempotency i USING old o
    WHERE i.developer = o.developer AND i.environment = o.environment AND i.digest = o.digest;
COMMIT;
"""
SIZES = """SELECT c.relname, greatest(s.n_live_tup, 1) AS rows, pg_relation_size(c.oid), (SELECT string_agg(
    replace(x.relname, c.relname || '_', '') || ' ' || pg_relation_size(x.oid) / greatest(s.n_live_tup, 1), ', ' ORDER BY x.relname)
    FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid WHERE i.indrelid = c.oid), s.n_dead_tup, s.autovacuum_count
    FROM pg_class c JOIN pg_stat_user_tables s ON s.relid = c.oid
    WHERE c.relname IN ('idempotency', 'payment', 'posting', 'delivery', 'total') ORDER BY 1"""


def query(sql):
    return cluster.tool("psql", "-At", "-h", directory, "-p", "15432", "-U", "postgres", "-d", "payments", "-c",
                        "SET search_path = payments", "-c", sql)


directory = pathlib.Path(tempfile.mkdtemp(prefix="changes.", dir=arguments.disk))
directory.chmod(0o777)
cluster = Cluster(directory)
try:
    cluster.sql("CREATE DATABASE payments")
    Server(arguments.server, 18090, "--database-url", cluster.url("payments")).stop()
    cluster.sql("CREATE SEQUENCE payments.batches", "payments")
    cluster.sql("ALTER DATABASE payments SET search_path = payments")
    cluster.sql("ALTER DATABASE payments SET enable_seqscan = off")
    (directory / "batch.sql").write_text(SQL)
    steps = 10
    for step in range(1, steps + 1):
        begun, transactions = time.time(), arguments.changes // CHANGES_OF_A_BATCH // steps // 2
        command = [BIN / "pgbench", "-h", directory, "-p", "15432", "-U", "postgres", "-n", "-M", "prepared", "-c", "2", "-t",
                   transactions, "-f", directory / "batch.sql", "payments"]
        subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        rate = 2 * transactions * CHANGES_OF_A_BATCH / (time.time() - begun)
        print(f"after {step * arguments.changes // steps:,} changes, {rate:,.0f} a second: table, rows, bytes a row, indexes "
              "(bytes a row), dead rows, vacuums")
        for line in filter(lambda line: "|" in line, query(SIZES).splitlines()):
            name, rows, size, indexes, dead, vacuums = line.split("|")
            print(f"  {name} {int(rows):,} {int(size) // int(rows)} | {indexes} | {dead} {vacuums}", flush=True)
finally:
    cluster.stop()
    shutil.rmtree(directory)
