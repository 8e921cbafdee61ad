//! What each replica writes about itself.

use async_trait::async_trait;

use super::{
    session::{MysqlSession, is_one},
    value::{Maybe, column, list, narrow},
};
use crate::{
    model::{Caller, JobId, QueueName, ReplicaId, StreamId, Timestamp, time::micros},
    store::{
        engine::{Attended, Attending, Rates, Report},
        error::EngineError,
        hex::hex,
    },
};

#[async_trait]
impl Attending for MysqlSession {
    async fn attend(&mut self, caller: &Caller, report: &Report) -> Result<Attended, EngineError> {
        let unknown_before = self.note_replica(caller, report).await?;
        if says_nothing_new(report) && !self.anything_to_attend(caller, report).await? {
            return Ok(Attended { unknown_before, to_cancel: Vec::new() });
        }
        let now = self.begin(caller).await?;
        let to_cancel = self.write_down(caller, report, now).await;
        let to_cancel = self.end(caller, to_cancel).await?;
        Ok(Attended { unknown_before, to_cancel })
    }

    async fn leave(&mut self, caller: &Caller, replica: ReplicaId) -> Result<(), EngineError> {
        self.begin(caller).await?;
        let left = self.forget_replica(caller, replica).await;
        self.end(caller, left).await
    }
}

impl MysqlSession {
    /// A statement of its own, since mostly nothing else has to be written. Whether the replica was unknown.
    async fn note_replica(&mut self, caller: &Caller, report: &Report) -> Result<bool, EngineError> {
        let attend = self
            .statement(caller, include_str!("sql/attend_replica.sql"))
            .bind(i64::from(report.replica.0))
            .bind(report.name.clone())
            .bind(report.version.clone())
            .bind(micros(report.age));
        // One row where it is new, two where it was there, as the server counts.
        Ok(self.change_alone(attend, caller).await? == 1)
    }

    async fn anything_to_attend(&mut self, caller: &Caller, report: &Report) -> Result<bool, EngineError> {
        let (first, last) = StreamId::all_of(report.replica);
        let look = self
            .statement(caller, include_str!("sql/anything_to_attend.sql"))
            .bind(i64::from(report.replica.0))
            .bind(micros(report.absent))
            .bind(first.to_bits())
            .bind(last.to_bits());
        is_one(self.read_alone(look, caller).await?, "anything")
    }

    async fn write_down(
        &mut self,
        caller: &Caller,
        report: &Report,
        now: Timestamp,
    ) -> Result<Vec<JobId>, EngineError> {
        let replica = i64::from(report.replica.0);
        let (first, last) = StreamId::all_of(report.replica);
        if report.anew {
            self.forget_all(caller, report.replica).await?;
        }
        self.write_streams(caller, report, now).await?;
        self.write_demand(caller, report).await?;
        self.write_rates(caller, report).await?;
        let absent = self.statement(caller, include_str!("sql/absent_replicas.sql"));
        for row in self.read(absent.bind(replica).bind(now.minus(report.absent).0)).await? {
            self.forget_replica(caller, ReplicaId(narrow(&row, "id")?)).await?;
        }
        let read = self.statement(caller, include_str!("sql/read_cancellations.sql"));
        let mut told: Vec<(i64, i64)> = Vec::new();
        for row in self.read(read.bind(first.to_bits()).bind(last.to_bits())).await? {
            told.push((column(&row, "lease_stream")?, column(&row, "job_id")?));
        }
        if !told.is_empty() {
            let take = self.statement(caller, include_str!("sql/take_cancellations.sql")).bind(list(&told)?);
            self.change(take).await?;
        }
        Ok(told.into_iter().map(|(_, job)| JobId(job)).collect())
    }

