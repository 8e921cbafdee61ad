//! The MySQL engine, on a MariaDB server that `./test` starts.
//!
//! Cases are written for one table of jobs. Here it is a view over the four that hold them, and a change to one of its
//! columns goes to each table that has it.

use async_trait::async_trait;
use leasehold::{
    model::{JobId, Timestamp},
    store::{
        engine::Engine,
        mysql::{MysqlEngine, MysqlOptions},
    },
};
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Executor as _, MySqlConnection, Row as _,
    mysql::{MySqlConnectOptions, MySqlRow},
};
use tokio::sync::{Mutex, OnceCell};

use super::database::{Database, Hold, migrate};

const URL: &str = "LEASEHOLD_TEST_MARIADB_URL";

/// What the cases see of the tables.
const VIEWS: [&str; 12] = [
    "create view job as
     select j.id, j.queue_id, j.priority, j.available_at, j.ready_at,
         coalesce(j.position, j.id) as position, j.ordering_key, r.id is null and l.job_id is null as blocked,
         coalesce(l.attempt, r.attempt, b.attempt, 0) as attempt, j.max_attempts,
         coalesce(l.lease_number, r.lease_number, b.lease_number, 0) as lease_number, l.token as lease_id, l.lease_until,
         j.cancel_requested, j.enqueued_at, j.idempotency_key, j.caller,
         j.content_type, j.headers, j.traceparent, j.tracestate,
         j.last_error, j.payload
     from leasehold_job j
     left join leasehold_lease l on l.job_id = j.id
     left join leasehold_ready r on r.queue_id = j.queue_id and r.tier = 9 - j.priority and r.ready_at = j.ready_at
         and r.id = j.id
     left join leasehold_blocked b on b.queue_id = j.queue_id and b.ordering_key = j.ordering_key
         and b.position = coalesce(j.position, j.id)",
    "create view dead_job as select * from leasehold_dead_job",
    "create view acked_job as select * from leasehold_acked_job",
    "create view cancellation as select * from leasehold_cancellation",
    "create view queue as select * from leasehold_queue",
    "create view stock as select * from leasehold_stock",
    "create view reservation_line as select * from leasehold_reservation_line",
    "create view replica as select * from leasehold_replica",
    "create view replica_stream as select * from leasehold_replica_stream",
    "create view replica_demand as select * from leasehold_replica_demand",
    "create view replica_rate as select * from leasehold_replica_rate",
    "create view idempotency_key as
     select queue_id, name as `key`, job_id, content, hits, expires_at from leasehold_idempotency_key",
];

/// The tables that hold jobs.
const HOLDERS: [&str; 4] = ["job", "ready", "blocked", "lease"];

/// Which tables have a column of a job, and by which name they know the job.
const PLACES: [(&str, &[(&str, &str)]); 8] = [
    ("lease_until", &[("lease", "job_id")]),
    ("ready_at", &[("ready", "id"), ("job", "id")]),
    ("attempt", &[("ready", "id"), ("blocked", "id"), ("lease", "job_id")]),
    ("lease_number", &[("ready", "id"), ("blocked", "id"), ("lease", "job_id")]),
    ("max_attempts", &[("job", "id")]),
    ("cancel_requested", &[("job", "id")]),
    ("enqueued_at", &[("job", "id")]),
    ("caller", &[("job", "id")]),
];

pub(crate) struct MariaDb {
    engine: MysqlEngine,
    raw: Mutex<MySqlConnection>,
    name: String,
}

pub(crate) async fn open() -> MariaDb {
    static SWEPT: OnceCell<()> = OnceCell::const_new();
    SWEPT.get_or_init(sweep).await;
    let name = format!("contract_{:016x}", rand::random::<u64>());
    admin(&format!("create database {name}")).await;
    let engine = engine(&name);
    migrate(&engine).await;
    let mut raw = session(&name).await;
    for view in VIEWS {
        raw.execute(view).await.expect("a view");
    }
    MariaDb { engine, raw: Mutex::new(raw), name }
}

/// The URL of the server, whose user may create databases. A missing one is no reason to skip: it would be no test.
pub(crate) fn server() -> MySqlConnectOptions {
    let url = std::env::var(URL)
        .unwrap_or_else(|_| panic!("{URL} is not set: run ./test, which starts a MariaDB server for the tests"));
    url.parse::<MySqlConnectOptions>().expect("a URL").disable_statement_logging()
}

/// How a broker reaches a database of that server.
pub(crate) fn options(database: &str) -> MysqlOptions {
    let url = server().database(database).to_url_lossy().to_string();
    MysqlOptions { allow_lossy: true, ..MysqlOptions::new(url.into()) }
}

pub(crate) fn engine(database: &str) -> MysqlEngine {
    MysqlEngine::new(options(database)).expect("options")
}

/// A session past the engine, as a service at READ COMMITTED has it.
pub(crate) async fn session(database: &str) -> MySqlConnection {
    session_of(server().database(database)).await
}

pub(crate) async fn session_of(options: MySqlConnectOptions) -> MySqlConnection {
    try_session_of(&options).await.expect("a connection past the engine")
}

pub(crate) async fn try_session_of(options: &MySqlConnectOptions) -> sqlx::Result<MySqlConnection> {
    let mut session = options.connect().await?;
    for setting in ["set session transaction isolation level read committed", "set completion_type = 0, autocommit = 1"]
    {
        session.execute(setting).await?;
    }
    Ok(session)
}

/// What the server says it is.
pub(crate) async fn version() -> String {
    session("information_schema").await.fetch_one("select version()").await.expect("its version").get(0)
}

pub(crate) async fn admin(sql: &str) {
    let mut connection = session("information_schema").await;
    connection.execute(sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))).await.expect("an admin's statement");
}

