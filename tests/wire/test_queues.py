"""Queues as operators see and change them."""

import time

import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from harness.calls import CALLER, Stream, ack, enqueue, eventually, failure, job, nack
from harness.operators import audit, counts, get, settings, update
from harness.stubs import admin_pb as apb


def test_a_client_learns_what_it_needs_of_the_broker(broker, admin):
    info = admin.GetBrokerInfo(apb.GetBrokerInfoRequest(), timeout=10)
    assert info.version.count(".") == 2
    assert info.broker == broker.name
    assert info.engine == {"sqlite": "sqlite", "postgres": "postgresql", "mariadb": "mariadb"}[broker.engine]
    assert info.engine_version[0].isdigit()
    assert info.schema_version == info.newest_schema_version >= 4
    assert abs(info.started_at.ToSeconds() - time.time()) < 3600
    limits = info.limits
    assert (limits.payload_bytes, limits.headers, limits.header_bytes, limits.batch_jobs) == (1 << 20, 32, 16 << 10, 1000)
    assert (limits.request_bytes, limits.max_in_flight, limits.queues_per_stream) == (4 << 20, 10_000, 32)
    assert (limits.shortest_lease.seconds, limits.longest_lease.seconds, limits.max_attempts) == (1, 43_200, 1000)
    assert (limits.longest_delay.seconds, limits.request_deadline.seconds) == (31_536_000, 30)
    stock = limits.stock
    assert (stock.lines, stock.quantity, stock.jobs, stock.adjustments) == (100, 1_000_000, 100, 1000)
    times = (stock.shortest_time_to_live, stock.usual_time_to_live, stock.longest_time_to_live)
    assert [time_.seconds for time_ in times] == [1, 900, 86_400]


def test_a_queue_is_created_changed_and_set_back(admin):
    created = update(admin, "life-of-a-queue", create=True, max_attempts=7, lease_duration=90)
    assert created.created
    assert (created.queue.settings.max_attempts, created.queue.settings.lease_duration.seconds) == (7, 90)
    again = update(admin, "life-of-a-queue", create=True, max_attempts=7)
    assert not again.created
    changed = update(admin, "life-of-a-queue", paused=True, time_to_live=60, max_backlog_jobs=5).queue.settings
    assert (changed.paused, changed.time_to_live.seconds, changed.max_backlog_jobs) == (True, 60, 5)
    assert (changed.max_attempts, changed.lease_duration.seconds) == (7, 90), "what was not named stays"
    back = update(admin, "life-of-a-queue", mask=["paused", "time_to_live", "max_attempts", "max_backlog_jobs"])
    usual = get(admin, "life-of-a-queue").settings
    assert usual == back.queue.settings
    assert (usual.paused, usual.max_attempts) == (False, 20)
    assert not usual.HasField("time_to_live") and not usual.HasField("max_backlog_jobs")
    assert usual.lease_duration.seconds == 90
    # Read, change one field, write all of it back with a mask of that field: nothing else changes.
    usual.backoff_cap.seconds = 7
    usual.max_attempts = 1
    request = apb.UpdateQueueRequest(queue="life-of-a-queue", settings=usual, update_mask=FieldMask(paths=["backoff_cap"]))
    now = admin.UpdateQueue(request, timeout=10).queue.settings
    assert (now.backoff_cap.seconds, now.max_attempts) == (7, 20)


def test_changes_of_many_clients_at_once_are_all_kept(broker, admin):
    fields = {"paused": True, "max_attempts": 3, "lease_duration": 11, "backoff_cap": 700, "dead_retention": 12,
              "max_backlog_jobs": 9, "time_to_live": 13, "acked_retention": 14}
    update(admin, "crowded", create=True)
    calls = [broker.admin().UpdateQueue.future(
        apb.UpdateQueueRequest(queue="crowded", settings=settings(**{name: value}),
                               update_mask=FieldMask(paths=[name])), timeout=20) for name, value in fields.items()]
    for call in calls:
        call.result()
    now = get(admin, "crowded").settings
    for name, value in fields.items():
        kept = getattr(now, name)
        assert (kept.seconds if hasattr(kept, "seconds") else kept) == value, name


