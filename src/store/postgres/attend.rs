//! What replicas write about themselves.

use async_trait::async_trait;

use super::{
    session::{Args, PgSession},
    value::{get, narrow},
};
use crate::{
    model::{Caller, JobId, QueueName, ReplicaId, StreamId, time::micros},
    store::{
        engine::{Attended, Attending, DemandReport, Rates, Report, StreamReport},
        error::EngineError,
    },
};

const ATTEND: &str = include_str!("sql/attend.sql");
const LEAVE: &str = include_str!("sql/leave.sql");

#[async_trait]
impl Attending for PgSession {
    async fn attend(&mut self, caller: &Caller, report: &Report) -> Result<Attended, EngineError> {
        let row = self.row(caller, ATTEND, arguments(report)?).await?;
        Ok(Attended {
            unknown_before: get(&row, "attend", "unknown_before")?,
            to_cancel: get::<Vec<i64>>(&row, "attend", "to_cancel")?.into_iter().map(JobId).collect(),
        })
    }

    async fn leave(&mut self, caller: &Caller, replica: ReplicaId) -> Result<(), EngineError> {
        self.rows(caller, LEAVE, Args::new().with(i64::from(replica.0))).await?;
        Ok(())
    }
}

fn arguments(report: &Report) -> Result<Args, EngineError> {
    let (first, last) = StreamId::all_of(report.replica);
    let begin = Args::new()
        .with(i64::from(report.replica.0))
        .with(first.to_bits())
        .with(last.to_bits())
        .with(report.name.as_str())
        .with(report.version.as_str())
        .with(micros(report.age))
        .with(report.anew)
        .with(micros(report.absent))
        .with(report.closed.iter().map(|stream| stream.to_bits()).collect::<Vec<_>>());
    let streams = &report.streams;
    let numbers = |of: fn(&StreamReport) -> u32| -> Result<Vec<i32>, EngineError> {
        streams.iter().map(|stream| narrow(of(stream), "attend", "in_flight")).collect()
    };
    let begin = begin
        .with(streams.iter().map(|stream| stream.stream.to_bits()).collect::<Vec<_>>())
        .with(streams.iter().map(|stream| stream.consumer.as_str()).collect::<Vec<_>>())
        .with(streams.iter().map(|stream| stream.peer.as_str()).collect::<Vec<_>>())
        .with(streams.iter().map(|stream| stream.caller.as_str()).collect::<Vec<_>>())
        .with(streams.iter().map(|stream| list(&stream.queues)).collect::<Vec<_>>())
        .with(numbers(|stream| stream.max_in_flight)?)
        .with(numbers(|stream| stream.in_flight)?)
        .with(streams.iter().map(|stream| stream.oldest_lease.map(micros)).collect::<Vec<_>>())
        .with(streams.iter().map(|stream| micros(stream.age)).collect::<Vec<_>>());
    let begin = begin
        .with(report.unasked.iter().map(QueueName::as_str).collect::<Vec<_>>())
        .with(report.demand.iter().map(|demand| demand.queue.as_str()).collect::<Vec<_>>())
        .with(counts(&report.demand, |demand| demand.streams)?)
        .with(counts(&report.demand, |demand| demand.free_credit)?);
    let rates = |of: fn(&Rates) -> f64| report.rates.iter().map(|(_, rates)| of(rates)).collect::<Vec<f64>>();
    Ok(begin
        .with(report.quiet.iter().map(|queue| queue.0).collect::<Vec<_>>())
        .with(report.rates.iter().map(|(queue, _)| queue.0).collect::<Vec<_>>())
        .with(rates(|rates| rates.enqueued))
        .with(rates(|rates| rates.leased))
        .with(rates(|rates| rates.acked))
        .with(rates(|rates| rates.retried))
        .with(rates(|rates| rates.expired))
        .with(rates(|rates| rates.dead)))
}

fn counts(demand: &[DemandReport], of: fn(&DemandReport) -> u64) -> Result<Vec<i64>, EngineError> {
    demand.iter().map(|demand| narrow(of(demand), "attend", "demand")).collect()
}

/// Names with a blank before and after each, so that one is found as a whole.
fn list(queues: &[QueueName]) -> String {
    queues.iter().fold(" ".to_owned(), |list, queue| list + queue.as_str() + " ")
}
