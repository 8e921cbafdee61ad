//! The wire: services, layers, the accept loop.
