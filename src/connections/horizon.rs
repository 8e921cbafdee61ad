//! Who keeps the database from removing dead rows, and when somebody should be told.

use std::time::{Duration, Instant};

use super::{
    attribution::{Said, attribute},
    name::Name,
    tally::short,
};
use crate::store::engine::{HolderKind, HolderRow, HorizonSeen, TableRow};

/// Whoever is past the limits is named again after this.
const AGAIN: Duration = Duration::from_mins(10);

/// All that the last look at the horizon saw.
#[derive(Debug, Clone)]
pub struct Horizon {
    /// When, by this process's clock.
    pub taken: Instant,
    /// Oldest first; those that hold back no rows of ours come last.
    pub holders: Vec<HorizonHolder>,
    /// The broker's own tables, by name.
    pub tables: Vec<TableRow>,
    /// What cannot be seen, one sentence each, with what to do about it.
    pub blind_spots: Vec<String>,
    /// The oldest holder is past the limits.
    pub past_limit: bool,
}

/// What keeps dead rows from being removed. Texts are other people's, cut to a bounded length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HorizonHolder {
    /// What it is.
    pub kind: HolderKind,
    /// A session's number, a transaction's or slot's name, a standby's application name.
    pub name: String,
    /// Transactions begun since its snapshot.
    pub transactions: u64,
    /// Since its transaction began, where the database says.
    pub age: Option<Duration>,
    /// The process that it works for.
    pub caller: Name,
    /// How its program calls itself.
    pub application_name: String,
    /// It holds back rows of the database's catalogs alone.
    pub catalogs_only: bool,
    /// What to do about it.
    pub advice: String,
}

/// From where on a holder is worth a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HorizonLimits {
    pub(super) transactions: u64,
    pub(super) age: Duration,
}

impl HorizonLimits {
    fn are_passed_by(&self, holder: &HorizonHolder) -> bool {
        !holder.catalogs_only
            && (holder.transactions >= self.transactions || holder.age.is_some_and(|age| age >= self.age))
    }
}

/// Puts a look together.
pub(super) fn horizon(seen: HorizonSeen, tables: Vec<TableRow>, taken: Instant, limits: HorizonLimits) -> Horizon {
    let quoting = seen.quoting;
    let holder = |row: HolderRow| {
        let said = Said {
            statement: &row.statement,
            cut: row.cut,
            application_name: &row.application_name,
            broker: row.broker,
        };
        HorizonHolder {
            kind: row.kind,
            transactions: row.transactions,
            age: row.age,
            caller: attribute(said, quoting).name,
            name: short(row.name),
            application_name: short(row.application_name),
            catalogs_only: row.catalogs_only,
            advice: row.advice,
        }
    };
    let holders: Vec<HorizonHolder> = seen.holders.into_iter().map(holder).collect();
    let past_limit = holders.iter().any(|holder| limits.are_passed_by(holder));
    Horizon { taken, holders, tables, blind_spots: seen.blind_spots, past_limit }
}

/// Decides when the log should name who holds the horizon.
#[derive(Debug, Default)]
pub(super) struct Alarm {
    said: Option<(HolderKind, String, Instant)>,
}

/// What the log should say.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Notice<'a> {
    /// This one is past the limits.
    Held(&'a HorizonHolder),
    /// Nobody is any more.
    Released,
}

impl Alarm {
    /// Names the oldest holder past the limits when it is new, and again after ten minutes.
    pub(super) fn decide<'a>(&mut self, horizon: &'a Horizon, limits: HorizonLimits) -> Option<Notice<'a>> {
        let Some(oldest) = horizon.holders.iter().find(|holder| limits.are_passed_by(holder)) else {
            return self.said.take().map(|_| Notice::Released);
        };
        let is_said = self.said.as_ref().is_some_and(|(kind, name, when)| {
            (*kind, name) == (oldest.kind, &oldest.name) && horizon.taken.saturating_duration_since(*when) < AGAIN
        });
        if is_said {
            return None;
        }
        self.said = Some((oldest.kind, oldest.name.clone(), horizon.taken));
        Some(Notice::Held(oldest))
    }
}

