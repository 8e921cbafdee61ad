//! What a cart writes once its units are had.

use super::{
    literal::{filled, literal},
    reserve::Named,
    session::MysqlSession,
    units::{self, Key2},
    value::list,
};
use crate::{
    model::{Caller, LedgerKind, ReservationLine},
    store::{engine::Cart, error::EngineError},
};

const TAKE_UNITS: &str = include_str!("sql/take_units.sql");
const RECORD_LINES: &str = include_str!("sql/record_lines.sql");
const ENTER_LINES: &str = include_str!("sql/enter_lines.sql");
const LEAVE_DELTAS: &str = include_str!("sql/leave_deltas.sql");

impl MysqlSession {
    /// Lines and their entries of the ledger.
    pub(super) async fn enter(&mut self, caller: &Caller, cart: &Cart, named: &Named) -> Result<(), EngineError> {
        let record = self.statement(caller, RECORD_LINES).bind(named.id.0).bind(named.expires_at.0).bind(lines(cart)?);
        self.change(record).await?;
        self.enter_lines(caller, LedgerKind::Reserve, &[named.id.0], named.created_at).await
    }

    /// The same, with units that are locked taken away and with what is left to be folded: all in one trip, since this is the
    /// way that nearly all carts go.
    pub(super) async fn enter_at_once(
        &mut self,
        caller: &Caller,
        cart: &Cart,
        named: &Named,
        taken: &[(String, String, i64)],
    ) -> Result<(), EngineError> {
        let (id, ids) = (named.id.0.to_string(), literal(&list(&[named.id.0])?)?);
        let (kind, now) = (LedgerKind::Reserve.code().to_string(), named.created_at.0.to_string());
        let sign = LedgerKind::Reserve.movement(1);
        let (on_hand, held) = (sign.on_hand.to_string(), sign.held.to_string());
        let texts = [
            filled(TAKE_UNITS, &[&literal(&list(taken)?)?])?,
            filled(RECORD_LINES, &[&id, &named.expires_at.0.to_string(), &literal(&lines(cart)?)?])?,
            filled(ENTER_LINES, &[&kind, &on_hand, &held, &now, &ids])?,
            filled(LEAVE_DELTAS, &[&kind, &now, &on_hand, &held, "0", &ids])?,
        ];
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let changed = self.change_all(caller, &texts).await?;
        let expected = taken.len() + 3 * cart.lines.len();
        if changed == expected as u64 {
            Ok(())
        } else {
            Err(EngineError::Bug(format!("{changed} of {expected} rows of a cart were written")))
        }
    }
}

/// A cart's lines, as one parameter.
fn lines(cart: &Cart) -> Result<String, EngineError> {
    let row = |(n, ReservationLine { key, quantity }): (usize, &ReservationLine)| {
        let (item, location): Key2 = units::hexed(key);
        (n, item, location, *quantity)
    };
    list(&cart.lines.iter().enumerate().map(row).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_cart_writes_takes_its_values() {
        for (sql, values) in [(TAKE_UNITS, 1), (RECORD_LINES, 3), (ENTER_LINES, 5), (LEAVE_DELTAS, 6)] {
            assert!(filled(sql, &vec!["0"; values]).is_ok(), "{sql}");
        }
    }
}
