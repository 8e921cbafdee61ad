//! A store over a database of its own, and the test's own way into that database.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use leasehold::{
    model::{
        Caller, Failure, Headers, JobId, Key, LeaseId, LeaseToken, NewJob, Priority, QueueId, QueueName, ReplicaId,
        Start, StreamId, StreamNumber, Timestamp,
    },
    store::{
        Call, LaneOptions, Store, StoreOptions, Stored,
        engine::{Claim, ClaimedJob, Engine, LaneRole, LeaseRef, Slot},
        postgres::{PostgresEngine, PostgresOptions},
        sqlite::{SqliteEngine, SqliteOptions},
    },
};
use sqlx::{
    AssertSqlSafe, ConnectOptions, Executor, MySqlConnection, PgConnection, Row, SqliteConnection,
    mysql::MySqlDatabaseError, sqlite::SqliteConnectOptions,
};
use tempfile::TempDir;

use super::{
    proxy::Proxy,
    schema::Schema,
    server::{APPLICATION, Server},
};

/// One engine on one fresh database.
pub(crate) struct Stage {
    pub(crate) engine: Arc<dyn Engine>,
    database: Database,
}

enum Database {
    Postgres { server: Arc<Server>, proxy: Option<Proxy> },
    MariaDb(Schema),
    Sqlite(TempDir),
}

impl Stage {
    pub(crate) async fn postgres() -> Self {
        let server = Server::fresh().await;
        let engine = postgres_engine(&server.url(None), "leasehold");
        Self { engine, database: Database::Postgres { server: Arc::new(server), proxy: None } }
    }

    /// The same database, where the broker's schema is `schema`.
    pub(crate) fn in_schema(&self, schema: &str) -> Self {
        let Database::Postgres { server, .. } = &self.database else { panic!("only PostgreSQL has schemas") };
        let engine = postgres_engine(&server.url(None), schema);
        Self { engine, database: Database::Postgres { server: Arc::clone(server), proxy: None } }
    }

    /// The same, with a proxy between store and database.
    pub(crate) async fn postgres_behind_a_proxy() -> Self {
        let server = Server::fresh().await;
        let proxy = Proxy::before(server.address()).await;
        let engine = postgres_engine(&server.url(Some(proxy.address)), "leasehold");
        Self { engine, database: Database::Postgres { server: Arc::new(server), proxy: Some(proxy) } }
    }

    pub(crate) async fn mariadb() -> Self {
        let schema = Schema::fresh().await;
        Self { engine: schema.engine(), database: Database::MariaDb(schema) }
    }

    pub(crate) async fn sqlite() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let options = SqliteOptions::new(directory.path().join("leasehold.db"));
        let engine = SqliteEngine::open(options).await.expect("a new database");
        Self { engine: Arc::new(engine), database: Database::Sqlite(directory) }
    }

    pub(crate) fn is_postgres(&self) -> bool {
        matches!(self.database, Database::Postgres { .. })
    }

    /// Whether services have sessions of their own, beside the broker's.
    pub(crate) fn is_server(&self) -> bool {
        !matches!(self.database, Database::Sqlite(_))
    }

    pub(crate) fn server(&self) -> &Server {
        match &self.database {
            Database::Postgres { server, .. } => server,
            _ => panic!("this stage is not on PostgreSQL"),
        }
    }

    /// None where the stage is not on MariaDB.
    pub(crate) fn schema(&self) -> Option<&Schema> {
        match &self.database {
            Database::MariaDb(schema) => Some(schema),
            _ => None,
        }
    }

    pub(crate) fn proxy(&self) -> &Proxy {
        match &self.database {
            Database::Postgres { proxy: Some(proxy), .. } => proxy,
            _ => panic!("this stage has no proxy"),
        }
    }

    /// A store that has all its lanes.
    pub(crate) async fn store(&self, mut options: StoreOptions) -> Store {
        options.lanes.migrate = true;
        let store = Store::start(Arc::clone(&self.engine), options);
        let mut available = store.availability();
        let up = available.wait_for(|up| *up);
        tokio::time::timeout(Duration::from_secs(30), up).await.expect("the database answers").expect("lanes run");
        store
    }

    /// Lanes that take an Enqueue.
    pub(crate) fn writers(&self, options: &StoreOptions) -> usize {
        let roles = self.engine.lanes(options.lanes.lanes);
        roles.iter().filter(|role| matches!(role, LaneRole::Any | LaneRole::Write)).count()
    }

    /// A session of the test's own.
    pub(crate) async fn sql(&self) -> Sql {
        match &self.database {
            Database::Postgres { server, .. } => Sql::Postgres(server.connect().await),
            Database::MariaDb(schema) => Sql::MariaDb(schema.connect().await),
            Database::Sqlite(directory) => {
                let options = SqliteConnectOptions::new()
                    .filename(directory.path().join("leasehold.db"))
                    .busy_timeout(Duration::from_secs(10));
                Sql::Sqlite(options.connect().await.expect("the test's own session"))
            }
        }
    }

    /// From here until it is let go, no statement that writes jobs ends.
    pub(crate) async fn hold_writes(&self) -> Sql {
        let mut sql = self.sql().await;
        match sql {
            Sql::Postgres(_) => {
                sql.run("begin").await;
                sql.run("lock table leasehold.job in share mode").await;
            }
            Sql::MariaDb(_) => sql.run("lock tables leasehold_job read").await,
            Sql::Sqlite(_) => sql.run("begin immediate").await,
        }
        sql
    }
}

