//! Poolers between broker and server, which give each transaction whatever server session is free.
//!
//! A session asks at its start for a setting that no server knows. Where it is not there, a pooler has dropped what sessions ask
//! for, and statements of one session may run in several. Prepared statements survive that only behind a pooler that keeps
//! account of them, which shows: it has to give them names of its own, since its clients' names collide.

use sqlx::postgres::PgRow;

use super::value::get;
use crate::store::error::EngineError;

/// Whether a pooler stands between that does not keep sessions. One that loses prepared statements is refused.
pub(super) fn check(row: &PgRow) -> Result<bool, EngineError> {
    let pooled = !get::<bool>(row, "check", "direct")?;
    if pooled && get::<bool>(row, "check", "names_kept")? {
        return Err(loses_statements("it leaves their names as they are"));
    }
    Ok(pooled)
}

/// What errors of the first statement of a new connection mean: nobody but such a pooler can have lost it, or have had it
/// already.
pub(super) fn first_statement(error: EngineError) -> EngineError {
    match error {
        EngineError::NotSent(why) if why.contains("26000") || why.contains("42P05") => loses_statements(&why),
        other => other,
    }
}

fn loses_statements(sign: &str) -> EngineError {
    EngineError::Unfit(format!(
        "a pooler in transaction mode in between loses prepared statements ({sign}): connect past it, since the broker is a \
         pooler itself; or use PgBouncer 1.21 or newer with max_prepared_statements above 0. Behind one in session mode, say \
         so: alter role … set leasehold_broker.session = 'direct'"
    ))
}