impl Notice<'_> {
    /// Writes it to the log. Other people's texts are written so that they cannot break a line.
    pub(super) fn log(&self) {
        match self {
            Self::Held(holder) => tracing::warn!(
                holder = kind(holder.kind),
                name = ?holder.name,
                caller = %holder.caller,
                application = ?holder.application_name,
                transactions = holder.transactions,
                age_s = holder.age.map(|age| age.as_secs()),
                advice = ?holder.advice,
                "dead rows cannot be removed: somebody's snapshot is old, and claims grow slower with each job that is done"
            ),
            Self::Released => tracing::info!("dead rows can be removed again: no snapshot is past its limit"),
        }
    }
}

/// Its word in logs and metrics.
pub(super) fn kind(kind: HolderKind) -> &'static str {
    match kind {
        HolderKind::Session => "session",
        HolderKind::PreparedTransaction => "prepared_transaction",
        HolderKind::ReplicationSlot => "replication_slot",
        HolderKind::Standby => "standby",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: HorizonLimits = HorizonLimits { transactions: 1_000, age: Duration::from_mins(10) };

    fn holder(name: &str, transactions: u64, minutes: Option<u64>) -> HorizonHolder {
        HorizonHolder {
            kind: HolderKind::Session,
            name: name.to_owned(),
            transactions,
            age: minutes.map(Duration::from_mins),
            caller: Name::unattributed(),
            application_name: String::new(),
            catalogs_only: false,
            advice: String::new(),
        }
    }

    fn look(taken: Instant, holders: Vec<HorizonHolder>) -> Horizon {
        let past_limit = holders.iter().any(|holder| LIMITS.are_passed_by(holder));
        Horizon { taken, holders, tables: Vec::new(), blind_spots: Vec::new(), past_limit }
    }

    #[test]
    fn a_holder_is_named_once_until_it_changes_or_ten_minutes_pass() {
        let (mut alarm, begin) = (Alarm::default(), Instant::now());
        let at = |seconds| begin + Duration::from_secs(seconds);
        let first = look(at(0), vec![holder("1", 5_000, None), holder("2", 4_000, None)]);
        assert_eq!(alarm.decide(&first, LIMITS), Some(Notice::Held(&first.holders[0])));
        assert_eq!(alarm.decide(&look(at(10), first.holders.clone()), LIMITS), None);
        let second = look(at(20), vec![holder("2", 4_100, None)]);
        assert_eq!(alarm.decide(&second, LIMITS), Some(Notice::Held(&second.holders[0])));
        assert_eq!(alarm.decide(&look(at(619), second.holders.clone()), LIMITS), None);
        assert!(alarm.decide(&look(at(620), second.holders.clone()), LIMITS).is_some());
        assert_eq!(alarm.decide(&look(at(630), vec![]), LIMITS), Some(Notice::Released));
        assert_eq!(alarm.decide(&look(at(640), vec![]), LIMITS), None);
    }

    #[test]
    fn either_limit_is_enough_and_catalogs_do_not_count() {
        for (named, transactions, minutes) in
            [(true, 1_000, None), (false, 999, None), (true, 1, Some(10)), (false, 1, Some(9)), (false, 999, Some(9))]
        {
            let horizon = look(Instant::now(), vec![holder("1", transactions, minutes)]);
            assert_eq!(horizon.past_limit, named);
            assert_eq!(Alarm::default().decide(&horizon, LIMITS).is_some(), named, "{transactions} {minutes:?}");
        }
        let slot = HorizonHolder { catalogs_only: true, ..holder("slot", 1_000_000, None) };
        assert_eq!(Alarm::default().decide(&look(Instant::now(), vec![slot]), LIMITS), None);
    }

    #[test]
    fn an_old_young_one_behind_a_young_old_one_is_named() {
        let horizon = look(Instant::now(), vec![holder("many", 900, Some(1)), holder("long", 800, Some(20))]);
        assert_eq!(Alarm::default().decide(&horizon, LIMITS), Some(Notice::Held(&horizon.holders[1])));
    }
}