fn postgres_engine(url: &str, schema: &str) -> Arc<dyn Engine> {
    let mut options = PostgresOptions::new(url.to_owned().into());
    schema.clone_into(&mut options.schema);
    APPLICATION.clone_into(&mut options.application_name);
    Arc::new(PostgresEngine::new(options).expect("a PostgreSQL URL"))
}

/// A session of the test's own, whatever the engine. Statements name tables without a schema; on MariaDB, with their prefix.
pub(crate) enum Sql {
    Postgres(PgConnection),
    MariaDb(MySqlConnection),
    Sqlite(SqliteConnection),
}

impl Sql {
    /// Runs statements.
    pub(crate) async fn run(&mut self, text: &str) {
        let statement = sqlx::raw_sql(AssertSqlSafe(text.to_owned()));
        let done = match self {
            Self::Postgres(session) => session.execute(statement).await.map(drop),
            Self::MariaDb(session) => session.execute(statement).await.map(drop),
            Self::Sqlite(session) => session.execute(statement).await.map(drop),
        };
        done.unwrap_or_else(|error| panic!("{text}: {error}"));
    }

    /// The one number that a query finds.
    pub(crate) async fn number(&mut self, text: &str) -> i64 {
        let query = AssertSqlSafe(text.to_owned());
        let found = match self {
            Self::Postgres(session) => session.fetch_one(sqlx::query(query)).await.and_then(|row| row.try_get(0)),
            Self::MariaDb(session) => session.fetch_one(sqlx::query(query)).await.and_then(|row| row.try_get(0)),
            Self::Sqlite(session) => session.fetch_one(sqlx::query(query)).await.and_then(|row| row.try_get(0)),
        };
        found.unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// The numbers in a query's first column.
    pub(crate) async fn numbers(&mut self, text: &str) -> Vec<i64> {
        let query = AssertSqlSafe(text.to_owned());
        let found: sqlx::Result<Vec<i64>> = match self {
            Self::Postgres(session) => session
                .fetch_all(sqlx::query(query))
                .await
                .and_then(|rows| rows.iter().map(|row| row.try_get(0)).collect()),
            Self::MariaDb(session) => session
                .fetch_all(sqlx::query(query))
                .await
                .and_then(|rows| rows.iter().map(|row| row.try_get(0)).collect()),
            Self::Sqlite(session) => session
                .fetch_all(sqlx::query(query))
                .await
                .and_then(|rows| rows.iter().map(|row| row.try_get(0)).collect()),
        };
        found.unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// Cuts a session on MariaDB; one that has gone by itself is no error.
    pub(crate) async fn kill(&mut self, session: i64) {
        const NO_SUCH_SESSION: u16 = 1094;
        let Self::MariaDb(own) = self else { panic!("only MariaDB's sessions have such numbers") };
        if let Err(error) = own.execute(sqlx::raw_sql(AssertSqlSafe(format!("kill {session}")))).await {
            let number = error.as_database_error().and_then(|error| error.try_downcast_ref::<MySqlDatabaseError>());
            assert_eq!(number.map(MySqlDatabaseError::number), Some(NO_SUCH_SESSION), "{error}");
        }
    }

    /// Returns once the query finds `wanted`.
    pub(crate) async fn wait_for(&mut self, text: &str, wanted: i64) {
        let mut last = self.number(text).await;
        let deadline = Instant::now() + Duration::from_secs(20);
        while last != wanted {
            assert!(Instant::now() < deadline, "{text}: {last}, not {wanted}, after 20 s");
            tokio::time::sleep(Duration::from_millis(5)).await;
            last = self.number(text).await;
        }
    }
}

/// Returns once `holds` is true.
pub(crate) async fn until(what: &str, holds: impl AsyncFnMut() -> bool) {
    until_within(Duration::from_secs(20), what, holds).await;
}

/// The same for what may take longer.
pub(crate) async fn until_within(limit: Duration, what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + limit;
    while !holds().await {
        assert!(Instant::now() < deadline, "not within {limit:?}: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Few lanes, so that a test can keep them all busy.
pub(crate) fn few_lanes() -> StoreOptions {
    StoreOptions { lanes: LaneOptions { lanes: 3, ..LaneOptions::default() }, ..StoreOptions::default() }
}

/// One that takes everything.
pub(crate) fn one_lane() -> StoreOptions {
    StoreOptions { lanes: LaneOptions { lanes: 1, ..LaneOptions::default() }, ..StoreOptions::default() }
}

pub(crate) fn caller(name: &str) -> Caller {
    Caller::parse(name).expect("a caller's name")
}

pub(crate) fn call(name: &str, within: Duration) -> Call {
    Call { caller: caller(name), deadline: Instant::now() + within }
}

/// A call with time enough.
pub(crate) fn calm(name: &str) -> Call {
    call(name, Duration::from_secs(30))
}

pub(crate) fn queue(name: &str) -> QueueName {
    QueueName::parse("queue", name).expect("a queue's name")
}

/// A job that SQL can tell by its content type.
pub(crate) fn job(to: &str, content_type: &str) -> NewJob {
    NewJob {
        queue: queue(to),
        payload: Bytes::from_static(b"\0\xffwork"),
        content_type: content_type.to_owned(),
        headers: Headers::new(),
        priority: Priority::DEFAULT,
        start: Start::Now,
        max_attempts: None,
        idempotency_key: None,
        ordering_key: None,
        trace: None,
    }
}

/// The same with an ordering key.
pub(crate) fn keyed(to: &str, content_type: &str, key: &str) -> NewJob {
    NewJob { ordering_key: Some(Key::parse("ordering_key", key).expect("a key")), ..job(to, content_type) }
}

/// Stores one job; its id and its queue's.
pub(crate) async fn put(store: &Store, job: NewJob) -> (JobId, QueueId) {
    let stored = store.enqueue(&calm("producer"), vec![job]).await.expect("stored");
    (stored[0].row.job, stored[0].queue)
}

pub(crate) fn slots(count: usize, duration: Duration) -> Vec<Slot> {
    let stream = StreamId { replica: ReplicaId(1), number: StreamNumber(1) };
    (0..count).map(|_| Slot { lease: LeaseId(rand::random()), stream, duration }).collect()
}

/// A claim from the beginning.
pub(crate) fn claim_of(queue: QueueId, slots: Vec<Slot>) -> Claim {
    Claim { queue, floors: [Timestamp::BEGINNING; Priority::LEVELS], slots }
}

/// Leases up to `count` jobs for a minute.
pub(crate) async fn claim(store: &Store, queue: QueueId, count: usize) -> Vec<ClaimedJob> {
    let claim = claim_of(queue, slots(count, Duration::from_mins(1)));
    store.claim(&caller("consumer"), vec![claim]).await.expect("claimed")
}

pub(crate) fn lease(job: &ClaimedJob) -> LeaseRef {
    LeaseRef { job: job.job, lease: job.lease }
}

/// The token that a stream would have sent with the job.
pub(crate) fn token(job: &ClaimedJob) -> String {
    LeaseToken { job: job.job, lease: job.lease, replica: ReplicaId(1), stream: StreamNumber(1) }.encode()
}

/// The calls of [`submit`], each under way on a lane or waiting in the line.
pub(crate) type Asking = tokio::task::JoinHandle<Result<Vec<Stored>, Failure>>;

/// Hands an Enqueue over and lets it wait for its answer beside the test. The queue must be known already, so that the
/// request stands in the line when this returns.
pub(crate) async fn submit(store: &Store, call: Call, jobs: Vec<NewJob>) -> Asking {
    let store = store.clone();
    let mut asking = Box::pin(async move { store.enqueue(&call, jobs).await });
    assert!(futures_util::poll!(&mut asking).is_pending(), "nothing answers that fast");
    tokio::spawn(asking)
}

/// Keeps every lane that takes Enqueues busy with one, until the writes that are held go on.
pub(crate) async fn occupy_writers(store: &Store, writers: usize, to: &str) -> Vec<Asking> {
    let mut asking = Vec::new();
    for n in 0..writers {
        let blocker = format!("blocker-{n}");
        asking.push(submit(store, calm(&blocker), vec![job(to, "blocker")]).await);
        until("a lane takes the blocker", async || store.waiting() == 0).await;
    }
    asking
}
