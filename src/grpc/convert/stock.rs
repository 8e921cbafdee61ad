//! Stock as it is asked for and shown.

use std::{collections::HashSet, fmt};

use super::{
    faults::Faults,
    page::{self, page_size},
    reservation::{key_shown, stock_key},
    time::timestamp,
};
use crate::{
    model::{Adjustment, Failure, Invalid, Key, LedgerKind, Shortage, StockKey, StockLimits, limits::storable_text},
    store::{
        NewAdjustments,
        engine::{LedgerRow, StockDifference, StockFigure, StockRow, StockSwitch, Verified, VerifyWalk},
    },
    v1,
};

/// An `AdjustStock`, checked.
pub(in crate::grpc) fn adjust_request(
    request: &v1::AdjustStockRequest,
    limits: &StockLimits,
) -> Result<NewAdjustments, Failure> {
    let mut faults = Faults::default();
    let reference = faults.keep(Key::parse("reference", &request.reference));
    let reason = faults.keep(reason("reason", &request.reason));
    if !(1..=limits.adjustments).contains(&request.adjustments.len()) {
        let rule = format!("must hold 1 to {} adjustments", limits.adjustments);
        faults.note(Invalid::new("adjustments", rule));
        return faults.or(()).and(Err(gone_missing()));
    }
    let mut seen = HashSet::new();
    let mut adjustments = Vec::with_capacity(request.adjustments.len());
    for (n, sent) in request.adjustments.iter().enumerate() {
        if faults.is_full() {
            break;
        }
        if sent.delta == 0 || sent.delta.unsigned_abs() > Adjustment::MOST.unsigned_abs() {
            let rule = format!("must not be 0, and at most {} either way", Adjustment::MOST);
            faults.note(Invalid::new(format!("adjustments[{n}].delta"), rule));
        }
        let Some(key) = faults.keep(stock_key(&format!("adjustments[{n}].key"), sent.key.as_ref())) else { continue };
        if !seen.insert(key.clone()) {
            faults.note(Invalid::new(format!("adjustments[{n}].key"), "must not come twice"));
        }
        adjustments.push(Adjustment { key, delta: sent.delta });
    }
    let (reference, reason) = faults.or(reference.zip(reason))?.ok_or_else(gone_missing)?;
    Ok(NewAdjustments { reference, adjustments, reason })
}

/// What somebody says for people.
fn reason(field: &str, sent: &str) -> Result<String, Invalid> {
    if sent.len() > StockLimits::REASON_BYTES || sent.contains('\0') {
        let rule = format!("must be at most {} bytes without NUL", StockLimits::REASON_BYTES);
        return Err(Invalid::new(field, rule));
    }
    Ok(sent.to_owned())
}

/// What a `GetStock` asks for, checked.
#[derive(Debug)]
pub(in crate::grpc) struct StocksPage {
    /// Of which item.
    pub(in crate::grpc) item: Key,
    /// At this location alone.
    pub(in crate::grpc) location: Option<Key>,
    /// At locations behind this one.
    pub(in crate::grpc) after: Option<Key>,
    /// Rows at most.
    pub(in crate::grpc) size: usize,
}

/// The request, checked.
pub(in crate::grpc) fn stocks_page(request: &v1::GetStockRequest) -> Result<StocksPage, Failure> {
    let mut faults = Faults::default();
    let item = faults.keep(Key::parse("item", &request.item));
    let location = match request.location.as_str() {
        "" => None,
        location => faults.keep(Key::parse("location", location)),
    };
    let size = faults.keep(page_size(request.page_size));
    let after = faults.keep(page::place(&stocks_list(request), &request.page_token)).flatten();
    let after = after.and_then(|place| Key::parse("page_token", &place).ok());
    let (item, size) = faults.or(item.zip(size))?.ok_or_else(gone_missing)?;
    Ok(StocksPage { item, location, after, size })
}

