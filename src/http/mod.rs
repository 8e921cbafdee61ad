//! The second port: probes and metrics.
