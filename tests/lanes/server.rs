//! A database of its own for a test, on the PostgreSQL server that `./test` started.

use std::{env, sync::OnceLock, time::Duration};

use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, postgres::PgConnectOptions};

/// What the broker's sessions call themselves in these tests.
pub(crate) const APPLICATION: &str = "leasehold/under-test";

/// A fresh database; it goes when this is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    admin: String,
    pub(crate) database: String,
}

impl Server {
    /// Creates the database.
    pub(crate) async fn fresh() -> Self {
        let admin = admin_url();
        let database = format!("lanes_{:016x}", rand::random::<u64>());
        let server = Self { admin, database };
        server.administer(format!("create database {}", server.database)).await;
        server
    }

    /// How a broker reaches it, at `address` where that is a proxy's.
    pub(crate) fn url(&self, address: Option<std::net::SocketAddr>) -> String {
        let (before, after) = self.admin.rsplit_once('@').expect("the URL names a role");
        let host = after.split(['/', '?']).next().unwrap_or(after);
        let host = address.map_or_else(|| host.to_owned(), |address| address.to_string());
        format!("{before}@{host}/{}", self.database)
    }

    /// `host:port` of the server.
    pub(crate) fn address(&self) -> String {
        let (_, after) = self.admin.rsplit_once('@').expect("the URL names a role");
        after.split(['/', '?']).next().unwrap_or(after).to_owned()
    }

    /// A session of the test's own, as a service would have one.
    pub(crate) async fn connect(&self) -> PgConnection {
        let options: PgConnectOptions = self.url(None).parse().expect("a PostgreSQL URL");
        let options = options.application_name("service").options([("search_path", "leasehold, public")]);
        PgConnection::connect_with(&options).await.expect("the test's own session")
    }

    async fn administer(&self, statement: String) {
        let mut admin = PgConnection::connect(&self.admin).await.expect("LEASEHOLD_TEST_POSTGRES_URL answers");
        admin.execute(sqlx::raw_sql(AssertSqlSafe(statement))).await.expect("the role may create databases");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let (admin, statement) = (self.admin.clone(), format!("drop database {} with (force)", self.database));
        // A thread of its own: no runtime may be entered again from within one.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let dropped = tokio::time::timeout(Duration::from_secs(20), async {
                    let mut admin = PgConnection::connect(&admin).await?;
                    admin.execute(sqlx::raw_sql(AssertSqlSafe(statement))).await
                });
                matches!(dropped.await, Ok(Ok(_)))
            })
        });
        let dropped = dropping.join().unwrap_or(false);
        assert!(dropped || std::thread::panicking(), "the test's database could not be dropped");
    }
}

fn admin_url() -> String {
    static URL: OnceLock<Option<String>> = OnceLock::new();
    URL.get_or_init(|| env::var("LEASEHOLD_TEST_POSTGRES_URL").ok())
        .clone()
        .expect("LEASEHOLD_TEST_POSTGRES_URL names no server: run ./test rust, which starts one")
}
