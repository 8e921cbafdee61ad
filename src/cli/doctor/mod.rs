//! `leasehold doctor`: whether the database is as the promises need it.

mod checks;
mod finding;
mod report;

use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use tokio::time::timeout;

use self::{checks::Expectations, finding::Finding, report::Report};
use super::{Exit, exit, options, print};
use crate::{
    app::database,
    config::{
        Config, Database,
        kind::{Given, Kind as _, Span},
    },
    model::Caller,
    store::{engine::examining::Facts, error::EngineError},
};

/// Beside its lanes, a replica listens and notifies.
const BESIDE_LANES: u64 = 2;

/// A snapshot older than this is old, where nobody says otherwise.
const OLD_SNAPSHOT: Span = Span::seconds(300, 0, 86_400);

const HELP: &str = "Connects as 'leasehold serve' would, reads, and changes nothing. Each line says ok, warn or fail and what to \
do; what the role may not see is a warning.\n\n\
Exit codes: 0 nothing failed, 1 something failed (with --strict: or warned), 64 bad command line or configuration, 69 the \
database cannot be reached";

/// The command.
pub(super) fn command() -> Command {
    let own = Command::new("doctor")
        .about("Look whether the database is as the broker needs it")
        .after_help(HELP)
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print one JSON object"))
        .arg(Arg::new("strict").long("strict").action(ArgAction::SetTrue).help("Let warnings fail as well"))
        .arg(
            Arg::new("replicas")
                .long("replicas")
                .value_name("COUNT")
                .value_parser(value_parser!(u64).range(1..=1_000))
                .default_value("1")
                .help("Replicas whose connections must fit"),
        )
        .arg(
            Arg::new("old-snapshot")
                .long("old-snapshot")
                .value_name("TIME")
                .value_parser(|text: &str| OLD_SNAPSHOT.parse(&Given::One(text.into())))
                .default_value("5m")
                .help("How old a snapshot may be"),
        );
    options::add_to(own)
}

/// Runs it.
pub(super) fn run(matches: &ArgMatches) -> Exit {
    let config = match options::load(matches) {
        Ok(config) => config,
        Err(exit) => return exit,
    };
    let expected = Expectations {
        replicas: matches.get_one("replicas").copied().unwrap_or(1),
        connections: config.lanes.count as u64 + BESIDE_LANES,
        old_snapshot: matches.get_one("old-snapshot").copied().unwrap_or(OLD_SNAPSHOT.default()),
        migrates: config.broker.migrate || !matches!(config.broker.database_url, Database::Postgres(_)),
        allow_lossy: config.broker.allow_lossy,
    };
    let (findings, away) = match super::outcome_of(examine(&config)) {
        Ok(Ok(facts)) => (checks::judge(&facts, &expected), false),
        Ok(Err(error)) => (vec![unreachable(&error)], true),
        Err(error) => return exit::fail(&error),
    };
    let report = Report::new(findings);
    let text = if matches.get_flag("json") { report.json() } else { Ok(report.text()) };
    let printed = match text {
        Ok(text) => print(&text),
        Err(error) => return exit::fail(&error),
    };
    match printed {
        Exit::Ok if away => Exit::Unavailable,
        Exit::Ok if report.failed(matches.get_flag("strict")) => Exit::Failure,
        printed => printed,
    }
}

/// All statements together may take as long as connecting and one statement may.
async fn examine(config: &Config) -> Result<Facts, EngineError> {
    let limit: Duration = config.lanes.connect_timeout + config.lanes.statement_timeout;
    let examiner = database::examiner(config)?;
    timeout(limit, examiner.examine(&Caller::broker("doctor")))
        .await
        .unwrap_or_else(|_| Err(EngineError::Unavailable(format!("no answer within {limit:?}"))))
}

fn unreachable(error: &EngineError) -> Finding {
    Finding::fail(
        "reach",
        error.to_string(),
        "check database_url ('leasehold config print' says who set it), the network and the server's log",
    )
}
