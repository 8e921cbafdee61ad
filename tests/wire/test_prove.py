"""`leasehold prove` on real servers: it shows what it says it shows, and leaves nothing."""

import json
import signal
import subprocess
import time

import pytest
from harness.redis import redis_server


@pytest.fixture(scope="module")
def redis():
    with redis_server() as url:
        yield url


def prove(program, url, *arguments):
    ran = subprocess.run([program, "prove", "--database-url", url, "--json", *arguments], capture_output=True, text=True,
                         timeout=60, env={})
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def tables(postgres):
    return postgres.all("select tablename from pg_tables where tablename like 'leasehold_prove%%'")


def assert_what_clauses_do(report, workers, rows):
    runs = {run["clause"]: run for run in report["clauses"]}
    for clause in ("skip_locked", "for_update"):
        run = runs[clause]
        assert (run["claims"], run["duplicates"], run["left"], run["errors"]) == (rows, 0, 0, 0), run
    assert min(runs["skip_locked"]["per_worker"]) > 0, "all workers took part"
    assert runs["no_wait"]["errors"] > 0 and runs["no_wait"]["duplicates"] == 0
    assert runs["none"]["duplicates"] > 0
    for run in report["clauses"]:
        assert len(run["per_worker"]) == workers and sum(run["per_worker"]) == run["claims"]


def assert_what_strategies_do(report, jobs):
    runs = {run["strategy"]: run for run in report["strategies"]}
    assert runs["redis_lock"]["processed"] > jobs, "released before the commit, it lets others in"
    assert runs["redis_lock"]["duplicates"] == runs["redis_lock"]["processed"] - jobs
    for strategy in ("redis_lock_checked_twice", "skip_locked"):
        assert (runs[strategy]["processed"], runs[strategy]["duplicates"]) == (jobs, 0), runs[strategy]
    assert runs["redis_lock_checked_twice"]["skipped"] > runs["skip_locked"]["skipped"]


def test_on_postgres_all_experiments_show_their_point(program, postgres, redis):
    report = prove(program, postgres.url, "--redis-url", redis)
    assert report["database"].startswith("PostgreSQL ")
    assert_what_clauses_do(report, workers=4, rows=12)
    assert_what_strategies_do(report, jobs=100)
    assert report["gaps"] == [], "PostgreSQL has no gap locks"
    assert tables(postgres) == []


def test_without_redis_its_strategies_are_left_out(program, postgres):
    report = prove(program, postgres.url, "--work", "1ms", "--jobs", "5", "--job-work", "1ms")
    assert [run["strategy"] for run in report["strategies"]] == ["skip_locked"]


def test_an_interrupted_experiment_leaves_no_table(program, postgres):
    arguments = [program, "prove", "--database-url", postgres.url, "--work", "1h"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={}) as running:
        deadline = time.monotonic() + 30
        while not postgres.all("select 1 from pg_stat_activity where state = 'idle in transaction'"
                               " and datname = current_database()"):
            assert time.monotonic() < deadline and running.poll() is None
        assert len(tables(postgres)) == 3
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=30)
    assert running.returncode == 1 and "stopped before the end" in said
    assert tables(postgres) == []


@pytest.mark.parametrize(("url", "says"), [
    ("sqlite:///tmp/x.db", "needs a server whose row locks workers share"),
    ("postgres://nobody:hunter2@127.0.0.1:1/x", "cannot be reached"),
    ("nonsense", "needs a server"),
])
def test_a_database_that_cannot_be_tried_is_refused_without_its_password(program, url, says):
    ran = subprocess.run([program, "prove", "--database-url", url], capture_output=True, text=True, timeout=60, env={})
    assert ran.returncode == 1 and says in ran.stderr and "hunter2" not in ran.stderr
    assert ran.stdout == ""


def test_a_redis_that_is_away_is_said(program, postgres):
    ran = subprocess.run([program, "prove", "--database-url", postgres.url, "--redis-url", "redis://127.0.0.1:1",
                          "--work", "1ms"], capture_output=True, text=True, timeout=60, env={})
    assert ran.returncode == 1 and "Redis" in ran.stderr
    assert tables(postgres) == []
