//! What a file says about itself, read beside whoever works on it: without its lock, without making or changing anything.

use std::{
    fs::File,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use async_trait::async_trait;
use rustix::fs::{Access, access};
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Executor as _, SqliteConnection, sqlite::SqliteConnectOptions,
    sqlite::SqliteRow,
};

use super::{
    error::{Step, classify},
    link::MIGRATIONS,
    session::{column, narrow},
};
use crate::{
    model::Caller,
    store::{
        blueprint::Blueprint,
        comment::Comments,
        engine::{
            AppliedMigration,
            examining::{
                ClockFacts, Examining, Facts, ForeignIndex, IndexFacts, Purpose, Seen, ServerFacts, SettingFact,
                SnapshotFacts, SnapshotHolder, TableFact, TableFacts, Unseen,
            },
        },
        error::EngineError,
    },
};

const ABOUT: &str = include_str!("sql/examine.sql");
const OBJECTS: &str = include_str!("sql/examine_objects.sql");
const HAS_SCHEMA: &str = include_str!("sql/has_schema.sql");
const APPLIED: &str = include_str!("sql/migrations.sql");
const CLOCK: &str = include_str!("sql/read_clock.sql");

/// A write-ahead log of this size is not emptied any more: somebody reads for long. The broker starts it anew at a quarter.
const LONG_LOG: u64 = 128 << 20;

/// How long it waits for somebody's lock.
const PATIENCE: Duration = Duration::from_secs(2);

/// A database file that somebody else may be working on.
#[derive(Debug)]
pub struct SqliteFile {
    path: PathBuf,
    comments: Comments,
}

impl SqliteFile {
    /// Touches nothing.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), comments: Comments::new(0, []) }
    }

    async fn rows(
        &self,
        connection: &mut SqliteConnection,
        caller: &Caller,
        statement: &'static str,
    ) -> Result<Vec<SqliteRow>, EngineError> {
        let text = self.comments.text(caller, statement);
        connection
            .fetch_all(sqlx::raw_sql(AssertSqlSafe(text)))
            .await
            .map_err(|error| classify(&error, Step::Statement))
    }

    async fn row(
        &self,
        connection: &mut SqliteConnection,
        caller: &Caller,
        statement: &'static str,
    ) -> Result<SqliteRow, EngineError> {
        let mut rows = self.rows(connection, caller, statement).await?;
        rows.pop().ok_or_else(|| EngineError::Bug("no row".into()))
    }

    async fn applied(
        &self,
        connection: &mut SqliteConnection,
        caller: &Caller,
    ) -> Result<Vec<AppliedMigration>, EngineError> {
        if self.rows(connection, caller, HAS_SCHEMA).await?.is_empty() {
            return Ok(Vec::new());
        }
        let rows = self.rows(connection, caller, APPLIED).await?;
        rows.iter()
            .map(|row| Ok(AppliedMigration { number: narrow(row, "number")?, name: column(row, "name")? }))
            .collect()
    }

    /// The last instant written may lie ahead of the wall clock, which was set back then.
    async fn clock(&self, connection: &mut SqliteConnection, caller: &Caller) -> Result<ClockFacts, EngineError> {
        let last: i64 = column(&self.row(connection, caller, CLOCK).await?, "last_at")?;
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let wall = i64::try_from(wall.as_micros()).unwrap_or(i64::MAX);
        Ok(ClockFacts { ahead: last.saturating_sub(wall).max(0), give_or_take: Duration::ZERO })
    }

    async fn objects(
        &self,
        connection: &mut SqliteConnection,
        caller: &Caller,
        made: &Blueprint,
    ) -> Result<(TableFacts, IndexFacts), EngineError> {
        let rows = self.rows(connection, caller, OBJECTS).await?;
        let mut objects = Vec::new();
        for row in &rows {
            let kind: String = column(row, "type")?;
            objects.push((kind, column::<String>(row, "name")?, column::<String>(row, "table_name")?));
        }
        let has = |kind: &str, name: &str| objects.iter().any(|(is, named, _)| is == kind && named == name);
        let (mut tables, mut indexes) = (TableFacts::default(), IndexFacts::default());
        for table in &made.tables {
            if has("table", &table.name) {
                let name = table.name.clone();
                tables.present.push(TableFact { name, vacuum_off: false, strayed: Vec::new(), live: 0, dead: 0 });
            } else {
                tables.missing.push(table.name.clone());
            }
        }
        for index in &made.indexes {
            if has("index", &index.name) {
                indexes.in_order += 1;
            } else {
                indexes.missing.push(index.statement.clone());
            }
        }
        let known = Blueprint::of(&MIGRATIONS);
        for (kind, name, table) in &objects {
            let ours = |table: &str| known.tables.iter().any(|planned| planned.name == table);
            if kind == "index" && ours(table) && known.indexes.iter().all(|index| index.name != *name) {
                indexes.foreign.push(ForeignIndex { name: format!("{name} on {table}"), scans: None });
            }
        }
        Ok((tables, indexes))
    }

    fn long_log(&self) -> SnapshotFacts {
        let mut log = self.path.clone().into_os_string();
        log.push("-wal");
        let log_bytes = std::fs::metadata(log).map_or(0, |log| log.len());
        let holder = SnapshotHolder {
            who: "a reader of the file".into(),
            age: None,
            transactions: 0,
            log_bytes,
            release: "end the program that reads the file for so long".into(),
        };
        SnapshotFacts { holders: (log_bytes >= LONG_LOG).then_some(holder).into_iter().collect(), hidden: 0 }
    }
}

