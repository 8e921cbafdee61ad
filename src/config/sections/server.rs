//! The gRPC server.

use std::time::Duration;

use crate::config::{
    declared::section,
    kind::{Size, Span, Whole},
};

section! {
    /// The gRPC server and its connections.
    ServerSection as "server" {
        /// Bytes of one request.
        request_bytes: usize = Size::new(4 << 20, 64 << 10, 16 << 20);
        /// Longest that a call may take, also where its client allows more.
        request_deadline: Duration = Span::millis(30_000, 100, 600_000);
        /// Connections open at once; further ones wait in the kernel.
        connections: usize = Whole::new(10_000, 1, 1_000_000);
        /// HTTP/2 streams of one connection. It lies above `streams.per_connection`, since HTTP/2 makes clients wait where
        /// the broker would tell them.
        connection_streams: u32 = Whole::new(1_280, 1, 200_000);
        /// Age at which a connection is asked to go, less or more a fifth.
        connection_age: Duration = Span::seconds(600, 1, 86_400);
        /// What a connection that was asked to go may still take.
        connection_grace: Duration = Span::seconds(60, 1, 3_600);
        /// A silent connection is pinged once in so long.
        keepalive_interval: Duration = Span::seconds(30, 1, 3_600);
        /// A ping must be answered in so long.
        keepalive_timeout: Duration = Span::seconds(10, 1, 600);
        /// A new connection must speak HTTP/2 in so long.
        preface_timeout: Duration = Span::millis(10_000, 100, 600_000);
        /// From the first signal to the end of the process at most.
        drain_timeout: Duration = Span::seconds(25, 2, 3_600);
    }
}
