//! What streams cost that have nothing to do.

use std::time::{Duration, Instant};

use leasehold::dispatch::{DispatchOptions, Frame};

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
            streams.push(broker.open(spec(&[name], 2)));
        }
    }
    let mut heard = broker.open(spec(&["q1"], 1));
    let acts = || broker.store.holds().iter().map(|(_, holds)| holds.count).sum::<u64>();
    let mut beats = 0;
    let (mut began, mut before) = (Instant::now(), 0);
    while beats < 8 {
        if let Some(Ok(Frame::Heartbeat { .. })) = heard.frame().await {
            beats += 1;
            if beats == 3 {
                (began, before) = (Instant::now(), acts());
            }
        }
    }
    let sent = u32::try_from(acts() - before).expect("few");
    let rate = f64::from(sent) / began.elapsed().as_secs_f64();
    println!("{rate:.2} acts a second, idle");
    assert!(rate <= 5.0, "{rate:.1} acts a second");
}
