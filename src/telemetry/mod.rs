//! Instruments, logs, trace context.
