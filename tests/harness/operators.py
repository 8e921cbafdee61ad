"""Short forms of the operators' calls."""

import json

from google.protobuf.field_mask_pb2 import FieldMask

from harness.calls import CALLER, seconds
from harness.stubs import admin_pb as apb

SPANS = {"lease_duration", "backoff_base", "backoff_cap", "idempotency_retention", "dead_retention", "time_to_live",
         "acked_retention"}


def settings(**fields):
    """Settings; lengths of time in seconds."""
    return apb.QueueSettings(**{name: seconds(value) if name in SPANS else value for name, value in fields.items()})


def update(admin, queue, create=False, mask=None, timeout=10, **fields):
    """Changes the fields given, or those of the mask; the queue as it is now."""
    request = apb.UpdateQueueRequest(queue=queue, settings=settings(**fields), create=create,
                                     update_mask=FieldMask(paths=mask if mask is not None else list(fields)))
    return admin.UpdateQueue(request, timeout=timeout, metadata=CALLER)


def get(admin, queue):
    """The queue."""
    return admin.GetQueue(apb.GetQueueRequest(queue=queue), timeout=10, metadata=CALLER).queue


def counts(admin, queue):
    """What is in it, by state."""
    found = get(admin, queue).counts
    return {name: getattr(found, name).value for name in ("ready", "scheduled", "blocked", "leased", "dead")}


def purge(admin, queue, *states, timeout=60, **fields):
    """All frames of a purge."""
    request = apb.PurgeQueueRequest(queue=queue, states=[f"JOB_STATE_{state}" for state in states], **fields)
    return list(admin.PurgeQueue(request, timeout=timeout, metadata=CALLER))


def delete(admin, queue, purge=False, timeout=60):
    """All frames of a deletion."""
    request = apb.DeleteQueueRequest(queue=queue, purge=purge)
    return list(admin.DeleteQueue(request, timeout=timeout, metadata=CALLER))


def audit(broker, about):
    """Lines of a broker's audit log about something, the oldest first."""
    lines = (json.loads(line) for line in broker.output().splitlines() if "leasehold::audit" in line)
    return [line for line in lines if about in line["about"]]


def job_of(admin, job_id, payload=False):
    """The job."""
    request = apb.GetJobRequest(job_id=job_id, include_payload=payload)
    return admin.GetJob(request, timeout=10, metadata=CALLER).job


def state(shown):
    """READY, SCHEDULED, BLOCKED, LEASED, DEAD or ACKED."""
    return apb.JobState.Name(shown.state).removeprefix("JOB_STATE_")


def cancel(admin, *job_ids):
    """Cancels; names of the statuses."""
    answer = admin.CancelJob(apb.CancelJobRequest(job_ids=job_ids), timeout=10, metadata=CALLER)
    return [apb.CancelStatus.Name(result.status).removeprefix("CANCEL_STATUS_") for result in answer.results]


def run_now(admin, job_id):
    """Makes it ready; the job."""
    return admin.RunJobNow(apb.RunJobNowRequest(job_id=job_id), timeout=10, metadata=CALLER).job


def explain(admin, job_id):
    """What keeps it, by reason, in order."""
    answer = admin.ExplainJob(apb.ExplainJobRequest(job_id=job_id), timeout=10, metadata=CALLER)
    assert answer.job.job_id == job_id
    return {apb.WaitReason.Name(wait.reason).removeprefix("WAIT_REASON_"): wait for wait in answer.waits}


def pages(call, request, rows, timeout=10):
    """All rows of a list, page by page."""
    found = []
    while True:
        answer = call(request, timeout=timeout, metadata=CALLER)
        found += getattr(answer, rows)
        if not answer.next_page_token:
            return found
        request.page_token = answer.next_page_token


def jobs(admin, queue, *states, **fields):
    """A queue's jobs."""
    states = [f"JOB_STATE_{state}" for state in states]
    return pages(admin.ListJobs, apb.ListJobsRequest(queue=queue, states=states, **fields), "jobs")


def dead(admin, queue, page_size=0, include_payload=False, **fields):
    """A queue's dead jobs."""
    request = apb.ListDeadJobsRequest(queue=queue, page_size=page_size, include_payload=include_payload,
                                      filter=apb.DeadFilter(**fields))
    return pages(admin.ListDeadJobs, request, "jobs")


def redrive(admin, queue=None, job_id=None, timeout=60, limit=0, rate=0, dry_run=False, **fields):
    """All frames of a redrive."""
    which = {"job_id": job_id} if job_id else {
        "of_queue": apb.DeadJobsOfQueue(queue=queue, filter=apb.DeadFilter(**fields))}
    request = apb.RedriveDeadJobsRequest(limit=limit, rate=rate, dry_run=dry_run, **which)
    return list(admin.RedriveDeadJobs(request, timeout=timeout, metadata=CALLER))


def consumers(admin, queue="", page_size=0):
    """Lease streams."""
    return pages(admin.ListConsumers, apb.ListConsumersRequest(queue=queue, page_size=page_size), "consumers")
