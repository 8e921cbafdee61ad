//! Statements with their values in their texts, so that several go in one trip: parameters travel with one statement alone.
//! Only digits get there, never what somebody wrote.

use crate::store::error::EngineError;

/// A list of numbers and hexadecimal digits as it stands in a text of SQL. Nothing else may stand there.
pub(super) fn literal(json: &str) -> Result<String, EngineError> {
    let plain = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f' | b'[' | b']' | b',' | b'"' | b'-');
    if json.bytes().all(plain) {
        Ok(format!("'{json}'"))
    } else {
        Err(EngineError::Bug("a list that is no list of digits".into()))
    }
}

/// The statement with these values in the place of its parameters.
pub(super) fn filled(sql: &str, values: &[&str]) -> Result<String, EngineError> {
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
    }

    #[test]
    fn nothing_but_digits_becomes_part_of_a_text() {
        assert_eq!(literal(r#"[["6b","ff",-1],[]]"#).expect("digits"), r#"'[["6b","ff",-1],[]]'"#);
        for bad in ["['", "[\"g\"]", "[\"\\u0027\"]", "[1;]", "[ 1]", "[é]"] {
            assert!(literal(bad).is_err(), "{bad}");
        }
    }
}
