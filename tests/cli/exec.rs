//! `leasehold lease --exec`: what becomes of one job.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{broker::Broker, shell::Shell};

fn broker() -> (Broker, Shell) {
    let mut broker = Broker::start(&[]);
    broker.wait_for("\"ready:");
    let shell = Shell::of(&broker);
    (broker, shell)
}

/// The counts that a worker printed at its end.
fn counts(stdout: &str) -> Value {
    serde_json::from_str(stdout.lines().last().expect("a line")).expect("JSON")
}

/// All jobs of a queue, which stay leased.
fn left(shell: &Shell, queue: &str) -> Vec<Value> {
    shell.run(&["lease", queue, "--count", "100", "--json"]).json()
}

#[test]
fn the_exit_code_decides_and_the_end_of_stderr_is_the_error() {
    let (_broker, shell) = broker();
    shell.feed(&["enqueue", "work", "-q", "--max-attempts", "2"], b"0\n65\n75\n3\n9\n").ok();
    let command = "read code; echo \"saw $code\" >&2; \
                   [ $LEASEHOLD_JOB_LEASE_NUMBER = 2 ] && exit 0; [ $code = 9 ] && kill -9 $$; exit $code";
    let flags = ["--exec", command, "--retry-delay", "1h", "--release-delay", "0s", "--json"];
    let ended = shell.run(&[&["lease", "work"][..], &flags].concat());
    for said in ["dead; exit code 65: saw 65", "to be retried; exit code 3: saw 3", "killed by signal 9: saw 9"] {
        assert!(ended.stderr.contains(said), "'{said}' is missing in {}", ended.stderr);
    }
    let counts = counts(&ended.ok());
    // the released one came back at once, with its first attempt still to be counted
    let wanted = json!({"leased": 6, "acked": 2, "retried": 2, "dead": 1, "released": 1, "cancelled": 0, "lost": 0, "unanswered": 0});
    assert_eq!(counts, wanted);
}

#[test]
fn a_command_gets_its_payload_on_stdin_and_facts_as_variables() {
    let (_broker, shell) = broker();
    let payload: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (got, variables) = (directory.path().join("payload"), directory.path().join("variables"));
    let keys = ["--ordering-key", "customer 7", "--header", "a=\"b\"", "--content-type", "text/plain"];
    shell.feed(&[&["enqueue", "work", "-q", "--file", "-"][..], &keys].concat(), &payload).ok();
    let command = format!("cat > {}; env > {}", got.display(), variables.display());
    shell.run(&["lease", "work", "--exec", &command]).ok();
    assert!(std::fs::read(got).expect("written") == payload, "the payload is byte-identical");
    let variables = std::fs::read_to_string(variables).expect("text");
    for line in [
        "LEASEHOLD_JOB_ID=1",
        "LEASEHOLD_JOB_QUEUE=work",
        "LEASEHOLD_JOB_ATTEMPT=1",
        "LEASEHOLD_JOB_MAX_ATTEMPTS=20",
        "LEASEHOLD_JOB_LEASE_NUMBER=1",
        "LEASEHOLD_JOB_PRIORITY=4",
        "LEASEHOLD_JOB_CONTENT_TYPE=text/plain",
        "LEASEHOLD_JOB_ORDERING_KEY=customer 7",
        "LEASEHOLD_JOB_HEADERS={\"a\":\"\\\"b\\\"\"}",
        "LEASEHOLD_CALLER=leasehold-cli",
    ] {
        assert!(variables.lines().any(|variable| variable == line), "'{line}' is missing in {variables}");
    }
}

#[test]
fn a_command_that_does_not_read_its_payload_is_no_failure() {
    let (_broker, shell) = broker();
    shell.feed(&["enqueue", "work", "-q", "--file", "-"], &vec![b'x'; 1 << 20]).ok();
    let ended = shell.run(&["lease", "work", "--exec", "true"]);
    assert!(ended.stderr.contains("1 jobs leased: 1 acked"), "{}", ended.stderr);
}

#[test]
fn a_megabyte_of_stderr_is_passed_on_and_its_end_is_kept() {
    let (_broker, shell) = broker();
    shell.run(&["enqueue", "work", "x", "-q"]).ok();
    let command = "head -c 1000000 /dev/zero | tr '\\0' e >&2; echo; echo the end >&2; exit 3";
    let ended = shell.run(&["lease", "work", "--exec", command, "--retry-delay", "0s", "--count", "1", "--json"]);
    assert!(ended.stderr.len() > 1_000_000, "{} bytes were passed on", ended.stderr.len());
    assert_eq!(counts(&ended.ok())["retried"], 1);
    let jobs = left(&shell, "work");
    let error = jobs[0]["last_error"].as_str().expect("a text");
    assert!(error.starts_with("exit code 3: eee") && error.ends_with("the end"), "{error}");
    assert!((3_000..=4_096).contains(&error.len()), "{} bytes", error.len());
}

#[test]
fn a_lease_is_extended_while_its_command_runs() {
    let (_broker, shell) = broker();
    shell.run(&["enqueue", "work", "x", "-q"]).ok();
    // three times as long as the lease
    let ended = shell.run(&["lease", "work", "--exec", "sleep 3", "--lease", "1s", "--json"]);
    let counts = counts(&ended.ok());
    assert_eq!((&counts["leased"], &counts["acked"]), (&1.into(), &1.into()));
}

