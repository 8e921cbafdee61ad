//! All integration tests, linked once.

mod architecture;
mod contract;
