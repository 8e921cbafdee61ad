//! `leasehold demo`: a broker on the embedded database, or on one that is named, three business processes that use it over gRPC, and a table of
//! what became of every job.

mod client;
mod lane_time;
mod process;
mod producer;
mod progress;
mod table;
mod tally;
mod worker;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use clap::{Arg, ArgMatches, Command, value_parser};
use tokio::{task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;

use self::{
    process::{ALL, Process},
    progress::Progress,
    tally::Tally,
};
use super::{Exit, exit};
use crate::{
    app::{App, database},
    config::{Config, Sources},
    telemetry::logging,
};

/// What is still open is waited for so long after the last Enqueue.
const PATIENCE: Duration = Duration::from_secs(30);
const TICK: Duration = Duration::from_millis(100);

/// The command.
pub(super) fn command() -> Command {
    Command::new("demo")
        .about(
            "Run a broker on the embedded database with three business processes, and count what becomes of every job",
        )
        .arg(Arg::new("database-url").long("database-url").value_name("URL").help(
            "Run it on this database instead, in a schema leasehold_demo, or tables leasehold_demo_…, which it makes and leaves",
        ))
        .arg(
            Arg::new("seconds")
                .long("seconds")
                .value_name("COUNT")
                .value_parser(value_parser!(u64).range(1..=3_600))
                .default_value("12")
                .help("How long jobs are enqueued"),
        )
}

/// Runs it.
pub(super) fn run(matches: &ArgMatches) -> Exit {
    let seconds = matches.get_one::<u64>("seconds").copied().unwrap_or(12);
    let url = matches.get_one::<String>("database-url").cloned();
    super::run_to_end(async move {
        demonstrate(Duration::from_secs(seconds), url).await.unwrap_or_else(|why| exit::fail(&why))
    })
}

async fn demonstrate(length: Duration, url: Option<String>) -> Result<Exit, Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    // The embedded database is new each time; in another one an interrupted run may have left jobs behind.
    let run = url.is_some().then(rand::random);
    let config = config(directory.path(), url)?;
    logging::start(config.broker.log_format, config.broker.log_level, Vec::new())?;
    let app = App::start(&config, database::telemetry(&config)?).await?;
    exit::note(&format_args!("a broker serves gRPC on {} for {} s", app.grpc_address(), length.as_secs()));

    let tallies = ALL.map(|process| (Process { run, ..process }, Arc::new(Tally::default())));
    let clients = clients(app.grpc_address(), &tallies, Instant::now() + length).await;
    let lane_time = lane_time::read(app.http_address()).await;
    app.drain(CancellationToken::new()).await;
    clients?;

    let rows = tallies.map(|(process, tally)| (process, tally.sums()));
    let printed = super::print(&table::render(&rows, &lane_time?));
    match table::total(&rows).lost {
        0 => Ok(printed),
        lost => Ok(exit::fail(&format_args!("{lost} jobs were lost"))),
    }
}

/// The configuration of the demonstration's broker. Neither file nor environment have a say, so that it is the same everywhere.
fn config(directory: &std::path::Path, url: Option<String>) -> Result<Config, Box<dyn std::error::Error>> {
    let directory = directory.to_str().ok_or("the temporary directory's path is no valid text")?;
    let said = [
        ("listen", "127.0.0.1:0"),
        ("http_listen", "127.0.0.1:0"),
        ("data_dir", directory),
        ("replica_name", "demo"),
        ("log_level", "warn"),
    ];
    let mut flags = said.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
    if let Some(url) = url {
        // Each option is refused beside a URL that it says nothing for.
        let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
        match scheme {
            "postgres" | "postgresql" => flags.push(("database_schema".to_owned(), "leasehold_demo".to_owned())),
            "mysql" | "mariadb" => flags.push(("database_table_prefix".to_owned(), "leasehold_demo_".to_owned())),
            _ => {}
        }
        flags.push(("migrate".to_owned(), "true".to_owned()));
        flags.push(("database_url".to_owned(), url));
    }
    Ok(Config::load(&Sources { flags, ..Sources::default() })?.0)
}

/// Runs producers until `until` and workers until every job has ended.
async fn clients(
    address: SocketAddr,
    tallies: &[(Process, Arc<Tally>)],
    until: Instant,
) -> Result<(), Box<dyn std::error::Error>> {
    let stop = CancellationToken::new();
    let (mut producers, mut workers) = (JoinSet::new(), JoinSet::new());
    for (process, tally) in tallies {
        let client = client::connect(address).await?;
        for number in 1..=process.workers {
            let (process, tally, client, stop) = (*process, tally.clone(), client.clone(), stop.clone());
            let name = format!("{}-{number}", process.caller);
            workers.spawn(async move { worker::run(process, name, client, &tally, stop).await });
        }
        let (process, tally) = (*process, tally.clone());
        producers.spawn(async move { producer::run(process, client, &tally, until).await });
    }
    let mut progress = Progress::new(tallies);
    let mut ticks = tokio::time::interval(TICK);
    let mut produced = Ok(());
    loop {
        ticks.tick().await;
        progress.show();
        while let Some(ended) = producers.try_join_next() {
            produced = produced.and(ended?);
        }
        let ended = || tallies.iter().all(|(_, tally)| tally.sums().lost == 0);
        if producers.is_empty() && (produced.is_err() || ended() || Instant::now() > until + PATIENCE) {
            break;
        }
    }
    progress.finish();
    stop.cancel();
    workers.join_all().await;
    Ok(produced.map_err(|status| format!("a producer gave up: {:?}: {}", status.code(), status.message()))?)
}
