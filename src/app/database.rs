//! The engine that the configuration asks for. Outside of the store nobody else names one.

use std::{path::PathBuf, sync::Arc};

use secrecy::SecretString;

use crate::{
    config::{Config, Database},
    store::{
        engine::{Engine, examining::Examining},
        error::EngineError,
        mysql::{MysqlEngine, MysqlOptions},
        postgres::{PostgresEngine, PostgresOptions, notices},
        sqlite::{SqliteEngine, SqliteFile, SqliteOptions},
    },
    telemetry::{Telemetry, TelemetryError, logging::ExtraLayer},
};

/// File of the embedded database in the data directory.
const FILE: &str = "leasehold.db";

/// What an engine must hear of its driver's events, to know what an answer means.
pub fn log_layers() -> Vec<ExtraLayer> {
    vec![Box::new(notices::layer())]
}

/// Metrics, spans and what sends them. On a runtime.
pub fn telemetry(config: &Config) -> Result<Telemetry, TelemetryError> {
    let named = config.named_callers();
    let callers = (named.as_slice(), config.callers.with_text);
    Telemetry::start(&config.telemetry, callers, &replica_name(config), config.broker.log_level)
}

/// Opens it. A server is not waited for; the embedded database is taken for this process alone.
pub async fn open(config: &Config) -> Result<Arc<dyn Engine>, EngineError> {
    Ok(match &config.broker.database_url {
        Database::Embedded => embedded(config, config.broker.data_dir.join(FILE)).await?,
        Database::File(path) => embedded(config, path.clone()).await?,
        Database::Postgres(url) => Arc::new(postgres(config, url)?),
        Database::Mysql(url) => Arc::new(mysql(config, url)?),
    })
}

/// Who can look at it without working on it. Touches nothing: an embedded database stays whose it is.
pub fn examiner(config: &Config) -> Result<Box<dyn Examining>, EngineError> {
    Ok(match &config.broker.database_url {
        Database::Embedded => Box::new(SqliteFile::new(config.broker.data_dir.join(FILE))),
        Database::File(path) => Box::new(SqliteFile::new(path.clone())),
        Database::Postgres(url) => Box::new(postgres(config, url)?),
        Database::Mysql(url) => Box::new(mysql(config, url)?),
    })
}

fn postgres(config: &Config, url: &SecretString) -> Result<PostgresEngine, EngineError> {
    PostgresEngine::new(PostgresOptions {
        url: url.clone(),
        schema: config.broker.database_schema.clone(),
        application_name: format!("leasehold/{}", replica_name(config)),
        statement_timeout: config.lanes.statement_timeout,
        lock_timeout: config.lanes.lock_timeout,
        allow_lossy: config.broker.allow_lossy,
        unflushed_claims: config.lanes.unflushed_claims,
        callers_with_text: config.callers.with_text,
        configured_callers: config.named_callers(),
    })
}

fn mysql(config: &Config, url: &SecretString) -> Result<MysqlEngine, EngineError> {
    MysqlEngine::new(MysqlOptions {
        url: url.clone(),
        table_prefix: config.broker.database_table_prefix.clone(),
        statement_timeout: config.lanes.statement_timeout,
        lock_timeout: config.lanes.lock_timeout,
        allow_lossy: config.broker.allow_lossy,
        callers_with_text: config.callers.with_text,
        configured_callers: config.callers.names.clone(),
    })
}

async fn embedded(config: &Config, path: PathBuf) -> Result<Arc<dyn Engine>, EngineError> {
    let options = SqliteOptions {
        callers_with_text: config.callers.with_text,
        configured_callers: config.named_callers(),
        ..SqliteOptions::new(path)
    };
    Ok(Arc::new(SqliteEngine::open(options).await?))
}

/// What this replica calls itself: its option, else the host's name.
pub(super) fn replica_name(config: &Config) -> String {
    config.broker.replica_name.clone().unwrap_or_else(|| {
        rustix::system::uname()
            .nodename()
            .to_str()
            .ok()
            .filter(|name| !name.is_empty())
            .unwrap_or("leasehold")
            .to_owned()
    })
}
