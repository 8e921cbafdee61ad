//! What commands print, for people and for programs.

use std::{
    fmt::Write as _,
    time::{Duration, Instant},
};

use serde_json::Value;

use super::{broker::Broker, shell::Shell, snapshot};

/// A queue with a job of every kind.
fn fill(shell: &Shell) {
    let settings = ["--lease", "1m", "--max-attempts", "3", "--max-backlog-jobs", "1000", "--acked-retention", "1h"];
    shell.run(&[&["queue", "create", "billing"][..], &settings].concat()).ok();
    let enqueue = |more: &[&str]| shell.run(&[&["enqueue", "billing", "-q"][..], more].concat()).ok();
    enqueue(&["dead", "--priority", "9"]);
    let dead = token(shell);
    shell.run(&["nack", &dead, "--as", "reject", "--error", "no such\ncustomer \u{1b}[31m"]).ok();
    enqueue(&["acked", "--priority", "9"]);
    let acked = token(shell);
    shell.run(&["ack", &acked]).ok();
    enqueue(&["leased", "--priority", "9", "--ordering-key", "customer 7", "--caller", "checkout"]);
    token(shell);
    enqueue(&["blocked", "--ordering-key", "customer 7"]);
    enqueue(&["scheduled", "--delay", "1h", "--idempotency-key", "invoice-4711"]);
    enqueue(&["{\"ready\": true}", "--content-type", "application/json", "--header", "shop=berlin"]);
    shell.feed(&["enqueue", "billing", "-q", "--file", "-"], b"\xff\x00").ok();
}

fn token(shell: &Shell) -> String {
    let jobs = shell.run(&["lease", "billing", "--json"]).json();
    jobs[0]["lease_token"].as_str().expect("a text").to_owned()
}

/// Waits until the replica has written down which streams there are.
fn until(shell: &Shell, holds: impl Fn(&[Value]) -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds(&shell.run(&["consumers", "--json"]).json()) {
        assert!(Instant::now() < deadline, "the replica does not write it down");
    }
}

/// Commands that change nothing, so that each can be looked at both ways.
const COMMANDS: [&str; 16] = [
    "ping",
    "queue list",
    "queue list --no-counts",
    "queue list nothing",
    "queue show billing",
    "job list billing",
    "job list billing --state ready,scheduled --payload",
    "job list billing --state acked",
    "job list billing --ordering-key nobody",
    "job show 6 --payload",
    "job explain 3",
    "job explain 4",
    "job explain 5",
    "job explain 6",
    "dead list billing --payload",
    "consumers",
];

#[test]
fn tables_and_json_are_as_they_were() {
    let mut broker = Broker::start(&["--replica-name", "broker-1", "--upkeep-presence-interval", "1s"]);
    broker.wait_for("\"ready:");
    let shell = Shell::of(&broker);
    fill(&shell);
    let marker = shell.start(&["lease", "marker", "--follow"]);
    until(&shell, |consumers| consumers.iter().any(|consumer| consumer["queues"][0] == "marker"));
    drop(marker);
    until(&shell, <[Value]>::is_empty);
    for (name, json) in [("tables.txt", false), ("json.txt", true)] {
        let mut text = String::new();
        for command in COMMANDS {
            let mut arguments: Vec<&str> = command.split(' ').collect();
            arguments.extend(json.then_some("--json"));
            let ended = shell.run(&arguments);
            assert_eq!(ended.code, Some(0), "{arguments:?}: {ended:?}");
            let shown = if json { ended.stdout } else { ended.stdout + &ended.stderr };
            writeln!(text, "$ leasehold {}\n{shown}", arguments.join(" ")).expect("a String");
        }
        snapshot::compare(name, &snapshot::steady(&text));
    }
}

#[test]
fn answers_about_single_jobs_are_as_they_were() {
    let mut broker = Broker::start(&[]);
    broker.wait_for("\"ready:");
    let shell = Shell::of(&broker);
    let mut text = String::new();
    let lines = "1\n2\n3\n4\n5\n6\n";
    shell.feed(&["enqueue", "work", "-q"], lines.as_bytes()).ok();
    shell.run(&["enqueue", "work", "later", "-q", "--delay", "1h"]).ok();
    let leased = shell.run(&["lease", "work", "--count", "4", "--json"]).json();
    let tokens: Vec<&str> = leased.iter().map(|job| job["lease_token"].as_str().expect("a text")).collect();
    let mut show = |arguments: &[&str]| {
        let ended = shell.run(arguments);
        let code = ended.code.expect("it ends by itself");
        write!(text, "$ leasehold {}\n{}{}", arguments.join(" "), ended.stdout, ended.stderr).expect("a String");
        if code != 0 {
            writeln!(text, "(exit code {code})").expect("a String");
        }
        text.push('\n');
    };
    for json in [&[][..], &["--json"]] {
        show(&[&["extend", tokens[0], tokens[1], "--lease", "5m"], json].concat());
    }
    show(&["ack", tokens[0]]);
    show(&["ack", tokens[1], tokens[0], "nonsense", "--json"]);
    show(&["nack", tokens[2], "--error", "no route", "--delay", "1h"]);
    show(&["nack", tokens[3], "--as", "reject", "--json"]);
    show(&["job", "cancel", "3", "4", "5", "--yes"]);
    show(&["job", "cancel", "6", "--yes", "--json"]);
    show(&["job", "run", "7"]);
    show(&["lease", "work"]);
    show(&["lease", "work"]);
    show(&["dead", "redrive", "--job", "4", "--json"]);
    show(&["dead", "redrive", "work", "--dry-run", "--json"]);
    show(&["queue", "purge", "work", "--state", "ready", "--yes", "--json"]);
    show(&["queue", "delete", "work", "--yes"]);
    snapshot::compare("answers.txt", &snapshot::steady(&text));
}
