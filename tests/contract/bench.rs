//! A session with the small change of the cases: queues, jobs, claims of so many, leases as they come back.

use std::time::Duration;

use leasehold::{
    model::{
        JobId, Key, LeaseId, NackAction, NewJob, Priority, QueueId, QueueName, QueueSettings, ReplicaId, Start,
        StreamId, StreamNumber, Timestamp,
    },
    store::{
        engine::{
            AckedRow, CancelledJobs, Claim, ClaimedJob, EnqueuedRow, ExtendRow, ExtendedRow, Held, JobRecord, JobRow,
            LeaseRef, LockWait, NackRow, NackedRow, NewQueues, QueueRow, Reaped, RunNow, Session, Slot,
        },
        error::EngineError,
    },
};

use super::database::{Database, caller};

pub(crate) const LEASE: Duration = Duration::from_secs(60);
/// Whom the cases' claims are for.
pub(crate) const STREAM: StreamId = StreamId { replica: ReplicaId(7), number: StreamNumber(9) };

/// A session on a case's database.
pub(crate) struct Bench {
    pub(crate) session: Box<dyn Session>,
}

impl Bench {
    pub(crate) async fn on(db: &dyn Database) -> Self {
        Self { session: db.session().await }
    }

    /// The queue of that name; it comes into being.
    pub(crate) async fn queue(&mut self, name: &str) -> QueueId {
        self.queue_with(name, &QueueSettings::default()).await.id
    }

    pub(crate) async fn queue_with(&mut self, name: &str, settings: &QueueSettings) -> QueueRow {
        let new = NewQueues { settings: settings.clone(), ..NewQueues::default() };
        let rows = self.session.find_queues(&caller(), &[queue_name(name)], Some(&new)).await.expect("a queue");
        assert_eq!(rows.len(), 1);
        rows.into_iter().next().expect("one row")
    }

    pub(crate) async fn try_enqueue(&mut self, jobs: &[JobRow]) -> Result<Vec<EnqueuedRow>, EngineError> {
        self.session.enqueue(&caller(), jobs, LockWait::Full).await
    }

    pub(crate) async fn enqueue(&mut self, jobs: &[JobRow]) -> Vec<EnqueuedRow> {
        let rows = self.try_enqueue(jobs).await.expect("an enqueue");
        assert_eq!(rows.len(), jobs.len());
        rows
    }

    pub(crate) async fn enqueue_one(&mut self, job: JobRow) -> EnqueuedRow {
        self.enqueue(&[job]).await.remove(0)
    }

    pub(crate) async fn try_claim(&mut self, claim: &Claim) -> Result<Vec<ClaimedJob>, EngineError> {
        self.try_claims(std::slice::from_ref(claim)).await
    }

    pub(crate) async fn try_claims(&mut self, claims: &[Claim]) -> Result<Vec<ClaimedJob>, EngineError> {
        let mut jobs = self.session.claim(&caller(), claims).await?;
        jobs.sort_by_key(|job| (std::cmp::Reverse(job.priority), job.ready_at, job.job));
        Ok(jobs)
    }

    /// Up to `count` jobs, in the claim's order.
    pub(crate) async fn claim(&mut self, queue: QueueId, count: usize) -> Vec<ClaimedJob> {
        self.try_claim(&claim_of(queue, count)).await.expect("a claim")
    }

    pub(crate) async fn claim_one(&mut self, queue: QueueId) -> ClaimedJob {
        self.claim(queue, 1).await.pop().expect("a ready job")
    }

    pub(crate) async fn ack(&mut self, leases: &[LeaseRef]) -> Vec<AckedRow> {
        let rows = self.session.ack(&caller(), leases, LockWait::Full).await.expect("an ack");
        assert_eq!(rows.len(), leases.len());
        rows
    }

    pub(crate) async fn ack_one(&mut self, lease: LeaseRef) -> Held {
        self.ack(&[lease]).await[0].held
    }

    /// Acks, asking again for what another act holds at that moment, as the facade does: with row locks a claim may run into
    /// the job on its way. How many leases held.
    pub(crate) async fn ack_until_decided(&mut self, leases: &[LeaseRef]) -> usize {
        let (mut open, mut acked) = (leases.to_vec(), 0);
        while !open.is_empty() {
            let rows = self.ack(&open).await;
            acked += rows.iter().filter(|row| row.held == Held::Ok).count();
            open =
                open.into_iter().zip(rows).filter(|(_, row)| row.held == Held::Busy).map(|(lease, _)| lease).collect();
        }
        acked
    }

    pub(crate) async fn nack(&mut self, items: &[NackRow]) -> Vec<NackedRow> {
        let rows = self.session.nack(&caller(), items, LockWait::Full).await.expect("a nack");
        assert_eq!(rows.len(), items.len());
        rows
    }

    pub(crate) async fn nack_one(&mut self, item: NackRow) -> NackedRow {
        self.nack(&[item]).await.remove(0)
    }

    pub(crate) async fn extend(&mut self, items: &[ExtendRow]) -> Vec<ExtendedRow> {
        let rows = self.session.extend(&caller(), items).await.expect("an extend");
        assert_eq!(rows.len(), items.len());
        rows
    }

