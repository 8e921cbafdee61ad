//! What came out, for people.

use crate::{
    bench::{Figures, Latency, Report},
    cli::{
        broker::Failed,
        exit,
        output::{Output, table::Table},
    },
};

/// Prints the workload, a line for each round, and their medians; what is not known are notes.
pub(super) fn print(report: &Report) -> Result<(), Failed> {
    let held = if report.held_snapshot { ", a snapshot held" } else { "" };
    Output::line(&format!("{} on {}, broker {}{held}", report.act, report.engine, report.broker))?;
    match &report.shape {
        shape if report.act == "latency" => Output::line(&shape.to_string())?,
        shape => Output::line(&format!("{} jobs, {shape}", shape.jobs))?,
    }
    Output::line(&format!(
        "times are of {}; the last line has medians, and times of all rounds together\n",
        report.latency_of
    ))?;
    Output::table(&table(report), "no round was done")?;
    if let Some(lost) = report.lost {
        let Report { twice, strange, refused_acks, .. } = report;
        Output::line(&format!("\n{lost} lost, {twice} twice, {strange} strange, {refused_acks} acks refused"))?;
    }
    for unknown in &report.unknown {
        exit::note(&unknown);
    }
    Ok(())
}

fn table(report: &Report) -> Table {
    let mut table = Table::new(&[
        "ROUND",
        ">JOBS/S",
        ">P50 MS",
        ">P90",
        ">P99",
        ">P99.9",
        ">MAX",
        ">CPU US/JOB: CLIENT",
        ">BROKER",
        ">DATABASE",
        ">WAL B/JOB",
    ]);
    for (n, figures) in report.rounds.iter().enumerate() {
        table.row(row((n + 1).to_string(), figures));
    }
    if let Some(median) = &report.median {
        table.row(row("median".to_owned(), median));
    }
    table
}

fn row(name: String, figures: &Figures) -> [String; 11] {
    let millis = |of: fn(&Latency) -> f64| figures.latency_seconds.as_ref().map(|latency| of(latency) * 1e3);
    let micros = |seconds: Option<f64>| shown(seconds.map(|seconds| seconds * 1e6), 1);
    [
        name,
        format!("{:.0}", figures.jobs_per_second),
        shown(millis(|latency| latency.p50), 2),
        shown(millis(|latency| latency.p90), 2),
        shown(millis(|latency| latency.p99), 2),
        shown(millis(|latency| latency.p999), 2),
        shown(millis(|latency| latency.max), 2),
        micros(figures.client_cpu_seconds_per_job),
        micros(figures.broker_cpu_seconds_per_job),
        micros(figures.database_cpu_seconds_per_job),
        shown(figures.wal_bytes_per_job, 0),
    ]
}

fn shown(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_a_dash_and_no_nought() {
        let figures = Figures {
            seconds: 2.0,
            jobs_per_second: 50_000.4,
            latency_seconds: None,
            client_cpu_seconds_per_job: Some(4.25e-6),
            broker_cpu_seconds_per_job: None,
            database_cpu_seconds_per_job: Some(0.0),
            wal_bytes_per_job: Some(512.4),
        };
        let row = row("1".into(), &figures);
        assert_eq!(row.join(" "), "1 50000 - - - - - 4.2 - 0.0 512");
    }
}
