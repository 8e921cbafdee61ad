//! Callers' budgets: what the configuration says, over it what the database says, read anew every few seconds.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;

use super::{Call, Store, engine::CallerBudget, line::Cap, statement::Statement};
use crate::model::{Budget, BudgetSource, Caller, Failure, Invalid};

/// A budget and who decided it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EffectiveBudget {
    /// How much.
    pub budget: Budget,
    /// Who says so.
    pub source: BudgetSource,
}

/// Budgets that hold, by caller.
pub type BudgetList = Arc<HashMap<Caller, EffectiveBudget>>;

/// What is known of budgets.
pub(super) struct Budgets {
    configured: HashMap<Caller, Budget>,
    at_most: usize,
    stored: Mutex<Stored>,
    holding: watch::Sender<BudgetList>,
}

/// What the database says, as far as it is known.
#[derive(Default)]
struct Stored {
    budgets: HashMap<Caller, Budget>,
    /// Counts up with each change made here: a reading that began before is older.
    changes: u64,
}

impl Budgets {
    pub(super) fn new(configured: impl IntoIterator<Item = (Caller, Budget)>, at_most: usize) -> Self {
        let configured: HashMap<_, _> = configured.into_iter().collect();
        let budgets = Self { configured, at_most, stored: Mutex::default(), holding: watch::Sender::default() };
        budgets.holding.send_replace(budgets.merged(&HashMap::new()));
        budgets
    }

    fn stored(&self) -> MutexGuard<'_, Stored> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those that hold; the receiver hears of changes.
    pub(super) fn holding(&self) -> watch::Receiver<BudgetList> {
        self.holding.subscribe()
    }

    /// The one of a caller.
    pub(super) fn of(&self, caller: &Caller) -> Option<EffectiveBudget> {
        self.holding.borrow().get(caller).copied()
    }

    fn merged(&self, stored: &HashMap<Caller, Budget>) -> BudgetList {
        let configured = self.configured.iter().map(|(caller, budget)| (caller, budget, BudgetSource::Configuration));
        let stored = stored.iter().map(|(caller, budget)| (caller, budget, BudgetSource::Database));
        let all = configured.chain(stored);
        Arc::new(all.map(|(caller, &budget, source)| (caller.clone(), EffectiveBudget { budget, source })).collect())
    }

    /// What holds now that the database says this; nothing where that changes nothing.
    fn hold(&self, stored: &Stored) -> Option<BudgetList> {
        let merged = self.merged(&stored.budgets);
        let changed = self.holding.send_if_modified(|holding| {
            let changed = *holding != merged;
            *holding = Arc::clone(&merged);
            changed
        });
        changed.then_some(merged)
    }
}

/// What the line keeps of them.
pub(super) fn caps(budgets: &BudgetList) -> HashMap<Caller, Cap> {
    let cap = |budget: &Budget| Cap {
        max_lanes: budget.max_lanes.map(|lanes| lanes as usize),
        share: budget.share.map(crate::model::Share::part),
    };
    budgets.iter().map(|(caller, held)| (caller.clone(), cap(&held.budget))).collect()
}

impl Store {
    /// The budgets that hold on this replica; the receiver hears of changes.
    pub fn budgets(&self) -> watch::Receiver<BudgetList> {
        self.inner.budgets.holding()
    }

    /// Reads the budgets from the database and goes by them from now on. Says whether anything changed.
    pub async fn refresh_budgets(&self) -> Result<bool, Failure> {
        let (caller, at_most) = (Caller::broker("budgets"), self.inner.budgets.at_most);
        let changes = self.inner.budgets.stored().changes;
        let read = self
            .single(&self.own(caller.clone()), Statement::reading("budgets"), move |session| {
                Box::pin(async move { session.budgets(&caller, at_most).await })
            })
            .await?;
        let mut stored = self.inner.budgets.stored();
        if stored.changes != changes {
            return Ok(false); // what was read may be older than what was set here meanwhile
        }
        stored.budgets = read.into_iter().map(|CallerBudget { caller, budget }| (caller, budget)).collect();
        Ok(self.apply(&stored))
    }

    /// Keeps `budget` of a caller in the database, or removes what it says of it, and goes by that at once. Other replicas do
    /// once they have read it. Answers with what holds now.
    pub async fn set_budget(
        &self,
        call: &Call,
        of: &Caller,
        budget: Option<Budget>,
    ) -> Result<Option<EffectiveBudget>, Failure> {
        let (caller, whose, at_most) = (call.caller.clone(), of.clone(), self.inner.budgets.at_most);
        let kept = self
            .single(call, Statement::writing("set_budget"), move |session| {
                Box::pin(async move { session.set_budget(&caller, &whose, budget.as_ref(), at_most).await })
            })
            .await?;
        if budget.is_some() && !kept {
            let rule =
                format!("must be one of the {at_most} callers at most that have a budget; take another one's away");
            return Err(Invalid::new("caller", rule).into());
        }
        let mut stored = self.inner.budgets.stored();
        stored.changes += 1;
        match budget {
            Some(budget) => drop(stored.budgets.insert(of.clone(), budget)),
            None => drop(stored.budgets.remove(of)),
        }
        self.apply(&stored);
        Ok(self.inner.budgets.of(of))
    }

    fn apply(&self, stored: &Stored) -> bool {
        let Some(holding) = self.inner.budgets.hold(stored) else { return false };
        self.inner.lanes.ledger.name(holding.keys().cloned());
        self.inner.lanes.set_caps(caps(&holding));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(name: &str) -> Caller {
        Caller::parse(name).expect("a name")
    }

    fn lanes(count: u32) -> Budget {
        Budget { max_lanes: Some(count), ..Budget::default() }
    }

    #[test]
    fn what_the_database_says_goes_before_the_configuration_as_a_whole() {
        let share = Budget { share: crate::model::Share::nearest(0.5), ..Budget::default() };
        let budgets = Budgets::new([(caller("a"), lanes(1)), (caller("b"), lanes(2))], 10);
        let mut stored = Stored { budgets: [(caller("a"), share), (caller("c"), lanes(3))].into(), changes: 1 };
        assert!(budgets.hold(&stored).is_some());
        let of = |name: &str| budgets.of(&caller(name)).map(|held| (held.budget, held.source));
        assert_eq!(of("a"), Some((share, BudgetSource::Database)), "no cap on lanes is left of the configuration's");
        assert_eq!(of("b"), Some((lanes(2), BudgetSource::Configuration)));
        assert_eq!(of("c"), Some((lanes(3), BudgetSource::Database)));
        assert!(budgets.hold(&stored).is_none(), "nothing changed");

        stored.budgets.clear();
        assert!(budgets.hold(&stored).is_some());
        assert_eq!(of("a"), Some((lanes(1), BudgetSource::Configuration)), "the configuration's holds again");
        assert_eq!(of("c"), None);
    }
}