    pub(crate) async fn extend_one(&mut self, lease: LeaseRef, duration: Option<Duration>) -> ExtendedRow {
        self.extend(&[ExtendRow { lease, duration }]).await.remove(0)
    }

    pub(crate) async fn give_back(&mut self, leases: &[LeaseRef]) -> Vec<bool> {
        self.session.give_back(&caller(), leases).await.expect("a give-back")
    }

    pub(crate) async fn cancel(&mut self, jobs: &[JobId]) -> CancelledJobs {
        let answer = self.session.cancel(&caller(), jobs).await.expect("a cancel");
        assert_eq!(answer.jobs.len(), jobs.len());
        answer
    }

    pub(crate) async fn run_now(&mut self, job: JobId) -> RunNow {
        self.session.run_now(&caller(), job).await.expect("an answer")
    }

    /// A job as operators see it, with its payload.
    pub(crate) async fn find(&mut self, job: JobId) -> JobRecord {
        self.session.find_jobs(&caller(), &[job], true).await.expect("an answer").pop().expect("the job")
    }

    /// A job that was rejected.
    pub(crate) async fn dead_job(&mut self, queue: QueueId, payload: &str) -> JobId {
        self.dead(job(queue, payload), "rejected").await
    }

    /// The same of any job, with its last error.
    pub(crate) async fn dead(&mut self, row: JobRow, error: &str) -> JobId {
        let (queue, stored) = (row.queue, self.enqueue_one(row).await.job);
        let claimed = self.claim_one(queue).await;
        assert_eq!(claimed.job, stored, "nothing else is ready");
        let rejected = NackRow { error: error.into(), ..nack_row(lease(&claimed), NackAction::Reject) };
        assert!(self.nack_one(rejected).await.dead);
        stored
    }

    pub(crate) async fn reap(&mut self) -> Reaped {
        self.session.reap(&caller(), Timestamp::BEGINNING, 0, 1_000).await.expect("a pass")
    }
}

/// Asserts that what was left of `whole` when the answer was made is nearly all of it. Some engines look at the clock again
/// by then, and a slow machine takes its time.
#[track_caller]
pub(crate) fn assert_about(left: Duration, whole: Duration) {
    assert!(left <= whole && left + Duration::from_secs(10) > whole, "{left:?} is not about {whole:?}");
}

pub(crate) fn queue_name(name: &str) -> QueueName {
    QueueName::parse("queue", name).expect("a queue name")
}

pub(crate) fn key(text: &str) -> Key {
    Key::parse("key", text).expect("a key")
}

pub(crate) fn priority(level: i32) -> Priority {
    Priority::new(level).expect("a level")
}

/// A plain job of `queue`. The name in it is not looked at: the facade knows the number by then.
pub(crate) fn job(queue: QueueId, payload: impl AsRef<[u8]>) -> JobRow {
    JobRow {
        job: NewJob {
            queue: queue_name("q"),
            payload: payload.as_ref().to_vec().into(),
            content_type: String::new(),
            headers: [].into(),
            priority: Priority::DEFAULT,
            start: Start::Now,
            max_attempts: None,
            idempotency_key: None,
            ordering_key: None,
            trace: None,
        },
        queue,
        max_attempts: 20,
        idempotency_retention: Duration::from_secs(24 * 3_600),
    }
}

pub(crate) fn keyed(queue: QueueId, ordering_key: &str, payload: impl AsRef<[u8]>) -> JobRow {
    changed(job(queue, payload), |job| job.ordering_key = Some(key(ordering_key)))
}

pub(crate) fn once(queue: QueueId, idempotency_key: &str, payload: impl AsRef<[u8]>) -> JobRow {
    changed(job(queue, payload), |job| job.idempotency_key = Some(key(idempotency_key)))
}

pub(crate) fn changed(mut row: JobRow, change: impl FnOnce(&mut NewJob)) -> JobRow {
    change(&mut row.job);
    row
}

pub(crate) fn claim_of(queue: QueueId, count: usize) -> Claim {
    Claim {
        queue,
        floors: [Timestamp::BEGINNING; Priority::LEVELS],
        slots: (0..count).map(|_| Slot { lease: LeaseId(rand::random()), stream: STREAM, duration: LEASE }).collect(),
    }
}

pub(crate) fn lease(job: &ClaimedJob) -> LeaseRef {
    LeaseRef { job: job.job, lease: job.lease }
}

pub(crate) fn leases(jobs: &[ClaimedJob]) -> Vec<LeaseRef> {
    jobs.iter().map(lease).collect()
}

pub(crate) fn nack_row(lease: LeaseRef, action: NackAction) -> NackRow {
    NackRow { lease, action, delay: Some(Duration::ZERO), jitter: 0.5, error: String::new() }
}

pub(crate) fn ids(rows: &[EnqueuedRow]) -> Vec<JobId> {
    rows.iter().map(|row| row.job).collect()
}

pub(crate) fn claimed_ids(jobs: &[ClaimedJob]) -> Vec<JobId> {
    jobs.iter().map(|job| job.job).collect()
}

pub(crate) fn payloads(jobs: &[ClaimedJob]) -> Vec<String> {
    jobs.iter().map(|job| String::from_utf8_lossy(&job.payload).into_owned()).collect()
}

pub(crate) fn held(rows: &[AckedRow]) -> Vec<Held> {
    rows.iter().map(|row| row.held).collect()
}
