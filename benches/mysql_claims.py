"""Claims on MySQL or MariaDB: one table with a status and an index on it, as job queues usually have it, against a table of
places that claims leave by primary key, as Leasehold has it. Counts jobs that were stored, claimed and acked, deadlocks, and
lock waits that ran out.

    .venv/bin/python benches/mysql_claims.py --port 3306 --user tester --password ... [--seconds 10]

Makes a database of its own and drops it. The clients are Python threads, so jobs per second compare the variants with each
other, and say nothing about what a server can do.
"""

import argparse
import json
import threading
import time

import pymysql

BATCH = 10
CLAIMERS = 8
PRODUCERS = 2
DEADLOCK, LOCK_WAIT = 1213, 1205

TABLES = (
    """create table job (
        id bigint not null auto_increment primary key, status tinyint not null, ready_at bigint not null, token bigint,
        payload blob not null, key by_status (status, ready_at, id))""",
    "create table task (id bigint not null auto_increment primary key, payload blob not null)",
    "create table ready (ready_at bigint not null, id bigint not null, primary key (ready_at, id))",
    "create table lease (job_id bigint not null primary key, token bigint not null)",
)
PAYLOAD = b"x" * 200


def now():
    return time.time_ns() // 1000


class Status:
    """One table: a claim sets the status of what it found."""

    def enqueue(self, cursor):
        rows = [(0, now(), PAYLOAD) for _ in range(BATCH)]
        cursor.executemany("insert into job (status, ready_at, payload) values (%s, %s, %s)", rows)

    def claim(self, cursor):
        cursor.execute(
            "select id, payload from job where status = 0 and ready_at <= %s order by ready_at, id limit %s"
            " for update skip locked", (now(), BATCH))
        ids = [row[0] for row in cursor.fetchall()]
        if ids:
            cursor.execute("update job set status = 1, token = 7 where id in %s", (ids,))
        return ids

    def ack(self, cursor, ids):
        cursor.execute("delete from job where id in %s and token = 7", (ids,))


class Places:
    """Places of ready jobs in a table of their own: a claim takes them out by primary key."""

    def enqueue(self, cursor):
        cursor.executemany("insert into task (payload) values (%s)", [(PAYLOAD,)] * BATCH)
        first, at = cursor.lastrowid, now()
        cursor.executemany("insert into ready values (%s, %s)", [(at, first + n) for n in range(BATCH)])

    def claim(self, cursor):
        cursor.execute(
            "select ready_at, id from ready force index (primary) where ready_at > 0 and ready_at <= %s"
            " order by ready_at, id limit %s for update skip locked", (now(), BATCH))
        places = cursor.fetchall()
        if places:
            cursor.execute(
                "delete r from json_table(%s, '$[*]' columns (at bigint path '$[0]', id bigint path '$[1]')) v"
                " straight_join ready r force index (primary) on r.ready_at = v.at and r.id = v.id", json.dumps(places))
            cursor.executemany("insert into lease values (%s, 7)", [(id,) for _, id in places])
            cursor.execute("select id, payload from task where id in %s", ([id for _, id in places],))
        return [id for _, id in places]

    def ack(self, cursor, ids):
        cursor.execute("delete from lease where job_id in %s and token = 7", (sorted(ids),))
        cursor.execute("delete from task where id in %s", (sorted(ids),))


class Run:
    def __init__(self, arguments, way, isolation):
        self.arguments, self.way, self.isolation = arguments, way, isolation
        self.lock, self.until = threading.Lock(), time.monotonic() + arguments.seconds
        self.counts = {"stored": 0, "acked": 0, DEADLOCK: 0, LOCK_WAIT: 0}

    def count(self, what, by=1):
        with self.lock:
            self.counts[what] += by

    def act(self, connection, what):
        """What the act answered; None where the server ended it."""
        try:
            with connection.cursor() as cursor:
                answer = what(cursor)
            connection.commit()
            return answer
        except pymysql.MySQLError as error:
            connection.rollback()
            if error.args[0] not in (DEADLOCK, LOCK_WAIT):
                raise
            self.count(error.args[0])
            return None

    def connect(self):
        connection = connect(self.arguments, "leasehold_bench_claims")
        with connection.cursor() as cursor:
            cursor.execute(f"set session transaction isolation level {self.isolation}")
        return connection

    def produce(self):
        connection = self.connect()
        while time.monotonic() < self.until:
            def enqueue(cursor):
                self.way.enqueue(cursor)
                return True
            if self.act(connection, enqueue):
                self.count("stored", BATCH)

    def consume(self):
        connection = self.connect()
        while time.monotonic() < self.until:
            ids = self.act(connection, self.way.claim)
            while ids and time.monotonic() < self.until:
                def ack(cursor, ids=ids):
                    self.way.ack(cursor, ids)
                    return True
                if self.act(connection, ack):
                    self.count("acked", len(ids))
                    break

    def go(self):
        threads = [threading.Thread(target=self.produce) for _ in range(PRODUCERS)]
        threads += [threading.Thread(target=self.consume) for _ in range(CLAIMERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self.counts


def connect(arguments, database=None):
    return pymysql.connect(host=arguments.host, port=arguments.port, user=arguments.user, password=arguments.password,
                           database=database)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--user", required=True)
    parser.add_argument("--password", default="")
    parser.add_argument("--seconds", type=float, default=10)
    arguments = parser.parse_args()
    with connect(arguments).cursor() as admin:
        admin.execute("select version()")
        print(f"{admin.fetchone()[0]}: {PRODUCERS} producers, {CLAIMERS} claimers, {BATCH} jobs each, "
              f"{arguments.seconds:g} s each\n")
        print(f"{'':38} {'stored/s':>9} {'acked/s':>9} {'deadlocks':>10} {'lock waits':>11}")
        ways = (("status and index, REPEATABLE READ", Status(), "repeatable read"),
                ("status and index, READ COMMITTED", Status(), "read committed"),
                ("places, READ COMMITTED (Leasehold)", Places(), "read committed"))
        for name, way, isolation in ways:
            admin.execute("drop database if exists leasehold_bench_claims")
            admin.execute("create database leasehold_bench_claims")
            admin.execute("use leasehold_bench_claims")
            for table in TABLES:
                admin.execute(table)
            counts = Run(arguments, way, isolation).go()
            print(f"{name:38} {counts['stored'] / arguments.seconds:9.0f} {counts['acked'] / arguments.seconds:9.0f} "
                  f"{counts[DEADLOCK]:10} {counts[LOCK_WAIT]:11}", flush=True)
        admin.execute("drop database leasehold_bench_claims")


if __name__ == "__main__":
    main()
