//! The broker's statements, as the server's log tells them.

use std::{collections::BTreeMap, time::Duration};

use sqlx::{Executor, PgConnection};

use super::{Outcome, mariadb::MariaDb, postgres::Postgres};

/// A statement that ended.
#[derive(Debug, Clone)]
pub(crate) struct Statement {
    /// The business process in its comment; empty where it has none.
    pub(crate) caller: String,
    /// Time that parsing, binding and execution took, where the log has it.
    pub(crate) millis: f64,
}

/// Lets the server log each statement with its time for `window`; answers what the broker sent in it.
pub(crate) async fn watch(postgres: &Postgres, window: Duration) -> Outcome<Vec<Statement>> {
    let mut connection = postgres.connect("postgres").await?;
    let before = postgres.log()?.len();
    set_logging(&mut connection, "alter system set log_min_duration_statement = 0").await?;
    tokio::time::sleep(window).await;
    set_logging(&mut connection, "alter system reset log_min_duration_statement").await?;
    Ok(read(&postgres.log()?[before..]))
}

/// The same on `MariaDB`, whose log of slow statements is asked for all of them.
pub(crate) async fn watch_mariadb(server: &MariaDb, window: Duration) -> Outcome<Vec<Statement>> {
    Ok(read_slow(&server.slow_log(window).await?))
}

/// Each entry says whose it is and how long it took before its text. A prepared statement is written as it runs.
fn read_slow(log: &str) -> Vec<Statement> {
    let (mut statements, mut is_broker, mut millis) = (Vec::new(), false, 0.0);
    for line in log.lines() {
        if line.starts_with("# User@Host: ") {
            is_broker = MariaDb::is_broker(line);
        } else if let Some(rest) = line.strip_prefix("# Query_time: ") {
            let seconds = rest.split(' ').next().and_then(|text| text.parse::<f64>().ok());
            millis = seconds.unwrap_or_default() * 1e3;
        } else if is_broker && line.starts_with("SET timestamp=") {
            statements.push(Statement { caller: String::new(), millis });
        } else if let Some(last) = statements.last_mut().filter(|last| is_broker && last.caller.is_empty()) {
            last.caller = caller(line);
        }
    }
    statements
}

async fn set_logging(connection: &mut PgConnection, how: &'static str) -> Outcome<()> {
    connection.execute(how).await?;
    connection.execute("select pg_reload_conf()").await?;
    Ok(())
}

/// A statement of the extended protocol has a line for each of parse, bind and execute, in this order; a simple one has
/// one line.
fn read(lines: &[String]) -> Vec<Statement> {
    let mut preparing: BTreeMap<&str, f64> = BTreeMap::new();
    let mut statements = Vec::new();
    for line in lines {
        let Some((before, after)) = line.split_once("duration: ") else { continue };
        let backend = before.split(' ').next().unwrap_or_default();
        let Some((millis, rest)) = after.split_once(" ms") else { continue };
        let Ok(millis) = millis.parse::<f64>() else { continue };
        let step = rest.trim_start();
        if step.starts_with("parse") || step.starts_with("bind") {
            *preparing.entry(backend).or_default() += millis;
        } else {
            let millis = millis + preparing.remove(backend).unwrap_or_default();
            statements.push(Statement { caller: caller(step), millis });
        }
    }
    statements
}

fn caller(text: &str) -> String {
    let named = text.split_once("/* conn_tag:").and_then(|(_, rest)| rest.split_once(" */"));
    named.map(|(caller, _)| caller.to_owned()).unwrap_or_default()
}

/// How many statements each caller sent, most first.
pub(crate) fn by_caller(statements: &[Statement]) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for statement in statements {
        *counts.entry(&statement.caller).or_default() += 1;
    }
    let mut counts: Vec<(String, usize)> =
        counts.into_iter().map(|(caller, count)| (caller.to_owned(), count)).collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}
