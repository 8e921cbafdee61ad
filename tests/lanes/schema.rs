//! A database of its own for a test, on the MariaDB server that `./test` started.

use std::{
    collections::HashSet,
    env,
    fs::{self, File},
    io::{Read as _, Seek as _, SeekFrom},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use leasehold::store::engine::Engine;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Executor as _, MySqlConnection, Row as _, mysql::MySqlRow};

use crate::contract::mariadb;

/// Who services and the tests' own sessions are, so that the server's list tells them from a broker's.
const SERVICE: &str = "watcher";

/// A fresh database; it goes when this is dropped.
#[derive(Debug)]
pub(crate) struct Schema {
    pub(crate) name: String,
}

impl Schema {
    /// Creates the database.
    pub(crate) async fn fresh() -> Self {
        let name = format!("lanes_{:016x}", rand::random::<u64>());
        mariadb::admin(&format!("create database {name}")).await;
        Self { name }
    }

    pub(crate) fn engine(&self) -> Arc<dyn Engine> {
        Arc::new(mariadb::engine(&self.name))
    }

    /// A session of the test's own, as a service would have one. It may be cut while it is being made.
    pub(crate) async fn connect(&self) -> MySqlConnection {
        const TRIES: usize = 20;
        let options = mariadb::server().username(SERVICE).database(&self.name);
        let mut last = None;
        for _ in 0..TRIES {
            match mariadb::try_session_of(&options).await {
                Ok(session) => return session,
                Err(error) => last = Some(error),
            }
        }
        panic!("no session in {TRIES} tries: {last:?}")
    }

    /// The condition under which a session in the server's list is a broker's, or a service's, of this database.
    pub(crate) fn sessions_of(&self, service: bool) -> String {
        let sign = if service { "=" } else { "<>" };
        format!("db = '{}' and user {sign} '{SERVICE}' and id <> connection_id()", self.name)
    }

    /// The server's log of statements as far as it has come.
    pub(crate) fn logged() -> u64 {
        fs::metadata(log()).expect("the server's log is there").len()
    }

    /// Statements that sessions of brokers which are there now have sent since the log was as long as `since`.
    pub(crate) async fn sent_since(&self, since: u64) -> usize {
        let ids = format!("select id from information_schema.processlist where {}", self.sessions_of(false));
        let rows = self.connect().await.fetch_all(AssertSqlSafe(ids)).await.expect("the server's list of sessions");
        let sessions: HashSet<String> = rows.iter().map(|row| session_id(row).to_string()).collect();
        assert!(!sessions.is_empty(), "no broker is connected");
        let mut file = File::open(log()).expect("the server's log can be read");
        file.seek(SeekFrom::Start(since)).expect("the log is as long");
        let mut text = Vec::new();
        file.read_to_end(&mut text).expect("the server's log can be read");
        // The time, of one word or two or none, then the session, then what it sent.
        let is_sent = |line: &&str| {
            let words: Vec<&str> = line.split_whitespace().take(4).collect();
            words.windows(2).any(|pair| matches!(pair[1], "Query" | "Execute") && sessions.contains(pair[0]))
        };
        String::from_utf8_lossy(&text).lines().filter(is_sent).count()
    }

    /// What the server wrote about deadlocks in this database; a broker that tried again does not show in its answers.
    pub(crate) fn deadlocks(&self) -> Vec<String> {
        let text = fs::read(log().with_file_name("error.log")).expect("the server's log can be read");
        let mine = format!("`{}`.", self.name);
        String::from_utf8_lossy(&text).lines().filter(|line| line.contains(&mine)).map(str::to_owned).collect()
    }
}

/// Where the server writes every statement.
fn log() -> PathBuf {
    env::var_os("LEASEHOLD_TEST_MARIADB_LOG").expect("LEASEHOLD_TEST_MARIADB_LOG: run ./test rust").into()
}

/// MySQL's numbers have no sign.
fn session_id(row: &MySqlRow) -> u64 {
    row.try_get(0).or_else(|_| row.try_get::<i64, _>(0).map(i64::unsigned_abs)).expect("a session's number")
}

impl Drop for Schema {
    fn drop(&mut self) {
        let (server, statement) = (mariadb::server(), format!("drop database {}", self.name));
        // A thread of its own: no runtime may be entered again from within one.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let dropped = tokio::time::timeout(Duration::from_secs(20), async {
                    server.connect().await?.execute(sqlx::raw_sql(AssertSqlSafe(statement))).await
                });
                matches!(dropped.await, Ok(Ok(_)))
            })
        });
        let dropped = dropping.join().unwrap_or(false);
        assert!(dropped || std::thread::panicking(), "the test's database could not be dropped");
    }
}
