//! Calls of Enqueue that are tried again where that is safe.

use std::time::Duration;

use serde::Serialize;
use tonic::{Code, Status};

use crate::{
    cli::broker::{Broker, Failed, Pauses, outcome_is_unknown},
    v1::{EnqueueRequest, NewJob},
};

/// Tries of one call, the first one counted.
const TRIES: u32 = 6;

/// A job that the broker has.
pub(super) struct Stored {
    job_id: String,
    /// It was there already.
    pub(super) duplicate: bool,
}

#[derive(Serialize)]
pub(super) struct StoredJson<'a> {
    job_id: &'a str,
    duplicate: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
}

impl Stored {
    pub(super) fn json(&self, line: Option<u64>) -> StoredJson<'_> {
        StoredJson { job_id: &self.job_id, duplicate: self.duplicate, line }
    }

    pub(super) fn line(&self) -> String {
        if self.duplicate { format!("{} duplicate", self.job_id) } else { self.job_id.clone() }
    }
}

/// Sends batches.
pub(super) struct Sender {
    broker: Broker,
    /// All jobs have idempotency keys.
    keyed: bool,
}

impl Sender {
    pub(super) fn new(broker: Broker, keyed: bool) -> Self {
        Self { broker, keyed }
    }

    /// Stores all jobs or none. Tries again what was not applied and may be later, and what is unknown only where keys make that safe.
    pub(super) async fn send(&self, jobs: Vec<NewJob>) -> Result<Vec<Stored>, Failed> {
        let mut pauses = Pauses::new(Duration::from_millis(100), Duration::from_secs(5));
        let mut tried = 1;
        loop {
            let request = self.broker.call(EnqueueRequest { jobs: jobs.clone() });
            match self.broker.queue().enqueue(request).await {
                Ok(answer) => {
                    let stored = answer.into_inner().jobs.into_iter();
                    return Ok(stored.map(|job| Stored { job_id: job.job_id, duplicate: job.duplicate }).collect());
                }
                Err(status) if tried < TRIES && self.may_repeat(&status) => pauses.wait(&status).await,
                Err(status) => return Err(status.into()),
            }
            tried += 1;
        }
    }

    fn may_repeat(&self, status: &Status) -> bool {
        if outcome_is_unknown(status) {
            return self.keyed && status.code() != Code::Internal;
        }
        // a full queue and a switched-off one stay so for longer than anybody waits here
        matches!(status.code(), Code::Unavailable | Code::Aborted) && Failed::reason(status) != "DISABLED"
    }
}