/// The token of the page behind a page that is full.
pub(in crate::grpc) fn next_stocks(request: &v1::GetStockRequest, size: usize, rows: &[StockRow]) -> String {
    match rows.last() {
        Some(last) if rows.len() >= size && request.location.is_empty() => {
            page::page_token(&stocks_list(request), last.key.location.as_str())
        }
        _ => String::new(),
    }
}

fn stocks_list(request: &v1::GetStockRequest) -> String {
    format!("stock {:?} {:?}", request.item, request.location)
}

/// As the wire has it.
pub(in crate::grpc) fn stock_shown(row: &StockRow) -> v1::Stock {
    v1::Stock {
        key: Some(key_shown(&row.key)),
        on_hand: row.balance.on_hand,
        held: row.balance.held,
        available: row.balance.available(),
    }
}

/// As the wire has it.
pub(in crate::grpc) fn short_shown(short: &Shortage) -> v1::ShortLine {
    v1::ShortLine {
        key: Some(key_shown(&short.key)),
        // An adjustment may take away more than the wire's number holds; the text has the figure.
        requested: u32::try_from(short.requested).unwrap_or(u32::MAX),
        available: short.available,
    }
}

/// What a `VerifyStock` begins with.
pub(in crate::grpc) fn verify_request(request: &v1::VerifyStockRequest, limit: usize) -> Result<VerifyWalk, Failure> {
    let item = match request.item.as_str() {
        "" => None,
        item => Some(Key::parse("item", item)?),
    };
    Ok(VerifyWalk { item, after: None, limit })
}

/// A step's frame.
pub(in crate::grpc) fn verified_shown(compared: u64, step: &Verified) -> v1::VerifyStockResponse {
    v1::VerifyStockResponse { compared, differences: step.differences.iter().map(difference).collect() }
}

fn difference(found: &StockDifference) -> v1::StockDifference {
    let figure = match found.figure {
        StockFigure::OnHand => v1::StockFigure::OnHand,
        StockFigure::Held => v1::StockFigure::Held,
        StockFigure::HeldLines => v1::StockFigure::HeldLines,
        StockFigure::Free => v1::StockFigure::Free,
    };
    v1::StockDifference {
        key: Some(key_shown(&found.key)),
        figure: figure.into(),
        expected: found.expected,
        found: found.found,
    }
}

/// What a `ListLedger` asks for, checked.
#[derive(Debug)]
pub(in crate::grpc) struct LedgerPage {
    /// Of which stock.
    pub(in crate::grpc) key: StockKey,
    /// Entries with numbers below this one.
    pub(in crate::grpc) before: Option<i64>,
    /// Rows at most.
    pub(in crate::grpc) size: usize,
}

/// The request, checked.
pub(in crate::grpc) fn ledger_page(request: &v1::ListLedgerRequest) -> Result<LedgerPage, Failure> {
    let mut faults = Faults::default();
    let key = faults.keep(stock_key("key", request.key.as_ref()));
    let size = faults.keep(page_size(request.page_size));
    let before = faults.keep(page::place(&ledger_list(request), &request.page_token)).flatten();
    let before = before.and_then(|place| place.parse().ok());
    let (key, size) = faults.or(key.zip(size))?.ok_or_else(gone_missing)?;
    Ok(LedgerPage { key, before, size })
}

/// The token of the page behind a page that is full.
pub(in crate::grpc) fn next_entries(request: &v1::ListLedgerRequest, size: usize, rows: &[LedgerRow]) -> String {
    match rows.last() {
        Some(last) if rows.len() >= size => page::page_token(&ledger_list(request), &last.id.to_string()),
        _ => String::new(),
    }
}

fn ledger_list(request: &v1::ListLedgerRequest) -> String {
    format!("ledger {:?}", request.key)
}

