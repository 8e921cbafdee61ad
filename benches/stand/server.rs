//! The database server of a measurement that can be made on more than one.

use std::time::Duration;

use sqlx::{Executor, MySqlConnection, PgConnection};

use super::{
    Options, Outcome,
    mariadb::MariaDb,
    postgres::Postgres,
    process,
    statements::{self, Statement},
};

pub(crate) enum Server {
    Postgres(Postgres),
    MariaDb(MariaDb),
}

/// A transaction that keeps an old snapshot.
pub(crate) enum Holder {
    Postgres(PgConnection),
    MariaDb(MySqlConnection),
}

impl Server {
    /// One of the engine that the command line names. Checkpoints are rare: they would fall into some rounds and not into
    /// others.
    pub(crate) async fn start(options: &Options) -> Outcome<Self> {
        Ok(if options.is_mariadb() {
            let settings = ["innodb-buffer-pool-size=512M", "innodb-log-file-size=2G", "max-connections=200"];
            Self::MariaDb(MariaDb::start(options.bindir(), &settings).await?)
        } else {
            let settings = ["max_wal_size=8GB", "checkpoint_timeout=1h", "shared_buffers=512MB", "max_connections=200"];
            Self::Postgres(Postgres::start(options.bindir(), &settings).await?)
        })
    }

    /// Makes a database; answers the URL that a broker is given.
    pub(crate) async fn create_database(&self, name: &str) -> Outcome<String> {
        match self {
            Self::Postgres(server) => server.create_database(name),
            Self::MariaDb(server) => server.create_database(name).await,
        }
    }

    /// Connections of brokers to a database.
    pub(crate) async fn connections(&self, database: &str) -> Outcome<i64> {
        match self {
            Self::Postgres(server) => server.connections(database).await,
            Self::MariaDb(server) => server.connections(database).await,
        }
    }

    /// The server's version, for people.
    pub(crate) async fn version(&self) -> Outcome<String> {
        match self {
            Self::Postgres(server) => server.version().await,
            Self::MariaDb(server) => server.version().await,
        }
    }

    /// Processor time of all of the server.
    pub(crate) fn processor_time(&self) -> Outcome<Duration> {
        match self {
            Self::Postgres(server) => Ok(process::processor_time_of_family(server.pid())?),
            Self::MariaDb(server) => Ok(process::processor_time(server.pid())?),
        }
    }

    /// What brokers sent within `window`.
    pub(crate) async fn watch(&self, window: Duration) -> Outcome<Vec<Statement>> {
        match self {
            Self::Postgres(server) => statements::watch(server, window).await,
            Self::MariaDb(server) => statements::watch_mariadb(server, window).await,
        }
    }

    /// Opens a transaction with a snapshot that nobody may clean up behind: vacuum on PostgreSQL, purge on MariaDB.
    pub(crate) async fn hold_snapshot(&self, database: &str) -> Outcome<Holder> {
        Ok(match self {
            Self::Postgres(server) => {
                let mut session = server.connect(database).await?;
                session.execute("begin isolation level repeatable read").await?;
                session.execute("select count(*) from leasehold.job").await?;
                Holder::Postgres(session)
            }
            Self::MariaDb(server) => {
                let mut session = server.connect(database).await?;
                session.execute("set session transaction isolation level repeatable read").await?;
                session.execute("start transaction with consistent snapshot").await?;
                session.execute("select count(*) from leasehold_job").await?;
                Holder::MariaDb(session)
            }
        })
    }
}

impl Holder {
    /// Whether the transaction is still open, and its snapshot with it.
    pub(crate) async fn is_held(&mut self) -> Outcome<bool> {
        Ok(match self {
            Self::Postgres(session) => {
                let held = "select backend_xmin is not null from pg_stat_activity where pid = pg_backend_pid()";
                sqlx::query_scalar(held).fetch_one(session).await?
            }
            Self::MariaDb(session) => {
                let held = "select count(*) > 0 from information_schema.innodb_trx where trx_mysql_thread_id = connection_id()";
                sqlx::query_scalar(held).fetch_one(session).await?
            }
        })
    }
}