#[test]
fn a_command_whose_lease_is_lost_is_stopped_with_all_its_group() {
    let (_broker, shell) = broker();
    shell.run(&["enqueue", "work", "x", "-q"]).ok();
    let command = "trap 'echo stopped; exit 1' TERM; echo $LEASEHOLD_JOB_LEASE_TOKEN; sleep 60 & echo $!; wait";
    let mut worker = shell.start(&["lease", "work", "--exec", command, "--lease", "1s"]);
    let (token, pid) = (worker.line().expect("a token"), worker.line().expect("a process"));
    shell.run(&["nack", &token, "--as", "reject"]).ok();
    assert_eq!(worker.line().as_deref(), Some("stopped"));
    let ended = worker.end();
    assert!(ended.stderr.contains("1 whose lease was lost"), "{}", ended.stderr);
    assert!(!std::path::Path::new(&format!("/proc/{pid}/cwd")).exists(), "its group has ended as well");
}

#[test]
fn a_command_whose_job_is_cancelled_is_stopped_and_the_job_is_gone() {
    let (_broker, shell) = broker();
    shell.run(&["enqueue", "work", "x", "-q"]).ok();
    let command = "trap 'echo stopped; exit 1' TERM; echo $LEASEHOLD_JOB_ID; sleep 60 & wait";
    let mut worker = shell.start(&["lease", "work", "--exec", command, "--lease", "2s"]);
    let job = worker.line().expect("an id");
    let cancelled = shell.run(&["job", "cancel", &job, "--yes", "--json"]).json();
    assert_eq!(cancelled, [json!({"job_id": job, "status": "requested"})]);
    worker.until("stopped");
    let ended = worker.end();
    assert!(ended.stderr.contains("1 jobs leased: 0 acked, 0 to be retried, 0 dead, 1 cancelled"), "{}", ended.stderr);
    assert_eq!(shell.run(&["job", "show", &job]).code, Some(66));
}

#[test]
fn sigterm_lets_a_command_finish_and_begins_no_other() {
    let (_broker, shell) = broker();
    shell.feed(&["enqueue", "work", "-q"], b"1\n2\n").ok();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let gate = directory.path().join("gate");
    let command = format!("read n; mkfifo {0}; echo begun $n; cat {0}; echo ended $n", gate.display());
    let mut worker = shell.start(&["lease", "work", "--follow", "--exec", &command]);
    worker.until("begun 1");
    worker.signal(Signal::TERM);
    // opening waits until the command has opened it, too
    drop(std::fs::OpenOptions::new().write(true).open(&gate).expect("a pipe"));
    let ended = worker.end();
    assert!(ended.stderr.contains("1 jobs leased: 1 acked"), "{}", ended.stderr);
    assert_eq!(ended.ok(), "ended 1\n");
    let rest = left(&shell, "work");
    assert_eq!(rest.len(), 1);
    assert_eq!((&rest[0]["payload"], &rest[0]["attempt"]), (&"2".into(), &1.into()));
}

#[test]
fn a_command_that_does_not_end_in_time_is_killed_and_its_job_released() {
    let (_broker, shell) = broker();
    shell.run(&["enqueue", "work", "x", "-q"]).ok();
    let command = "trap '' TERM; echo begun; while :; do sleep 1; done";
    let flags = ["--follow", "--grace", "100ms", "--kill-after", "100ms", "--json"];
    let mut worker = shell.start(&[&["lease", "work", "--exec", command][..], &flags].concat());
    // with --json commands write to stderr, so the lease is looked for instead
    while shell.run(&["lease", "work", "--json"]).json().first().is_some_and(|job| {
        shell.run(&["nack", job["lease_token"].as_str().expect("a text"), "--as", "release"]).code == Some(0)
    }) {}
    worker.signal(Signal::TERM);
    let counts: Value = serde_json::from_str(&worker.line().expect("the counts")).expect("JSON");
    assert_eq!((&counts["leased"], &counts["released"]), (&1.into(), &1.into()));
    assert_eq!(worker.end().code, Some(0));
    let back = left(&shell, "work");
    assert_eq!(back[0]["attempt"], 1, "the attempt was not counted");
    assert!(back[0]["lease_number"].as_i64() > Some(1), "{back:?}");
}

#[test]
fn a_second_signal_stops_commands_at_once() {
    let (_broker, shell) = broker();
    shell.run(&["enqueue", "work", "x", "-q"]).ok();
    let command = "trap 'echo stopped; exit 1' TERM; echo begun; sleep 60 & wait";
    let mut worker = shell.start(&["lease", "work", "--follow", "--exec", command, "--grace", "1h"]);
    worker.until("begun");
    worker.signal(Signal::TERM);
    worker.signal(Signal::INT);
    worker.until("stopped");
    let ended = worker.end();
    assert!(ended.stderr.contains("1 released"), "{}", ended.stderr);
    assert_eq!(ended.code, Some(0));
    assert_eq!(left(&shell, "work")[0]["attempt"], 1, "the attempt was not counted");
}

#[test]
fn a_bound_on_jobs_is_kept_and_costs_the_others_no_attempt() {
    let (_broker, shell) = broker();
    shell.feed(&["enqueue", "work", "-q"], b"1\n2\n3\n4\n5\n6\n7\n8\n").ok();
    let ended = shell.run(&["lease", "work", "--exec", "cat; echo", "--count", "5", "--parallel", "2"]);
    assert!(ended.stderr.contains("5 acked"), "{}", ended.stderr);
    assert_eq!(ended.ok().lines().count(), 5);
    let rest = left(&shell, "work");
    assert_eq!(rest.len(), 3);
    assert!(rest.iter().all(|job| job["attempt"] == 1), "{rest:?}");
}