/// Drops what crashed runs left behind: databases that nobody is connected to and whose tables are old.
async fn sweep() {
    let mut connection = session("information_schema").await;
    let leftovers = "select schema_name from schemata s where schema_name regexp '^(contract|lanes)_[0-9a-f]{16}$' \
                     and not exists (select 1 from processlist p where p.db = s.schema_name) \
                     and (select min(create_time) from tables t where t.table_schema = s.schema_name) \
                         < now() - interval 1 hour";
    for row in connection.fetch_all(leftovers).await.expect("names") {
        admin(&format!("drop database if exists {}", row.get::<String, _>(0))).await;
    }
}

impl MariaDb {
    pub(crate) async fn close(self) {
        drop(self.raw);
        drop(self.engine);
        admin(&format!("drop database {}", self.name)).await;
    }

    /// The database's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    async fn row(&self, sql: &str) -> MySqlRow {
        let sql = in_dialect(sql);
        self.raw.lock().await.fetch_one(sqlx::raw_sql(AssertSqlSafe(sql))).await.expect("an answer")
    }

    /// The first statement has to find a row.
    async fn hold_what(&self, rows: impl IntoIterator<Item = String>) -> Hold {
        let mut service = session(&self.name).await;
        service.execute("begin").await.expect("a transaction");
        for (index, locked) in rows.into_iter().enumerate() {
            let found = service.fetch_all(AssertSqlSafe(locked)).await.expect("a lock").len();
            assert!(index > 0 || found == 1, "a job to hold");
        }
        Box::new(service)
    }
}

/// A word that this server keeps for itself.
fn in_dialect(sql: &str) -> String {
    sql.replace(" key ", " `key` ")
}

/// The statements that change what the cases see as jobs.
fn statements(sql: &str) -> Vec<String> {
    if let Some(rest) = sql.strip_prefix("update job set ") {
        let (changes, chosen) = rest.split_once(" where ").unwrap_or((rest, "1 = 1"));
        if changes.starts_with("lease_id = null, ") {
            return end_leases(chosen).into();
        }
        return changes.split(", ").flat_map(|change| update(change, chosen)).collect();
    }
    match sql {
        "delete from job" => HOLDERS.map(|t| format!("delete from leasehold_{t}")).into(),
        "alter table job rename to elsewhere" => {
            HOLDERS.map(|t| format!("rename table leasehold_{t} to else_{t}")).into()
        }
        "alter table elsewhere rename to job" => {
            HOLDERS.map(|t| format!("rename table else_{t} to leasehold_{t}")).into()
        }
        _ => vec![in_dialect(sql)],
    }
}

/// Jobs that are ready again, as if they had never been claimed.
fn end_leases(chosen: &str) -> [String; 2] {
    let jobs = format!("in (select id from (select id from job where {chosen}) as chosen)");
    [
        format!(
            "insert into leasehold_ready (queue_id, tier, ready_at, id, attempt, lease_number)
             select j.queue_id, 9 - j.priority, j.ready_at, j.id, 0, l.lease_number
             from leasehold_job j join leasehold_lease l on l.job_id = j.id where j.id {jobs}"
        ),
        format!("delete from leasehold_lease where job_id {jobs}"),
    ]
}

fn update(change: &str, chosen: &str) -> Vec<String> {
    let column = change.split(' ').next().unwrap_or_default();
    let (_, tables) = PLACES.iter().find(|(name, _)| *name == column).expect("a column that cases may change");
    let statement = |(table, id): &(&str, &str)| {
        format!(
            "update leasehold_{table} set {change} \
             where {id} in (select id from (select id from job where {chosen}) as chosen)"
        )
    };
    tables.iter().map(statement).collect()
}

#[async_trait]
impl Database for MariaDb {
    fn engine(&self) -> &dyn Engine {
        &self.engine
    }

    async fn execute(&self, sql: &str) {
        let mut raw = self.raw.lock().await;
        for statement in statements(sql) {
            raw.execute(sqlx::raw_sql(AssertSqlSafe(statement))).await.expect("the case's own SQL");
        }
    }

    async fn number(&self, sql: &str) -> i64 {
        // Whatever its type: sums are decimals.
        self.row(&format!("select cast(({sql}) as signed)")).await.get(0)
    }

    async fn text(&self, sql: &str) -> Option<String> {
        self.row(sql).await.get(0)
    }

    fn instant(&self, at: Timestamp) -> String {
        at.0.to_string()
    }

    async fn start_ids_at(&self, id: i64) {
        self.execute(&format!("alter table leasehold_job auto_increment = {id}")).await;
    }

    async fn refuse_payload(&self, payload: &'static str) {
        // The first servers of MySQL 8 parse a check and do not make it.
        self.execute(&format!(
            "create trigger team_rule before insert on leasehold_job for each row
             if new.payload = '{payload}' then signal sqlstate '45000' set message_text = '{payload}'; end if"
        ))
        .await;
    }

    /// With its place among the ready ones, where it has one: a claim knows no other.
    async fn hold(&self, job: JobId) -> Hold {
        let row = format!("select id from leasehold_job where id = {job} for update");
        let place = format!(
            "select r.id from leasehold_job j straight_join leasehold_ready r
             on r.queue_id = j.queue_id and r.tier = 9 - j.priority and r.id = j.id where j.id = {job} for update"
        );
        self.hold_what([row, place]).await
    }

    async fn hold_dead(&self, job: JobId) -> Hold {
        self.hold_what([format!("select id from leasehold_dead_job where id = {job} for update")]).await
    }

    async fn release(&self, hold: Hold) {
        let mut service = hold.downcast::<MySqlConnection>().expect("what hold made");
        service.execute("rollback").await.expect("the end of the service's transaction");
    }
}
