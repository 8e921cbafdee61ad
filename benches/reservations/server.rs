//! The database server that all ways of one run share.

use std::path::Path;

use sqlx::Executor as _;

use super::{
    bare::Session,
    stand::{Outcome, mariadb::MariaDb, postgres::Postgres},
};

const POSTGRES: [&str; 4] =
    ["max_wal_size=8GB", "checkpoint_timeout=1h", "shared_buffers=512MB", "max_connections=200"];
const MARIADB: [&str; 3] = ["innodb-buffer-pool-size=512M", "innodb-log-file-size=2G", "max-connections=200"];

pub(super) enum Server {
    Postgres(Postgres),
    MariaDb(MariaDb),
}

impl Server {
    /// Each commit waits for `commit` microseconds; those that come meanwhile go with it.
    pub(super) async fn start(mariadb: bool, bindir: Option<&Path>, commit: u64) -> Outcome<Self> {
        let mut settings: Vec<String> = Vec::new();
        if commit > 0 && mariadb {
            settings.extend(["log-bin=log".to_owned(), "binlog-commit-wait-count=1000".to_owned()]);
            settings.push(format!("binlog-commit-wait-usec={commit}"));
        } else if commit > 0 {
            settings.extend([format!("commit_delay={commit}"), "commit_siblings=0".to_owned()]);
        }
        let settings = settings.iter().map(String::as_str);
        if mariadb {
            let settings: Vec<&str> = MARIADB.into_iter().chain(settings).collect();
            return Ok(Self::MariaDb(MariaDb::start(bindir, &settings).await?));
        }
        let settings: Vec<&str> = POSTGRES.into_iter().chain(settings).collect();
        Ok(Self::Postgres(Postgres::start(bindir, &settings).await?))
    }

    pub(super) async fn version(&self) -> Outcome<String> {
        match self {
            Self::Postgres(server) => server.version().await,
            Self::MariaDb(server) => server.version().await,
        }
    }

    /// Answers the URL that a broker is given.
    pub(super) async fn create_database(&self, name: &str) -> Outcome<String> {
        match self {
            Self::Postgres(server) => server.create_database(name),
            Self::MariaDb(server) => server.create_database(name).await,
        }
    }

    pub(super) async fn connect(&self, database: &str) -> Outcome<Session> {
        Ok(match self {
            Self::Postgres(server) => Session::Postgres(server.connect(database).await?),
            Self::MariaDb(server) => {
                let mut session = server.connect(database).await?;
                session.execute("set session transaction isolation level read committed").await?;
                Session::MariaDb(session)
            }
        })
    }

    /// Whether one statement can do all of a sale.
    pub(super) fn has_changes_in_with(&self) -> bool {
        matches!(self, Self::Postgres(_))
    }
}
