//! Leasehold: a gRPC queue broker in front of the database that a team already runs.
//!
//! The library is what the binary is made of; tests use it as well. Start with [`model`] for the words, [`store`] for the
//! only door to the database, and `ARCHITECTURE.md` for the map.

pub mod app;
pub mod bench;
pub mod cli;
pub mod config;
pub mod connections;
pub mod dispatch;
pub mod grpc;
pub mod http;
pub mod model;
pub mod prove;
pub mod store;
pub mod telemetry;
pub mod upkeep;

/// The wire contract, generated from `proto/`.
#[allow(missing_docs, clippy::pedantic, clippy::all)]
pub mod v1 {
    tonic::include_proto!("leasehold.v1");

    /// The contract and what it imports, for reflection.
    pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/leasehold.bin"));
}

/// KEDA's contract with scalers, generated from `proto/`. Its descriptors are among those of [`v1`].
#[allow(missing_docs, clippy::pedantic, clippy::all)]
pub mod keda {
    tonic::include_proto!("externalscaler");
}
