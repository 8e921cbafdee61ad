//! Long, seeded, random runs that are checked as a whole at their end.

mod consumer;
mod history;
mod ordering;
mod producer;
mod scene;
mod service;
mod trouble;
