//! What this process writes about itself.

use async_trait::async_trait;

use super::session::{SqliteSession, column, list};
use crate::{
    model::{Caller, JobId, QueueName, ReplicaId, StreamId, Timestamp, time::micros},
    store::{
        engine::{Attended, Attending, Rates, Report},
        error::EngineError,
    },
};

#[async_trait]
impl Attending for SqliteSession {
    async fn attend(&mut self, caller: &Caller, report: &Report) -> Result<Attended, EngineError> {
        let now = self.begin(caller).await?;
        let attended = self.write_down(caller, report, now).await;
        self.end(caller, now, attended).await
    }

    async fn leave(&mut self, caller: &Caller, replica: ReplicaId) -> Result<(), EngineError> {
        let now = self.begin(caller).await?;
        let left = self.forget_replica(caller, replica).await;
        self.end(caller, now, left).await
    }
}

impl SqliteSession {
    async fn write_down(&mut self, caller: &Caller, report: &Report, now: Timestamp) -> Result<Attended, EngineError> {
        let replica = i64::from(report.replica.0);
        let (first, last) = StreamId::all_of(report.replica);
        let known = self.statement(caller, include_str!("sql/known_replica.sql")).bind(replica);
        let unknown_before = self.read(known).await?.is_empty();
        let attend = self
            .statement(caller, include_str!("sql/attend_replica.sql"))
            .bind(replica)
            .bind(report.name.clone())
            .bind(report.version.clone())
            .bind(now.minus(report.age).0)
            .bind(now.0);
        self.change(attend).await?;
        if report.anew {
            self.forget_all(caller, report.replica).await?;
        }
        self.write_streams(caller, report, now).await?;
        self.write_demand(caller, report).await?;
        self.write_rates(caller, report).await?;
        let absent = self.statement(caller, include_str!("sql/absent_replicas.sql"));
        for row in self.read(absent.bind(replica).bind(now.minus(report.absent).0)).await? {
            let gone = u32::try_from(column::<i64>(&row, "id")?);
            let gone = gone.map_err(|_| EngineError::Bug("a replica of another kind".to_owned()))?;
            self.forget_replica(caller, ReplicaId(gone)).await?;
        }
        let take = self.statement(caller, include_str!("sql/take_cancellations.sql"));
        let taken = self.change_returning(take.bind(first.to_bits()).bind(last.to_bits())).await?;
        let to_cancel = taken.iter().map(|row| column(row, "job_id").map(JobId)).collect::<Result<_, _>>()?;
        Ok(Attended { unknown_before, to_cancel })
    }

    async fn write_streams(&mut self, caller: &Caller, report: &Report, now: Timestamp) -> Result<(), EngineError> {
        if !report.closed.is_empty() {
            let closed: Vec<i64> = report.closed.iter().map(|stream| stream.to_bits()).collect();
            let delete = self.statement(caller, include_str!("sql/forget_streams.sql")).bind(list(&closed)?);
            self.change(delete).await?;
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
                    stream.oldest_lease.map(|age| now.0.saturating_sub(micros(age))),
                    now.0.saturating_sub(micros(stream.age)),
                )
            })
            .collect();
        let insert = self.statement(caller, include_str!("sql/attend_streams.sql"));
        self.change(insert.bind(list(&rows)?).bind(i64::from(report.replica.0))).await?;
        Ok(())
    }

    async fn write_demand(&mut self, caller: &Caller, report: &Report) -> Result<(), EngineError> {
        let replica = i64::from(report.replica.0);
        if !report.unasked.is_empty() {
            let unasked: Vec<&str> = report.unasked.iter().map(QueueName::as_str).collect();
            let delete = self.statement(caller, include_str!("sql/forget_demand.sql"));
            self.change(delete.bind(replica).bind(list(&unasked)?)).await?;
        }
        if !report.demand.is_empty() {
            let said = report.demand.iter().map(|said| (said.queue.as_str(), said.streams, said.free_credit));
            let insert = self.statement(caller, include_str!("sql/attend_demand.sql"));
            self.change(insert.bind(list(&said.collect::<Vec<_>>())?).bind(replica)).await?;
        }
        Ok(())
    }

    async fn write_rates(&mut self, caller: &Caller, report: &Report) -> Result<(), EngineError> {
        let replica = i64::from(report.replica.0);
        if !report.quiet.is_empty() {
            let quiet: Vec<i32> = report.quiet.iter().map(|queue| queue.0).collect();
            let delete = self.statement(caller, include_str!("sql/forget_rates.sql"));
            self.change(delete.bind(replica).bind(list(&quiet)?)).await?;
        }
        if !report.rates.is_empty() {
            let said = report.rates.iter().map(|(queue, rates)| {
                let Rates { enqueued, leased, acked, retried, expired, dead } = *rates;
                (queue.0, enqueued, leased, acked, retried, expired, dead)
            });
            let insert = self.statement(caller, include_str!("sql/attend_rates.sql"));
            self.change(insert.bind(list(&said.collect::<Vec<_>>())?).bind(replica)).await?;
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
        self.change(rates.bind(i64::from(replica.0))).await?;
        Ok(())
    }

    async fn forget_replica(&mut self, caller: &Caller, replica: ReplicaId) -> Result<(), EngineError> {
        self.forget_all(caller, replica).await?;
        let (first, last) = StreamId::all_of(replica);
        let cancellations = self.statement(caller, include_str!("sql/forget_cancellations.sql"));
        self.change(cancellations.bind(first.to_bits()).bind(last.to_bits())).await?;
        let delete = self.statement(caller, include_str!("sql/forget_replica.sql"));
        self.change(delete.bind(i64::from(replica.0))).await?;
        Ok(())
    }
}

/// Names with a blank before and after each, so that one is found as a whole.
fn names(queues: &[QueueName]) -> String {
    queues.iter().fold(" ".to_owned(), |list, queue| list + queue.as_str() + " ")
}
