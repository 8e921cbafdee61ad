"""Inputs at and over the limits, as data: one file per field, one line per input.

{"rpc": …, "set": {path: value}, "bad": the field that must be named, "note": …}; without `bad` the call must pass.
Values: {"repeat": [text, n]}, {"bytes": n}, {"hex": …}, {"seconds", "nanos"} for times, {"times": n} copies of the first
element of a repeated field, {"distinct": n} of it with items of their own, {"filled": n} jobs, maps and lists as they are.
"""

import json
import re
from pathlib import Path

from harness.stock import cart, line, unique
from harness.stubs import pb, stock_pb

DIRECTORY = Path(__file__).parent / "corpus"
# A reservation that does not exist, and a token with a true check of a job that does not.
NOBODY = "9223372036854775807"
TOKEN = "QAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAACUzj95"
REQUESTS = {
    "Enqueue": lambda: pb.EnqueueRequest(jobs=[pb.NewJob(queue="corpus", payload=b"x")]),
    "Lease": lambda: pb.LeaseRequest(queues=["corpus-lease"]),
    "Ack": lambda: pb.AckRequest(lease_tokens=[TOKEN]),
    "Nack": lambda: pb.NackRequest(items=[pb.NackItem(lease_token=TOKEN)]),
    "Extend": lambda: pb.ExtendRequest(lease_tokens=[TOKEN]),
    "Reserve": lambda: cart(line("corpus")),
    "AdjustStock": lambda: stock_pb.AdjustStockRequest(
        adjustments=[stock_pb.StockAdjustment(key=stock_pb.StockKey(item="corpus", location="main"), delta=1)],
        reference=unique("corpus")),
    "GetStock": lambda: stock_pb.GetStockRequest(item="corpus"),
    "CommitReservation": lambda: stock_pb.CommitReservationRequest(reservation_id=NOBODY),
    "ReleaseReservation": lambda: stock_pb.ReleaseReservationRequest(reservation_id=NOBODY),
    "ExtendReservation": lambda: stock_pb.ExtendReservationRequest(reservation_id=NOBODY, time_to_live={"seconds": 60}),
    "GetReservation": lambda: stock_pb.GetReservationRequest(reservation_id=NOBODY),
}


def files(part="."):
    """Names of the files about queues, or of another part."""
    return sorted(f"{part}/{path.stem}" if part != "." else path.stem for path in (DIRECTORY / part).glob("*.jsonl"))


def entries(name):
    """(entry, request) of a file."""
    for line in (DIRECTORY / f"{name}.jsonl").read_text().splitlines():
        entry = json.loads(line)
        request = REQUESTS[entry["rpc"]]()
        for path, value in entry["set"].items():
            _assign(request, path.split("."), value)
        yield entry, request


def _assign(message, path, value):
    name, _, index = re.fullmatch(r"(\w+)(\[(\d+)\])?", path[0]).groups()
    if index is not None:
        repeated = getattr(message, name)
        while len(repeated) <= int(index):
            repeated.add()
        _assign(repeated[int(index)], path[1:], value)
        return
    if len(path) > 1:
        _assign(getattr(message, name), path[1:], value)
        return
    field = message.DESCRIPTOR.fields_by_name[name]
    old = getattr(message, name)
    if isinstance(value, dict) and "times" in value:
        first = old[0]
        del old[:]
        old.extend([first] * value["times"])
    elif isinstance(value, dict) and "distinct" in value:
        first = old[0]
        del old[:]
        old.extend([first] * value["distinct"])
        for number, one in enumerate(old):
            one.key.item += f"-{number}"
    elif isinstance(value, dict) and "filled" in value:
        old.extend([pb.NewJob(queue="corpus-stock", payload=b"x")] * value["filled"])
    elif isinstance(value, list):
        del old[:]
        old.extend(value)
    elif isinstance(value, dict) and "seconds" in value:
        old.seconds, old.nanos = value["seconds"], value["nanos"]
        old.SetInParent()
    elif isinstance(value, dict) and "repeat" in value:
        setattr(message, name, value["repeat"][0] * value["repeat"][1])
    elif isinstance(value, dict) and "bytes" in value:
        setattr(message, name, b"x" * value["bytes"])
    elif isinstance(value, dict) and "hex" in value:
        setattr(message, name, bytes.fromhex(value["hex"]))
    elif isinstance(value, dict):
        assert field.message_type.GetOptions().map_entry, name
        old.update(value)
    else:
        setattr(message, name, value)
