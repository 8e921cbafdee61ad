//! Whether the database's schema is the one that this binary needs.

use super::{
    engine::{AppliedMigration, Engine, LaneRole, Migration, Session},
    error::EngineError,
};
use crate::model::Caller;

/// For whom migrations run.
pub(super) fn caller() -> Caller {
    Caller::broker("migrate")
}

/// Makes sure of the schema: applies what is missing where `migrate` says so, else refuses a schema that is behind. A newer
/// one is fine: migrations expand first and contract later.
pub(super) async fn prepare(engine: &dyn Engine, session: &mut dyn Session, migrate: bool) -> Result<(), EngineError> {
    let caller = caller();
    if migrate {
        while let Some(applied) = session.migrate_one(&caller).await? {
            tracing::info!(number = applied.number, name = applied.name, "a migration was applied");
        }
    }
    let has = session.migrations(&caller).await?;
    let missing = engine.migrations().iter().filter(|known| !has.iter().any(|has| has.number == known.number)).count();
    if missing == 0 {
        return Ok(());
    }
    let what = if has.is_empty() {
        "the database has no leasehold schema".to_owned()
    } else {
        format!("the schema is {missing} migrations behind")
    };
    Err(EngineError::Unfit(format!("{what}: run 'leasehold migrate up' as a role that may create tables")))
}

/// Migrations of a database, as `leasehold migrate` shows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaStatus {
    /// Applied, lowest first.
    pub applied: Vec<AppliedMigration>,
    /// Known to this binary and not applied, lowest first.
    pub missing: Vec<AppliedMigration>,
}

/// Looks at the schema on a connection of its own.
pub async fn status(engine: &dyn Engine) -> Result<SchemaStatus, EngineError> {
    let mut session = engine.connect(LaneRole::Any).await?;
    let applied = session.migrations(&caller()).await?;
    let missing = engine
        .migrations()
        .iter()
        .filter(|known| !applied.iter().any(|has| has.number == known.number))
        .map(AppliedMigration::from)
        .collect();
    Ok(SchemaStatus { applied, missing })
}

/// Applies everything missing on a connection of its own; says what.
pub async fn migrate(engine: &dyn Engine) -> Result<Vec<AppliedMigration>, EngineError> {
    let mut session = engine.connect(LaneRole::Any).await?;
    let mut applied = Vec::new();
    while let Some(one) = session.migrate_one(&caller()).await? {
        applied.push(one);
    }
    Ok(applied)
}

impl From<&Migration> for AppliedMigration {
    fn from(known: &Migration) -> Self {
        Self { number: known.number, name: known.name.to_owned() }
    }
}
