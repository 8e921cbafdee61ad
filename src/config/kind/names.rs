//! Lists of callers.

use std::collections::BTreeSet;

use super::{Description, Given, Kind};
use crate::model::Caller;

/// Names of callers; a file may write a list, the environment and flags separate them by commas.
#[derive(Debug, Clone, Copy)]
pub struct CallerNames {
    /// So many at most.
    pub at_most: usize,
}

impl Kind for CallerNames {
    type Value = Vec<Caller>;

    fn parse(&self, given: &Given) -> Result<Vec<Caller>, String> {
        let names: Vec<&str> = match given {
            Given::One(text) if text.is_empty() => Vec::new(),
            Given::One(text) => text.split(',').map(str::trim).collect(),
            Given::Many(names) => names.iter().map(String::as_str).collect(),
        };
        if names.len() > self.at_most {
            return Err(format!("must name {} callers at most, and names {}", self.at_most, names.len()));
        }
        let mut seen = BTreeSet::new();
        names
            .into_iter()
            .map(|name| {
                if !seen.insert(name) {
                    return Err(format!("must name each caller once, and names '{name}' twice"));
                }
                Caller::parse(name).map_err(|invalid| format!("'{name}' is no caller: {}", invalid.rule))
            })
            .collect()
    }

    fn default(&self) -> Vec<Caller> {
        Vec::new()
    }

    fn description(&self) -> Description {
        Description {
            placeholder: "NAMES",
            default: String::new(),
            range: format!("up to {} names", self.at_most),
            secret: false,
            switch: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_come_as_a_list_or_between_commas() {
        let kind = CallerNames { at_most: 2 };
        let listed = kind.parse(&Given::Many(vec!["checkout".into(), "mail".into()])).expect("a list");
        assert_eq!(kind.parse(&Given::One("checkout, mail".into())).expect("commas"), listed);
    }

    #[test]
    fn bad_doubled_and_surplus_callers_are_refused() {
        let kind = CallerNames { at_most: 2 };
        for bad in ["Checkout", "a,,b", "a,a", "a,b,c", "leasehold.reaper", "*/"] {
            assert!(kind.parse(&Given::One(bad.into())).is_err(), "{bad}");
        }
    }
}
