//! Wake-ups from other replicas, by LISTEN and NOTIFY.
//!
//! One channel for all replicas names queues with ready jobs; each replica has one of its own on which others name the jobs
//! that they settled. A payload is numbers in decimal, separated by commas; an empty one means: look yourself. Anybody who
//! can connect to the database can send anything here, so what does not read is dropped.

use std::time::Duration;

use async_trait::async_trait;
use sqlx::{
    AssertSqlSafe, Executor, Row,
    postgres::{PgListener, PgPoolOptions},
};
use tokio::time::timeout;

use super::{PostgresEngine, error, name::SchemaName};
use crate::{
    model::{Caller, JobId, QueueId, ReplicaId},
    store::{
        comment::Comments,
        engine::{Listener, Wake},
        error::EngineError,
        socket::{OwnSocket, watched_socket},
    },
};

const PING: &str = include_str!("sql/ping.sql");
const CHECK: &str = include_str!("sql/check.sql");

/// Longest payload that we send; the server takes 7,999 bytes.
const PAYLOAD_BYTES: usize = 7_900;

/// So long in silence, and the connection is tried.
const SILENCE: Duration = Duration::from_secs(30);
/// So long without an answer, and it is lost.
const ANSWER: Duration = Duration::from_secs(10);

/// The driver's listener. Dropped while it is connected it would send a statement of its own, which names no caller. So its
/// socket is shut first, and where that is out of reach it is left as it is until the process ends: a replica has one, and
/// another only after it was lost.
struct Quiet {
    listener: Option<PgListener>,
    socket: Option<OwnSocket>,
    lost: bool,
}

impl Quiet {
    fn get(&mut self) -> &mut PgListener {
        self.listener.as_mut().expect("taken by drop alone")
    }

    fn lost(&mut self) -> EngineError {
        self.lost = true;
        EngineError::Unavailable("the listening connection is lost".into())
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        if !self.lost && self.socket.as_ref().is_none_or(|socket| socket.shut().is_err()) {
            std::mem::forget(self.listener.take());
        }
    }
}

/// The listening connection: the driver's listener on its pool of one, which is the only way to have one there.
pub(super) struct Ear {
    listener: Quiet,
    ready: String,
    settled: String,
    replica: ReplicaId,
    comments: std::sync::Arc<Comments>,
    caller: Caller,
}

impl Ear {
    pub(super) async fn open(engine: &PostgresEngine, replica: ReplicaId) -> Result<Self, EngineError> {
        let caller = Caller::broker("listener");
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .max_lifetime(None)
            .idle_timeout(None)
            .test_before_acquire(false)
            .connect_lazy_with(engine.options.clone());
        let failed = |error: sqlx::Error| error::before_commit(error::of_statement(&error));
        let mut listener = PgListener::connect_with(&pool).await.map_err(|error| error::of_connect(&error))?;
        listener.eager_reconnect(false);

        let (ready, settled) = (engine.schema.ready_channel(), engine.schema.settled_channel(replica));
        for channel in [&ready, &settled] {
            let listen = engine.comments.once(&caller, &format!("listen {channel}"));
            listener.execute(sqlx::raw_sql(AssertSqlSafe(listen))).await.map_err(failed)?;
        }
        let check = sqlx::query(AssertSqlSafe(engine.comments.text(&caller, CHECK)));
        let row = listener.fetch_one(check).await.map_err(failed)?;
        let socket = match (row.try_get::<Option<String>, _>("client_host"), row.try_get("client_port")) {
            (Ok(host), Ok(port)) => watched_socket(host, port, engine.options.get_port()).await,
            _ => None,
        };
        let listener = Quiet { listener: Some(listener), socket, lost: false };
        Ok(Self { listener, ready, settled, replica, comments: engine.comments.clone(), caller })
    }

    fn decode(&self, channel: &str, payload: &str) -> Option<Wake> {
        if channel == self.ready {
            let queues = numbers(payload, QueueId)?;
            Some(if queues.is_empty() { Wake::Everything } else { Wake::Ready { queues } })
        } else if channel == self.settled {
            Some(Wake::Settled { replica: self.replica, jobs: numbers(payload, JobId)? })
        } else {
            None
        }
    }

