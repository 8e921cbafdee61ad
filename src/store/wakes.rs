//! Hints between replicas: what is ready, what was settled. Lost, doubled or late, they change no result; polling lies
//! underneath.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use tokio::{
    sync::{mpsc, watch},
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    engine::{Engine, LaneRole, Session, Wake},
    error::EngineError,
    lanes::Lanes,
};
use crate::model::{Caller, JobId, QueueId, ReplicaId};

/// Hints that may wait to be sent; more are dropped.
const MAX_WAITING: usize = 1_024;
/// Job ids in one hint; with more, the receiver reads by itself.
const MAX_JOBS: usize = 300;
/// Queue ids in one hint.
const MAX_QUEUES: usize = 500;
/// Pauses between tries to listen.
const RELISTEN: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(3));

/// Sends and hears hints.
pub(super) struct Notifier {
    out: mpsc::Sender<Wake>,
    stop: CancellationToken,
    running: TaskTracker,
}

impl Notifier {
    /// Starts both sides. An engine without a listener has no other replicas: nothing is sent then.
    pub(super) fn start(
        engine: Arc<dyn Engine>,
        lanes: &Lanes,
        replica: ReplicaId,
        gather: Duration,
        heard: mpsc::Sender<Wake>,
    ) -> Self {
        let (out, waiting) = mpsc::channel(MAX_WAITING);
        let (stop, running) = (CancellationToken::new(), TaskTracker::new());
        let (listening, has_listener) = watch::channel(false);
        let ear = listen(
            Arc::clone(&engine),
            lanes.schema.subscribe(),
            replica,
            heard,
            listening,
            lanes.options.connect_timeout,
        );
        let mouth = send(engine, waiting, has_listener, gather, lanes.options.connect_timeout);
        running.spawn(stop.clone().run_until_cancelled_owned(ear));
        running.spawn(stop.clone().run_until_cancelled_owned(mouth));
        running.close();
        Self { out, stop, running }
    }

    /// Never waits; a full channel drops the hint.
    pub(super) fn send(&self, wake: Wake) {
        drop(self.out.try_send(wake));
    }

    pub(super) async fn stop(&self) {
        self.stop.cancel();
        self.running.wait().await;
    }
}

async fn listen(
    engine: Arc<dyn Engine>,
    mut schema: watch::Receiver<bool>,
    replica: ReplicaId,
    heard: mpsc::Sender<Wake>,
    listening: watch::Sender<bool>,
    limit: Duration,
) {
    if schema.wait_for(|current| *current).await.is_err() {
        return;
    }
    let mut pause = RELISTEN.0;
    loop {
        let opened = timeout(limit, engine.listen(replica)).await;
        match opened.unwrap_or_else(|_| Err(EngineError::Unavailable("no answer in time".into()))) {
            Ok(None) => return,
            Ok(Some(mut listener)) => {
                pause = RELISTEN.0;
                listening.send_replace(true);
                // First listen, then look: what was sent before is seen by looking.
                let mut wake = Ok(Wake::Everything);
                while let Ok(hint) = wake {
                    if heard.send(hint).await.is_err() {
                        return;
                    }
                    wake = listener.next().await;
                }
                if let Err(error) = wake {
                    tracing::warn!(%error, "the listener was lost; polling goes on meanwhile");
                }
            }
            Err(error) => {
                tracing::warn!(%error, retry_in = ?pause, "cannot listen for other replicas; polling goes on");
            }
        }
        tokio::time::sleep(pause.mul_f64(0.5 + rand::random::<f64>() / 2.0)).await;
        pause = (pause * 2).min(RELISTEN.1);
    }
}

async fn send(
    engine: Arc<dyn Engine>,
    mut waiting: mpsc::Receiver<Wake>,
    has_listener: watch::Receiver<bool>,
    gather: Duration,
    limit: Duration,
) {
    let mut session: Option<Box<dyn Session>> = None;
    while let Some(first) = waiting.recv().await {
        tokio::time::sleep(gather).await;
        let mut gathered = Gathered::default();
        gathered.add(first);
        while let Ok(wake) = waiting.try_recv() {
            gathered.add(wake);
        }
        if *has_listener.borrow() {
            session = notify(engine.as_ref(), session, &gathered.wakes(), limit).await;
        }
    }
}

/// Sends on the connection given, or on a new one; hands it back where it can be used again.
async fn notify(
    engine: &dyn Engine,
    session: Option<Box<dyn Session>>,
    wakes: &[Wake],
    limit: Duration,
) -> Option<Box<dyn Session>> {
    let mut session = match session {
        Some(session) => session,
        None => timeout(limit, engine.connect(LaneRole::Notify)).await.ok()?.ok()?,
    };
    match timeout(limit, session.notify(&Caller::broker("notifier"), wakes)).await {
        Ok(Ok(())) => Some(session),
        Ok(Err(error)) => {
            tracing::debug!(%error, "a hint was not sent");
            None
        }
        Err(_) => None,
    }
}

/// Hints of the last moments, each thing once.
#[derive(Default)]
struct Gathered {
    queues: BTreeSet<QueueId>,
    settled: BTreeMap<ReplicaId, BTreeSet<JobId>>,
}

impl Gathered {
    fn add(&mut self, wake: Wake) {
        match wake {
            Wake::Ready { queues } => self.queues.extend(queues),
            Wake::Settled { replica, jobs } => self.settled.entry(replica).or_default().extend(jobs),
            Wake::Everything => {}
        }
    }

    fn wakes(self) -> Vec<Wake> {
        let mut wakes: Vec<Wake> = self
            .settled
            .into_iter()
            .map(|(replica, jobs)| {
                let jobs = if jobs.len() > MAX_JOBS { Vec::new() } else { jobs.into_iter().collect() };
                Wake::Settled { replica, jobs }
            })
            .collect();
        if !self.queues.is_empty() {
            wakes.push(Wake::Ready { queues: self.queues.into_iter().take(MAX_QUEUES).collect() });
        }
        wakes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_of_one_moment_leave_as_one_per_receiver() {
        let mut gathered = Gathered::default();
        gathered.add(Wake::Ready { queues: vec![QueueId(2), QueueId(1)] });
        gathered.add(Wake::Settled { replica: ReplicaId(7), jobs: vec![JobId(1)] });
        gathered.add(Wake::Ready { queues: vec![QueueId(1)] });
        gathered.add(Wake::Settled { replica: ReplicaId(7), jobs: vec![JobId(2), JobId(1)] });
        assert_eq!(
            gathered.wakes(),
            [
                Wake::Settled { replica: ReplicaId(7), jobs: vec![JobId(1), JobId(2)] },
                Wake::Ready { queues: vec![QueueId(1), QueueId(2)] },
            ]
        );
    }

    #[test]
    fn too_many_jobs_become_an_empty_hint() {
        let mut gathered = Gathered::default();
        gathered.add(Wake::Settled { replica: ReplicaId(7), jobs: (0..1_000).map(JobId).collect() });
        assert_eq!(gathered.wakes(), [Wake::Settled { replica: ReplicaId(7), jobs: vec![] }]);
    }
}
