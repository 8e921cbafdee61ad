//! Findings for people and for programs.

use std::fmt::Write as _;

use serde::Serialize;

use super::finding::{Finding, Level};

/// Where text begins, and where it ends.
const INDENT: usize = 19;
const WIDTH: usize = 118;

/// Findings and their sum.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// This program's version.
    version: &'static str,
    warnings: usize,
    failures: usize,
    findings: Vec<Finding>,
}

impl Report {
    pub(super) fn new(findings: Vec<Finding>) -> Self {
        let count = |level| findings.iter().filter(|finding| finding.level == level).count();
        let (warnings, failures) = (count(Level::Warn), count(Level::Fail));
        Self { version: env!("CARGO_PKG_VERSION"), warnings, failures, findings }
    }

    /// Whether anything failed, warnings counted as well where they are asked to be.
    pub(super) fn failed(&self, strict: bool) -> bool {
        self.failures > 0 || strict && self.warnings > 0
    }

    /// One object, on a line of its own.
    pub(super) fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self).map(|json| json + "\n")
    }

    /// A line for each finding, with what to do below it.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for finding in &self.findings {
            let head = format!("{:<5} {:<13}", finding.level.as_str(), finding.check);
            wrap(&mut text, &head, &finding.says);
            if let Some(remedy) = &finding.remedy {
                wrap(&mut text, &format!("{:>INDENT$}", "-> "), remedy);
            }
        }
        let good = self.findings.len() - self.warnings - self.failures;
        let s = if self.warnings == 1 { "" } else { "s" };
        writeln!(text, "\n{good} ok, {} warning{s}, {} failed", self.warnings, self.failures)
            .expect("writing to a String cannot fail");
        text
    }
}

/// `words` behind `head`, on as many lines as they need.
fn wrap(text: &mut String, head: &str, words: &str) {
    let mut line = head.to_owned();
    let mut is_fresh = true;
    for word in words.split_whitespace() {
        if !is_fresh && line.chars().count() + 1 + word.chars().count() > WIDTH {
            text.push_str(line.trim_end());
            text.push('\n');
            line = " ".repeat(INDENT);
            is_fresh = true;
        }
        if !is_fresh {
            line.push(' ');
        }
        line.push_str(word);
        is_fresh = false;
    }
    text.push_str(&line);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report::new(vec![
            Finding::ok("reach", "it answers"),
            Finding::warn("clock", "word ".repeat(40), "set it"),
            Finding::fail("durability", "fsync = off", "set fsync = on"),
        ])
    }

    #[test]
    fn lines_are_short_and_begin_with_level_and_check() {
        let text = report().text();
        assert!(text.starts_with("ok    reach        it answers\nwarn  clock        word word"), "{text}");
        assert!(text.contains("\nfail  durability   fsync = off\n                -> set fsync = on\n"), "{text}");
        assert!(text.ends_with("\n\n1 ok, 1 warning, 1 failed\n"), "{text}");
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
    }

    #[test]
    fn programs_get_the_same() {
        let json: serde_json::Value = serde_json::from_str(&report().json().expect("JSON")).expect("JSON");
        assert_eq!(json["findings"][2]["level"], "fail");
        assert_eq!(json["findings"][2]["check"], "durability");
        assert_eq!(json["findings"][2]["do"], "set fsync = on");
        assert_eq!((&json["failures"], &json["warnings"]), (&1.into(), &1.into()));
        assert!(json["findings"][0].get("do").is_none());
    }

    #[test]
    fn warnings_fail_where_asked_to() {
        assert!(report().failed(false));
        let warned = Report::new(vec![Finding::warn("clock", "x", "y")]);
        assert!(!warned.failed(false) && warned.failed(true));
        assert!(!Report::new(vec![Finding::ok("reach", "x")]).failed(true));
    }
}