#[async_trait]
impl Examining for SqliteFile {
    async fn examine(&self, caller: &Caller) -> Result<Facts, EngineError> {
        if !self.path.exists() {
            return Err(EngineError::Unavailable(format!(
                "there is no database at {} yet: 'leasehold serve' makes it",
                self.path.display()
            )));
        }
        let options = SqliteConnectOptions::new()
            .filename(&self.path)
            .read_only(true)
            .create_if_missing(false)
            .busy_timeout(PATIENCE)
            .disable_statement_logging();
        let mut connection = options.connect().await.map_err(|error| classify(&error, Step::Connect))?;
        let connection = &mut connection;

        let about = self.row(connection, caller, ABOUT).await?;
        let applied = seen(self.applied(connection, caller).await);
        let made = Blueprint::of(MIGRATIONS.iter().filter(|known| match &applied {
            Ok(applied) => applied.iter().any(|has| has.number == known.number),
            Err(_) => true,
        }));
        let has_clock = matches!(&applied, Ok(applied) if !applied.is_empty());
        let level = ClockFacts { ahead: 0, give_or_take: Duration::ZERO };
        let clock = if has_clock { self.clock(connection, caller).await? } else { level };
        let (tables, indexes) = match seen(self.objects(connection, caller, &made).await) {
            Ok((tables, indexes)) => (Ok(tables), Ok(indexes)),
            Err(unseen) => (Err(unseen.clone()), Err(unseen)),
        };
        Ok(Facts {
            server: ServerFacts {
                product: "SQLite",
                version: column(&about, "version")?,
                // the library is a part of this program
                oldest: "this one",
                new_enough: true,
                place: self.path.display().to_string(),
                read_only: unwritable(&self.path),
            },
            settings: Ok(vec![journal_mode(column(&about, "journal_mode")?)]),
            pooler: None,
            role: Ok(None),
            connections: Ok(None),
            clock,
            snapshots: Ok(self.long_log()),
            known: MIGRATIONS.iter().map(AppliedMigration::from).collect(),
            applied,
            tables,
            indexes,
        })
    }
}

fn seen<T>(part: Result<T, EngineError>) -> Seen<T> {
    part.map_err(|error| Unseen(error.to_string()))
}

fn journal_mode(value: String) -> SettingFact {
    SettingFact {
        name: "journal_mode",
        fits: value == "wal",
        value,
        wanted: "wal",
        purpose: Purpose::Durability,
        change: "put the file on a local disk and start the broker, which sets it",
    }
}

/// Why this user cannot write the file or beside it, where the log goes.
fn unwritable(path: &Path) -> Option<String> {
    if let Err(error) = File::options().append(true).open(path) {
        return Some(format!("its file cannot be written: {}", error.kind()));
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    access(directory, Access::WRITE_OK)
        .err()
        .map(|error| format!("its directory cannot be written: {}", std::io::Error::from(error).kind()))
}
