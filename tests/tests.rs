//! All integration tests, linked once.

mod architecture;
mod cli;
mod contract;
mod embedded;
#[macro_use]
mod lanes;
mod stress;