@pytest.mark.parametrize("call", ["GetQueue", "UpdateQueue", "PurgeQueue", "DeleteQueue"])
def test_a_queue_that_is_not_there_is_not_found(admin, call):
    request = {
        "GetQueue": apb.GetQueueRequest(queue="nowhere"),
        "UpdateQueue": apb.UpdateQueueRequest(queue="nowhere", update_mask=FieldMask(paths=["paused"])),
        "PurgeQueue": apb.PurgeQueueRequest(queue="nowhere", states=["JOB_STATE_READY"]),
        "DeleteQueue": apb.DeleteQueueRequest(queue="nowhere"),
    }[call]
    streams = call in ("PurgeQueue", "DeleteQueue")
    said = failure(lambda: list(getattr(admin, call)(request, timeout=10)) if streams
                   else getattr(admin, call)(request, timeout=10))
    assert (said.code, said.reason, said.outcome) == ("NOT_FOUND", "NOT_FOUND", "not-applied"), said
    assert "ResourceInfo" in said.details and "nowhere" in said.message


BAD = [
    ("disabled_reason", "x" * 201), ("disabled_reason", "a\nb"), ("disabled_reason", "a\0b"), ("lease_duration", 0),
    ("lease_duration", 0.999), ("lease_duration", 43_201), ("lease_duration", -1), ("max_attempts", 0),
    ("max_attempts", 1001), ("max_attempts", 2**32 - 1), ("backoff_base", 0), ("backoff_base", 31_536_001),
    ("backoff_cap", 0), ("backoff_cap", 31_536_001), ("idempotency_retention", 0.5), ("idempotency_retention", 31_536_001),
    ("dead_retention", -1), ("dead_retention", 315_360_001), ("max_backlog_jobs", 0), ("max_backlog_jobs", 2**63),
    ("max_backlog_bytes", 0), ("max_backlog_bytes", 2**64 - 1), ("time_to_live", 0.5), ("time_to_live", 31_536_001),
    ("acked_retention", 0), ("acked_retention", 2_592_001),
]


def test_bad_settings_are_refused_by_name_and_nothing_changes(admin):
    update(admin, "bad-settings", create=True)
    before = get(admin, "bad-settings").settings
    wrong = []
    for field, value in BAD:
        said = failure(update, admin, "bad-settings", **{field: value})
        if (said.code, said.reason, said.outcome, said.fields) != ("INVALID_ARGUMENT", "INVALID_FIELD", "not-applied",
                                                                   [f"settings.{field}"]) or not all(said.rules):
            wrong.append(f"{field}={value}: {said}")
    assert not wrong, "\n".join(wrong)
    assert get(admin, "bad-settings").settings == before


GOOD = [
    ("disabled_reason", "x" * 200), ("disabled_reason", ""), ("lease_duration", 1), ("lease_duration", 43_200),
    ("max_attempts", 1), ("max_attempts", 1000), ("backoff_base", 0.001), ("backoff_cap", 31_536_000),
    ("backoff_base", 31_536_000), ("idempotency_retention", 1), ("idempotency_retention", 31_536_000),
    ("dead_retention", 0), ("dead_retention", 315_360_000), ("max_backlog_jobs", 1), ("max_backlog_jobs", 2**63 - 1),
    ("max_backlog_bytes", 1), ("time_to_live", 1), ("time_to_live", 31_536_000), ("acked_retention", 1),
    ("acked_retention", 2_592_000), ("paused", True), ("paused", False),
]


def test_settings_at_their_limits_are_kept_as_given(admin):
    update(admin, "good-settings", create=True)
    for field, value in GOOD:
        update(admin, "good-settings", **{field: value})
        kept = getattr(get(admin, "good-settings").settings, field)
        kept = kept.ToMicroseconds() / 1e6 if hasattr(kept, "seconds") else kept
        assert kept == value, field


def test_masks_and_names_are_checked(admin):
    update(admin, "masks", create=True)
    for mask, fields in [([], ["update_mask"]), (["priority"], ["update_mask.paths[0]"]), (["*"], ["update_mask.paths[0]"]),
                         (["paused", "settings.paused"], ["update_mask.paths[1]"])]:
        said = failure(update, admin, "masks", mask=mask)
        assert (said.code, said.fields) == ("INVALID_ARGUMENT", fields), said
    said = failure(update, admin, "Bad/Name", paused=True)
    assert said.fields == ["queue"]
    said = failure(update, admin, "masks", backoff_base=10, backoff_cap=5)
    assert said.fields == ["settings.backoff_base"], "the first pause is longer than the longest"


