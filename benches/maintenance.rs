//! What purging, pruning and reaping of very many rows do to the time from an Enqueue to the job's arrival on a stream, and
//! what operators' counting does. Each is compared with the same tables a moment before, while its rows lie still: what so many
//! new rows cost the database by themselves is no work of ours.

#![allow(clippy::print_stdout, reason = "a measurement's table is its purpose")]

mod stand;

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use leasehold::v1::{
    AckRequest, EnqueueRequest, JobState, LeaseRequest, ListQueuesRequest, NewJob, PurgeQueueRequest,
    UpdateQueueRequest, lease_response::Frame, queue_admin_service_client::QueueAdminServiceClient,
};
use sqlx::Executor;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tonic::transport::Endpoint;

use stand::{
    Options, Outcome,
    broker::Broker,
    clients::{self, from_caller, tokens},
    figures::{self, Table, median, quantile, thousands},
    postgres::Postgres,
};

const DATABASE: &str = "maintenance";
/// One job is enqueued so often, and its way to the stream is taken.
const BEAT: Duration = Duration::from_millis(5);
/// Views of all queues with their counts, so often each.
const VIEWERS: usize = 10;
const VIEW: Duration = Duration::from_secs(2);
/// Within this long, rows are stored and their tables vacuumed.
const FILLED_WITHIN: Duration = Duration::from_secs(30);
/// Queues that the views show.
const QUEUES: usize = 20;

/// What stands in the comments of the statements of each kind of work.
const NOTHING: Work = ("nothing", "nobody");
const PURGE: Work = ("a purge", "operator");
const RETENTION: Work = ("retention of dead jobs", "leasehold.pruner");
const REAPING: Work = ("reaping", "leasehold.reaper");
const VIEWS: Work = ("ten views of all queues each 2 s", "dashboard");

/// What it is called, and whose statements it consists of.
type Work = (&'static str, &'static str);

fn main() -> ExitCode {
    let rows = ("rows", "300000", "Rows of each kind");
    let rounds = ("rounds", "3", "Rounds, of which medians are shown");
    let seconds =
        ("seconds", "20", "Seconds of each case that has no end of its own, and before each while its rows lie still");
    let about = "Takes the latency of Lease beside purge, retention, reaping and counting";
    let options = Options::parse(about, &[rows, rounds, seconds]);
    options.run(measure(&options))
}

async fn measure(options: &Options) -> Outcome<()> {
    let (rows, rounds) = (options.number("rows"), options.number("rounds").max(1));
    let watched = Duration::from_secs(options.number("seconds").max(1));
    let settings = [
        "min_wal_size=4GB",
        "max_wal_size=8GB",
        "shared_buffers=512MB",
        "shared_preload_libraries=pg_stat_statements",
        "pg_stat_statements.track_planning=off",
    ];
    let postgres = Postgres::start(options.bindir(), &settings).await?;
    postgres.age_log().await?;
    println!("{}", figures::machine());
    println!("{}, fsync on; {} rows of each kind", postgres.version().await?, thousands(f64_of(rows)));
    println!("one job each {} ms: from its Enqueue's beginning to its arrival on a stream", BEAT.as_millis());
    let url = postgres.create_database(DATABASE)?;
    postgres.connect(DATABASE).await?.execute("create extension pg_stat_statements").await?;
    let quick = [("LEASEHOLD_UPKEEP_PRUNE_INTERVAL", "1s")];
    let broker = Broker::start(options.broker(), &url, &quick).await?;
    let mut admin = admin(&broker).await?;
    for n in 0..QUEUES {
        let queue = format!("q{n}");
        admin.update_queue(UpdateQueueRequest { queue, create: true, ..UpdateQueueRequest::default() }).await?;
    }
    let beats = Beats::start(&broker, &postgres).await?;
    tokio::time::sleep(Duration::from_secs(5)).await;
    beats.end(NOTHING).await?;

    let mut cases = Vec::new();
    for round in 1..=rounds {
        println!("round {round} of {rounds}");
        cases.extend(take_round(&postgres, &broker, &mut admin, (rows, watched)).await?);
    }
    show(&cases);
    for line in broker.trouble()? {
        println!("  broker: {line}");
    }
    Ok(())
}

