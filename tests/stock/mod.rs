//! Stock under random acts, many buyers, and races, on each engine.

mod acts;
mod buyers;
mod doing;
mod ends;
mod explained;
mod model;
mod restored;
mod run;
mod shop;
mod verdict;

use proptest::test_runner::{Config, TestRunner};

use self::{acts::acts, run::Run};
use crate::contract::{database::Database, mariadb, postgres, sqlite};

/// Runs of acts; each has items of its own in the one database.
fn play(runtime: &tokio::runtime::Runtime, db: &dyn Database) {
    let long = std::env::var_os("LEASEHOLD_TEST_LONG").is_some();
    let config = Config {
        cases: if long { 400 } else { 12 },
        max_shrink_iters: 100,
        failure_persistence: None,
        ..Config::default()
    };
    let mut runner = TestRunner::new(config);
    let run = std::cell::Cell::new(0);
    let played = runner.run(&acts(), |acts| {
        run.set(run.get() + 1);
        runtime.block_on(async { Run::new(db, format!("run-{}", run.get())).await.play(&acts).await });
        Ok(())
    });
    played.unwrap_or_else(|failure| panic!("{failure}"));
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

macro_rules! on {
    ($engine:ident: $test:ident) => {
        #[test]
        fn $test() {
            let runtime = runtime();
            let db = runtime.block_on($engine::open());
            play(&runtime, &db);
            runtime.block_on(db.close());
        }
    };
}

on!(postgres: random_acts_and_crashes_keep_every_promise_about_stock_on_postgres);
on!(mariadb: random_acts_and_crashes_keep_every_promise_about_stock_on_mariadb);
on!(sqlite: random_acts_and_crashes_keep_every_promise_about_stock_on_sqlite);
