//! All integration tests, linked once.

mod architecture;
mod cli;
mod contract;
