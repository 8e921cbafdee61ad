//! Passes that keep the tables in order.
