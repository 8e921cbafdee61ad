//! A refused input: which field, which rule.

use std::fmt;

/// A field that breaks a rule. Shown to the client as it is, so neither part ever holds a secret or a payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// Path of the field as the client wrote it, e.g. `jobs[3].queue`.
    pub field: String,
    /// The rule that it breaks, as a sentence without a full stop.
    pub rule: String,
}

impl Invalid {
    /// `field` breaks `rule`.
    pub fn new(field: impl Into<String>, rule: impl Into<String>) -> Self {
        Self { field: field.into(), rule: rule.into() }
    }

    /// The same rule, its field seen from one message further out: `queue` within `jobs[3]` is `jobs[3].queue`.
    #[must_use]
    pub fn within(mut self, outer: impl fmt::Display) -> Self {
        self.field = format!("{outer}.{}", self.field);
        self
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.rule)
    }
}

impl std::error::Error for Invalid {}

#[cfg(test)]
mod tests {
    use super::Invalid;

    #[test]
    fn a_nested_field_shows_its_whole_path() {
        let inner = Invalid::new("queue", "must not be empty");
        assert_eq!(inner.within("jobs[3]").to_string(), "jobs[3].queue: must not be empty");
    }
}
