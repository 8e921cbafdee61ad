//! The PostgreSQL engine, on a server that `./test` starts. Migrations run once, in a template; each case gets a copy.

use async_trait::async_trait;
use leasehold::{
    model::{JobId, Timestamp},
    store::{
        engine::Engine,
        postgres::{PostgresEngine, PostgresOptions},
    },
};
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Executor as _, PgConnection, Row as _,
    postgres::{PgConnectOptions, PgRow},
};
use tokio::sync::{Mutex, OnceCell};

use super::database::{Database, Hold, migrate};

/// Where nobody says anything.
const SCHEMA: &str = "leasehold";

const URL: &str = "LEASEHOLD_TEST_POSTGRES_URL";

pub(crate) struct Postgres {
    engine: PostgresEngine,
    raw: Mutex<PgConnection>,
    name: String,
    schema: &'static str,
}

pub(crate) async fn open() -> Postgres {
    static TEMPLATE: OnceCell<String> = OnceCell::const_new();
    let template = TEMPLATE.get_or_init(make_template).await;
    let name = format!("contract_{:016x}", rand::random::<u64>());
    admin(&format!("create database {name} template {template}")).await;
    on(name, SCHEMA).await
}

/// A database of its own where the broker's schema is `schema`.
pub(crate) async fn open_in(schema: &'static str) -> Postgres {
    let name = format!("contract_{:016x}", rand::random::<u64>());
    admin(&format!("create database {name}")).await;
    migrate(&engine(&name, schema)).await;
    on(name, schema).await
}

async fn on(name: String, schema: &'static str) -> Postgres {
    let raw = session(&name, schema).connect().await.expect("a connection past the engine");
    Postgres { engine: engine(&name, schema), raw: Mutex::new(raw), name, schema }
}

/// The URL of the server, whose user may create databases. A missing one is no reason to skip: it would be no test.
fn server() -> PgConnectOptions {
    let url = std::env::var(URL)
        .unwrap_or_else(|_| panic!("{URL} is not set: run ./test, which starts a PostgreSQL server for the tests"));
    url.parse::<PgConnectOptions>().expect("a URL").disable_statement_logging()
}

fn session(database: &str, schema: &str) -> PgConnectOptions {
    server().database(database).options([("search_path", schema)])
}

fn engine(database: &str, schema: &str) -> PostgresEngine {
    PostgresEngine::new(PostgresOptions {
        schema: schema.to_owned(),
        application_name: "contract".into(),
        allow_lossy: true,
        ..PostgresOptions::new(server().database(database).to_url_lossy().to_string().into())
    })
    .expect("options")
}

async fn admin(sql: &str) {
    let mut connection = server().connect().await.expect("the server's admin");
    connection.execute(sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))).await.expect("an admin's statement");
}

/// Makes the template of this run and sweeps what crashed runs left behind: databases that nobody is connected to.
async fn make_template() -> String {
    let mut connection = server().connect().await.expect("the server's admin");
    let leftovers = "select datname from pg_database d where datname ~ '^contract_([0-9a-f]{16}|template_[0-9]+)$' \
                     and not exists (select 1 from pg_stat_activity a where a.datname = d.datname) \
                     and (pg_stat_file('base/' || d.oid || '/PG_VERSION')).modification < now() - interval '1 hour'";
    for row in connection.fetch_all(leftovers).await.expect("names") {
        admin(&format!("drop database if exists {}", row.get::<String, _>(0))).await;
    }
    let name = format!("contract_template_{}", std::process::id());
    admin(&format!("drop database if exists {name}")).await;
    admin(&format!("create database {name}")).await;
    migrate(&engine(&name, SCHEMA)).await;
    name
}

impl Postgres {
    pub(crate) async fn close(self) {
        drop(self.raw);
        drop(self.engine);
        admin(&format!("drop database {} with (force)", self.name)).await;
    }

    /// How to connect past the engine.
    pub(crate) fn options(&self) -> PgConnectOptions {
        session(&self.name, self.schema)
    }

    async fn hold_in(&self, table: &str, job: JobId) -> Hold {
        let mut service = session(&self.name, self.schema).connect().await.expect("a service's connection");
        service.execute("begin").await.expect("a transaction");
        let lock = format!("select id from {table} where id = {job} for update");
        let locked = service.execute(AssertSqlSafe(lock)).await;
        assert_eq!(locked.expect("a lock").rows_affected(), 1);
        Box::new(service)
    }

    async fn row(&self, sql: &str) -> PgRow {
        self.raw.lock().await.fetch_one(AssertSqlSafe(sql.to_owned())).await.expect("an answer")
    }
}

#[async_trait]
impl Database for Postgres {
    fn engine(&self) -> &dyn Engine {
        &self.engine
    }

    async fn execute(&self, sql: &str) {
        self.raw.lock().await.execute(AssertSqlSafe(sql.to_owned())).await.expect("the case's own SQL");
    }

    async fn number(&self, sql: &str) -> i64 {
        // Whatever its width: sums are numeric, attempts are int.
        self.row(&format!("select ({sql})::bigint")).await.get(0)
    }

    async fn text(&self, sql: &str) -> Option<String> {
        self.row(sql).await.get(0)
    }

    fn instant(&self, at: Timestamp) -> String {
        format!("(timestamptz 'epoch' + interval '1 microsecond' * {}::bigint)", at.0)
    }

    async fn start_ids_at(&self, id: i64) {
        self.execute(&format!("alter table job alter column id restart with {id}")).await;
    }

    async fn refuse_payload(&self, payload: &'static str) {
        self.execute(&format!("alter table job add constraint team_rule check (payload <> '{payload}'::bytea)")).await;
    }

    async fn hold(&self, job: JobId) -> Hold {
        self.hold_in("job", job).await
    }

    async fn hold_dead(&self, job: JobId) -> Hold {
        self.hold_in("dead_job", job).await
    }

    async fn release(&self, hold: Hold) {
        let mut service = hold.downcast::<PgConnection>().expect("what hold made");
        service.execute("rollback").await.expect("the end of the service's transaction");
    }
}
