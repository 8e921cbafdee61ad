//! The database itself, as far as a measurement looks at it or cleans up in it.

use std::str::FromStr;

use secrecy::{ExposeSecret, SecretString};
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection as _, Executor, MySqlConnection, PgConnection, Row,
    mysql::MySqlConnectOptions, postgres::PgConnectOptions,
};

use super::{BenchError, process};

/// Stands before every statement, as with everything else that the program sends.
const COMMENT: &str = "/* conn_tag:leasehold.bench */ ";
const ELSEWHERE: &str = "the database's process is not on this machine, or may not be looked at";

/// A connection of the measurement's own.
pub(super) struct Database {
    options: Options,
    connection: Connection,
}

#[derive(Clone)]
enum Options {
    Postgres(PgConnectOptions),
    Mysql(MySqlConnectOptions),
}

enum Connection {
    Postgres(PgConnection),
    Mysql(MySqlConnection),
}

/// Which process of this machine the database is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Server {
    /// One with a child for every connection.
    Family(u32),
    /// One with a thread for every connection.
    Alone(u32),
}

/// Where tables of a broker of its own are, in the broker's options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    InSchema,
    BehindPrefix,
}

impl Database {
    pub(super) async fn connect(url: &SecretString) -> Result<Self, BenchError> {
        let text = url.expose_secret();
        // what cannot be read is not shown: it may have a password in it
        let unreadable = |_| BenchError::Wrong("--database-url cannot be read".to_owned());
        let options = match text.split_once("://").map_or("", |(scheme, _)| scheme) {
            "postgres" | "postgresql" => PgConnectOptions::from_str(text)
                .map(|options| {
                    Options::Postgres(options.application_name("leasehold bench").disable_statement_logging())
                })
                .map_err(unreadable)?,
            "mysql" | "mariadb" => MySqlConnectOptions::from_str(text)
                .map(|options| Options::Mysql(options.disable_statement_logging()))
                .map_err(unreadable)?,
            _ => {
                return Err(BenchError::Wrong(
                    "--database-url must be a postgres://, mysql:// or mariadb:// URL; leave it out for the embedded database"
                        .to_owned(),
                ));
            }
        };
        let connection = options.connect().await?;
        Ok(Self { options, connection })
    }

    /// The option of the broker that keeps its tables apart from others.
    pub(super) fn kept(&self) -> Kept {
        match self.options {
            Options::Postgres(_) => Kept::InSchema,
            Options::Mysql(_) => Kept::BehindPrefix,
        }
    }

    /// A transaction that sees the database as it is now until it is dropped.
    pub(super) async fn hold_snapshot(&self) -> Result<Snapshot, BenchError> {
        let mut connection = self.options.connect().await?;
        let tables = match connection {
            Connection::Postgres(_) => "pg_class",
            Connection::Mysql(_) => "information_schema.tables",
        };
        connection.run("set session characteristics as transaction isolation level repeatable read", true).await?;
        connection.run("set session transaction isolation level repeatable read", false).await?;
        connection.run("start transaction read only", true).await?;
        connection.run("start transaction with consistent snapshot, read only", false).await?;
        connection.number(&format!("select count(*) from {tables}")).await?;
        Ok(Snapshot { _connection: connection })
    }

    /// Bytes of log that the database has written since some beginning; nothing where it does not say.
    pub(super) async fn written(&mut self) -> Option<u64> {
        if !matches!(self.connection, Connection::Postgres(_)) {
            return None;
        }
        let position = self.connection.number("select (pg_current_wal_lsn() - '0/0'::pg_lsn)::bigint").await.ok()?;
        u64::try_from(position).ok()
    }

    /// The database's process.
    pub(super) async fn server(&mut self) -> Result<Server, &'static str> {
        match self.connection {
            Connection::Postgres(_) => {
                let backend = self.connection.number("select pg_backend_pid()::bigint").await.map_err(|_| ELSEWHERE)?;
                let backend = u32::try_from(backend).map_err(|_| ELSEWHERE)?;
                process::parent_of(backend, "postgres").map(Server::Family).ok_or(ELSEWHERE)
            }
            Connection::Mysql(_) => {
                let file = self.connection.text("select @@global.pid_file").await.map_err(|_| ELSEWHERE)?;
                let pid = std::fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok());
                let pid = pid.filter(|pid| process::is_called(*pid, &["mariadbd", "mysqld"]));
                pid.map(Server::Alone).ok_or(ELSEWHERE)
            }
        }
    }

    /// Does now what many new jobs leave to be done in a broker's schema, or behind its prefix, and what the server would else do
    /// in the middle of a round: vacuum, statistics, and a checkpoint where the role may ask for one.
    pub(super) async fn settle(&mut self, name: &str) -> Result<(), BenchError> {
        match self.kept() {
            Kept::InSchema => {
                let list = format!("select tablename::text from pg_tables where schemaname = '{name}'");
                for table in self.connection.texts(&list).await? {
                    self.connection.run(&format!("vacuum (analyze) {name}.\"{table}\""), true).await?;
                }
                let may = "select (u.rolsuper or exists (select from pg_roles r where r.rolname = 'pg_checkpoint'
                    and pg_has_role(current_user, r.oid, 'usage')))::int::bigint from pg_roles u where u.rolname = current_user";
                if self.connection.number(may).await? == 1 {
                    self.connection.run("checkpoint", true).await?;
                }
            }
            Kept::BehindPrefix => {
                for table in
                    self.connection.texts(&made(name, "tables", "table_name", "table_type = 'BASE TABLE'")).await?
                {
                    self.connection.run(&format!("analyze table `{table}`"), false).await?;
                }
            }
        }
        Ok(())
    }

    /// Jobs that are left in a broker's schema, in whatever state; nothing where the engine has no schemas.
    pub(super) async fn jobs_left(&mut self, name: &str) -> Result<Option<u64>, BenchError> {
        if self.kept() == Kept::BehindPrefix {
            return Ok(None);
        }
        let count = format!("select (select count(*) from {name}.job) + (select count(*) from {name}.dead_job)");
        Ok(Some(self.connection.number(&count).await?.unsigned_abs()))
    }

    /// Drops what a broker made in its schema, or behind its prefix.
    pub(super) async fn drop_schema(&mut self, name: &str) -> Result<(), BenchError> {
        if self.kept() == Kept::InSchema {
            return self.connection.run(&format!("drop schema if exists {name} cascade"), true).await;
        }
        self.connection.run("set session foreign_key_checks = 0", false).await?;
        for (kind, type_name) in [("view", "VIEW"), ("table", "BASE TABLE")] {
            let list = made(name, "tables", "table_name", &format!("table_type = '{type_name}'"));
            for table in self.connection.texts(&list).await? {
                self.connection.run(&format!("drop {kind} if exists `{table}`"), false).await?;
            }
        }
        for (kind, clause) in [("procedure", "PROCEDURE"), ("function", "FUNCTION")] {
            let list = made(name, "routines", "routine_name", &format!("routine_type = '{clause}'"));
            for routine in self.connection.texts(&list).await? {
                self.connection.run(&format!("drop {kind} if exists `{routine}`"), false).await?;
            }
        }
        Ok(())
    }
}

