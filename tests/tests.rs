//! All integration tests, linked once.

mod architecture;
mod cli;
mod contract;
#[macro_use]
mod lanes;
mod stress;
