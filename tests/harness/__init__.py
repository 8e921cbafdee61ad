"""What the wire tests and the fault tests stand on: database clusters, brokers, stubs and clients."""

import os

# Whether the large counts are wanted: ./test --long.
LONG = bool(os.environ.get("LEASEHOLD_TEST_LONG"))