/// The statement that lists what is behind a prefix of MariaDB's.
fn made(prefix: &str, what: &str, column: &str, which: &str) -> String {
    let schema = if what == "tables" { "table_schema" } else { "routine_schema" };
    let pattern = prefix.replace('_', "\\_");
    format!(
        "select cast({column} as char) from information_schema.{what} \
         where {schema} = database() and {column} like '{pattern}%' and {which}"
    )
}

/// A held snapshot.
pub(super) struct Snapshot {
    _connection: Connection,
}

impl Options {
    async fn connect(&self) -> Result<Connection, BenchError> {
        let away = |error: sqlx::Error| BenchError::Unreachable(format!("the database cannot be reached: {error}"));
        Ok(match self {
            Self::Postgres(options) => Connection::Postgres(PgConnection::connect_with(options).await.map_err(away)?),
            Self::Mysql(options) => Connection::Mysql(MySqlConnection::connect_with(options).await.map_err(away)?),
        })
    }
}

impl Connection {
    /// Runs a statement of one kind of server; the other kind has another one.
    async fn run(&mut self, sql: &str, of_postgres: bool) -> Result<(), BenchError> {
        let text = AssertSqlSafe(format!("{COMMENT}{sql}"));
        let done = match self {
            Self::Postgres(connection) if of_postgres => connection.execute(sqlx::raw_sql(text)).await.map(drop),
            Self::Mysql(connection) if !of_postgres => connection.execute(sqlx::raw_sql(text)).await.map(drop),
            Self::Postgres(_) | Self::Mysql(_) => Ok(()),
        };
        done.map_err(|error| refused(&error))
    }

    async fn number(&mut self, sql: &str) -> Result<i64, BenchError> {
        first(self.column(sql).await?)
    }

    async fn text(&mut self, sql: &str) -> Result<String, BenchError> {
        first(self.column(sql).await?)
    }

    async fn texts(&mut self, sql: &str) -> Result<Vec<String>, BenchError> {
        self.column(sql).await
    }

    /// The first column of all rows.
    async fn column<T>(&mut self, sql: &str) -> Result<Vec<T>, BenchError>
    where
        for<'a> T: sqlx::Decode<'a, sqlx::Postgres>
            + sqlx::Type<sqlx::Postgres>
            + sqlx::Decode<'a, sqlx::MySql>
            + sqlx::Type<sqlx::MySql>,
    {
        let text = AssertSqlSafe(format!("{COMMENT}{sql}"));
        let values: Result<Vec<T>, sqlx::Error> = match self {
            Self::Postgres(connection) => connection
                .fetch_all(sqlx::raw_sql(text))
                .await
                .and_then(|rows| rows.iter().map(|row| row.try_get(0)).collect()),
            Self::Mysql(connection) => connection
                .fetch_all(sqlx::raw_sql(text))
                .await
                .and_then(|rows| rows.iter().map(|row| row.try_get(0)).collect()),
        };
        values.map_err(|error| refused(&error))
    }
}

fn first<T>(values: Vec<T>) -> Result<T, BenchError> {
    values.into_iter().next().ok_or_else(|| BenchError::Other("the database answered nothing".into()))
}

fn refused(error: &sqlx::Error) -> BenchError {
    let why = error.as_database_error().map_or_else(|| error.to_string(), |error| error.message().to_owned());
    BenchError::Other(format!("the database refused what a measurement needs: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_url_that_cannot_be_used_is_refused_without_showing_it() {
        for url in ["postgres://u:hunter2@[::1", "sqlite://hunter2.db", "hunter2"] {
            let refused = Database::connect(&SecretString::from(url)).await.err().expect("no such server");
            assert!(matches!(refused, BenchError::Wrong(_)), "{refused}");
            assert!(!refused.to_string().contains("hunter2"), "{refused}");
        }
    }
}
