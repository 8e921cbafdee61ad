//! Switches that stop new reservations: what the database says of them, read anew every few seconds.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering::SeqCst},
};

use super::{
    Call, Store,
    engine::{StockSwitch, SwitchSet},
    statement::Statement,
};
use crate::model::{Caller, Failure, Invalid, Key, Reason};

/// What is known of switches.
#[derive(Default)]
pub(super) struct Switches {
    known: Mutex<Known>,
    /// Somebody reserved here, so that they are read often.
    in_use: AtomicBool,
}

#[derive(Default)]
struct Known {
    switches: Arc<[StockSwitch]>,
    /// Counts up with each change made here: a reading that began before is older.
    changes: u64,
}

impl Switches {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Arc<[StockSwitch]> {
        Arc::clone(&self.known().switches)
    }
}

impl Store {
    /// Refuses items whose reservations are stopped, by what this replica knows.
    pub(super) fn see_that_items_are_on<'k>(&self, items: impl Iterator<Item = &'k Key>) -> Result<(), Failure> {
        let switches = self.inner.switches.now();
        if switches.is_empty() {
            return Ok(());
        }
        for item in items {
            if let Some(switch) = switches.iter().find(|switch| item.as_str().starts_with(&switch.prefix)) {
                let what = match switch.prefix.as_str() {
                    "" => "all items".to_owned(),
                    prefix => format!("items that begin with '{prefix}'"),
                };
                let message = format!("reservations of {what} are stopped: {}", switch.reason);
                return Err(Failure::not_applied(Reason::Disabled, message).about(item.as_str()));
            }
        }
        Ok(())
    }

    /// Whether reservations went through this replica since its start.
    pub fn goes_by_switches(&self) -> bool {
        self.inner.switches.in_use.load(SeqCst)
    }

    /// Before a reservation: reads the switches where nobody needed them yet.
    pub(super) async fn go_by_switches(&self) -> Result<(), Failure> {
        if !self.goes_by_switches() {
            self.refresh_stock_switches().await?;
            self.inner.switches.in_use.store(true, SeqCst);
        }
        Ok(())
    }

    /// How many switches this replica goes by.
    pub fn stock_switches_in_use(&self) -> usize {
        self.inner.switches.now().len()
    }

    /// Reads the switches from the database and goes by them from now on. Says whether anything changed.
    pub async fn refresh_stock_switches(&self) -> Result<bool, Failure> {
        let caller = Caller::broker("switches");
        let changes = self.inner.switches.known().changes;
        let read = self.read_switches(&self.own(caller)).await?;
        let mut known = self.inner.switches.known();
        if known.changes != changes || known.switches[..] == read[..] {
            return Ok(false); // what was read may be older than what was set here meanwhile
        }
        known.switches = read.into();
        Ok(true)
    }

    /// The switches as the database has them.
    pub async fn stock_switches(&self, call: &Call) -> Result<Vec<StockSwitch>, Failure> {
        self.read_switches(call).await
    }

    async fn read_switches(&self, call: &Call) -> Result<Vec<StockSwitch>, Failure> {
        let (caller, at_most) = (call.caller.clone(), self.inner.options.stock.switches_at_most);
        self.single(call, Statement::reading("stock_switches"), move |session| {
            Box::pin(async move { session.stock_switches(&caller, at_most).await })
        })
        .await
    }

    /// Stops reservations of items that begin with `prefix`, for this reason; lets them go on where there is none. Kept in the
    /// database: this replica goes by it at once, others once they have read it. Answers with the switch as it is.
    pub async fn set_stock_switch(
        &self,
        call: &Call,
        prefix: &str,
        reason: Option<String>,
    ) -> Result<Option<StockSwitch>, Failure> {
        let (caller, at_most) = (call.caller.clone(), self.inner.options.stock.switches_at_most);
        let asked = prefix.to_owned();
        let set = self
            .single(call, Statement::writing("set_stock_switch"), move |session| {
                Box::pin(async move { session.set_stock_switch(&caller, &asked, reason.as_deref(), at_most).await })
            })
            .await?;
        let switch = match set {
            SwitchSet::Set(switch) => Some(switch),
            SwitchSet::Cleared => None,
            SwitchSet::Full => {
                let rule = format!("must be one of the {at_most} prefixes at most that are off; switch another one on");
                return Err(Invalid::new("item_prefix", rule).into());
            }
        };
        let mut known = self.inner.switches.known();
        known.changes += 1;
        let others = known.switches.iter().filter(|other| other.prefix != prefix).cloned();
        let mut switches: Vec<StockSwitch> = others.chain(switch.clone()).collect();
        switches.sort_by(|one, other| one.prefix.cmp(&other.prefix));
        known.switches = switches.into();
        Ok(switch)
    }
}
