//! Maintenance, as the broker's own loops do it, and sessions that are cut.

use std::time::Duration;

use leasehold::model::Timestamp;
use rand::{Rng, rngs::StdRng};

use super::scene::{Scene, linger};
use crate::lanes::{schema::Schema, server::APPLICATION, stage::Sql};

/// Reaps until the run is closed, from its floor on, sometimes from the beginning.
pub(super) async fn reap(scene: Scene, mut rng: StdRng) {
    let mut floor = Timestamp::BEGINNING;
    while scene.is_open() {
        match scene.store(&mut rng).reap(floor, 0, 100).await {
            Ok(reaped) => {
                scene.history.reaped(reaped.leases.len());
                floor = if rng.random_bool(0.02) { Timestamp::BEGINNING } else { reaped.floor };
            }
            Err(failure) => {
                scene.is_not_applied(&failure);
            }
        }
        linger(&mut rng, Duration::from_millis(40)).await;
    }
}

/// Adopts arrivals until the run is closed, in the same way.
pub(super) async fn adopt(scene: Scene, mut rng: StdRng) {
    let mut floor = 0;
    while scene.is_open() {
        match scene.store(&mut rng).adopt_arrivals(floor, 100).await {
            Ok(adopted) => floor = if rng.random_bool(0.02) { 0 } else { adopted.floor },
            Err(failure) => {
                scene.is_not_applied(&failure);
            }
        }
        linger(&mut rng, Duration::from_millis(100)).await;
    }
}

/// Cuts a session now and then until the run calms down; says how many. Mostly the broker's, sometimes a service's.
pub(super) async fn cut_sessions(scene: Scene, mut rng: StdRng) -> i64 {
    let mut sql = scene.stage.sql().await;
    let mut cut = 0;
    while scene.is_wild() {
        linger(&mut rng, Duration::from_millis(600)).await;
        let service = rng.random_bool(0.25);
        cut += match scene.stage.schema() {
            Some(schema) => cut_on_mariadb(&mut sql, schema, service).await,
            None => cut_on_postgres(&mut sql, if service { "service" } else { APPLICATION }).await,
        };
    }
    cut
}

async fn cut_on_postgres(sql: &mut Sql, victim: &str) -> i64 {
    sql.number(&format!(
        "select count(pg_terminate_backend(pid)) from (select pid from pg_stat_activity \
         where application_name = '{victim}' and datname = current_database() and pid <> pg_backend_pid() \
         order by random() limit 1) one"
    ))
    .await
}

async fn cut_on_mariadb(sql: &mut Sql, schema: &Schema, service: bool) -> i64 {
    let sessions = schema.sessions_of(service);
    let one = format!(
        "select cast(id as signed) from information_schema.processlist where {sessions} order by rand() limit 1"
    );
    let victims = sql.numbers(&one).await;
    for victim in &victims {
        sql.kill(*victim).await;
    }
    i64::try_from(victims.len()).expect("at most one")
}
