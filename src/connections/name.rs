//! Names under which connections are summed.

use std::{fmt, sync::Arc};

use crate::model::Caller;

/// Characters of a foreign text that are looked at.
const LOOKED_AT: usize = 256;

/// Put in front of what a foreign program calls itself where the name is one of the broker's.
const FOREIGN: &str = "foreign.";

/// A name that is fit for a label: it matches the grammar of [`Caller`]s, whatever it was made from.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(Arc<str>);

impl Name {
    /// What `raw` becomes when it is made safe; a caller's name stays as it is. ASCII letters in lower case, runs of anything else than letters, digits, `.`,
    /// `-` and `_` as one `_`, at most 64 bytes. `None` where nothing is left. A foreign program that calls itself as the
    /// broker's own work does, or as what stands for several callers, gets `foreign.` in front; a broker's session does not.
    pub fn clean(raw: &str, broker: bool) -> Option<Self> {
        if let Ok(caller) = Caller::parse(raw) {
            return Some(Self::from(&caller));
        }
        let mut name = String::with_capacity(Caller::MAX_BYTES);
        for c in raw.chars().take(LOOKED_AT) {
            let c = c.to_ascii_lowercase();
            let fits = c.is_ascii_lowercase() || c.is_ascii_digit();
            if fits || !name.is_empty() && matches!(c, '.' | '-') {
                name.push(c);
            } else if !name.is_empty() && !name.ends_with('_') {
                name.push('_');
            }
        }
        if !broker && is_reserved(name.trim_end_matches('_')) {
            name.insert_str(0, FOREIGN);
        }
        name.truncate(Caller::MAX_BYTES); // ASCII alone
        let name = name.trim_end_matches('_');
        (!name.is_empty()).then(|| Self(name.into()))
    }

    /// For what nothing names.
    pub fn unattributed() -> Self {
        Self("unattributed".into())
    }

    /// All names past the bound on those told apart.
    pub fn other() -> Self {
        Self("other".into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&Caller> for Name {
    fn from(caller: &Caller) -> Self {
        Self(caller.as_str().into())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_reserved(name: &str) -> bool {
    name.starts_with("leasehold.") || name == "other" || name == "unattributed"
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn clean(raw: &str) -> Option<String> {
        Name::clean(raw, false).map(|name| name.as_str().to_owned())
    }

    #[test]
    fn names_are_made_safe_and_stay_readable() {
        for (raw, name) in [
            ("checkout_completion", "checkout_completion"),
            ("PostgreSQL JDBC Driver", "postgresql_jdbc_driver"),
            ("/orders/:id", "orders_id"),
            ("  psql  ", "psql"),
            ("Bücher-Versand", "b_cher-versand"),
            ("a\n\r\t\0b", "a_b"),
            ("*/ ; drop table x; /*", "drop_table_x"),
            ("__.x__", "x"),
            ("a.-b", "a.-b"),
            ("1.2", "1.2"),
        ] {
            assert_eq!(clean(raw).as_deref(), Some(name), "{raw:?}");
        }
    }

    #[test]
    fn what_holds_no_letter_or_digit_names_nothing() {
        for raw in ["", " ", "\u{1}\u{2}\u{7f}", "—", "._-", "日本"] {
            assert_eq!(clean(raw), None, "{raw:?}");
        }
    }

    #[test]
    fn a_name_is_cut_at_its_longest() {
        assert_eq!(clean(&"a".repeat(10_240)).map(|name| name.len()), Some(64));
        assert_eq!(clean(&format!("{}b", " ".repeat(10_240))), None, "nobody reads on for ever");
    }

    #[test]
    fn a_foreign_program_cannot_pass_for_the_broker() {
        for (raw, name) in [
            ("leasehold.reaper", "foreign.leasehold.reaper"),
            ("LEASEHOLD.reaper", "foreign.leasehold.reaper"),
            ("other", "foreign.other"),
            (" Other ", "foreign.other"),
            ("unattributed", "foreign.unattributed"),
        ] {
            assert_eq!(clean(raw).as_deref(), Some(name));
        }
        assert_eq!(clean("leasehold/a").as_deref(), Some("leasehold_a"));
        assert_eq!(
            Name::clean("leasehold.reaper", true).map(|name| name.to_string()).as_deref(),
            Some("leasehold.reaper")
        );
    }

    proptest! {
        #[test]
        fn every_name_is_one_that_a_caller_could_have(raw in any::<String>(), broker in any::<bool>()) {
            if let Some(name) = Name::clean(&raw, broker) {
                let bytes = name.as_str().as_bytes();
                prop_assert!((1..=64).contains(&bytes.len()));
                prop_assert!(bytes[0].is_ascii_lowercase() || bytes[0].is_ascii_digit());
                prop_assert!(bytes.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(b)));
                if !broker {
                    prop_assert!(Caller::parse(name.as_str()).is_ok());
                }
                prop_assert_eq!(Name::clean(name.as_str(), broker), Some(name.clone()));
            }
        }
    }
}
