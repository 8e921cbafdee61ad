//! What a cart writes once its units are had.

use super::{
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

/// A list of numbers and hexadecimal digits as it stands in a text of SQL. Nothing else may stand there.
fn literal(json: &str) -> Result<String, EngineError> {
    let plain = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f' | b'[' | b']' | b',' | b'"' | b'-');
    if json.bytes().all(plain) {
        Ok(format!("'{json}'"))
    } else {
        Err(EngineError::Bug("a list that is no list of digits".into()))
    }
}

/// The statement with these values in the place of its parameters.
fn filled(sql: &str, values: &[&str]) -> Result<String, EngineError> {
    let code: Vec<&str> = sql.lines().filter(|line| !line.starts_with("--")).collect();
    let code = code.join("\n");
    let parts: Vec<&str> = code.split('?').collect();
    let Some((first, rest)) = parts.split_first().filter(|(_, rest)| rest.len() == values.len()) else {
        return Err(EngineError::Bug(format!("{} parameters and {} values", parts.len() - 1, values.len())));
    };
    let filled = values.iter().zip(rest).flat_map(|(value, part)| [*value, *part]);
    Ok([*first].into_iter().chain(filled).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_take_the_places_of_parameters_in_their_order() {
        let text = filled("-- ? one, ? two\nselect ?, a from t where b = ?", &["1", "'[2]'"]);
        assert_eq!(text.expect("two of two"), "select 1, a from t where b = '[2]'");
        assert!(filled("select ?", &[]).is_err());
        assert!(filled("select ?", &["1", "2"]).is_err());
        for (sql, values) in [(TAKE_UNITS, 1), (RECORD_LINES, 3), (ENTER_LINES, 5), (LEAVE_DELTAS, 6)] {
            assert!(filled(sql, &vec!["0"; values]).is_ok(), "{sql}");
        }
    }

    #[test]
    fn nothing_but_digits_becomes_part_of_a_text() {
        assert_eq!(literal(r#"[["6b","ff",-1],[]]"#).expect("digits"), r#"'[["6b","ff",-1],[]]'"#);
        for bad in ["['", "[\"g\"]", "[\"\\u0027\"]", "[1;]", "[ 1]", "[é]"] {
            assert!(literal(bad).is_err(), "{bad}");
        }
    }
}
