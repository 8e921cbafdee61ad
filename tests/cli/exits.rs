//! Exit codes, and what stderr says with them.

use super::{broker::Broker, shell::Shell};

/// A call, its exit code, and what is said.
type Case = (&'static [&'static str], i32, &'static [&'static str]);

const TOKEN_OF_NOBODY: &str = "AAAAAAAAAAETBTn0rPQtsGyPJXOdny02dmZrPQAAAAF2UZJM";

const CASES: &[Case] = &[
    (&["enqueue", "work", "x"], 0, &[]),
    (&["enqueue", "work", "x", "--file", "y"], 64, &["--file"]),
    (&["enqueue", "work", "x", "--delay", "5"], 64, &["with its unit"]),
    (&["enqueue", "work", "x", "--delay", "5s", "--at", "2030-01-01T00:00:00Z"], 64, &["--at"]),
    (&["enqueue", "work", "x", "--header", "novalue"], 64, &["KEY=VALUE"]),
    (&["enqueue", "work", "--file", "/nowhere/at/all"], 1, &["/nowhere/at/all"]),
    (&["enqueue", "Work", "x"], 65, &["INVALID_FIELD", "queue", "nothing was changed", "next:"]),
    (&["enqueue", "work", "x", "--priority", "11"], 65, &["INVALID_FIELD", "priority"]),
    (&["enqueue", "Work", "x", "--priority", "11"], 65, &["2 fields", "queue", "priority"]),
    (&["enqueue", "work", "x", "--caller", "leasehold.reaper"], 64, &["belong to the broker"]),
    (&["enqueue", "work", "x", "--address", "https://localhost:1"], 64, &["TLS"]),
    (&["enqueue", "work", "x", "--address", "127.0.0.1:1"], 69, &["cannot reach the broker", "--address"]),
    (&["lease", "work", "--exec", "true", "--address", "127.0.0.1:1", "--timeout", "50ms"], 69, &["cannot reach"]),
    (&["lease", "Work"], 65, &["INVALID_FIELD"]),
    (&["lease", "Work", "--exec", "true", "--follow"], 65, &["INVALID_FIELD", "0 jobs leased"]),
    (&["lease", "work", "--retry-delay", "1s"], 64, &["--exec"]),
    (&["lease", "work", "--exec", "true", "--parallel", "0"], 64, &["--parallel"]),
    (&["ack", "nonsense"], 65, &[]),
    (&["ack", TOKEN_OF_NOBODY], 65, &[]),
    (&["ack"], 64, &["no lease token"]),
    (&["nack", "nonsense", "--as", "later"], 64, &["retry", "release", "reject"]),
    (&["queue", "update", "work"], 64, &["no setting"]),
    (&["queue", "update", "work", "--max-attempts", "3", "--reset", "max-attempts"], 64, &["max-attempts"]),
    (&["queue", "disable", "work"], 64, &["--reason"]),
    (&["queue", "purge", "work", "--yes"], 64, &["--state"]),
    (&["queue", "delete", "work"], 64, &["--yes"]),
    (&["job", "cancel", "1"], 64, &["--yes"]),
    (&["dead", "redrive"], 64, &["QUEUE"]),
    (&["dead", "redrive", "work", "--job", "1"], 64, &["--job"]),
    (&["completions", "nosh"], 64, &["bash"]),
    (&["queue", "show", "nowhere"], 66, &["NOT_FOUND", "nowhere", "leasehold queue list"]),
    (&["queue", "update", "nowhere", "--lease", "5s"], 66, &["NOT_FOUND"]),
    (&["queue", "create", "work", "--lease", "1ms"], 65, &["INVALID_FIELD", "lease_duration"]),
    (&["queue", "delete", "work", "--yes"], 73, &["QUEUE_NOT_EMPTY", "--purge"]),
    (&["queue", "disable", "work", "--reason", "tax service is down"], 0, &[]),
    (&["enqueue", "work", "x"], 73, &["DISABLED", "tax service is down", "leasehold queue enable"]),
    (&["queue", "enable", "work"], 0, &[]),
    (&["enqueue", "work", "x"], 0, &[]),
    (&["job", "show", "999"], 66, &["NOT_FOUND", "999"]),
    (&["job", "show", "first"], 65, &["INVALID_FIELD"]),
    (&["job", "explain", "999"], 66, &["NOT_FOUND"]),
    (&["job", "run", "999"], 66, &["NOT_FOUND"]),
    (&["job", "cancel", "999", "--yes"], 66, &[]),
    (&["job", "list", "nowhere"], 66, &["NOT_FOUND"]),
    (&["dead", "list", "nowhere"], 66, &["NOT_FOUND"]),
    (&["dead", "redrive", "--job", "999"], 66, &["NOT_FOUND"]),
    (&["ping"], 0, &[]),
];

#[test]
fn every_failure_has_its_exit_code_and_says_what_to_do() {
    let mut broker = Broker::start(&[]);
    broker.wait_for("\"ready:");
    let shell = Shell::of(&broker);
    for (arguments, code, said) in CASES {
        let ended = shell.run(arguments);
        assert_eq!(ended.code, Some(*code), "{arguments:?}: {ended:?}");
        for part in *said {
            assert!(ended.stderr.contains(part), "{arguments:?}: '{part}' is missing in {}", ended.stderr);
        }
        let dump = ["Status {", "ErrorInfo", "panicked", "Err("].into_iter().find(|dump| ended.stderr.contains(dump));
        assert_eq!(dump, None, "{arguments:?}: {}", ended.stderr);
    }
}

#[test]
fn the_worst_answer_of_a_batch_decides() {
    let mut broker = Broker::start(&[]);
    broker.wait_for("\"ready:");
    let shell = Shell::of(&broker);
    shell.feed(&["enqueue", "work", "-q"], b"1\n2\n3\n").ok();
    let tokens: Vec<String> = shell
        .run(&["lease", "work", "--count", "3", "--json"])
        .json()
        .iter()
        .map(|job| job["lease_token"].as_str().expect("a text").to_owned())
        .collect();
    assert_eq!(shell.run(&["ack", &tokens[0]]).code, Some(0));
    assert_eq!(shell.run(&["ack", &tokens[0]]).code, Some(66), "gone");
    let nacked = shell.run(&["nack", &tokens[1], "--error", "no route", "--delay", "1h", "--json"]).json();
    assert_eq!((&nacked[0]["status"], &nacked[0]["dead"]), (&"ok".into(), &false.into()));
    assert!(nacked[0]["available_at"].is_string(), "{nacked:?}");
    assert_eq!(shell.run(&["nack", &tokens[1]]).code, Some(73), "the lease is lost");
    let rejected = shell.run(&["nack", &tokens[2], "--as", "reject"]);
    assert!(rejected.stdout.contains("the job is dead now"), "{rejected:?}");
    assert_eq!(shell.run(&["ack", &tokens[0], &tokens[1], &tokens[2]]).code, Some(73));
}

#[test]
fn a_broker_serves_beside_the_variables_of_its_clients_and_commands() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let output = super::broker::leasehold(&["config", "show", "--data-dir", directory.path().to_str().expect("UTF-8")])
        .env("LEASEHOLD_ADDRESS", "http://127.0.0.1:7070")
        .env("LEASEHOLD_CALLER", "checkout")
        .env("LEASEHOLD_JOB_ID", "7")
        .output()
        .expect("the program runs");
    assert!(output.status.success(), "{output:?}");
}
