//! `leasehold migrate up|status`.

use std::fmt::Write as _;

use clap::{ArgMatches, Command};
use tokio::time::timeout;

use super::{Exit, exit, options, print};
use crate::{
    app::database,
    config::Config,
    store::{
        engine::{AppliedMigration, Engine},
        error::EngineError,
        schema::{self, SchemaStatus},
    },
};

/// The command.
pub(super) fn command() -> Command {
    let up = Command::new("up").about("Apply the migrations that are missing");
    let status = Command::new("status").about("List migrations; exit code 1 where some are missing");
    Command::new("migrate")
        .about("Bring the database's schema to this version")
        .subcommand_required(true)
        .subcommand(options::add_to(up))
        .subcommand(options::add_to(status))
}

/// Runs it.
pub(super) fn run(matches: &ArgMatches) -> Exit {
    let Some((name, matches)) = matches.subcommand() else { return Exit::BadConfiguration };
    let up = name == "up";
    let config = match options::load(matches) {
        Ok(config) => config,
        Err(exit) => return exit,
    };
    super::run_to_end(async move {
        match migrate(&config, up).await {
            Ok(exit) => exit,
            Err(error) => {
                let failed = exit::fail(&error);
                if up && matches!(error, EngineError::Conflict(_)) {
                    exit::note(
                        &"a transaction of somebody else kept a table locked, so this migration was given up and nothing of it is \
                          applied; run it again ('leasehold holds --database' says who holds what)",
                    );
                }
                let away = matches!(error, EngineError::Unavailable(_) | EngineError::NotSent(_));
                if away { Exit::Unavailable } else { failed }
            }
        }
    })
}

async fn migrate(config: &Config, up: bool) -> Result<Exit, EngineError> {
    let engine = database::open(config).await?;
    let status = status(engine.as_ref(), config).await?;
    if !up {
        let printed = print(&list(&status));
        return Ok(if status.missing.is_empty() { printed } else { Exit::Failure });
    }
    // a migration may take as long as it takes, so there is no deadline here
    let applied = schema::migrate(engine.as_ref()).await?;
    if applied.is_empty() {
        exit::note(&"nothing to apply: the schema is current");
    }
    Ok(print(&lines("applied", &applied)))
}

/// What the database has. Its first answer must come in the time that connecting may take.
async fn status(engine: &dyn Engine, config: &Config) -> Result<SchemaStatus, EngineError> {
    let limit = config.lanes.connect_timeout;
    timeout(limit, schema::status(engine))
        .await
        .unwrap_or_else(|_| Err(EngineError::Unavailable(format!("no answer within {limit:?}"))))
}

fn list(status: &SchemaStatus) -> String {
    lines("applied", &status.applied) + &lines("missing", &status.missing)
}

fn lines(state: &str, migrations: &[AppliedMigration]) -> String {
    migrations.iter().fold(String::new(), |mut lines, migration| {
        writeln!(lines, "{:04} {:<32} {state}", migration.number, migration.name)
            .expect("writing to a String cannot fail");
        lines
    })
}
