//! One thing as a list of what is known about it.

use std::fmt::Write as _;

use super::{Output, Style, escape};
use crate::cli::broker::Failed;

/// Lines of a label and what holds.
#[derive(Debug, Default)]
pub(in crate::cli) struct Facts(Vec<(&'static str, String)>);

impl Facts {
    /// Adds a line, unless there is nothing to say.
    pub(in crate::cli) fn add(&mut self, label: &'static str, value: impl Into<String>) {
        let value = value.into();
        if !value.is_empty() {
            self.0.push((label, value));
        }
    }

    /// Adds a line where there is something.
    pub(in crate::cli) fn maybe(&mut self, label: &'static str, value: Option<String>) {
        self.add(label, value.unwrap_or_default());
    }

    /// The lines, labels in a column.
    pub(in crate::cli) fn render(&self, style: Style) -> String {
        let width = self.0.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
        self.0.iter().fold(String::new(), |mut text, (label, value)| {
            let gap = " ".repeat(width - label.len());
            writeln!(text, "{}{gap}  {}", style.bold(label), escape::text(value))
                .expect("writing to a String cannot fail");
            text
        })
    }

    /// Prints them.
    pub(in crate::cli) fn print(&self) -> Result<(), Failed> {
        Output::line(self.render(Style::of_stdout()).trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_stand_in_a_column_and_what_is_absent_is_left_out() {
        let mut facts = Facts::default();
        facts.add("job", "17");
        facts.maybe("last error", Some("no\nroute".into()));
        facts.maybe("dead at", None);
        assert_eq!(facts.render(Style::Plain), "job         17\nlast error  no\\nroute\n");
    }
}
