//! What purging, pruning and reaping of very many rows do to the time from an Enqueue to the job's arrival on a stream, and
//! what operators' counting does.

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
    figures::{self, Table, quantile, thousands},
    postgres::Postgres,
};

const DATABASE: &str = "maintenance";
/// One job is enqueued so often, and its way to the stream is taken.
const BEAT: Duration = Duration::from_millis(5);
/// How long each case without an end of its own lasts.
const WATCHED: Duration = Duration::from_secs(20);
/// Views of all queues with their counts, so often each.
const VIEWERS: usize = 10;
const VIEW: Duration = Duration::from_secs(2);
/// Queues that the views show.
const QUEUES: usize = 20;

fn main() -> ExitCode {
    let rows = ("rows", "300000", "Rows of each kind");
    let options = Options::parse("Takes the latency of Lease beside purge, retention, reaping and counting", &[rows]);
    options.run(measure(&options))
}

async fn measure(options: &Options) -> Outcome<()> {
    let rows = options.number("rows");
    let settings = ["min_wal_size=4GB", "max_wal_size=8GB", "shared_buffers=512MB"];
    let postgres = Postgres::start(options.bindir(), &settings).await?;
    postgres.age_log().await?;
    println!("{}", figures::machine());
    println!("{}, fsync on; {} rows of each kind", postgres.version().await?, thousands(f64_of(rows)));
    println!("one job each {} ms: from its Enqueue's beginning to its arrival on a stream", BEAT.as_millis());
    let url = postgres.create_database(DATABASE)?;
    let quick = [("LEASEHOLD_UPKEEP_PRUNE_INTERVAL", "1s")];
    let broker = Broker::start(options.broker(), &url, &quick).await?;
    let mut admin = admin(&broker).await?;
    for n in 0..QUEUES {
        let queue = format!("q{n}");
        admin.update_queue(UpdateQueueRequest { queue, create: true, ..UpdateQueueRequest::default() }).await?;
    }

    let mut table =
        Table::new(["beside", "s", "jobs", "median ms", "p99 ms", "worst ms", "p99 of the work's own calls ms"]);
    let mut show = |name: &str, figures: &Latencies, own: &[f64]| {
        let ms = |part| format!("{:.1}", quantile(&figures.0, part));
        println!("  beside {name}: p99 {} ms of {} jobs", ms(0.99), figures.0.len());
        let own = if own.is_empty() { "–".to_owned() } else { format!("{:.1}", quantile(own, 0.99)) };
        table.row([
            name.to_owned(),
            format!("{:.0}", figures.1.as_secs_f64()),
            figures.0.len().to_string(),
            ms(0.5),
            ms(0.99),
            ms(1.0),
            own,
        ]);
    };
    let beats = Beats::start(&broker).await?;
    tokio::time::sleep(Duration::from_secs(5)).await;
    beats.end().await?;

    let beats = Beats::start(&broker).await?;
    tokio::time::sleep(WATCHED).await;
    show("nothing", &beats.end().await?, &[]);

    fill(&postgres, &ready(rows)).await?;
    let beats = Beats::start(&broker).await?;
    let steps = purge(&mut admin).await?;
    show("a purge", &beats.end().await?, &steps);

    for (name, text) in [("retention of dead jobs", dead(rows)), ("reaping", leased(rows))] {
        fill(&postgres, &text).await?;
        let beats = Beats::start(&broker).await?;
        wait_until_done(&postgres).await?;
        show(name, &beats.end().await?, &[]);
    }

    for text in [ready(50_000.min(rows)), kept(rows)] {
        fill(&postgres, &text).await?;
    }
    let beats = Beats::start(&broker).await?;
    let views = view(&broker).await?;
    show("ten views of all queues each 2 s", &beats.end().await?, &views);
    table.print();
    for line in broker.trouble()? {
        println!("  broker: {line}");
    }
    Ok(())
}

type Admin = QueueAdminServiceClient<tonic::transport::Channel>;

async fn admin(broker: &Broker) -> Outcome<Admin> {
    let channel = Endpoint::from_shared(format!("http://{}", broker.address()))?.tcp_nodelay(true).connect().await?;
    Ok(Admin::new(channel))
}

