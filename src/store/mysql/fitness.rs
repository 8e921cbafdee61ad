//! Making a session what the statements need, and seeing whether the server can carry the promises.

use std::{collections::HashMap, time::Duration};

use sqlx::{AssertSqlSafe, Executor as _, MySqlConnection, mysql::MySqlRow};

use super::{
    Shared,
    error::{Step, classify},
    observe::Seat,
    session::whole_seconds,
    value::column,
};
use crate::{
    model::Caller,
    store::{
        error::EngineError,
        socket::{OwnSocket, watched_socket},
    },
};

const CHECK: &str = include_str!("sql/check.sql");
const ADDRESS: &str = include_str!("sql/address.sql");
const SETTINGS: &str = include_str!("sql/settle_session.sql");

/// The server ends a transaction that this session leaves idle.
const IDLE_IN_TRANSACTION: Duration = Duration::from_secs(15);

/// What a job of the largest payload takes in a statement, and room for the rest.
pub(super) const SMALLEST_PACKET: i64 = 4 << 20;

/// Which of the two families answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    MariaDb,
    MySql,
}

/// What a session must know of its server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fitness {
    pub(super) family: Family,
    /// Ids of one statement are this far apart.
    pub(super) id_step: i64,
    /// Parameters of one statement take at most this many bytes.
    pub(super) statement_bytes: usize,
}

impl Fitness {
    /// Of a server that nobody has checked: enough to look at it.
    pub(super) fn unknown(family: Family) -> Self {
        Self { family, id_step: 1, statement_bytes: 1 << 20 }
    }
}

/// Sets the session up. What the server says of itself then.
pub(super) async fn establish(
    connection: &mut MySqlConnection,
    shared: &Shared,
    caller: &Caller,
) -> Result<Found, EngineError> {
    let settings = SETTINGS
        .replace("{statement}", &whole_seconds(shared.statement_timeout).to_string())
        .replace("{lock}", &whole_seconds(shared.lock_timeout).to_string());
    run(connection, shared, caller, &settings).await?;
    run(connection, shared, caller, "set session transaction isolation level read committed, read write").await?;
    let found = Found::from_rows(&run(connection, shared, caller, CHECK).await?)?;
    let family = found.family();
    shared.answered(family);
    run(connection, shared, caller, &limits(family, shared.statement_timeout)).await?;
    Ok(found)
}

async fn run(
    connection: &mut MySqlConnection,
    shared: &Shared,
    caller: &Caller,
    sql: &str,
) -> Result<Vec<MySqlRow>, EngineError> {
    let text = shared.comments.once(caller, sql);
    let rows = connection.fetch_all(sqlx::raw_sql(AssertSqlSafe(text))).await;
    rows.map_err(|error| classify(&error, Step::Connect))
}

/// The connection's socket with its options set, where that can be had, and its seat among this process's connections.
pub(super) async fn own_end(
    connection: &mut MySqlConnection,
    shared: &Shared,
    caller: &Caller,
) -> Result<(Option<OwnSocket>, Option<Seat>), EngineError> {
    let rows = run(connection, shared, caller, ADDRESS).await?;
    let Some(row) = rows.first() else { return Ok((None, None)) };
    let seat = shared.connections.seat(column(row, "id")?);
    let address: String = column(row, "host")?;
    // "host:port", or "localhost" alone on a Unix socket; the host is a name where the server looks names up.
    let port = address.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    Ok((watched_socket(None, port, shared.connect.get_port()).await, Some(seat)))
}

/// How long a statement may take. MySQL knows this for queries alone; what writes is ended by its waits for locks.
fn limits(family: Family, statement: Duration) -> String {
    match family {
        Family::MariaDb => format!(
            "set session max_statement_time = {}, session idle_transaction_timeout = {}",
            statement.as_secs_f64(),
            IDLE_IN_TRANSACTION.as_secs()
        ),
        Family::MySql => format!("set session max_execution_time = {}", statement.as_millis()),
    }
}

/// The server's variables by name.
pub(super) struct Found(HashMap<String, String>);

