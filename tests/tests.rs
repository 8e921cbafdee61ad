//! All integration tests, linked once.

mod contract;
