//! Tables for people.

use super::{Style, escape};

const GAP: &str = "  ";
/// Columns of a cell under a head that begins with `~`.
const CUT: usize = 60;

/// Rows under heads. Cells are shown as text, whoever wrote them.
#[derive(Debug)]
pub(in crate::cli) struct Table {
    heads: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// No rows yet. A head that begins with `>` is of a column of numbers, which are put to the right; one that begins with `~` is
    /// of long texts, which are cut.
    pub(in crate::cli) fn new(heads: &[&'static str]) -> Self {
        Self { heads: heads.to_vec(), rows: Vec::new() }
    }

    /// Adds a row of as many cells as there are heads.
    pub(in crate::cli) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let shown = cells.into_iter().map(|cell| escape::text(&cell)).zip(&self.heads);
        let row: Vec<String> =
            shown.map(|(cell, head)| if head.starts_with('~') { escape::cut(&cell, CUT) } else { cell }).collect();
        debug_assert_eq!(row.len(), self.heads.len(), "{row:?}");
        self.rows.push(row);
    }

    /// Whether it has no rows.
    pub(in crate::cli) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table, each line ended.
    pub(in crate::cli) fn render(&self, style: Style) -> String {
        let (titles, right): (Vec<&str>, Vec<bool>) =
            self.heads.iter().map(|head| (head.trim_start_matches(['>', '~']), head.starts_with('>'))).unzip();
        let widths: Vec<usize> = titles
            .iter()
            .enumerate()
            .map(|(n, title)| {
                let cells = self.rows.iter().filter_map(|row| row.get(n)).map(|cell| escape::columns(cell));
                cells.max().unwrap_or(0).max(escape::columns(title))
            })
            .collect();
        let line = |cells: &[&str]| {
            let padded: Vec<String> =
                cells.iter().zip(&widths).zip(&right).map(|((cell, width), right)| pad(cell, *width, *right)).collect();
            padded.join(GAP).trim_end().to_owned()
        };
        let mut text = style.bold(&line(&titles)) + "\n";
        for row in &self.rows {
            text.push_str(&line(&row.iter().map(String::as_str).collect::<Vec<_>>()));
            text.push('\n');
        }
        text
    }
}

fn pad(cell: &str, width: usize, right: bool) -> String {
    let missing = " ".repeat(width.saturating_sub(escape::columns(cell)));
    if right { missing + cell } else { cell.to_owned() + &missing }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_by_what_a_terminal_shows() {
        let mut table = Table::new(&["NAME", ">READY"]);
        table.row(["世界".into(), "7".into()]);
        table.row(["orders".into(), "10000+".into()]);
        assert_eq!(table.render(Style::Plain), "NAME     READY\n世界         7\norders  10000+\n");
    }

    #[test]
    fn a_cell_cannot_break_its_line_or_colour_the_terminal() {
        let mut table = Table::new(&["ERROR"]);
        table.row(["a\nb\u{1b}[31m".into()]);
        assert_eq!(table.render(Style::Plain), "ERROR\na\\nb\\u{1b}[31m\n");
    }

    #[test]
    fn only_a_terminal_sees_colours() {
        let table = Table::new(&["NAME"]);
        assert_eq!(table.render(Style::Plain), "NAME\n");
        assert_eq!(table.render(Style::Colour), "\u{1b}[1mNAME\u{1b}[0m\n");
    }
}
