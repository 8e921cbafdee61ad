//! From what the database said to what is shown: who each session works for, and what that adds up to.

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};

use super::{
    attribution::{Attributed, Attribution, Said, attribute},
    name::Name,
    places::{Holder, Places},
    view::{CallerTotals, SessionView, View},
    window::{Estimate, Window},
};
use crate::store::engine::{SessionKind, SessionRow, SessionState, SessionsSeen};

/// Bytes of a foreign text that are shown.
const SHOWN: usize = 256;

/// All that samples add up to.
#[derive(Debug)]
pub(super) struct Tally {
    interval: Duration,
    places: Places,
    window: Window,
    last: Option<Instant>,
    /// Time held since the start, which only grows, and what named the holder last.
    held: HashMap<Holder, (Duration, Attribution)>,
}

impl Tally {
    /// With places for so many `callers` beside the `configured` ones.
    pub(super) fn new(interval: Duration, callers: usize, configured: impl IntoIterator<Item = Name>) -> Self {
        Self {
            interval,
            places: Places::new(callers, configured),
            window: Window::default(),
            last: None,
            held: HashMap::new(),
        }
    }

    /// Estimated time for which each holder held connections since the start.
    pub(super) fn held(&self) -> Vec<(Holder, Duration)> {
        self.held.iter().map(|(holder, (held, _))| (holder.clone(), *held)).collect()
    }

    /// Adds a sample. It stands for the time since the one before it, `at_most` that long: what was not watched is not guessed.
    /// The first one stands for an interval.
    pub(super) fn add(&mut self, seen: SessionsSeen, taken: Instant, at_most: Duration) -> View {
        let gap = self.last.map_or(self.interval, |last| taken.saturating_duration_since(last));
        let weight = gap.min(at_most);
        self.last = Some(taken);
        let attributed = self.attributed(&seen);
        let mut totals: HashMap<Holder, CallerTotals> = HashMap::new();
        let mut busy: HashMap<Holder, u32> = HashMap::new();
        for (row, (holder, by)) in seen.sessions.iter().zip(&attributed) {
            if row.kind != SessionKind::Client {
                continue;
            }
            let totals = totals.entry(holder.clone()).or_insert_with(|| nothing(holder.clone(), *by));
            count(totals, row, *by);
            // The look itself is over in a moment, and is always seen.
            if is_busy(row) && !row.observer {
                *busy.entry(holder.clone()).or_default() += 1;
            }
        }
        for (holder, count) in &busy {
            let by = totals.get(holder).map_or(Attribution::Nothing, |totals| totals.attribution);
            let (held, named_by) = self.held.entry(holder.clone()).or_insert((Duration::ZERO, by));
            (*held, *named_by) = (*held + weight * *count, by);
        }
        self.window.add(taken, weight, busy);
        let left: HashSet<Holder> =
            self.window.holders().filter(|holder| !totals.contains_key(holder)).cloned().collect();
        for holder in left {
            let by = self.held.get(&holder).map_or(Attribution::Nothing, |(_, by)| *by);
            let gone = nothing(holder.clone(), by);
            totals.insert(holder, gone);
        }
        let mut callers: Vec<CallerTotals> = totals.into_values().collect();
        for caller in &mut callers {
            caller.estimate = self.window.estimate(&caller.holder);
        }
        callers.sort_by(|a, b| b.estimate.held.cmp(&a.estimate.held).then_with(|| a.holder.cmp(&b.holder)));
        View {
            at: seen.at,
            taken,
            samples: self.window.len(),
            covered: self.window.covered(),
            connections: seen.connections,
            elsewhere: seen.elsewhere,
            max_connections: seen.max_connections,
            callers,
            blind_spots: blind_spots(&seen, &attributed),
            sessions: seen
                .sessions
                .into_iter()
                .zip(attributed)
                .map(|(row, (holder, by))| shown(row, holder, by))
                .collect(),
        }
    }

    /// For each session, whom it works for. A worker works for whom its leader does.
    fn attributed(&mut self, seen: &SessionsSeen) -> Vec<(Holder, Attribution)> {
        let read = |row: &SessionRow| {
            let said = Said {
                statement: &row.statement,
                cut: row.cut,
                application_name: &row.application_name,
                broker: row.broker,
            };
            attribute(said, seen.quoting)
        };
        let own: Vec<Attributed> = seen.sessions.iter().map(read).collect();
        let by_id: HashMap<i64, usize> = seen.sessions.iter().enumerate().map(|(at, row)| (row.id, at)).collect();
        let leader = |at: usize| seen.sessions[at].leader.and_then(|leader| by_id.get(&leader)).copied().unwrap_or(at);
        (0..own.len())
            .map(|at| {
                let Attributed { name, by } = own[leader(at)].clone();
                (self.places.admit(Holder { name, broker: seen.sessions[leader(at)].broker }), by)
            })
            .collect()
    }
}

fn nothing(holder: Holder, attribution: Attribution) -> CallerTotals {
    CallerTotals {
        holder,
        attribution,
        sessions: 0,
        active: 0,
        idle_in_transaction: 0,
        hidden: 0,
        waiting_on_lock: 0,
        estimate: Estimate::default(),
    }
}

fn count(totals: &mut CallerTotals, row: &SessionRow, by: Attribution) {
    totals.attribution = totals.attribution.min(by);
    totals.sessions += 1;
    totals.active += u32::from(row.state == SessionState::Active);
    totals.idle_in_transaction += u32::from(row.state == SessionState::IdleInTransaction);
    totals.hidden += u32::from(row.state == SessionState::Hidden);
    totals.waiting_on_lock += u32::from(row.waiting);
}

/// Whether its connection is of no use to anybody else just now.
fn is_busy(row: &SessionRow) -> bool {
    matches!(row.state, SessionState::Active | SessionState::IdleInTransaction)
}

fn blind_spots(seen: &SessionsSeen, attributed: &[(Holder, Attribution)]) -> Vec<String> {
    let mut spots = seen.blind_spots.clone();
    let is_cut_short = |row: &SessionRow, by: Attribution| row.cut && by >= Attribution::ApplicationName;
    let cut = seen.sessions.iter().zip(attributed).filter(|(row, (_, by))| is_cut_short(row, *by)).count();
    if cut > 0 {
        spots.push(format!(
            "Of {cut} statements only the beginning can be seen, which names nobody: {}, or put the comment in front.",
            seen.to_see_more
        ));
    }
    if seen.left_out > 0 {
        spots.push(format!(
            "Of this database's sessions {} were left out, the ones that hold nothing first: raise sampler.sessions.",
            seen.left_out
        ));
    }
    spots
}

fn shown(row: SessionRow, holder: Holder, attribution: Attribution) -> SessionView {
    SessionView {
        id: row.id,
        kind: row.kind,
        leader: row.leader,
        caller: holder.name,
        attribution,
        broker: holder.broker,
        state: row.state,
        in_state: row.in_state,
        transaction_age: row.transaction_age,
        waiting: row.waiting,
        blocked_by: row.blocked_by,
        role: short(row.role),
        application_name: short(row.application_name),
        client_address: row.client_address.map(short),
    }
}

/// Cut on a character's boundary.
pub(super) fn short(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(SHOWN));
    text
}

#[cfg(test)]
mod tests;
