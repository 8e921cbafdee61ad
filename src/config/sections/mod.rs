//! The sections of the configuration: one file and one struct each, every option declared once.

mod broker;
pub(super) mod budget;
mod callers;
mod lanes;
mod limits;
mod queues;
mod sampler;
mod scaler;
mod server;
mod stock;
mod streams;
mod telemetry;
mod upkeep;

pub use self::{
    broker::{Broker, LogFormat, LogLevel},
    callers::Callers,
    lanes::Lanes,
    limits::RequestLimits,
    queues::Queues,
    sampler::SamplerSection,
    scaler::ScalerSection,
    server::ServerSection,
    stock::StockSection,
    streams::Streams,
    telemetry::TelemetrySection,
    upkeep::UpkeepSection,
};
