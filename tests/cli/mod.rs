//! The program as operators start and stop it, and as they use it from a shell.

mod bench;
mod broker;
mod configuration;
mod drain;
mod enqueue;
mod exec;
mod exits;
mod help;
mod interrupted;
mod kills;
mod metrics;
mod shell;
mod snapshot;
mod stock;
mod story;
mod tables;
mod workers;