    async fn write_streams(&mut self, caller: &Caller, report: &Report, now: Timestamp) -> Result<(), EngineError> {
        if !report.closed.is_empty() {
            let closed: Vec<i64> = report.closed.iter().map(|stream| stream.to_bits()).collect();
            let forget = self.statement(caller, include_str!("sql/forget_streams.sql")).bind(list(&closed)?);
            self.change(forget).await?;
        }
        if report.streams.is_empty() {
            return Ok(());
        }
        let rows: Vec<_> = report
            .streams
            .iter()
            .map(|stream| {
                (
                    stream.stream.to_bits(),
                    stream.consumer.as_str(),
                    stream.peer.as_str(),
                    stream.caller.as_str(),
                    names(&stream.queues),
                    stream.max_in_flight,
                    stream.in_flight,
                    Maybe(stream.oldest_lease.map(|age| now.0.saturating_sub(micros(age)))),
                    now.0.saturating_sub(micros(stream.age)),
                )
            })
            .collect();
        let insert = self.statement(caller, include_str!("sql/attend_streams.sql"));
        self.change(insert.bind(i64::from(report.replica.0)).bind(list(&rows)?)).await.map(drop)
    }

    async fn write_demand(&mut self, caller: &Caller, report: &Report) -> Result<(), EngineError> {
        let replica = i64::from(report.replica.0);
        let name = |queue: &QueueName| hex(queue.as_str().as_bytes());
        if !report.unasked.is_empty() {
            let unasked: Vec<String> = report.unasked.iter().map(name).collect();
            let forget = self.statement(caller, include_str!("sql/forget_demand.sql"));
            self.change(forget.bind(list(&unasked)?).bind(replica)).await?;
        }
        if !report.demand.is_empty() {
            let said = report.demand.iter().map(|said| (name(&said.queue), said.streams, said.free_credit));
            let insert = self.statement(caller, include_str!("sql/attend_demand.sql"));
            self.change(insert.bind(replica).bind(list(&said.collect::<Vec<_>>())?)).await?;
        }
        Ok(())
    }

    async fn write_rates(&mut self, caller: &Caller, report: &Report) -> Result<(), EngineError> {
        let replica = i64::from(report.replica.0);
        if !report.quiet.is_empty() {
            let quiet: Vec<i32> = report.quiet.iter().map(|queue| queue.0).collect();
            let forget = self.statement(caller, include_str!("sql/forget_rates.sql"));
            self.change(forget.bind(list(&quiet)?).bind(replica)).await?;
        }
        if !report.rates.is_empty() {
            let said = report.rates.iter().map(|(queue, rates)| {
                let Rates { enqueued, leased, acked, retried, expired, dead } = *rates;
                (queue.0, enqueued, leased, acked, retried, expired, dead)
            });
            let insert = self.statement(caller, include_str!("sql/attend_rates.sql"));
            self.change(insert.bind(replica).bind(list(&said.collect::<Vec<_>>())?)).await?;
        }
        Ok(())
    }

    async fn forget_all(&mut self, caller: &Caller, replica: ReplicaId) -> Result<(), EngineError> {
        let (first, last) = StreamId::all_of(replica);
        let streams = self.statement(caller, include_str!("sql/forget_all_streams.sql"));
        self.change(streams.bind(first.to_bits()).bind(last.to_bits())).await?;
        let demand = self.statement(caller, include_str!("sql/forget_all_demand.sql"));
        self.change(demand.bind(i64::from(replica.0))).await?;
        let rates = self.statement(caller, include_str!("sql/forget_all_rates.sql"));
        self.change(rates.bind(i64::from(replica.0))).await.map(drop)
    }

    async fn forget_replica(&mut self, caller: &Caller, replica: ReplicaId) -> Result<(), EngineError> {
        self.forget_all(caller, replica).await?;
        let (first, last) = StreamId::all_of(replica);
        let cancellations = self.statement(caller, include_str!("sql/forget_cancellations.sql"));
        self.change(cancellations.bind(first.to_bits()).bind(last.to_bits())).await?;
        let forget = self.statement(caller, include_str!("sql/forget_replica.sql"));
        self.change(forget.bind(i64::from(replica.0))).await.map(drop)
    }
}

/// Nothing but that the replica is there.
fn says_nothing_new(report: &Report) -> bool {
    let Report { anew, streams, closed, demand, unasked, rates, quiet, .. } = report;
    let of_streams = streams.is_empty() && closed.is_empty();
    let of_queues = demand.is_empty() && unasked.is_empty() && rates.is_empty() && quiet.is_empty();
    !anew && of_streams && of_queues
}

/// Names with a blank before and after each, so that one is found as a whole.
fn names(queues: &[QueueName]) -> String {
    queues.iter().fold(" ".to_owned(), |list, queue| list + queue.as_str() + " ")
}