/// Milliseconds of each beat, and how long they were taken.
struct Latencies(Vec<f64>, Duration);

/// Enqueues a job each beat, and leases and acks it.
struct Beats {
    stop: CancellationToken,
    running: JoinHandle<Outcome<Vec<f64>>>,
    started: Instant,
}

impl Beats {
    async fn start(broker: &Broker) -> Outcome<Self> {
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
        Ok(Self { stop, running, started: Instant::now() })
    }

    async fn end(self) -> Outcome<Latencies> {
        self.stop.cancel();
        let took = self.started.elapsed();
        Ok(Latencies(self.running.await??, took))
    }
}

/// Purges the first queue; milliseconds between its frames.
async fn purge(admin: &mut Admin) -> Outcome<Vec<f64>> {
    let request = PurgeQueueRequest {
        queue: "q0".to_owned(),
        states: vec![JobState::Ready.into()],
        ..PurgeQueueRequest::default()
    };
    let mut frames = admin.purge_queue(from_caller("operator", request)?).await?.into_inner();
    let (mut steps, mut last) = (Vec::new(), Instant::now());
    while frames.message().await?.is_some() {
        steps.push(last.elapsed().as_secs_f64() * 1e3);
        last = Instant::now();
    }
    Ok(steps)
}

/// Lists all queues with their counts as viewers do; milliseconds of each list.
async fn view(broker: &Broker) -> Outcome<Vec<f64>> {
    let mut viewers = tokio::task::JoinSet::new();
    for _ in 0..VIEWERS {
        let mut admin = admin(broker).await?;
        viewers.spawn(async move {
            let (mut taken, began, mut ticks) = (Vec::new(), Instant::now(), tokio::time::interval(VIEW));
            while began.elapsed() < WATCHED {
                ticks.tick().await;
                let at = Instant::now();
                let all = ListQueuesRequest { include_counts: true, ..ListQueuesRequest::default() };
                admin.list_queues(from_caller("dashboard", all)?).await?;
                taken.push(at.elapsed().as_secs_f64() * 1e3);
            }
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(taken)
        });
    }
    let mut taken = Vec::new();
    while let Some(some) = viewers.join_next().await {
        taken.extend(some??);
    }
    Ok(taken)
}

async fn fill(postgres: &Postgres, text: &str) -> Outcome<()> {
    let mut session = postgres.connect(DATABASE).await?;
    session.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(text.to_owned()))).await?;
    session.execute("vacuum analyze leasehold.job; ").await?;
    Ok(())
}

/// Waits until the dead jobs of one queue are past their retention and the leases of another one are over, and all are gone.
/// They end in the future when they are made: passes do not look again at what lies before their last look.
async fn wait_until_done(postgres: &Postgres) -> Outcome<()> {
    let mut session = postgres.connect(DATABASE).await?;
    loop {
        let left: bool = sqlx::query_scalar(
            "select exists (select from leasehold.dead_job)
                or exists (select from leasehold.job j join leasehold.queue q on q.id = j.queue_id
                    where q.name = 'q1' and j.lease_id is not null)",
        )
        .fetch_one(&mut session)
        .await?;
        if !left {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
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

fn leased(rows: u64) -> String {
    format!(
        "insert into leasehold.job (enqueued_at, available_at, ready_at, queue_id, max_attempts, priority, attempt,
            lease_number, lease_id, lease_until, lease_duration, payload)
         select now(), now(), now(), {}, 9, 4, 1, 1, gen_random_uuid(), clock_timestamp() + interval '5 seconds', 1,
            repeat('x', 100)::bytea
         from generate_series(1, {rows})",
        of_queue("q1")
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

fn dead(rows: u64) -> String {
    dead_until(rows, "clock_timestamp() + interval '5 seconds'")
}

/// Dead jobs that stay.
fn kept(rows: u64) -> String {
    dead_until(rows, "now() + interval '1 day'")
}

#[allow(clippy::cast_precision_loss, reason = "a figure for people")]
fn f64_of(number: u64) -> f64 {
    number as f64
}
