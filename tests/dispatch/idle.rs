//! What streams cost that have nothing to do.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use leasehold::{
    dispatch::{DispatchOptions, Frame, StreamSpec},
    model::Caller,
    store::Window,
};

use super::broker::{Broker, job, spec};
use crate::lanes::{schema::Schema, stage::Stage};

#[tokio::test]
async fn a_thousand_idle_streams_on_an_embedded_database_cost_five_acts_a_second_at_most() {
    idle_streams_cost_little(&Stage::sqlite().await).await;
}

#[tokio::test]
async fn a_thousand_idle_streams_on_postgresql_cost_five_acts_a_second_at_most() {
    idle_streams_cost_little(&Stage::postgres().await).await;
}

#[tokio::test]
async fn a_thousand_idle_streams_on_mariadb_cost_five_statements_a_second_at_most() {
    idle_streams_cost_little(&Stage::mariadb().await).await;
}

async fn idle_streams_cost_little(stage: &Stage) {
    let fast = DispatchOptions { heartbeat_interval: Duration::from_secs(1), ..DispatchOptions::default() };
    let broker = Broker::on(stage, fast).await;
    let names: Vec<String> = (0..100).map(|number| format!("q{number}")).collect();
    broker.enqueue(names.iter().step_by(2).map(|name| job(name, "x")).collect()).await;
    let mut streams = Vec::new();
    for name in &names {
        for _ in 0..10 {
            // Leases that outlast the test: what expires is work.
            let lease_duration = Some(Duration::from_mins(10));
            streams.push(broker.open(StreamSpec { lease_duration, ..spec(&[name], 2) }));
        }
    }
    let mut heard = broker.open(spec(&["q1"], 1));
    // Lanes that connect late are no acts.
    let acts = || -> BTreeMap<Caller, u64> {
        let report = broker.store.lane_report(Window::SinceStart, true);
        let of = |caller: leasehold::store::CallerUse| {
            let acts = caller.statements.iter().filter(|is| is.statement != "connect");
            (caller.caller, acts.map(|is| is.lanes.holds).sum())
        };
        report.callers.into_iter().map(of).collect()
    };
    // For a minute the rates of what was enqueued change, and are written down.
    let quiet_after = if stage.schema().is_some() { 75 } else { 8 };
    let mut beats = 0;
    let (mut began, mut before, mut logged) = (Instant::now(), BTreeMap::new(), None);
    while beats < quiet_after + 17 {
        if let Some(Ok(Frame::Heartbeat { .. })) = heard.frame().await {
            beats += 1;
            // What looks less often while nothing happens has noticed by then.
            if beats == quiet_after {
                (began, before) = (Instant::now(), acts());
                logged = stage.schema().map(|_| Schema::logged());
            }
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    let since = |(caller, count): (Caller, u64)| {
        let sent = count - before.get(&caller).copied().unwrap_or_default();
        (caller, f64::from(u32::try_from(sent).expect("few")) / seconds)
    };
    let rates: Vec<(Caller, f64)> = acts().into_iter().map(since).filter(|(_, rate)| *rate > 0.0).collect();
    let rate: f64 = rates.iter().map(|(_, rate)| rate).sum();
    assert!(rate <= 5.0, "{rate:.1} acts a second: {rates:.2?}");
    // There an act is often more than one statement.
    if let (Some(schema), Some(logged)) = (stage.schema(), logged) {
        let sent =
            f64::from(u32::try_from(schema.sent_since(logged).await).expect("few")) / began.elapsed().as_secs_f64();
        assert!(sent <= 5.0, "{sent:.1} statements a second, in {rate:.1} acts: {rates:.2?}");
    }
}
