//! The table at the end.

use std::{collections::BTreeMap, fmt::Write as _};

use super::{process::Process, tally::Sums};

const HEADS: [&str; 7] = ["enqueued", "leased", "acked", "retried", "expired", "dead", "lost"];

/// One row a process, their sum, and the lane time that each caller used.
pub(super) fn render(rows: &[(Process, Sums)], lane_time: &BTreeMap<String, f64>) -> String {
    let mut table = format!("{:<24}", "business process");
    for head in HEADS {
        write!(table, "{head:>10}").expect("writing to a String cannot fail");
    }
    writeln!(table, "{:>12}", "lane time").expect("writing to a String cannot fail");
    for (process, sums) in rows {
        let time = lane_time.get(process.caller).copied().unwrap_or_default();
        line(&mut table, process.caller, sums, time);
    }
    let own: f64 = lane_time.iter().filter(|(caller, _)| caller.starts_with("leasehold.")).map(|(_, time)| time).sum();
    writeln!(table, "{:<24}{:>82}", "the broker's own work", format!("{own:.3} s"))
        .expect("writing to a String cannot fail");
    line(&mut table, "together", &total(rows), lane_time.values().sum());
    table
}

/// The sum of all rows.
pub(super) fn total(rows: &[(Process, Sums)]) -> Sums {
    rows.iter().fold(Sums::default(), |total, (_, sums)| Sums {
        enqueued: total.enqueued + sums.enqueued,
        leased: total.leased + sums.leased,
        acked: total.acked + sums.acked,
        retried: total.retried + sums.retried,
        expired: total.expired + sums.expired,
        dead: total.dead + sums.dead,
        lost: total.lost + sums.lost,
    })
}

fn line(table: &mut String, name: &str, sums: &Sums, time: f64) {
    write!(table, "{name:<24}").expect("writing to a String cannot fail");
    for number in [sums.enqueued, sums.leased, sums.acked, sums.retried, sums.expired, sums.dead, sums.lost] {
        write!(table, "{number:>10}").expect("writing to a String cannot fail");
    }
    writeln!(table, "{:>12}", format!("{time:.3} s")).expect("writing to a String cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::demo::process::ALL;

    #[test]
    fn all_lines_are_of_one_width_and_the_last_one_is_the_sum() {
        let sums = Sums { enqueued: 10, leased: 12, acked: 9, retried: 2, expired: 0, dead: 1, lost: 0 };
        let rows = ALL.map(|process| (process, sums));
        let times = BTreeMap::from([("email_delivery".to_owned(), 0.5), ("leasehold.reaper".to_owned(), 0.25)]);
        let table = render(&rows, &times);
        let widths: Vec<usize> = table.lines().map(str::len).collect();
        assert!(widths.iter().all(|width| *width == widths[0]), "{table}");
        assert_eq!(table.lines().count(), 6);
        let last = table.lines().last().unwrap_or_default();
        assert!(last.starts_with("together") && last.contains(" 30 ") && last.ends_with("0.750 s"), "{table}");
    }
}
