//! What is wrong with the configuration, and where it was said.

use std::{fmt, path::PathBuf};

/// Where a value was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nobody said anything: the default holds.
    Default,
    /// The configuration file.
    File(PathBuf),
    /// The environment.
    Environment,
    /// The command line.
    Flag,
}

impl Origin {
    /// The place of `key` as the operator knows it: `leasehold.toml: lanes.count`, `LEASEHOLD_LANES_COUNT`,
    /// `--lanes-count`.
    pub fn place(&self, key: &str) -> String {
        match self {
            Self::Default => format!("{key} (its default)"),
            Self::File(path) => format!("{}: {key}", path.display()),
            Self::Environment => variable(key),
            Self::Flag => format!("--{}", flag(key)),
        }
    }
}

/// The variable of an option: `lanes.count` is `LEASEHOLD_LANES_COUNT`.
pub(super) fn variable(key: &str) -> String {
    format!("LEASEHOLD_{}", key.replace('.', "_").to_ascii_uppercase())
}

/// The flag of an option, without its dashes: `lanes.count` is `lanes-count`.
pub(super) fn flag(key: &str) -> String {
    key.replace(['.', '_'], "-")
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where it was said.
    pub place: String,
    /// What must hold, as a sentence without a full stop. Never holds the value of a secret.
    pub rule: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.rule)
    }
}

/// Everything that is wrong, so that one look mends it all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults(pub Vec<Fault>);

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the configuration has {} fault{}", self.0.len(), if self.0.len() == 1 { "" } else { "s" })?;
        self.0.iter().try_for_each(|fault| write!(f, "\n  {fault}"))
    }
}

impl std::error::Error for Faults {}
