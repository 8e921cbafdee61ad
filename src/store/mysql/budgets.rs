//! Callers' budgets.

use std::time::Duration;

use async_trait::async_trait;
use sqlx::mysql::MySqlRow;

use super::{
    session::MysqlSession,
    value::{column, count, narrow},
};
use crate::{
    model::{Budget, Caller, Share, time::micros},
    store::{
        engine::{Budgeting, CallerBudget},
        error::EngineError,
    },
};

#[async_trait]
impl Budgeting for MysqlSession {
    async fn budgets(&mut self, caller: &Caller, at_most: usize) -> Result<Vec<CallerBudget>, EngineError> {
        let find = self.statement(caller, include_str!("sql/budgets.sql")).bind(count(at_most));
        self.read_alone(find, caller).await?.iter().filter_map(|row| budget(row).transpose()).collect()
    }

    async fn set_budget(
        &mut self,
        caller: &Caller,
        of: &Caller,
        budget: Option<&Budget>,
        at_most: usize,
    ) -> Result<bool, EngineError> {
        let now = self.begin(caller).await?;
        let change = match budget {
            Some(budget) => self
                .statement(caller, include_str!("sql/set_budget.sql"))
                .bind(of.as_str().to_owned())
                .bind(budget.max_lanes)
                .bind(micros(budget.max_wait))
                .bind(budget.share.map(Share::in_millionths))
                .bind(now.0)
                .bind(of.as_str().to_owned())
                .bind(count(at_most)),
            None => self.statement(caller, include_str!("sql/remove_budget.sql")).bind(of.as_str().to_owned()),
        };
        let changed = self.change(change).await;
        self.end(caller, changed.map(|rows| rows > 0)).await
    }
}

fn budget(row: &MySqlRow) -> Result<Option<CallerBudget>, EngineError> {
    let Ok(caller) = Caller::with_budget(&column::<String>(row, "caller")?) else { return Ok(None) };
    let bound = |name| Ok::<_, EngineError>(column::<Option<i64>>(row, name)?.and_then(|is| u32::try_from(is).ok()));
    let budget = Budget {
        max_lanes: bound("max_lanes")?,
        max_wait: Duration::from_micros(narrow(row, "max_wait")?),
        share: bound("share")?.and_then(Share::millionths),
    };
    Ok(Some(CallerBudget { caller, budget }))
}
