//! Claims on `MariaDB` in one run: the broker's own engine, and a table with a status and an index on it, as job tables there
//! usually have it, at both isolation levels. Counts jobs, and deadlocks.

#![allow(clippy::print_stdout, reason = "a measurement's table is its purpose")]

mod stand;

use std::{
    collections::HashSet,
    process::ExitCode,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use bytes::Bytes;
use leasehold::{
    model::{
        Caller, Headers, LeaseId, NewJob, Priority, QueueId, QueueName, ReplicaId, Start, StreamId, StreamNumber,
        Timestamp,
    },
    store::{
        engine::{Claim, Engine, Held, JobRow, LaneRole, LeaseRef, LockWait, NewQueues, Session, Slot},
        error::EngineError,
        mysql::{MysqlEngine, MysqlOptions},
    },
};
use tokio::task::JoinSet;

use stand::{
    Options, Outcome,
    clients::PAYLOAD,
    figures::{self, Table, rate, thousands},
    mariadb::MariaDb,
    status::StatusTable,
};

const CLAIMERS: usize = 6;
const PRODUCERS: usize = 2;
const LEASE: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    let seconds = ("seconds", "10", "Length of each way's run");
    let batch = ("batch", "10", "Jobs of one claim and ack");
    let options =
        Options::parse("Compares ways to claim jobs on MariaDB; shows rates and deadlocks", &[seconds, batch]);
    options.run(measure(&options))
}

/// What the sessions of one way did.
#[derive(Debug, Default)]
struct Counts {
    stored: AtomicU64,
    acked: AtomicU64,
    /// Acts that were ended by a deadlock or a lock that was not had in time.
    conflicts: AtomicU64,
    ended: AtomicBool,
    /// Jobs of the engine that were acked.
    ids: Mutex<HashSet<i64>>,
    twice: AtomicU64,
}

impl Counts {
    fn goes_on(&self) -> bool {
        !self.ended.load(Relaxed)
    }

    /// None where it has to be tried again.
    fn past<T>(&self, done: Option<T>) -> Option<T> {
        if done.is_none() {
            self.conflicts.fetch_add(1, Relaxed);
        }
        done
    }
}

async fn measure(options: &Options) -> Outcome<()> {
    let settings = ["innodb-buffer-pool-size=512M", "innodb-log-file-size=2G"];
    let server = MariaDb::start(options.bindir(), &settings).await?;
    let length = Duration::from_secs(options.number("seconds"));
    let batch = usize::try_from(options.number("batch"))?;
    println!("{}", figures::machine());
    println!(
        "{}, flushed at each commit; {PRODUCERS} producers and {CLAIMERS} claimers for {} s each; jobs of {PAYLOAD} bytes, {batch} a claim and an ack",
        server.version().await?,
        length.as_secs(),
    );
    let mut table = Table::new([
        "way",
        "jobs of an insert",
        "stored/s",
        "claimed and acked/s",
        "deadlocks that sessions met",
        "deadlocks the server counted",
        "acked twice",
    ]);
    let ways = [Way::Engine, Way::Status { isolation: "read committed" }, Way::Status { isolation: "repeatable read" }];
    // First claimers wait for jobs, which is where gaps are locked; then jobs wait for claimers.
    for (stored, way) in [batch, batch * 10].into_iter().flat_map(|stored| ways.map(|way| (stored, way))) {
        let sizes = Sizes { stored, batch };
        let before = server.deadlocks().await?;
        let counts = way.run(&server, length, sizes).await?;
        let count = |of: &AtomicU64| of.load(Relaxed);
        table.row([
            way.name(),
            stored.to_string(),
            thousands(rate(count(&counts.stored), length)),
            thousands(rate(count(&counts.acked), length)),
            count(&counts.conflicts).to_string(),
            (server.deadlocks().await? - before).to_string(),
            count(&counts.twice).to_string(),
        ]);
    }
    table.print();
    println!("sessions talk to the server directly: no broker, no gRPC, and nothing merges what they ask for");
    Ok(())
}

/// Jobs of one act.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    stored: usize,
    batch: usize,
}

#[derive(Debug, Clone, Copy)]
enum Way {
    /// The broker's own.
    Engine,
    Status {
        isolation: &'static str,
    },
}

impl Way {
    fn name(self) -> String {
        match self {
            Self::Engine => "Leasehold's engine".to_owned(),
            Self::Status { isolation } => format!("status and index, {}", isolation.to_uppercase()),
        }
    }

    /// A database for each run.
    fn database(self, sizes: Sizes) -> String {
        let way = match self {
            Self::Engine => "engine",
            Self::Status { isolation } => isolation,
        };
        format!("{}_{}", way.replace(' ', "_"), sizes.stored)
    }

    async fn run(self, server: &MariaDb, length: Duration, sizes: Sizes) -> Outcome<Arc<Counts>> {
        let counts = Arc::new(Counts::default());
        let mut sessions = match self {
            Self::Engine => by_the_engine(server, &counts, sizes, &self.database(sizes)).await?,
            Self::Status { isolation } => by_status(server, &counts, sizes, (isolation, &self.database(sizes))).await?,
        };
        // The length of the run; nothing is waited for.
        tokio::time::sleep(length).await;
        counts.ended.store(true, Relaxed);
        while let Some(ended) = sessions.join_next().await {
            ended??;
        }
        Ok(counts)
    }
}

type Sessions = JoinSet<Outcome<()>>;

