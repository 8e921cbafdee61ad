//! `leasehold serve`.

use clap::{ArgMatches, Command};
use tokio_util::sync::CancellationToken;

use super::{Exit, exit, options, signals::Signals};
use crate::{
    app::{App, StartError, database},
    config::Config,
    store::error::EngineError,
    telemetry::logging,
};

/// The command.
pub(super) fn command() -> Command {
    options::add_to(Command::new("serve").about("Serve jobs until SIGTERM or SIGINT; a second one ends it at once"))
}

/// Runs it.
pub(super) fn run(matches: &ArgMatches) -> Exit {
    let config = match options::load(matches) {
        Ok(config) => config,
        Err(exit) => return exit,
    };
    super::run_to_end(serve(&config))
}

async fn serve(config: &Config) -> Exit {
    let mut telemetry = match database::telemetry(config) {
        Ok(telemetry) => telemetry,
        Err(error) => return exit::fail(&error),
    };
    let mut listeners = database::log_layers();
    listeners.extend(telemetry.take_log_layer());
    if let Err(error) = logging::start(config.broker.log_format, config.broker.log_level, listeners) {
        return exit::fail(&error);
    }
    let mut signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(error) => return exit::fail(&format_args!("signals cannot be heard: {error}")),
    };
    let app = match App::start(config, telemetry).await {
        Ok(app) => app,
        Err(error) => {
            tracing::error!(%error, "the broker cannot start");
            return match error {
                StartError::Database(EngineError::Unavailable(_) | EngineError::NotSent(_)) => Exit::Unavailable,
                _ => Exit::Failure,
            };
        }
    };
    let (grpc, http) = (app.grpc_address(), app.http_address());
    tracing::info!(%grpc, %http, version = env!("CARGO_PKG_VERSION"), "serving");
    if config.broker.insecure_plaintext {
        tracing::warn!("serving without TLS on addresses that others can reach, as insecure_plaintext allows");
    }

    let signal = signals.next().await;
    tracing::info!(signal, "told to end");
    let hurry = CancellationToken::new();
    let _second = tokio_util::task::AbortOnDropHandle::new(tokio::spawn({
        let hurry = hurry.clone();
        async move {
            let signal = signals.next().await;
            tracing::warn!(signal, "ending at once");
            hurry.cancel();
        }
    }));
    if app.drain(hurry).await { Exit::Ok } else { Exit::Failure }
}
