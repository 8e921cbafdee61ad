//! Callers' budgets.

use std::time::Duration;

use async_trait::async_trait;
use sqlx::postgres::PgRow;

use super::{
    session::{Args, PgSession},
    value::{get, narrow},
};
use crate::{
    model::{Budget, Caller, Share, time::micros},
    store::{
        engine::{Budgeting, CallerBudget},
        error::EngineError,
    },
};

const BUDGETS: &str = include_str!("sql/budgets.sql");
const SET_BUDGET: &str = include_str!("sql/set_budget.sql");
const REMOVE_BUDGET: &str = include_str!("sql/remove_budget.sql");

#[async_trait]
impl Budgeting for PgSession {
    async fn budgets(&mut self, caller: &Caller, at_most: usize) -> Result<Vec<CallerBudget>, EngineError> {
        let rows = self.rows(caller, BUDGETS, Args::new().with(count(at_most))).await?;
        rows.iter().filter_map(|row| budget(row).transpose()).collect()
    }

    async fn set_budget(
        &mut self,
        caller: &Caller,
        of: &Caller,
        budget: Option<&Budget>,
        at_most: usize,
    ) -> Result<bool, EngineError> {
        let rows = match budget {
            Some(budget) => {
                let lanes: Option<i32> =
                    budget.max_lanes.map(|lanes| narrow(lanes, "set_budget", "max_lanes")).transpose()?;
                let share: Option<i32> =
                    budget.share.map(|share| narrow(share.in_millionths(), "set_budget", "share")).transpose()?;
                let values = Args::new()
                    .with(of.as_str())
                    .with(lanes)
                    .with(micros(budget.max_wait))
                    .with(share)
                    .with(count(at_most));
                self.rows(caller, SET_BUDGET, values).await?
            }
            None => self.rows(caller, REMOVE_BUDGET, Args::new().with(of.as_str())).await?,
        };
        Ok(!rows.is_empty())
    }
}

fn count(at_most: usize) -> i64 {
    i64::try_from(at_most).unwrap_or(i64::MAX)
}

fn budget(row: &PgRow) -> Result<Option<CallerBudget>, EngineError> {
    let Ok(caller) = Caller::with_budget(get(row, "budgets", "caller")?) else { return Ok(None) };
    let lanes: Option<i32> = get(row, "budgets", "max_lanes")?;
    let share: Option<i32> = get(row, "budgets", "share")?;
    let budget = Budget {
        max_lanes: lanes.map(|lanes| narrow(lanes, "budgets", "max_lanes")).transpose()?,
        max_wait: Duration::from_micros(narrow(get::<i64>(row, "budgets", "max_wait")?, "budgets", "max_wait")?),
        share: share.map(|share| narrow(share, "budgets", "share")).transpose()?.and_then(Share::millionths),
    };
    Ok(Some(CallerBudget { caller, budget }))
}
