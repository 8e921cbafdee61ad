"""What the wire tests and the fault tests stand on: database clusters, brokers, stubs and clients."""
