//! What 10,000 idle Lease streams cost, and how soon one of them has a job.

#![allow(clippy::print_stdout, reason = "a measurement's table is its purpose")]

mod stand;

use std::{
    net::SocketAddr,
    process::ExitCode,
    time::{Duration, Instant},
};

use leasehold::v1::{AckRequest, EnqueueRequest, LeaseRequest, LeasedJob, NewJob, lease_response::Frame};
use tokio::{sync::mpsc, task::JoinSet, time::timeout};

use stand::{
    Options, Outcome,
    broker::Broker,
    clients::{self, Client, PAYLOAD, from_caller, tokens},
    figures::{self, Table, quantile},
    process,
    server::Server,
    statements,
};

/// Streams, callers and jobs are spread over them.
const QUEUES: u64 = 100;
const CALLERS: u64 = 20;
const WINDOW: Duration = Duration::from_secs(30);
/// The first heartbeats and whatever a new stream needs are over by then.
const SETTLING: Duration = Duration::from_secs(5);
const PICK_UPS: u64 = 200;
/// Far beyond the second within which any job must be picked up.
const PATIENCE: Duration = Duration::from_secs(30);
const DATABASE: &str = "idle";

fn main() -> ExitCode {
    let streams = ("streams", "10000", "Lease streams");
    let connections = ("connections", "100", "HTTP/2 connections that they share");
    let about = "Opens idle Lease streams; shows the broker's memory, statements, connections and pick-up times";
    let options = Options::parse_on(&["postgres", "mariadb"], about, &[streams, connections]);
    options.run(measure(&options))
}

#[allow(clippy::cast_precision_loss, reason = "figures are shown with three digits")]
async fn measure(options: &Options) -> Outcome<()> {
    let (count, connections) = (options.number("streams"), options.number("connections"));
    let server = Server::start(options).await?;
    println!("{}", figures::machine());
    println!(
        "{}; {} Lease streams of credit 10 on {} connections, for {CALLERS} callers and {QUEUES} queues; clients in another process",
        server.version().await?,
        count,
        connections
    );
    let broker = Broker::start(options.broker(), &server.create_database(DATABASE).await?, &[]).await?;
    let mut producer = clients::connect(broker.address()).await?;
    let (arrived, mut arrivals) = mpsc::channel(1_000);

    // One job through every queue first, so that neither queues nor plans are made within what is measured.
    let mut few = open(broker.address(), QUEUES, 1, &arrived).await?;
    pick_ups(&mut producer, &mut arrivals, QUEUES).await?;
    few.shutdown().await;
    tokio::time::sleep(SETTLING).await;

    let bare = process::resident(broker.pid())?;
    let opening = Instant::now();
    let mut streams = open(broker.address(), count, connections, &arrived).await?;
    let opening = opening.elapsed();
    tokio::time::sleep(SETTLING).await;
    let full = process::resident(broker.pid())?;

    let used = process::processor_time(broker.pid())?;
    let server_used = server.processor_time()?;
    let sent = server.watch(WINDOW).await?;
    let used = process::processor_time(broker.pid())?.saturating_sub(used);
    let server_used = server.processor_time()?.saturating_sub(server_used);
    let database_connections = server.connections(DATABASE).await?;
    let after_window = process::resident(broker.pid())?;
    let times = pick_ups(&mut producer, &mut arrivals, PICK_UPS).await?;

    let per_stream = |resident: u64| resident.saturating_sub(bare) as f64 / count as f64 / 1024.0;
    let seconds = WINDOW.as_secs_f64();
    let mut table = Table::new(["what", "measured"]);
    let mut row = |what: &str, measured: String| table.row([what.to_owned(), measured]);
    row("broker's memory without streams", format!("{:.1} MB", bare as f64 / 1e6));
    row("with them", format!("{:.1} MB", full as f64 / 1e6));
    row("per stream", format!("{:.1} KiB", per_stream(full)));
    row(&format!("per stream after {seconds:.0} s more"), format!("{:.1} KiB", per_stream(after_window)));
    row("time to open all", format!("{:.1} s", opening.as_secs_f64()));
    row("statements per second, all of the broker's", format!("{:.2}", sent.len() as f64 / seconds));
    row("database connections", database_connections.to_string());
    row("broker's processor time", format!("{:.2} % of a core", used.as_secs_f64() / seconds * 100.0));
    row("database server's processor time", format!("{:.2} % of a core", server_used.as_secs_f64() / seconds * 100.0));
    row("pick-up, p50", format!("{:.2} ms", quantile(&times, 0.5)));
    row("pick-up, p99", format!("{:.2} ms", quantile(&times, 0.99)));
    row("pick-up, worst", format!("{:.2} ms of {}", quantile(&times, 1.0), times.len()));
    table.print();
    println!("pick-up: from the call of Enqueue to the job's arrival at its worker, one job at a time");

    let mut table = Table::new(["caller", "statements per second"]);
    for (caller, count) in statements::by_caller(&sent) {
        table.row([caller, format!("{:.2}", count as f64 / seconds)]);
    }
    table.print();
    for line in broker.trouble()? {
        println!("  broker: {line}");
    }
    match streams.try_join_next() {
        Some(ended) => ended?,
        None => Ok(()),
    }
}

