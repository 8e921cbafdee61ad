//! Log lines: to stderr, as text or JSON. They never hold a payload, a secret or SQL text.

use tracing::Level;
use tracing_subscriber::{
    Layer, Registry,
    filter::{LevelFilter, Targets},
    layer::SubscriberExt as _,
    util::{SubscriberInitExt as _, TryInitError},
};

use crate::config::sections::{LogFormat, LogLevel};

/// The audit log's lines, which are written whatever the level.
pub const AUDIT: &str = "leasehold::audit";

/// A further listener to events, such as the one that hears the database's notices.
pub type ExtraLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// Starts logging for the whole process; `extra` layers filter for themselves.
pub fn start(format: LogFormat, level: LogLevel, extra: Vec<ExtraLayer>) -> Result<(), TryInitError> {
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines: ExtraLayer = match format {
        LogFormat::Human => {
            lines.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).with_filter(lines_of(level)).boxed()
        }
        LogFormat::Json => lines.json().flatten_event(true).with_filter(lines_of(level)).boxed(),
    };
    let mut layers = extra;
    layers.push(lines);
    tracing_subscriber::registry().with(layers).try_init()
}

/// Which events become lines. Libraries speak from warnings on; the database driver not at all, since its events hold SQL text.
fn lines_of(level: LogLevel) -> Targets {
    let level = level_of(level);
    Targets::new()
        .with_default(level.min(Level::WARN))
        .with_target("leasehold", level)
        .with_target(AUDIT, level.max(Level::INFO))
        .with_target("sqlx", LevelFilter::OFF)
}

/// A listener whose records are sent. Libraries keep silent: what the sending itself has to say would have to be sent in turn.
pub(super) fn sent(listener: impl Layer<Registry> + Send + Sync, level: LogLevel) -> ExtraLayer {
    listener.with_filter(records_of(level)).boxed()
}

fn records_of(level: LogLevel) -> Targets {
    let level = level_of(level);
    Targets::new().with_target("leasehold", level).with_target(AUDIT, level.max(Level::INFO))
}

fn level_of(level: LogLevel) -> Level {
    match level {
        LogLevel::Error => Level::ERROR,
        LogLevel::Warn => Level::WARN,
        LogLevel::Info => Level::INFO,
        LogLevel::Debug => Level::DEBUG,
        LogLevel::Trace => Level::TRACE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sends_records_makes_none() {
        let records = records_of(LogLevel::Trace);
        for target in
            ["h2::codec", "hyper_util::client", "tonic::transport", "tower::buffer", "opentelemetry_sdk", "sqlx"]
        {
            assert!(!records.would_enable(target, &Level::ERROR), "{target}");
        }
        assert!(records.would_enable("leasehold::store", &Level::TRACE));
        assert!(!records_of(LogLevel::Info).would_enable("leasehold::store", &Level::DEBUG));
        assert!(
            records_of(LogLevel::Error).would_enable(AUDIT, &Level::INFO),
            "the audit log is sent whatever the level"
        );
    }

    #[test]
    fn the_database_driver_never_writes_a_line() {
        for level in [LogLevel::Error, LogLevel::Info, LogLevel::Trace] {
            for target in ["sqlx::query", "sqlx::postgres::notice", "sqlx"] {
                assert!(!lines_of(level).would_enable(target, &Level::ERROR), "{target}");
            }
        }
    }

    #[test]
    fn the_audit_log_is_written_at_every_level() {
        for level in [LogLevel::Error, LogLevel::Warn, LogLevel::Info, LogLevel::Trace] {
            assert!(lines_of(level).would_enable(AUDIT, &Level::INFO), "{level:?}");
        }
    }

    #[test]
    fn libraries_speak_from_warnings_on() {
        let lines = lines_of(LogLevel::Trace);
        assert!(lines.would_enable("h2::proto", &Level::WARN));
        assert!(!lines.would_enable("h2::proto", &Level::INFO));
        assert!(lines.would_enable("leasehold::store", &Level::TRACE));
        assert!(!lines_of(LogLevel::Error).would_enable("h2::proto", &Level::WARN));
    }
}
