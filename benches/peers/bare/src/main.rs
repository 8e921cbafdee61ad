//! The limit of any queue in SQL: the same inserts, claims and deletes, with no queue around them. See README.md.

mod mysql;
mod postgres;
mod sqlite;

use measure::{Outcome, arguments, run};

/// How many connections there are, and jobs of a statement where a worker is tuned.
#[derive(Clone, Copy)]
pub struct Size {
    connections: u32,
    batch: i64,
}

/// All over `CONNECTIONS` connections, of which half claim where the other half inserts; a tuned worker has `BATCH` jobs a
/// statement.
#[tokio::main]
async fn main() -> Outcome<()> {
    let (act, url, jobs) = arguments()?;
    let number = |name: &str, usual: u32| std::env::var(name).map_or(Ok(usual), |said| said.parse());
    let size = Size { connections: number("CONNECTIONS", 8)?, batch: i64::from(number("BATCH", 100)?) };
    match (url.split(':').next(), act.as_str()) {
        (Some("mysql" | "mariadb"), "setup") => mysql::Bare::connect(&url, &act, size).await?.setup().await,
        (Some("mysql" | "mariadb"), _) => run(&mysql::Bare::connect(&url, &act, size).await?, &act, jobs).await,
        (Some("sqlite"), "setup") => sqlite::Bare::connect(&url, size).await?.setup().await,
        (Some("sqlite"), _) => run(&sqlite::Bare::connect(&url, size).await?, &act, jobs).await,
        (_, "setup") => postgres::Bare::connect(&url, &act, size).await?.setup().await,
        _ => run(&postgres::Bare::connect(&url, &act, size).await?, &act, jobs).await,
    }
}
