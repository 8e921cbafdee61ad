//! One connection of an experiment, to either kind of server.

use std::str::FromStr;

use secrecy::{ExposeSecret, SecretString};
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection as _, Executor, MySqlConnection, PgConnection, Row,
    mysql::MySqlConnectOptions, postgres::PgConnectOptions,
};

/// Stands before every statement, as with everything else that the program sends.
const COMMENT: &str = "/* conn_tag:leasehold.prove */ ";

/// The experiment could not go on.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

/// What SQL the server understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Postgres,
    Mysql,
}

/// What became of a statement that did not do what it should.
#[derive(Debug, Clone)]
pub(super) enum Trouble {
    /// A row was locked, and the statement did not want to wait or had waited long enough.
    Locked,
    /// The server ended this transaction to free another one.
    Deadlock,
    /// Anything else: the experiment ends.
    Other(Refused),
}

impl From<sqlx::Error> for Trouble {
    fn from(error: sqlx::Error) -> Self {
        let code = error.as_database_error().and_then(|error| {
            let mysql =
                error.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>().map(|error| error.number().to_string());
            mysql.or_else(|| error.code().map(std::borrow::Cow::into_owned))
        });
        match code.as_deref() {
            Some("55P03" | "1205" | "3572") => Self::Locked,
            Some("40P01" | "40001" | "1213") => Self::Deadlock,
            _ => Self::Other(Refused(error.to_string())),
        }
    }
}

/// Where connections go.
#[derive(Debug, Clone)]
pub(super) enum Target {
    Postgres(PgConnectOptions),
    Mysql(MySqlConnectOptions),
}

impl Target {
    pub(super) fn parse(url: &SecretString) -> Result<Self, Refused> {
        let text = url.expose_secret();
        let unreadable = |_| Refused("the database's URL cannot be read".into());
        match text.split_once("://").map_or("", |(scheme, _)| scheme) {
            "postgres" | "postgresql" => PgConnectOptions::from_str(text)
                .map(|options| Self::Postgres(options.application_name("leasehold prove").disable_statement_logging()))
                .map_err(unreadable),
            "mysql" | "mariadb" => MySqlConnectOptions::from_str(text)
                .map(|options| Self::Mysql(options.disable_statement_logging()))
                .map_err(unreadable),
            _ => Err(Refused(
                "the experiment needs a server whose row locks workers share: give a postgres://, mysql:// or mariadb:// URL"
                    .into(),
            )),
        }
    }

    pub(super) fn dialect(&self) -> Dialect {
        match self {
            Self::Postgres(_) => Dialect::Postgres,
            Self::Mysql(_) => Dialect::Mysql,
        }
    }

    /// A connection at READ COMMITTED.
    pub(super) async fn connect(&self) -> Result<Connection, Refused> {
        self.connect_at("read committed").await
    }

    /// A connection whose transactions run at `isolation`.
    pub(super) async fn connect_at(&self, isolation: &'static str) -> Result<Connection, Refused> {
        let away = |error: sqlx::Error| Refused(format!("the database cannot be reached: {error}"));
        match self {
            Self::Postgres(options) => {
                let mut connection = Connection::Postgres(PgConnection::connect_with(options).await.map_err(away)?);
                let level = format!("set session characteristics as transaction isolation level {isolation}");
                connection.must(&level).await?;
                Ok(connection)
            }
            Self::Mysql(options) => {
                let mut connection = Connection::Mysql(MySqlConnection::connect_with(options).await.map_err(away)?);
                connection.must("set session autocommit = 1, completion_type = 'NO_CHAIN', sql_mode = ''").await?;
                connection.must(&format!("set session transaction isolation level {isolation}")).await?;
                Ok(connection)
            }
        }
    }
}

/// A connection. Dropped, it closes, and what its transaction did is undone.
pub(super) enum Connection {
    Postgres(PgConnection),
    Mysql(MySqlConnection),
}

impl Connection {
    /// Runs a statement.
    pub(super) async fn run(&mut self, sql: &str) -> Result<(), Trouble> {
        let text = AssertSqlSafe(format!("{COMMENT}{sql}"));
        match self {
            Self::Postgres(connection) => connection.execute(sqlx::raw_sql(text)).await.map(drop)?,
            Self::Mysql(connection) => connection.execute(sqlx::raw_sql(text)).await.map(drop)?,
        }
        Ok(())
    }

    /// Runs a statement that nothing but a broken set-up makes fail.
    pub(super) async fn must(&mut self, sql: &str) -> Result<(), Refused> {
        self.run(sql).await.map_err(|trouble| match trouble {
            Trouble::Other(refused) => refused,
            Trouble::Locked | Trouble::Deadlock => Refused("somebody else uses the experiment's tables".into()),
        })
    }

    /// The first column of each row.
    pub(super) async fn numbers(&mut self, sql: &str) -> Result<Vec<i64>, Trouble> {
        let text = AssertSqlSafe(format!("{COMMENT}{sql}"));
        let numbers: Result<Vec<i64>, sqlx::Error> = match self {
            Self::Postgres(connection) => {
                connection.fetch_all(sqlx::raw_sql(text)).await?.iter().map(|row| row.try_get(0)).collect()
            }
            Self::Mysql(connection) => {
                connection.fetch_all(sqlx::raw_sql(text)).await?.iter().map(|row| row.try_get(0)).collect()
            }
        };
        Ok(numbers?)
    }

    /// What the server says it is.
    pub(super) async fn version(&mut self) -> Result<String, Refused> {
        let text = AssertSqlSafe(format!("{COMMENT}select version()"));
        let version: Result<String, sqlx::Error> = match self {
            Self::Postgres(connection) => {
                connection.fetch_one(sqlx::raw_sql(text)).await.and_then(|row| row.try_get(0))
            }
            Self::Mysql(connection) => connection.fetch_one(sqlx::raw_sql(text)).await.and_then(|row| {
                row.try_get::<String, _>(0)
                    .map(|version| if version.contains("MariaDB") { version } else { format!("MySQL {version}") })
            }),
        };
        version.map_err(|error| Refused(error.to_string()))
    }
}