/// All cases, one after the other, the one beside nothing first.
async fn take_round(
    postgres: &Postgres,
    broker: &Broker,
    admin: &mut Admin,
    (rows, watched): (u64, Duration),
) -> Outcome<Vec<Case>> {
    let mut cases = Vec::new();
    empty(postgres).await?;
    let alone = still(postgres, broker, watched).await?;
    cases.push(Case { alone: alone.p99(), ..alone });

    fill(postgres, &ready(rows)).await?;
    let alone = still(postgres, broker, watched).await?;
    let beats = Beats::start(broker, postgres).await?;
    purge(admin).await?;
    cases.push(Case { alone: alone.p99(), ..beats.end(PURGE).await? });

    // What the passes are to take is theirs only once it has lain still for as long as that is watched.
    let due = watched + FILLED_WITHIN;
    for (work, pass, text) in [(RETENTION, "dead jobs", dead(rows, due)), (REAPING, "reaper", leased(rows, due))] {
        empty(postgres).await?;
        let before = broker.upkeep_rows(pass).await?;
        fill(postgres, &text).await?;
        let alone = still(postgres, broker, watched).await?;
        let early = broker.upkeep_rows(pass).await? - before;
        if early > 0 {
            return Err(format!("filling took so long that {early} rows were due while they were to lie still").into());
        }
        while broker.upkeep_rows(pass).await? == before {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let beats = Beats::start(broker, postgres).await?;
        while broker.upkeep_rows(pass).await? < before + rows {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        cases.push(Case { alone: alone.p99(), ..beats.end(work).await? });
    }

    empty(postgres).await?;
    for text in [ready(50_000.min(rows)), kept(rows)] {
        fill(postgres, &text).await?;
    }
    let alone = still(postgres, broker, watched).await?;
    let beats = Beats::start(broker, postgres).await?;
    view(broker, watched).await?;
    cases.push(Case { alone: alone.p99(), ..beats.end(VIEWS).await? });
    Ok(cases)
}

/// Beside nothing, with the tables as they are.
async fn still(postgres: &Postgres, broker: &Broker, watched: Duration) -> Outcome<Case> {
    let beats = Beats::start(broker, postgres).await?;
    tokio::time::sleep(watched).await;
    beats.end(NOTHING).await
}

/// What was taken beside one work in one round.
struct Case {
    work: Work,
    beats: Vec<f64>,
    took: Duration,
    statements: Statements,
    /// The 99th percentile just before, beside nothing.
    alone: f64,
}

impl Case {
    fn p99(&self) -> f64 {
        quantile(&self.beats, 0.99)
    }
}

/// Statements of one caller as the database saw them.
#[derive(Clone, Copy)]
struct Statements {
    count: i64,
    mean_ms: f64,
    longest_ms: f64,
}

/// Medians over the rounds. Each is compared with what was just before it: a disk is slower at some times than at others.
fn show(cases: &[Case]) {
    let mut table = Table::new([
        "beside",
        "s",
        "jobs",
        "median ms",
        "p99 ms",
        "p99 just before",
        "ratio",
        "worst ms",
        "its statements",
        "mean ms",
        "longest ms",
    ]);
    for work in [NOTHING, PURGE, RETENTION, REAPING, VIEWS] {
        let of = |work: Work| cases.iter().filter(move |case| case.work == work);
        let over = |value: &dyn Fn(&Case) -> f64| median(&of(work).map(value).collect::<Vec<_>>());
        let part = |part: f64| move |case: &Case| quantile(&case.beats, part);
        let has_any = work != NOTHING;
        let own = |text: String| if has_any { text } else { "–".to_owned() };
        table.row([
            work.0.to_owned(),
            format!("{:.0}", over(&|case| case.took.as_secs_f64())),
            of(work).map(|case| case.beats.len()).sum::<usize>().to_string(),
            format!("{:.2}", over(&part(0.5))),
            format!("{:.2}", over(&Case::p99)),
            own(format!("{:.2}", over(&|case| case.alone))),
            own(format!("{:.2}", over(&|case| case.p99() / case.alone))),
            format!("{:.0}", over(&part(1.0))),
            own(format!("{:.0}", over(&|case| f64_of(case.statements.count.unsigned_abs())))),
            own(format!("{:.2}", over(&|case| case.statements.mean_ms))),
            own(format!("{:.1}", over(&|case| case.statements.longest_ms))),
        ]);
    }
    table.print();
    println!("medians over rounds; a statement's time is the database's own, without its commit");
}

type Admin = QueueAdminServiceClient<tonic::transport::Channel>;

async fn admin(broker: &Broker) -> Outcome<Admin> {
    let channel = Endpoint::from_shared(format!("http://{}", broker.address()))?.tcp_nodelay(true).connect().await?;
    Ok(Admin::new(channel))
}

/// Enqueues a job each beat, and leases and acks it.
struct Beats<'a> {
    postgres: &'a Postgres,
    stop: CancellationToken,
    running: JoinHandle<Outcome<Vec<f64>>>,
    started: Instant,
}

impl<'a> Beats<'a> {
    async fn start(broker: &Broker, postgres: &'a Postgres) -> Outcome<Self> {
        postgres.connect(DATABASE).await?.execute("select pg_stat_statements_reset()").await?;
        let mut client = clients::connect(broker.address()).await?;
        let mut producer = clients::connect(broker.address()).await?;
        let request = LeaseRequest { queues: vec!["beat".to_owned()], max_in_flight: 10, ..LeaseRequest::default() };
        let mut frames = client.lease(from_caller("worker", request)?).await?.into_inner();
        let stop = CancellationToken::new();
        let ends = stop.clone();
        let running = tokio::spawn(async move {
            let (mut taken, mut ticks) = (Vec::new(), tokio::time::interval(BEAT));
            while ends.run_until_cancelled(ticks.tick()).await.is_some() {
                let job = NewJob { queue: "beat".to_owned(), payload: vec![b'x'; 100].into(), ..NewJob::default() };
                let began = Instant::now();
                producer.enqueue(from_caller("producer", EnqueueRequest { jobs: vec![job] })?).await?;
                let leased = loop {
                    match frames.message().await?.and_then(|response| response.frame) {
                        Some(Frame::Jobs(jobs)) => break jobs.jobs,
                        Some(_) => {}
                        None => return Err("the stream ended".into()),
                    }
                };
                taken.push(began.elapsed().as_secs_f64() * 1e3);
                client.ack(from_caller("worker", AckRequest { lease_tokens: tokens(&leased) })?).await?;
            }
            Ok(taken)
        });
        Ok(Self { postgres, stop, running, started: Instant::now() })
    }

    async fn end(self, work: Work) -> Outcome<Case> {
        self.stop.cancel();
        let took = self.started.elapsed();
        let beats = self.running.await??;
        let mut session = self.postgres.connect(DATABASE).await?;
        let (count, mean_ms, longest_ms) = sqlx::query_as(
            "select coalesce(sum(calls), 0)::bigint, coalesce(sum(total_exec_time) / sum(calls), 0), \
                coalesce(max(max_exec_time), 0) \
             from pg_stat_statements where query like '%conn_tag:' || $1 || '%'",
        )
        .bind(work.1)
        .fetch_one(&mut session)
        .await?;
        let case = Case { work, beats, took, statements: Statements { count, mean_ms, longest_ms }, alone: 0.0 };
        println!("  beside {}: p99 {:.2} ms of {} jobs", work.0, case.p99(), case.beats.len());
        Ok(case)
    }
}

/// Purges the first queue.
async fn purge(admin: &mut Admin) -> Outcome<()> {
    let request = PurgeQueueRequest {
        queue: "q0".to_owned(),
        states: vec![JobState::Ready.into()],
        ..PurgeQueueRequest::default()
    };
    let mut frames = admin.purge_queue(from_caller("operator", request)?).await?.into_inner();
    while frames.message().await?.is_some() {}
    Ok(())
}

/// Lists all queues with their counts as viewers do.
async fn view(broker: &Broker, watched: Duration) -> Outcome<()> {
    let mut viewers = tokio::task::JoinSet::new();
    for _ in 0..VIEWERS {
        let mut admin = admin(broker).await?;
        viewers.spawn(async move {
            let (began, mut ticks) = (Instant::now(), tokio::time::interval(VIEW));
            while began.elapsed() < watched {
                ticks.tick().await;
                let all = ListQueuesRequest { include_counts: true, ..ListQueuesRequest::default() };
                admin.list_queues(from_caller("dashboard", all)?).await?;
            }
            Ok(())
        });
    }
    clients::all(viewers).await
}

async fn fill(postgres: &Postgres, text: &str) -> Outcome<()> {
    let mut session = postgres.connect(DATABASE).await?;
    session.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(text.to_owned()))).await?;
    for table in ["job", "dead_job"] {
        session.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(format!("vacuum analyze leasehold.{table}")))).await?;
    }
    Ok(())
}