/// As the wire has it.
pub(in crate::grpc) fn entry_shown(row: &LedgerRow) -> v1::LedgerEntry {
    let kind = match row.kind {
        LedgerKind::Adjust => v1::LedgerKind::Adjust,
        LedgerKind::Reserve => v1::LedgerKind::Reserve,
        LedgerKind::Commit => v1::LedgerKind::Commit,
        LedgerKind::Release => v1::LedgerKind::Release,
        LedgerKind::Expire => v1::LedgerKind::Expire,
    };
    v1::LedgerEntry {
        entry_id: row.id,
        kind: kind.into(),
        on_hand: row.movement.on_hand,
        held: row.movement.held,
        reservation_id: row.reservation.map(|id| id.to_string()).unwrap_or_default(),
        reference: row.reference.as_ref().map(ToString::to_string).unwrap_or_default(),
        reason: row.reason.clone(),
        entered_at: Some(timestamp(row.entered_at)),
    }
}

/// A switch that is asked for, as the audit log has it.
pub(in crate::grpc) struct SwitchChange<'a>(pub(in crate::grpc) &'a v1::SetStockSwitchRequest);

impl fmt::Display for SwitchChange<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = storable_text(&self.0.reason, 200);
        write!(f, "item_prefix={:?} disabled={} reason={reason:?}", self.0.item_prefix, self.0.disabled)
    }
}

/// The prefix, and why it is to be off; nothing where it is to be on.
pub(in crate::grpc) fn switch_request(request: &v1::SetStockSwitchRequest) -> Result<(&str, Option<String>), Failure> {
    let mut faults = Faults::default();
    let prefix = request.item_prefix.as_str();
    if !super::is_printable(prefix, Key::MAX_BYTES) {
        faults.note(Invalid::new("item_prefix", "must be at most 200 printable ASCII characters"));
    }
    let reason = faults.keep(reason("reason", &request.reason));
    if request.disabled && request.reason.is_empty() {
        faults.note(Invalid::new("reason", "must be set: it is shown to those who are refused"));
    }
    faults.or((prefix, reason.filter(|_| request.disabled)))
}

/// As the wire has it.
pub(in crate::grpc) fn switch_shown(switch: &StockSwitch) -> v1::StockSwitch {
    v1::StockSwitch {
        item_prefix: switch.prefix.clone(),
        reason: switch.reason.clone(),
        set_at: Some(timestamp(switch.set_at)),
    }
}

/// Where no fault was noted every value is there.
fn gone_missing() -> Failure {
    Failure::internal("a checked value went missing")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adjustment(item: &str, delta: i64) -> v1::StockAdjustment {
        v1::StockAdjustment { key: Some(v1::StockKey { item: item.into(), location: "x".into() }), delta }
    }

    fn faults(adjustments: Vec<v1::StockAdjustment>) -> Vec<String> {
        let request = v1::AdjustStockRequest { adjustments, reference: "r".into(), reason: String::new() };
        let refused = adjust_request(&request, &StockLimits::default()).expect_err("it is refused");
        refused.invalid.into_iter().map(|fault| fault.field).collect()
    }

    #[test]
    fn adjustments_are_within_a_million_million_and_name_each_key_once() {
        let most = 1_000_000_000_000;
        for delta in [0, most + 1, -most - 1, i64::MAX, i64::MIN] {
            assert_eq!(faults(vec![adjustment("a", delta)]), ["adjustments[0].delta"]);
        }
        assert_eq!(faults(vec![adjustment("a", 1), adjustment("a", most)]), ["adjustments[1].key"]);
        assert_eq!(faults(vec![adjustment("", -most)]), ["adjustments[0].key.item"]);
        assert_eq!(faults(Vec::new()), ["adjustments"]);
        assert_eq!(faults((0..1_001).map(|n| adjustment(&format!("{n}"), 1)).collect()), ["adjustments"]);
    }

    #[test]
    fn a_switch_that_stops_something_says_why() {
        let ask = |disabled, reason: &str| v1::SetStockSwitchRequest {
            item_prefix: "shoes/".into(),
            disabled,
            reason: reason.into(),
        };
        assert_eq!(switch_request(&ask(true, "recount")), Ok(("shoes/", Some("recount".into()))));
        assert_eq!(switch_request(&ask(false, "recount")), Ok(("shoes/", None)));
        assert!(switch_request(&ask(true, "")).is_err());
        assert!(switch_request(&ask(true, &"x".repeat(1_025))).is_err());
    }
}
