"""`leasehold bench` on real servers: nothing is lost, nothing is done twice, and nothing is left. Never how fast."""

import json
import signal
import subprocess

import pytest


def bench(program, url, *arguments):
    ran = subprocess.run([program, "bench", *arguments, "--database-url", url, "--rounds", "2", "--json", "--timeout", "5m"],
                         capture_output=True, text=True, timeout=300, env={})
    assert ran.returncode == 0, ran.stderr
    report = json.loads(ran.stdout)
    assert [report[count] for count in ("lost", "twice", "strange", "refused_acks")] == [0, 0, 0, 0], report
    assert len(report["rounds"]) == 2 and report["median"]["jobs_per_second"] > 0
    return report


def schemas(postgres):
    return postgres.all("select nspname from pg_namespace where nspname like 'leasehold%%'")


@pytest.mark.parametrize("act", ["enqueue", "drain", "all"])
def test_on_postgres_every_act_loses_nothing_and_says_what_a_job_costs(program, postgres, act):
    report = bench(program, postgres.url, act, "--jobs", "1000", "--batch", "50")
    assert report["engine"].startswith("postgresql "), report["engine"]
    assert report["unknown"] == [] and report["median"]["wal_bytes_per_job"] > 0, report
    # a hundredth of a second is the least that is told
    assert all(report["median"][f"{process}_cpu_seconds_per_job"] >= 0 for process in ("client", "broker", "database"))
    assert schemas(postgres) == []


def test_on_postgres_latency_at_a_fixed_rate_is_that_of_every_job(program, postgres):
    report = bench(program, postgres.url, "latency", "--rate", "100", "--for", "500ms")
    latency = report["median"]["latency_seconds"]
    assert latency["count"] == 100 and 0 < latency["p50"] <= latency["p99"] <= latency["max"], latency
    assert schemas(postgres) == []


def test_a_backlog_and_a_held_snapshot_change_nothing_of_what_comes(program, postgres):
    waiting = ["--backlog", "300", "--scheduled", "200", "--blocked", "250"]
    report = bench(program, postgres.url, "drain", "--jobs", "400", "--batch", "20", "--held-snapshot", *waiting)
    assert report["held_snapshot"] is True
    assert schemas(postgres) == []


def test_on_mariadb_nothing_is_lost_and_no_table_is_left(program, mariadb):
    report = bench(program, mariadb.url, "all", "--jobs", "400", "--batch", "20")
    assert report["engine"].startswith("mariadb "), report["engine"]
    for what in ("table", "routine"):
        left = mariadb.one(f"select count(*) from information_schema.{what}s where {what}_schema = database()")
        assert left == 0, what


def test_an_interrupted_measurement_leaves_no_schema(program, postgres):
    arguments = [program, "bench", "all", "--jobs", "50000000", "--rounds", "1", "--database-url", postgres.url]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={}) as running:
        for line in running.stderr:
            if line.startswith("round 1"):
                break
        running.send_signal(signal.SIGINT)
        said, _ = running.communicate(timeout=120)
    assert running.returncode == 1 and "all on postgresql" in said
    assert schemas(postgres) == []


def test_a_password_is_not_shown_where_the_database_is_away(program):
    ran = subprocess.run([program, "bench", "all", "--database-url", "postgres://nobody:hunter2@127.0.0.1:1/x"],
                         capture_output=True, text=True, timeout=60, env={})
    assert ran.returncode == 69 and "cannot be reached" in ran.stderr, ran.stderr
    assert "hunter2" not in ran.stdout + ran.stderr