def test_queues_are_listed_by_name_in_pages(broker, admin):
    names = sorted(f"paged.{at:02}" for at in range(7)) + ["paged-other"]
    for name in names:
        update(admin, name, create=True)
    seen, token = [], ""
    while True:
        page = admin.ListQueues(apb.ListQueuesRequest(prefix="paged.", page_size=3, page_token=token), timeout=10)
        assert len(page.queues) <= 3
        assert all(not queue.HasField("counts") and queue.settings.max_attempts == 20 for queue in page.queues)
        seen += [queue.name for queue in page.queues]
        token = page.next_page_token
        if not token:
            break
    assert seen == names[:7]
    with_counts = admin.ListQueues(apb.ListQueuesRequest(prefix="paged", include_counts=True), timeout=10)
    assert [queue.name for queue in with_counts.queues] == sorted(names)
    assert all(queue.counts.ready.value == 0 for queue in with_counts.queues)
    token = admin.ListQueues(apb.ListQueuesRequest(prefix="paged.", page_size=3), timeout=10).next_page_token
    for request, field in [(apb.ListQueuesRequest(prefix="paged", page_token=token), "page_token"),
                           (apb.ListQueuesRequest(page_token="made up"), "page_token"),
                           (apb.ListQueuesRequest(page_size=1001), "page_size"),
                           (apb.ListQueuesRequest(prefix="A%"), "prefix")]:
        said = failure(admin.ListQueues, request, timeout=10)
        assert (said.code, said.fields) == ("INVALID_ARGUMENT", [field]), said


def test_counts_follow_jobs_through_their_states(stub, admin):
    enqueue(stub, *[job("counted") for _ in range(4)], job("counted", delay=3600),
            *[job("counted", ordering_key="k", priority=0) for _ in range(3)])
    assert counts(admin, "counted") == {"ready": 5, "scheduled": 1, "blocked": 2, "leased": 0, "dead": 0}
    stream = Stream(stub, "counted", in_flight=3, lease=60)
    first, second, third = stream.jobs(3)
    stream.cancel()
    assert counts(admin, "counted") == {"ready": 2, "scheduled": 1, "blocked": 2, "leased": 3, "dead": 0}
    nack(stub, first.lease_token, action="REJECT")
    nack(stub, second.lease_token, delay=3600)
    ack(stub, third.lease_token)
    assert counts(admin, "counted") == {"ready": 2, "scheduled": 2, "blocked": 2, "leased": 0, "dead": 1}
    found = get(admin, "counted").counts
    assert 0 <= found.oldest_ready_age.ToMicroseconds() / 1e6 < 60
    assert not found.ready.at_least
    update(admin, "counted-nothing", create=True)
    assert not get(admin, "counted-nothing").counts.HasField("oldest_ready_age")


@pytest.mark.settings(upkeep_presence_interval="1s")
def test_streams_credit_and_rates_of_a_queue_are_shown(stub, admin):
    stream = Stream(stub, "attended", in_flight=10)
    enqueue(stub, *[job("attended") for _ in range(4)])
    ack(stub, *[one.lease_token for one in stream.jobs(4)][:3])

    def shown():
        found = get(admin, "attended").counts
        return (found.streams, found.free_credit) == (1, 9) and found.rates.acked > 0 and found

    rates = eventually(shown, within=20, what="presence").rates
    assert rates.enqueued > 0 and rates.leased > 0 and rates.dead == 0


def test_who_changed_what_is_written_down(broker, admin):
    update(admin, "audited", create=True, paused=True)
    failure(update, admin, "audited", max_attempts=0)
    failure(update, admin, "audited-nowhere", paused=True)
    lines = eventually(lambda: len(found := audit(broker, "audited")) >= 3 and found, what="three lines")
    made, refused, missing = lines[:3]
    assert made["method"] == "QueueAdminService/UpdateQueue"
    assert (made["by"], made["result"], made["outcome"], made["done"]) == ("wire_tests", "ok", "applied", "created=true")
    assert "paused=true" in made["about"] and made["peer"].startswith("127.0.0.1:")
    assert (refused["result"], refused["outcome"]) == ("INVALID_FIELD", "not-applied")
    assert (missing["result"], missing["outcome"]) == ("NOT_FOUND", "not-applied")


@pytest.mark.settings(log_level="error")
def test_the_audit_log_is_written_whatever_the_logs_level(broker, admin):
    update(admin, "audited", create=True)
    eventually(lambda: audit(broker, "audited"), what="a line")


def test_what_only_looks_leaves_no_line(broker, admin):
    update(admin, "unaudited", create=True)
    get(admin, "unaudited")
    list(admin.PurgeQueue(apb.PurgeQueueRequest(queue="unaudited", states=["JOB_STATE_READY"], dry_run=True), timeout=10,
                          metadata=CALLER))
    update(admin, "unaudited", paused=True)
    lines = eventually(lambda: len(found := audit(broker, "unaudited")) >= 2 and found, what="two lines")
    assert [line["method"] for line in lines] == ["QueueAdminService/UpdateQueue"] * 2