/// A job and the moment at which its worker had it.
struct Arrival {
    job: LeasedJob,
    at: Instant,
}

/// Opens streams and waits until the broker has said so on each.
async fn open(
    address: SocketAddr,
    streams: u64,
    connections: u64,
    arrived: &mpsc::Sender<Arrival>,
) -> Outcome<JoinSet<Outcome<()>>> {
    let (opened, mut openings) = mpsc::channel(1_000);
    let mut reading = JoinSet::new();
    for connection in 0..connections {
        let (client, opened) = (clients::connect(address).await?, opened.clone());
        let numbers = (0..streams).filter(|number| number % connections == connection);
        reading.extend(numbers.map(|number| read(client.clone(), number, opened.clone(), arrived.clone())));
    }
    for _ in 0..streams {
        tokio::select! {
            Some(()) = openings.recv() => {}
            Some(ended) = reading.join_next() => ended??,
        }
    }
    Ok(reading)
}

/// Reads a stream's frames for as long as it lasts.
async fn read(
    mut client: Client,
    number: u64,
    opened: mpsc::Sender<()>,
    arrived: mpsc::Sender<Arrival>,
) -> Outcome<()> {
    let request = LeaseRequest {
        queues: vec![queue(number)],
        consumer: format!("worker-{number}"),
        max_in_flight: 10,
        ..LeaseRequest::default()
    };
    let caller = format!("process_{}", number % CALLERS);
    let mut frames = client.lease(from_caller(&caller, request)?).await?.into_inner();
    while let Some(response) = frames.message().await? {
        match response.frame {
            Some(Frame::Opened(_)) => opened.send(()).await?,
            Some(Frame::Jobs(leased)) => {
                let at = Instant::now();
                for job in leased.jobs {
                    arrived.send(Arrival { job, at }).await?;
                }
            }
            Some(Frame::Drain(_)) => break,
            _ => {}
        }
    }
    Err(format!("stream {number} ended before the measurement").into())
}

/// Enqueues one job after the other, each for the next queue; answers milliseconds until the job was there.
async fn pick_ups(producer: &mut Client, arrivals: &mut mpsc::Receiver<Arrival>, count: u64) -> Outcome<Vec<f64>> {
    let mut times = Vec::new();
    for number in 0..count {
        let job = NewJob { queue: queue(number), payload: vec![b'x'; PAYLOAD].into(), ..NewJob::default() };
        let asked = Instant::now();
        producer.enqueue(from_caller("producer", EnqueueRequest { jobs: vec![job] })?).await?;
        let arrival = timeout(PATIENCE, arrivals.recv()).await?.ok_or("no stream is left")?;
        times.push(arrival.at.duration_since(asked).as_secs_f64() * 1e3);
        producer.ack(from_caller("worker", AckRequest { lease_tokens: tokens(&[arrival.job]) })?).await?;
    }
    Ok(times)
}

fn queue(number: u64) -> String {
    format!("idle-{}", number % QUEUES)
}
