//! All integration tests, linked once.

#![allow(clippy::print_stdout)] // tests say their seeds

mod architecture;
mod cli;
mod contract;
mod dispatch;
mod embedded;
#[macro_use]
mod lanes;
mod mariadb;
mod plans;
mod stock;
mod stress;
