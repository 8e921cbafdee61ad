//! The second port: probes and metrics. It answers until the process ends, so that a drain can be watched.

mod probes;
mod server;

pub use self::{
    probes::Probes,
    server::{HttpOptions, HttpServer},
};