async fn by_status(
    server: &MariaDb,
    counts: &Arc<Counts>,
    sizes: Sizes,
    (isolation, database): (&str, &str),
) -> Outcome<Sessions> {
    server.create_database(database).await?;
    StatusTable::prepare(&mut server.connect(database).await?).await?;
    let mut sessions = Sessions::new();
    for number in 0..PRODUCERS + CLAIMERS {
        let mut table = StatusTable::at(server.connect(database).await?, isolation).await?;
        let counts = Arc::clone(counts);
        if number < PRODUCERS {
            sessions.spawn(async move {
                while counts.goes_on() {
                    let stored = counts.past(table.insert(sizes.stored).await?);
                    counts.stored.fetch_add(stored.unwrap_or_default(), Relaxed);
                }
                Ok(())
            });
        } else {
            sessions.spawn(async move {
                while counts.goes_on() {
                    let Some(taken) = counts.past(table.claim(sizes.batch).await?) else { continue };
                    while taken.len() > 0 && counts.goes_on() {
                        if let Some(acked) = counts.past(table.ack(&taken).await?) {
                            counts.acked.fetch_add(acked, Relaxed);
                            break;
                        }
                    }
                }
                Ok(())
            });
        }
    }
    Ok(sessions)
}

async fn by_the_engine(server: &MariaDb, counts: &Arc<Counts>, sizes: Sizes, database: &str) -> Outcome<Sessions> {
    let url = server.create_database(database).await?;
    let engine = MysqlEngine::new(MysqlOptions::new(url.into()))?;
    let caller = Caller::parse("measurement")?;
    let mut first = engine.connect(LaneRole::Any).await?;
    while first.migrate_one(&caller).await?.is_some() {}
    let name = QueueName::parse("queue", "claims")?;
    let queues = first.find_queues(&caller, std::slice::from_ref(&name), Some(&NewQueues::default())).await?;
    let queue = queues.first().ok_or("no queue came into being")?.id;
    let mut sessions = Sessions::new();
    for number in 0..PRODUCERS + CLAIMERS {
        let (session, counts, caller) = (engine.connect(LaneRole::Any).await?, Arc::clone(counts), caller.clone());
        if number < PRODUCERS {
            let jobs = vec![job(queue, &name); sizes.stored];
            sessions.spawn(async move { produce(session, &counts, &caller, &jobs).await });
        } else {
            sessions.spawn(async move { consume(session, &counts, &caller, queue, sizes.batch).await });
        }
    }
    Ok(sessions)
}

async fn produce(mut session: Box<dyn Session>, counts: &Counts, caller: &Caller, jobs: &[JobRow]) -> Outcome<()> {
    while counts.goes_on() {
        if let Some(rows) = counts.past(unless_conflict(session.enqueue(caller, jobs, LockWait::Full).await)?) {
            counts.stored.fetch_add(u64::try_from(rows.len())?, Relaxed);
        }
    }
    Ok(())
}

/// As the dispatcher does it: from where the last claim ended, less 50 ms.
async fn consume(
    mut session: Box<dyn Session>,
    counts: &Counts,
    caller: &Caller,
    queue: QueueId,
    batch: usize,
) -> Outcome<()> {
    const OVERLAP: Duration = Duration::from_millis(50);
    let mut floors = [Timestamp::BEGINNING; Priority::LEVELS];
    while counts.goes_on() {
        let claims = [Claim { queue, floors, slots: slots(batch) }];
        let Some(claimed) = counts.past(unless_conflict(session.claim(caller, &claims).await)?) else { continue };
        for job in &claimed {
            let floor = &mut floors[usize::from(job.priority.level())];
            *floor = (*floor).max(job.ready_at.minus(OVERLAP));
        }
        let mut open: Vec<LeaseRef> = claimed.iter().map(|job| LeaseRef { job: job.job, lease: job.lease }).collect();
        while !open.is_empty() && counts.goes_on() {
            let answer = unless_conflict(session.ack(caller, &open, LockWait::Full).await)?;
            let Some(rows) = counts.past(answer) else { continue };
            let mut busy = Vec::new();
            for (lease, row) in open.iter().zip(&rows) {
                match row.held {
                    Held::Ok => {
                        let is_new = counts.ids.lock().map_err(|_| "poisoned")?.insert(lease.job.0);
                        counts.twice.fetch_add(u64::from(!is_new), Relaxed);
                        counts.acked.fetch_add(1, Relaxed);
                    }
                    Held::Busy => busy.push(*lease),
                    _ => return Err(format!("an ack was refused: {:?}", row.held).into()),
                }
            }
            open = busy;
        }
    }
    Ok(())
}

fn unless_conflict<T>(done: Result<T, EngineError>) -> Outcome<Option<T>> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(EngineError::Conflict(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn slots(count: usize) -> Vec<Slot> {
    let stream = StreamId { replica: ReplicaId(1), number: StreamNumber(1) };
    (0..count).map(|_| Slot { lease: LeaseId(rand::random()), stream, duration: LEASE }).collect()
}

fn job(queue: QueueId, name: &QueueName) -> JobRow {
    JobRow {
        job: NewJob {
            queue: name.clone(),
            payload: Bytes::from(vec![b'x'; PAYLOAD]),
            content_type: String::new(),
            headers: Headers::new(),
            priority: Priority::DEFAULT,
            start: Start::Now,
            max_attempts: None,
            idempotency_key: None,
            ordering_key: None,
            trace: None,
        },
        queue,
        max_attempts: 20,
        idempotency_retention: Duration::from_secs(60),
    }
}
