//! Stock and reservations as operators see them.

use serde::Serialize;

use super::{Output, facts::Facts, table::Table, time};
use crate::{
    cli::{Exit, broker::Failed},
    v1::{
        LedgerEntry, LedgerKind, Reservation, ReservationState, ShadowReport, ShortLine, Stock, StockDifference,
        StockFigure, StockKey, StockSwitch,
    },
};

#[derive(Serialize)]
struct StockJson<'a> {
    item: &'a str,
    location: &'a str,
    on_hand: i64,
    held: i64,
    available: i64,
}

#[derive(Serialize)]
struct LineJson<'a> {
    item: &'a str,
    location: &'a str,
    quantity: u32,
}

#[derive(Serialize)]
struct ShortJson<'a> {
    item: &'a str,
    location: &'a str,
    requested: u32,
    available: i64,
}

#[derive(Serialize)]
struct ShadowJson<'a> {
    differs: bool,
    reason: Option<&'a str>,
    short: Vec<ShortJson<'a>>,
}

#[derive(Serialize)]
struct ReservationJson<'a> {
    reservation_id: &'a str,
    reference: &'a str,
    state: &'static str,
    lines: Vec<LineJson<'a>>,
    created_at: Option<String>,
    expires_at: Option<String>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    job_ids: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    shadow: Option<ShadowJson<'a>>,
}

#[derive(Serialize)]
struct NothingHeldJson<'a> {
    reservation_id: Option<&'a str>,
    shadow: Option<ShadowJson<'a>>,
}

#[derive(Serialize)]
struct EntryJson<'a> {
    entry_id: i64,
    kind: &'static str,
    on_hand: i64,
    held: i64,
    reservation_id: Option<&'a str>,
    reference: Option<&'a str>,
    reason: Option<&'a str>,
    entered_at: Option<String>,
}

#[derive(Serialize)]
struct DifferenceJson<'a> {
    item: &'a str,
    location: &'a str,
    figure: &'static str,
    expected: i64,
    found: i64,
}

#[derive(Serialize)]
struct SwitchJson<'a> {
    item_prefix: &'a str,
    reason: &'a str,
    set_at: Option<String>,
}

impl Output {
    /// Prints stocks.
    pub(in crate::cli) fn stocks(self, stocks: &[Stock]) -> Result<(), Failed> {
        if self.json {
            return stocks.iter().try_for_each(|stock| {
                let (item, location) = names(stock.key.as_ref());
                let (on_hand, held, available) = (stock.on_hand, stock.held, stock.available);
                Self::object(&StockJson { item, location, on_hand, held, available })
            });
        }
        let mut table = Table::new(&["ITEM", "LOCATION", ">ON HAND", ">HELD", ">AVAILABLE"]);
        for stock in stocks {
            let (item, location) = names(stock.key.as_ref());
            let numbers = [stock.on_hand, stock.held, stock.available].map(|units| units.to_string());
            table.row([item.to_owned(), location.to_owned()].into_iter().chain(numbers));
        }
        Self::table(&table, "no stock")
    }
}

fn names(key: Option<&StockKey>) -> (&str, &str) {
    key.map_or(("", ""), |key| (&key.item, &key.location))
}

fn some(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

/// Prints a reservation that an answer must hold.
pub(in crate::cli) fn print_some(
    output: Output,
    reservation: Option<&Reservation>,
    job_ids: &[String],
) -> Result<Exit, Failed> {
    let reservation = reservation.ok_or_else(|| Failed::new(Exit::Bug, "the broker's answer holds no reservation"))?;
    print(output, reservation, job_ids, None)
}

/// Prints a reservation, and the jobs that were enqueued with it.
pub(in crate::cli) fn print(
    output: Output,
    reservation: &Reservation,
    job_ids: &[String],
    shadow: Option<&ShadowReport>,
) -> Result<Exit, Failed> {
    let state = state(reservation.state());
    if output.json {
        let lines = reservation.lines.iter().map(|line| {
            let (item, location) = names(line.key.as_ref());
            LineJson { item, location, quantity: line.quantity }
        });
        Output::object(&ReservationJson {
            reservation_id: &reservation.reservation_id,
            reference: &reservation.reference,
            state,
            lines: lines.collect(),
            created_at: time::maybe(reservation.created_at),
            expires_at: time::maybe(reservation.expires_at),
            job_ids,
            shadow: shadow.map(shadow_json),
        })?;
        return Ok(Exit::Ok);
    }
    let mut facts = Facts::default();
    facts.add("reservation", reservation.reservation_id.as_str());
    facts.add("reference", reservation.reference.as_str());
    facts.add("state", state);
    for line in &reservation.lines {
        let (item, location) = names(line.key.as_ref());
        facts.add("line", format!("{} of {item} at {location}", line.quantity));
    }
    let when = |at| format!("{}, {}", time::instant(at), time::from_now(at));
    facts.maybe("created", reservation.created_at.map(when));
    facts.maybe("expires", reservation.expires_at.map(when));
    facts.add("jobs", job_ids.join(" "));
    facts.print()?;
    Ok(Exit::Ok)
}

fn state(state: ReservationState) -> &'static str {
    match state {
        ReservationState::Unspecified => "unknown",
        ReservationState::Held => "held",
        ReservationState::Committed => "committed",
        ReservationState::Released => "released",
        ReservationState::Expired => "expired",
    }
}

