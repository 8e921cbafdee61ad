//! What was found, line by line.

use serde::Serialize;

/// How good a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    /// As it should be.
    Ok,
    /// The broker works, and somebody should look at it; or it cannot be seen.
    Warn,
    /// The broker does not work, or a promise does not hold.
    Fail,
}

impl Level {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// What was looked at; stable, one word.
    pub(super) check: &'static str,
    pub(super) level: Level,
    /// What was found, as a sentence without a full stop.
    pub(super) says: String,
    /// What to do, where anything is to be done.
    #[serde(rename = "do", skip_serializing_if = "Option::is_none")]
    pub(super) remedy: Option<String>,
}

impl Finding {
    pub(super) fn ok(check: &'static str, says: impl Into<String>) -> Self {
        Self { check, level: Level::Ok, says: says.into(), remedy: None }
    }

    pub(super) fn warn(check: &'static str, says: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, level: Level::Warn, says: says.into(), remedy: Some(remedy.into()) }
    }

    pub(super) fn fail(check: &'static str, says: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, level: Level::Fail, says: says.into(), remedy: Some(remedy.into()) }
    }
}
