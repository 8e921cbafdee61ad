//! The broker as a whole.

use std::{net::SocketAddr, path::PathBuf};

use crate::config::{
    declared::section,
    kind::{Address, Choice, Database, DatabaseUrl, Folder, Identifier, Label, Optional, Path, Switch},
};

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Human,
    /// One JSON object a line.
    Json,
}

/// From which severity on log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Somebody must act.
    Error,
    /// Something is wrong, and the broker goes on.
    Warn,
    /// What an operator wants to know.
    Info,
    /// What a developer wants to know.
    Debug,
    /// Everything.
    Trace,
}

const LEVELS: &[(&str, LogLevel)] = &[
    ("info", LogLevel::Info),
    ("error", LogLevel::Error),
    ("warn", LogLevel::Warn),
    ("debug", LogLevel::Debug),
    ("trace", LogLevel::Trace),
];

section! {
    /// The broker as a whole. These options stand at the top of the file, before any section.
    Broker as "" {
        /// The database that keeps the jobs. Without a URL it is the embedded one, `leasehold.db` in the data directory.
        database_url: Database = DatabaseUrl;
        /// A file that holds the database's URL, in place of `database_url`, such as a mounted secret. It is read once, at the
        /// start; white space around the URL does not matter.
        database_url_file: Option<PathBuf> = Optional(Path);
        /// PostgreSQL's schema of the broker's tables and functions. Brokers of different schemas in one database know nothing of
        /// each other.
        database_schema: String = Identifier("leasehold");
        /// What the names of the broker's tables and procedures begin with on MySQL and MariaDB. Brokers of different prefixes in
        /// one database know nothing of each other.
        database_table_prefix: String = Identifier("leasehold_");
        /// Where gRPC is served.
        listen: SocketAddr = Address(7070);
        /// Where health, readiness and metrics are served over HTTP.
        http_listen: SocketAddr = Address(7071);
        /// Directory of the embedded database; made where it is missing.
        data_dir: PathBuf = Folder("./leasehold-data");
        /// Apply missing migrations before serving. The embedded database always does.
        migrate: bool = Switch(false);
        /// Serve without TLS on addresses that others can reach.
        insecure_plaintext: bool = Switch(false);
        /// Work on a database whose settings can lose acknowledged commits.
        allow_lossy: bool = Switch(false);
        /// Name of this replica, shown to operators and to the database; the host's name where unset.
        replica_name: Option<String> = Optional(Label);
        /// How log lines are written.
        log_format: LogFormat = Choice(&[("human", LogFormat::Human), ("json", LogFormat::Json)]);
        /// From which severity on log lines are written.
        log_level: LogLevel = Choice(LEVELS);
        /// Claims and walks begin where the last one ended, not at the index's beginning. Off for comparison alone.
        claim_cursor: bool = Switch(true);
        /// Queues come into being with their first job. Off, a job for an unknown queue is refused.
        auto_create_queues: bool = Switch(true);
    }
}