/// Whether the broker agrees with the other system, for people.
pub(in crate::cli) fn shadow_text(report: &ShadowReport) -> String {
    let here =
        some(&report.reason).map_or_else(|| "could be held".to_owned(), |reason| format!("was not held ({reason})"));
    let verdict = match report.reason.as_str() {
        "DISABLED" => "the shadow is not compared",
        _ if report.differs => "the shadow differs",
        _ => "the shadow agrees",
    };
    let mut text = format!("{verdict}: here it {here}");
    for line in &report.lines {
        text.push_str("\n  - ");
        text.push_str(&short_text(line));
    }
    text
}

/// A line that could not be held, for people.
pub(in crate::cli) fn short_text(line: &ShortLine) -> String {
    let (item, location) = names(line.key.as_ref());
    format!("{item} at {location}: {} wanted, {} available", line.requested, line.available)
}

/// A shadow of which nothing is held, for programs.
pub(in crate::cli) fn nothing_held_json(shadow: Option<&ShadowReport>) -> impl Serialize {
    NothingHeldJson { reservation_id: None, shadow: shadow.map(shadow_json) }
}

fn shadow_json(report: &ShadowReport) -> ShadowJson<'_> {
    let short = report.lines.iter().map(|line| {
        let (item, location) = names(line.key.as_ref());
        ShortJson { item, location, requested: line.requested, available: line.available }
    });
    ShadowJson { differs: report.differs, reason: some(&report.reason), short: short.collect() }
}

fn kind(kind: LedgerKind) -> &'static str {
    match kind {
        LedgerKind::Unspecified => "unknown",
        LedgerKind::Adjust => "adjust",
        LedgerKind::Reserve => "reserve",
        LedgerKind::Commit => "commit",
        LedgerKind::Release => "release",
        LedgerKind::Expire => "expire",
    }
}

/// An entry for programs.
pub(in crate::cli) fn entry_json(entry: &LedgerEntry) -> impl Serialize {
    EntryJson {
        entry_id: entry.entry_id,
        kind: kind(entry.kind()),
        on_hand: entry.on_hand,
        held: entry.held,
        reservation_id: some(&entry.reservation_id),
        reference: some(&entry.reference),
        reason: some(&entry.reason),
        entered_at: time::maybe(entry.entered_at),
    }
}

/// Entries for people.
pub(in crate::cli) fn ledger(entries: &[LedgerEntry]) -> Table {
    let mut table = Table::new(&[">ENTRY", "AT", "KIND", ">ON HAND", ">HELD", "RESERVATION", "REFERENCE", "~REASON"]);
    for entry in entries {
        table.row([
            entry.entry_id.to_string(),
            time::maybe(entry.entered_at).unwrap_or_default(),
            kind(entry.kind()).to_owned(),
            signed(entry.on_hand),
            signed(entry.held),
            entry.reservation_id.clone(),
            entry.reference.clone(),
            entry.reason.clone(),
        ]);
    }
    table
}

fn signed(units: i64) -> String {
    if units == 0 { "0".to_owned() } else { format!("{units:+}") }
}

/// No differences yet.
pub(in crate::cli) fn differences() -> Table {
    Table::new(&["ITEM", "LOCATION", "FIGURE", ">EXPECTED", ">FOUND"])
}

/// Adds one.
pub(in crate::cli) fn difference_row(table: &mut Table, difference: &StockDifference) {
    let (item, location) = names(difference.key.as_ref());
    let numbers = [difference.expected, difference.found].map(|units| units.to_string());
    table.row(
        [item.to_owned(), location.to_owned(), figure(difference.figure()).0.to_owned()].into_iter().chain(numbers),
    );
}

/// A difference for programs.
pub(in crate::cli) fn difference_json(difference: &StockDifference) -> impl Serialize {
    let (item, location) = names(difference.key.as_ref());
    let (_, figure) = figure(difference.figure());
    DifferenceJson { item, location, figure, expected: difference.expected, found: difference.found }
}

/// A figure for people and for programs.
fn figure(figure: StockFigure) -> (&'static str, &'static str) {
    match figure {
        StockFigure::Unspecified => ("unknown", "unknown"),
        StockFigure::OnHand => ("on hand, by the ledger", "on_hand"),
        StockFigure::Held => ("held, by the ledger", "held"),
        StockFigure::HeldLines => ("held, by the reservations", "held_lines"),
        StockFigure::Free => ("free, in the pool and beside it", "free"),
    }
}

/// A switch for programs.
pub(in crate::cli) fn switch_json(switch: &StockSwitch) -> impl Serialize {
    SwitchJson { item_prefix: &switch.item_prefix, reason: &switch.reason, set_at: time::maybe(switch.set_at) }
}

/// Switches for people.
pub(in crate::cli) fn switches(switches: &[StockSwitch]) -> Table {
    let mut table = Table::new(&["ITEMS", "STOPPED", "~REASON"]);
    for switch in switches {
        let items = if switch.item_prefix.is_empty() { "all".to_owned() } else { format!("{}…", switch.item_prefix) };
        table.row([items, switch.set_at.map(time::from_now).unwrap_or_default(), switch.reason.clone()]);
    }
    table
}
