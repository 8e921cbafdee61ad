"""What is measured: each part is a module with `measure(stand)`, which answers goals."""

from . import backlog, engines, idle, many, memory, neighbours, snapshot, wal

# In the order in which they are measured. `neighbours` are the peers beside a held snapshot.
ALL = {"snapshot": snapshot, "neighbours": neighbours, "backlog": backlog, "many": many, "idle": idle, "memory": memory,
       "wal": wal, "engines": engines}
