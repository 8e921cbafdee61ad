//! The business process that a statement runs for.

use std::{fmt, sync::Arc};

use super::Invalid;

/// Name of a business process, `[a-z0-9][a-z0-9_.-]{0,63}`. It stands in the comment of every statement that runs for it,
/// so the grammar leaves nothing that could end a comment, start a hint or need quoting.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Caller(Arc<str>);

impl Caller {
    /// Longest name, in bytes.
    pub const MAX_BYTES: usize = 64;

    /// A client's name for itself. Names that the broker uses are refused, so no client can charge its time to them.
    pub fn parse(name: &str) -> Result<Self, Invalid> {
        let refused = |rule: &str| Err(Invalid::new("leasehold-caller", rule));
        if !is_well_formed(name) {
            return refused("must match [a-z0-9][a-z0-9_.-]{0,63}");
        }
        if name.starts_with("leasehold.") || name == "other" || name == "unattributed" {
            return refused("names that begin with 'leasehold.', 'other' and 'unattributed' belong to the broker");
        }
        Ok(Self(name.into()))
    }

    /// A caller that a budget may be set for: any client's, and those together that name none. The broker's own work has no
    /// budget: what keeps the tables in order, and what gives a stalled claim back, must run whatever the others hold.
    pub fn with_budget(name: &str) -> Result<Self, Invalid> {
        if name == "unattributed" {
            return Ok(Self::unattributed());
        }
        if name == "other" || name.starts_with("leasehold.") {
            return Err(Invalid::new("caller", "the broker's own callers ('leasehold.…') and 'other' have no budget"));
        }
        Self::parse(name).map_err(|invalid| Invalid::new("caller", invalid.rule))
    }

    /// Whether it is the broker's own work.
    pub fn is_brokers(&self) -> bool {
        self.0.starts_with("leasehold.")
    }

    /// Whether `name` could be anybody's, the broker's own among them.
    pub fn is_name(name: &str) -> bool {
        is_well_formed(name)
    }

    /// Who calls without saying for whom.
    pub fn unattributed() -> Self {
        Self("unattributed".into())
    }

    /// All callers past the bound on those with a comment text of their own.
    pub fn other() -> Self {
        Self("other".into())
    }

    /// The broker's own work of one kind, e.g. `reaper`: `leasehold.reaper`.
    pub fn broker(work: &'static str) -> Self {
        let name = format!("leasehold.{work}");
        debug_assert!(is_well_formed(&name), "{name} is no caller name");
        Self(name.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_well_formed(name: &str) -> bool {
    let bytes = name.as_bytes();
    let starts = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    (1..=Caller::MAX_BYTES).contains(&bytes.len())
        && starts(bytes[0])
        && bytes.iter().all(|&b| starts(b) || matches!(b, b'_' | b'.' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_are_refused_with_the_rule() {
        let long = "a".repeat(65);
        for name in
            ["", " ", "A", "é", "a b", "*/", "/*", "!x", "a;b", "a\0", "a\n", "-a", ".a", "_a", "a'b", long.as_str()]
        {
            let refused = Caller::parse(name).expect_err(name);
            assert_eq!(refused.field, "leasehold-caller");
        }
    }

    #[test]
    fn the_brokers_own_names_cannot_be_borrowed() {
        for name in ["leasehold.reaper", "leasehold.", "other", "unattributed"] {
            assert!(Caller::parse(name).is_err(), "{name}");
        }
        assert_eq!(Caller::parse("leasehold-shop").expect("a fine name").as_str(), "leasehold-shop");
        assert_eq!(Caller::broker("reaper").as_str(), "leasehold.reaper");
    }

    #[test]
    fn the_longest_name_fits() {
        assert!(Caller::parse(&"a".repeat(64)).is_ok());
    }
}
