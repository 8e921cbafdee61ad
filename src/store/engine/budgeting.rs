//! Callers' budgets, kept where all replicas read them.

use async_trait::async_trait;

use crate::{
    model::{Budget, Caller},
    store::error::EngineError,
};

/// What the database says of callers' budgets.
#[async_trait]
pub trait Budgeting: Send {
    /// All of them, in the order of the callers' names; `at_most` of them. Names that no caller may have are left out.
    async fn budgets(&mut self, caller: &Caller, at_most: usize) -> Result<Vec<CallerBudget>, EngineError>;

    /// Keeps `budget` of one caller, in the place of what was kept before; `None` removes it. Says whether it was kept, or
    /// there was one to remove: a caller that has none yet is not taken where `at_most` have one already.
    async fn set_budget(
        &mut self,
        caller: &Caller,
        of: &Caller,
        budget: Option<&Budget>,
        at_most: usize,
    ) -> Result<bool, EngineError>;
}

/// A caller and its budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerBudget {
    /// Whose.
    pub caller: Caller,
    /// How much.
    pub budget: Budget,
}
