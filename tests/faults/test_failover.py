"""Failure case 20: the database fails over, and the broker follows its address to the new primary by itself."""

import grpc
import pytest

from faults.proxy import Proxy
from faults.test_horizon import standby_of
from harness.calls import CALLER, Failed, Stream, ack, enqueue, eventually, job
from harness.stubs import pb

pytestmark = pytest.mark.timeout(240)


def refused(stub):
    """What an Enqueue is told, where it is refused."""
    try:
        stub.Enqueue(pb.EnqueueRequest(jobs=[job("failover", b"after")]), timeout=5, metadata=CALLER)
    except grpc.RpcError as error:
        return Failed(error)
    return None


def acked(stub, leased):
    """What became of the leases; None where a lane found out by this call that its server was demoted."""
    try:
        return ack(stub, *[one.lease_token for one in leased])
    except grpc.RpcError as error:
        said = Failed(error)
        assert (said.code, said.outcome) == ("UNAVAILABLE", "not-applied"), said
        return None


def test_a_demoted_primary_is_left_for_the_new_one_and_no_lease_is_lost(cluster, brokers):
    proxy = Proxy(("127.0.0.1", cluster.port), postgres=True)
    broker = brokers(cluster.url(port=proxy.port))
    stub = broker.stub()
    enqueue(stub, *[job("failover", at.to_bytes(2, "big")) for at in range(20)])
    stream = Stream(stub, "failover", in_flight=10, lease=300)
    leased = stream.jobs(10)
    with standby_of(cluster, "heir") as heir:
        with cluster.connect() as session, heir.connect() as reader:
            written = session.execute("select pg_current_wal_lsn()").fetchone()[0]
            eventually(lambda: reader.execute("select pg_last_wal_replay_lsn() >= %s::pg_lsn", [written]).fetchone()[0],
                       within=30, what="the standby's copy")
            session.execute("alter system set default_transaction_read_only = on")
            session.execute("select pg_reload_conf()")
        said = eventually(lambda: refused(stub), what="refusal")
        assert (said.code, said.outcome) == ("UNAVAILABLE", "not-applied"), said
        eventually(lambda: not broker.is_ready(), within=5, what="unreadiness")
        heir._run("pg_ctl", "-D", str(heir.data), "promote", "-w", "-t", "60")
        with heir.connect() as session:
            session.execute("alter system reset default_transaction_read_only")
            session.execute("select pg_reload_conf()")
        proxy.upstream = ("127.0.0.1", heir.port)
        eventually(lambda: refused(stub) is None, within=15, what="service from the new primary")
        eventually(broker.is_ready, within=5, what="readiness")
        settled = eventually(lambda: acked(stub, leased), within=15, what="an answer to the ack")
        assert settled == ["OK"] * 10, "a lease was lost"
        assert len(stream.jobs(10, within=10)) == 10
        with heir.connect() as session:
            listeners = "select count(*) from pg_stat_activity where query ilike '%listen %' and datname = 'postgres'"
            eventually(lambda: session.execute(listeners).fetchone()[0] >= 1, within=15, what="the listener on the new primary")
        broker.end()
    proxy.close()