impl Found {
    pub(super) fn from_rows(rows: &[MySqlRow]) -> Result<Self, EngineError> {
        let pair = |row| Ok((column::<String>(row, "Variable_name")?.to_ascii_lowercase(), column(row, "Value")?));
        rows.iter().map(pair).collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// 0 where it is no number.
    pub(super) fn number(&self, name: &str) -> u64 {
        self.get(name).parse().unwrap_or(0)
    }

    pub(super) fn is_on(&self, name: &str) -> bool {
        matches!(self.get(name).to_ascii_uppercase().as_str(), "ON" | "1")
    }

    pub(super) fn family(&self) -> Family {
        let names = format!("{} {}", self.get("version"), self.get("version_comment")).to_ascii_lowercase();
        if names.contains("mariadb") { Family::MariaDb } else { Family::MySql }
    }

    fn floor(&self) -> ([u32; 3], &'static str) {
        match self.family() {
            Family::MariaDb => ([10, 6, 0], "MariaDB 10.6"),
            Family::MySql => ([8, 0, 11], "MySQL 8.0.11"),
        }
    }

    pub(super) fn is_new_enough(&self) -> bool {
        version(self.get("version")) >= self.floor().0
    }

    pub(super) fn is_read_only(&self) -> bool {
        ["read_only", "super_read_only", "innodb_read_only"].iter().any(|name| self.is_on(name))
    }

    /// The session is not what it asked to be.
    pub(super) fn unlike_asked(&self) -> bool {
        self.isolation() != "READ-COMMITTED" || self.get("time_zone") != "+00:00" || !self.is_on("autocommit")
    }

    /// Refuses a database that cannot carry the promises.
    pub(super) fn check(&self, allow_lossy: bool) -> Result<Fitness, EngineError> {
        if !self.is_new_enough() {
            let ([major, minor, patch], (_, floor)) = (version(self.get("version")), self.floor());
            return Err(EngineError::Unfit(format!(
                "the server is version {major}.{minor}.{patch}, older than {floor}: upgrade it"
            )));
        }
        if self.get("version").to_ascii_lowercase().contains("tidb") {
            return Err(EngineError::Unfit(
                "the server is TiDB, which reads SKIP LOCKED and then locks nothing, so that two claims could get one job: \
                 use MySQL or MariaDB"
                    .into(),
            ));
        }
        if self.is_read_only() {
            return Err(EngineError::Unavailable("the database is read-only".into()));
        }
        if self.unlike_asked() {
            return Err(EngineError::Unfit(
                "the server did not take this session's settings: connect past the proxy that drops them".into(),
            ));
        }
        if self.is_on("log_bin") && self.get("binlog_format").eq_ignore_ascii_case("STATEMENT") {
            return Err(EngineError::Unfit(
                "the server has binlog_format STATEMENT, which READ COMMITTED cannot be logged with: set it to ROW or MIXED"
                    .into(),
            ));
        }
        if !allow_lossy {
            self.check_durability()?;
        }
        let packet: i64 = self.get("max_allowed_packet").parse().unwrap_or(0);
        if packet < SMALLEST_PACKET {
            return Err(EngineError::Unfit(format!(
                "the server has max_allowed_packet {packet}: set it to {SMALLEST_PACKET} or more"
            )));
        }
        Ok(Fitness {
            family: self.family(),
            id_step: self.get("auto_increment_increment").parse().unwrap_or(1),
            statement_bytes: usize::try_from(packet / 4 * 3).unwrap_or(usize::MAX),
        })
    }

    /// Renamed in the course of time.
    fn isolation(&self) -> &str {
        let newer = self.get("transaction_isolation");
        if newer.is_empty() { self.get("tx_isolation") } else { newer }
    }

    fn check_durability(&self) -> Result<(), EngineError> {
        let mut wanted = vec![("innodb_flush_log_at_trx_commit", "1")];
        if self.is_on("log_bin") {
            wanted.push(("sync_binlog", "1"));
        }
        for (name, value) in wanted {
            if self.get(name) != value {
                return Err(EngineError::Unfit(format!(
                    "the server has {name} = {} and may lose what it committed: set it to {value}, or allow lossy settings",
                    self.get(name)
                )));
            }
        }
        Ok(())
    }
}

/// The first three numbers of "10.11.19-MariaDB-0+deb12u1".
fn version(text: &str) -> [u32; 3] {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().unwrap_or(0));
    std::array::from_fn(|_| numbers.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(changes: &[(&str, &str)]) -> Result<Fitness, EngineError> {
        let usual = [
            ("version", "10.11.19-MariaDB-0+deb12u1"),
            ("innodb_flush_log_at_trx_commit", "1"),
            ("log_bin", "ON"),
            ("sync_binlog", "1"),
            ("binlog_format", "MIXED"),
            ("read_only", "OFF"),
            ("max_allowed_packet", "16777216"),
            ("auto_increment_increment", "1"),
            ("tx_isolation", "READ-COMMITTED"),
            ("time_zone", "+00:00"),
            ("autocommit", "ON"),
        ];
        let all = usual.iter().chain(changes).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let found = Found(all.collect());
        found.check(false)
    }

    fn refusal(changes: &[(&str, &str)]) -> String {
        match server(changes) {
            Err(EngineError::Unfit(why)) => why,
            other => panic!("{changes:?}: {other:?}"),
        }
    }

    #[test]
    fn the_version_floor_is_that_of_the_family_that_answers() {
        let mysql = |version| {
            [
                ("version", version),
                ("version_comment", "MySQL Community Server"),
                ("transaction_isolation", "READ-COMMITTED"),
            ]
        };
        assert!(server(&[]).is_ok());
        assert!(server(&[("version", "10.6.0-MariaDB")]).is_ok());
        assert!(server(&mysql("8.0.11")).is_ok());
        assert!(server(&mysql("8.4.3-log")).is_ok());
        assert!(refusal(&[("version", "10.5.27-MariaDB")]).contains("10.5.27, older than MariaDB 10.6"));
        assert!(refusal(&mysql("8.0.4")).contains("8.0.4, older than MySQL 8.0.11"));
        assert!(refusal(&mysql("5.7.44")).contains("older than MySQL 8.0.11"));
    }

    #[test]
    fn a_server_that_only_pretends_to_skip_locked_rows_is_refused() {
        assert!(refusal(&[("version", "8.0.11-TiDB-v8.5.6")]).contains("TiDB"));
    }

    #[test]
    fn settings_that_lose_commits_are_refused_by_name() {
        assert!(refusal(&[("innodb_flush_log_at_trx_commit", "2")]).contains("innodb_flush_log_at_trx_commit = 2"));
        assert!(refusal(&[("sync_binlog", "0")]).contains("sync_binlog = 0"));
        assert!(server(&[("sync_binlog", "0"), ("log_bin", "OFF")]).is_ok(), "there is no binary log to lose");
        assert!(refusal(&[("binlog_format", "STATEMENT")]).contains("binlog_format"));
        assert!(refusal(&[("max_allowed_packet", "1048576")]).contains("max_allowed_packet"));
    }

    #[test]
    fn a_session_that_is_not_as_asked_is_refused() {
        assert!(refusal(&[("tx_isolation", "REPEATABLE-READ")]).contains("proxy"));
        assert!(refusal(&[("time_zone", "+05:30")]).contains("proxy"));
        assert!(matches!(server(&[("read_only", "ON")]), Err(EngineError::Unavailable(_))));
    }
}
