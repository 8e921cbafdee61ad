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
