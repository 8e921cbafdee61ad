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
use crate::lanes::stage::Stage;

#[tokio::test]
async fn a_thousand_idle_streams_on_an_embedded_database_cost_five_acts_a_second_at_most() {
    idle_streams_cost_little(&Stage::sqlite().await).await;
}

#[tokio::test]
async fn a_thousand_idle_streams_on_postgresql_cost_five_acts_a_second_at_most() {
    idle_streams_cost_little(&Stage::postgres().await).await;
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
    let mut beats = 0;
    let (mut began, mut before) = (Instant::now(), BTreeMap::new());
    while beats < 25 {
        if let Some(Ok(Frame::Heartbeat { .. })) = heard.frame().await {
            beats += 1;
            // What looks less often while nothing happens has noticed by then.
            if beats == 8 {
                (began, before) = (Instant::now(), acts());
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
}
