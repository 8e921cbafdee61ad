//! What is measured, the same for every peer in Rust: a program is `NAME ACT URL JOBS`.

use std::{
    error::Error,
    future::Future,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use tokio::{sync::Notify, task::JoinSet};

const PRODUCERS: usize = 8;
const SINGLES: usize = 64;
const BATCH: usize = 100;
const RATE: u32 = 50;

pub type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// How a worker works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    Tuned,
    One,
    Latency,
}

/// A queue that is measured.
pub trait Peer: Clone + Send + Sync + 'static {
    /// Jobs of a batch.
    fn batch(&self) -> usize {
        BATCH
    }
    fn one(&self, job: Vec<u8>) -> impl Future<Output = Outcome<()>> + Send;
    fn many(&self, jobs: Vec<Vec<u8>>) -> impl Future<Output = Outcome<()>> + Send;
    /// Runs a worker until `handled` has all its jobs.
    fn work(&self, how: How, handled: Arc<Handled>) -> impl Future<Output = Outcome<()>> + Send;
}

/// 100 bytes, the moment of sending among them.
pub fn payload() -> Vec<u8> {
    let mut payload = sent_now().to_be_bytes().to_vec();
    payload.resize(100, b'x');
    payload
}

fn sent_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(0))
}

/// Counts jobs that a worker had.
pub struct Handled {
    jobs: usize,
    count: AtomicUsize,
    waits: Mutex<(Vec<Duration>, Option<Instant>, Option<Instant>)>,
    done: Notify,
}

impl Handled {
    fn new(jobs: usize) -> Arc<Self> {
        Arc::new(Self { jobs, count: AtomicUsize::new(0), waits: Mutex::default(), done: Notify::new() })
    }

    /// A worker has these jobs.
    pub fn handle<'a>(&self, jobs: impl Iterator<Item = &'a [u8]>) {
        let (now, at) = (sent_now(), Instant::now());
        let mut waits = self.waits.lock().expect("nobody panics with it");
        for job in jobs {
            let sent = job.first_chunk::<8>().map_or(now, |sent| u64::from_be_bytes(*sent));
            waits.0.push(Duration::from_nanos(now.saturating_sub(sent)));
        }
        waits.1.get_or_insert(at);
        waits.2 = Some(at);
        let count = waits.0.len();
        drop(waits);
        self.count.store(count, Relaxed);
        if count >= self.jobs {
            self.done.notify_waiters();
        }
    }

    /// Whether the worker has had all.
    pub fn is_done(&self) -> bool {
        self.count.load(Relaxed) >= self.jobs
    }

    /// Waits until the worker has had all.
    pub async fn done(&self) {
        let mut notified = std::pin::pin!(self.done.notified());
        notified.as_mut().enable();
        if !self.is_done() {
            notified.await;
        }
    }

    fn check(&self) -> Outcome<()> {
        match self.count.load(Relaxed) {
            count if count == self.jobs => Ok(()),
            count => Err(format!("{count} of {} jobs were handled", self.jobs).into()),
        }
    }

    fn times(&self) -> (Vec<Duration>, Instant, Instant) {
        let waits = self.waits.lock().expect("nobody panics with it");
        let now = Instant::now();
        (waits.0.clone(), waits.1.unwrap_or(now), waits.2.unwrap_or(now))
    }
}

async fn concurrently<P: Peer>(peer: &P, clients: usize, jobs: usize, batch: usize) -> Outcome<()> {
    let (next, mut running) = (Arc::new(AtomicUsize::new(0)), JoinSet::new());
    for _ in 0..clients {
        let (peer, next) = (peer.clone(), Arc::clone(&next));
        running.spawn(async move {
            loop {
                let first = next.fetch_add(batch, Relaxed);
                if first >= jobs {
                    return Ok::<_, Box<dyn Error + Send + Sync>>(());
                }
                if batch == 1 {
                    peer.one(payload()).await?;
                } else {
                    peer.many((0..batch.min(jobs - first)).map(|_| payload()).collect()).await?;
                }
            }
        });
    }
    while let Some(ended) = running.join_next().await {
        ended??;
    }
    Ok(())
}

/// From the first job that a worker has to the last one: how long a worker takes to start is not measured.
async fn drain<P: Peer>(peer: &P, jobs: usize, how: How) -> Outcome<serde_json::Value> {
    let handled = Handled::new(jobs);
    peer.work(how, Arc::clone(&handled)).await?;
    handled.check()?;
    let (_, first, last) = handled.times();
    Ok(seconds(last - first))
}

async fn life<P: Peer>(peer: &P, jobs: usize) -> Outcome<serde_json::Value> {
    let handled = Handled::new(jobs);
    let begun = Instant::now();
    tokio::try_join!(concurrently(peer, PRODUCERS, jobs, peer.batch()), peer.work(How::Tuned, Arc::clone(&handled)))?;
    handled.check()?;
    Ok(seconds(handled.times().2 - begun))
}

async fn latency<P: Peer>(peer: &P, jobs: usize) -> Outcome<serde_json::Value> {
    let handled = Handled::new(jobs);
    let sending = async {
        let mut ticks = tokio::time::interval(Duration::from_secs(1) / RATE);
        let mut calls = JoinSet::new();
        for _ in 0..jobs {
            ticks.tick().await;
            let (peer, job) = (peer.clone(), payload());
            calls.spawn(async move { peer.one(job).await });
        }
        while let Some(ended) = calls.join_next().await {
            ended??;
        }
        Ok(())
    };
    tokio::try_join!(sending, peer.work(How::Latency, Arc::clone(&handled)))?;
    handled.check()?;
    let mut waits = handled.times().0;
    waits.sort();
    let at = |part: usize| waits[(waits.len() * part / 100).min(waits.len() - 1)].as_secs_f64() * 1e3;
    Ok(serde_json::json!({ "p50_ms": at(50), "p99_ms": at(99) }))
}

fn seconds(took: Duration) -> serde_json::Value {
    serde_json::json!({ "seconds": took.as_secs_f64() })
}

/// Runs an act, and prints what came out.
pub async fn run<P: Peer>(peer: &P, act: &str, jobs: usize) -> Outcome<()> {
    let begun = Instant::now();
    let result = match act {
        "enqueue-one" => concurrently(peer, SINGLES, jobs, 1).await.map(|()| seconds(begun.elapsed()))?,
        "enqueue-batch" => concurrently(peer, PRODUCERS, jobs, peer.batch()).await.map(|()| seconds(begun.elapsed()))?,
        "drain" => drain(peer, jobs, How::Tuned).await?,
        "drain-one" => drain(peer, jobs, How::One).await?,
        "life" => life(peer, jobs).await?,
        "latency" => latency(peer, jobs).await?,
        _ => return Err(format!("no such act: {act}").into()),
    };
    println!("{result}");
    Ok(())
}

/// ACT, URL, and JOBS where the act has some.
pub fn arguments() -> Outcome<(String, String, usize)> {
    let mut arguments = std::env::args().skip(1);
    let act = arguments.next().ok_or("ACT is missing")?;
    let url = arguments.next().ok_or("URL is missing")?;
    Ok((act, url, arguments.next().map_or(Ok(0), |jobs| jobs.parse())?))
}
