//! What waits to be sent over OTLP: a bounded queue and the one task that empties it.
//!
//! Putting something in never waits: where the queue is full it is lost, and counted. So a collector that is slow, hangs or is
//! away costs its own data and nothing else.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::{
    sync::mpsc,
    task::JoinHandle,
    time::{Instant, timeout, timeout_at},
};
use tokio_util::sync::CancellationToken;

/// How an outbox is emptied.
#[derive(Debug, Clone, Copy)]
pub(super) struct OutboxOptions {
    /// Items that may wait.
    pub(super) queue: usize,
    /// Items of one request.
    pub(super) batch: usize,
    /// What is there is sent after this long, full batch or not.
    pub(super) interval: Duration,
    /// A request that takes longer has failed.
    pub(super) timeout: Duration,
}

/// What became of the items so far.
#[derive(Debug, Default)]
pub(super) struct Fates {
    pub(super) sent: AtomicU64,
    pub(super) queue_full: AtomicU64,
    pub(super) failed: AtomicU64,
}

/// Where things are put in.
#[derive(Debug)]
pub(super) struct Outbox<T> {
    queue: mpsc::Sender<T>,
    fates: Arc<Fates>,
}

/// The task that sends.
pub(super) struct Carrier {
    closing: CancellationToken,
    task: JoinHandle<()>,
}

/// Who takes batches; says whether they arrived.
pub(super) trait Post<T>: Send + Sync + 'static {
    fn post(&self, batch: Vec<T>) -> impl Future<Output = bool> + Send;
}

impl<T: Send + 'static> Outbox<T> {
    /// Begins to send on the current runtime.
    pub(super) fn open(options: OutboxOptions, post: impl Post<T>) -> (Self, Carrier, Arc<Fates>) {
        let (queue, waiting) = mpsc::channel(options.queue);
        let fates = Arc::new(Fates::default());
        let closing = CancellationToken::new();
        let task = tokio::spawn(carry(waiting, post, options, fates.clone(), closing.clone()));
        (Self { queue, fates: fates.clone() }, Carrier { closing, task }, fates)
    }

    /// Lets `item` wait, or loses it.
    pub(super) fn put(&self, item: T) {
        if self.queue.try_send(item).is_err() {
            self.fates.queue_full.fetch_add(1, Relaxed);
        }
    }
}

impl Carrier {
    /// Takes nothing new, sends what waits, and ends.
    pub(super) async fn finish(self) {
        self.closing.cancel();
        if let Err(failure) = self.task.await {
            tracing::warn!(%failure, "sending telemetry has ended early");
        }
    }
}

async fn carry<T: Send + 'static>(
    mut waiting: mpsc::Receiver<T>,
    post: impl Post<T>,
    options: OutboxOptions,
    fates: Arc<Fates>,
    closing: CancellationToken,
) {
    loop {
        let mut batch = Vec::new();
        tokio::select! {
            biased;
            got = waiting.recv_many(&mut batch, options.batch) => if got == 0 { return },
            () = closing.cancelled(), if !waiting.is_closed() => {
                waiting.close();
                continue;
            }
        }
        let until = Instant::now() + options.interval;
        while batch.len() < options.batch && !waiting.is_closed() {
            let room = options.batch - batch.len();
            tokio::select! {
                got = timeout_at(until, waiting.recv_many(&mut batch, room)) => if !matches!(got, Ok(1..)) { break },
                () = closing.cancelled() => waiting.close(),
            }
        }
        let size = batch.len() as u64;
        let arrived = timeout(options.timeout, post.post(batch)).await.unwrap_or(false);
        let fate = if arrived { &fates.sent } else { &fates.failed };
        fate.fetch_add(size, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::sync::Notify;

    use super::*;

    type Came = Arc<Mutex<Vec<Vec<u32>>>>;

    /// Keeps what came, or answers nothing.
    struct Collector {
        came: Came,
        hangs: bool,
        asked: Arc<Notify>,
    }

    impl Post<u32> for Collector {
        async fn post(&self, batch: Vec<u32>) -> bool {
            self.asked.notify_one();
            if self.hangs {
                std::future::pending::<()>().await;
            }
            self.came.lock().expect("not poisoned").push(batch);
            true
        }
    }

    struct Stage {
        outbox: Outbox<u32>,
        carrier: Carrier,
        fates: Arc<Fates>,
        came: Came,
        asked: Arc<Notify>,
    }

    impl Stage {
        fn new(hangs: bool, interval: Duration) -> Self {
            let (came, asked) = (Came::default(), Arc::new(Notify::new()));
            let options = OutboxOptions { queue: 4, batch: 3, interval, timeout: Duration::from_millis(200) };
            let collector = Collector { came: came.clone(), hangs, asked: asked.clone() };
            let (outbox, carrier, fates) = Outbox::open(options, collector);
            Self { outbox, carrier, fates, came, asked }
        }
    }

    fn counts(fates: &Fates) -> (u64, u64, u64) {
        (fates.sent.load(Relaxed), fates.queue_full.load(Relaxed), fates.failed.load(Relaxed))
    }

    #[tokio::test]
    async fn items_leave_in_batches_and_the_rest_with_the_end() {
        let stage = Stage::new(false, Duration::from_mins(1));
        for item in 0..4 {
            stage.outbox.put(item);
        }
        stage.carrier.finish().await;
        assert_eq!(*stage.came.lock().expect("not poisoned"), [vec![0, 1, 2], vec![3]]);
        assert_eq!(counts(&stage.fates), (4, 0, 0));
        stage.outbox.put(9);
        assert_eq!(counts(&stage.fates), (4, 1, 0), "nobody carries it any more");
    }

    #[tokio::test]
    async fn a_lone_item_leaves_without_waiting_for_others() {
        let stage = Stage::new(false, Duration::from_millis(5));
        stage.outbox.put(1);
        timeout(Duration::from_secs(10), stage.asked.notified()).await.expect("it leaves by itself");
        stage.carrier.finish().await;
        assert_eq!(*stage.came.lock().expect("not poisoned"), [[1]]);
    }

    #[tokio::test]
    async fn what_a_hanging_collector_leaves_no_room_for_is_lost_and_counted() {
        let stage = Stage::new(true, Duration::from_mins(1));
        for item in 0..3 {
            stage.outbox.put(item);
        }
        stage.asked.notified().await; // a full batch is on its way
        for item in 0..10 {
            stage.outbox.put(item);
        }
        assert_eq!(counts(&stage.fates), (0, 6, 0));
        stage.carrier.finish().await;
        assert_eq!(counts(&stage.fates), (0, 6, 7), "each batch had its time");
    }
}
