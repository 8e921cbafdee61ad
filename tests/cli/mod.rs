//! The program as operators start and stop it.

mod broker;
mod configuration;
mod drain;
mod kills;
mod metrics;