/// Removes what the case before left.
async fn empty(postgres: &Postgres) -> Outcome<()> {
    let mut session = postgres.connect(DATABASE).await?;
    let queues = "select id from leasehold.queue where name in ('q0', 'q1', 'q2')";
    for table in ["job", "dead_job"] {
        let text = format!("delete from leasehold.{table} where queue_id in ({queues})");
        session.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(text))).await?;
        session.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(format!("vacuum analyze leasehold.{table}")))).await?;
    }
    Ok(())
}

fn of_queue(queue: &str) -> String {
    format!("(select id from leasehold.queue where name = '{queue}')")
}

fn ready(rows: u64) -> String {
    format!(
        "insert into leasehold.job (enqueued_at, available_at, ready_at, queue_id, max_attempts, priority, payload)
         select now(), now(), clock_timestamp(), {}, 9, 4, repeat('x', 100)::bytea from generate_series(1, {rows})",
        of_queue("q0")
    )
}

/// Their leases end in the future when they are made: passes do not look again at what lies before their last look.
fn leased(rows: u64, due: Duration) -> String {
    format!(
        "insert into leasehold.job (enqueued_at, available_at, ready_at, queue_id, max_attempts, priority, attempt,
            lease_number, lease_id, lease_until, lease_duration, payload)
         select now(), now(), now(), {}, 9, 4, 1, 1, gen_random_uuid(), clock_timestamp() + interval '{} seconds', 1,
            repeat('x', 100)::bytea
         from generate_series(1, {rows})",
        of_queue("q1"),
        due.as_secs()
    )
}

fn dead_until(rows: u64, expires: &str) -> String {
    format!(
        "insert into leasehold.dead_job (id, lease_number, enqueued_at, available_at, dead_at, expires_at, queue_id, attempt,
            max_attempts, priority, content_type, payload)
         select nextval('leasehold.job_id_seq'), 1, now(), now(), clock_timestamp(), {expires}, {}, 1, 1, 4, '',
            repeat('x', 100)::bytea
         from generate_series(1, {rows})",
        of_queue("q2")
    )
}

fn dead(rows: u64, due: Duration) -> String {
    dead_until(rows, &format!("clock_timestamp() + interval '{} seconds'", due.as_secs()))
}

/// Dead jobs that stay.
fn kept(rows: u64) -> String {
    dead_until(rows, "now() + interval '1 day'")
}

#[allow(clippy::cast_precision_loss, reason = "a figure for people")]
fn f64_of(number: u64) -> f64 {
    number as f64
}