    /// Asks the server for nothing; notifications that come meanwhile are kept.
    async fn try_connection(&mut self) -> Result<(), EngineError> {
        let ping = sqlx::query(AssertSqlSafe(self.comments.text(&self.caller, PING)));
        match timeout(ANSWER, self.listener.get().fetch_all(ping)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(self.listener.lost()),
        }
    }
}

#[async_trait]
impl Listener for Ear {
    async fn next(&mut self) -> Result<Wake, EngineError> {
        loop {
            match timeout(SILENCE, self.listener.get().try_recv()).await {
                Err(_) => self.try_connection().await?,
                Ok(Ok(Some(notification))) => {
                    let wake = self.decode(notification.channel(), notification.payload());
                    if let Some(wake) = wake {
                        return Ok(wake);
                    }
                }
                Ok(Ok(None) | Err(_)) => return Err(self.listener.lost()),
            }
        }
    }
}

/// Channel and payload of each notification that a wake-up takes: one, or as many as its numbers need.
pub(super) fn encode(schema: &SchemaName, wake: &Wake) -> Vec<(String, String)> {
    match wake {
        Wake::Settled { replica, jobs } => {
            let channel = schema.settled_channel(*replica);
            payloads(jobs.iter().map(|job| job.0)).into_iter().map(|payload| (channel.clone(), payload)).collect()
        }
        Wake::Ready { queues } if queues.is_empty() => Vec::new(),
        Wake::Ready { queues } => {
            let payloads = payloads(queues.iter().map(|queue| queue.0));
            payloads.into_iter().map(|payload| (schema.ready_channel(), payload)).collect()
        }
        // From a listener to its own replica.
        Wake::Everything => Vec::new(),
    }
}

fn payloads(numbers: impl Iterator<Item = impl ToString>) -> Vec<String> {
    let mut payloads = vec![String::new()];
    for number in numbers {
        let number = number.to_string();
        match payloads.last_mut() {
            Some(payload) if payload.is_empty() => payload.push_str(&number),
            Some(payload) if payload.len() + 1 + number.len() <= PAYLOAD_BYTES => {
                payload.push(',');
                payload.push_str(&number);
            }
            _ => payloads.push(number),
        }
    }
    payloads
}

fn numbers<N: std::str::FromStr, T>(payload: &str, of: impl Fn(N) -> T) -> Option<Vec<T>> {
    if payload.is_empty() {
        return Some(Vec::new());
    }
    payload.split(',').map(|number| number.parse().ok().map(&of)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leasehold() -> SchemaName {
        SchemaName::new("leasehold".into())
    }

    #[test]
    fn long_wake_ups_go_in_several_payloads_and_lose_nothing() {
        let jobs: Vec<JobId> = (0..3_000).map(|n| JobId(i64::MAX - n)).collect();
        let sent = encode(&leasehold(), &Wake::Settled { replica: ReplicaId(42), jobs: jobs.clone() });
        assert!(sent.len() > 1);
        let mut received = Vec::new();
        for (channel, payload) in sent {
            assert_eq!(channel, "leasehold_settled_0000002a");
            assert!(payload.len() < 8_000);
            received.extend(numbers(&payload, JobId).expect("our own payload"));
        }
        assert_eq!(received, jobs);
    }

    #[test]
    fn an_empty_settled_wake_up_is_sent_as_such() {
        let sent = encode(&leasehold(), &Wake::Settled { replica: ReplicaId(1), jobs: vec![] });
        assert_eq!(sent, [("leasehold_settled_00000001".to_owned(), String::new())]);
    }

    #[test]
    fn forged_payloads_are_dropped() {
        for forged in ["x", "1,", ",", "1;2", "99999999999999999999", "1,2,x"] {
            assert_eq!(numbers(forged, JobId), None, "{forged}");
        }
    }
}
