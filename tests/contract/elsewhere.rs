//! The PostgreSQL engine where its schema has another name.

use super::postgres::{Postgres, open_in};

pub(crate) async fn open() -> Postgres {
    open_in("queue_of_ours").await
}
