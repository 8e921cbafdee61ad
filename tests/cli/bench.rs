//! `leasehold bench` on brokers of its own and of others: nothing is lost and nothing is done twice. Never how fast.

use std::{
    io::Read as _,
    process::{Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::broker::{Broker, leasehold};

/// Few jobs, whatever is measured.
const FEW: [&str; 8] = ["--jobs", "120", "--batch", "20", "--rounds", "2", "--json", "--timeout"];

fn bench(arguments: &[&str]) -> Command {
    let mut command = leasehold(&["bench"]);
    command.args(arguments).args(FEW).arg("5m").stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// What a measurement that ended well reports.
fn report(arguments: &[&str]) -> Value {
    let output = bench(arguments).output().expect("the program runs");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

fn is_sound(report: &Value, rounds: usize) {
    for count in ["lost", "twice", "strange", "refused_acks"] {
        assert_eq!(report[count], 0, "{count}: {report}");
    }
    assert_eq!(report["rounds"].as_array().map(Vec::len), Some(rounds), "{report}");
    assert_eq!(report["stopped"], false, "{report}");
    assert!(report["median"]["jobs_per_second"].as_f64().is_some_and(|rate| rate > 0.0), "{report}");
    assert!(report["median"]["latency_seconds"]["count"].as_u64().is_some_and(|count| count > 0), "{report}");
}

#[test]
fn every_act_on_the_embedded_database_loses_nothing() {
    for act in ["enqueue", "drain", "all"] {
        is_sound(&report(&[act]), 2);
    }
    is_sound(&report(&["latency", "--rate", "200", "--for", "300ms"]), 2);
}

#[test]
fn jobs_of_every_shape_come_once_and_those_that_wait_stay() {
    let shape = ["--queues", "3", "--ordering-keys", "4", "--priorities", "10", "--callers", "3", "--streams", "2"];
    let waiting = ["--backlog", "70", "--scheduled", "30", "--blocked", "150", "--payload", "24"];
    is_sound(&report(&[&["drain"], &shape[..], &waiting[..]].concat()), 2);
    is_sound(&report(&[&["all"], &shape[..], &waiting[..]].concat()), 2);
}

#[test]
fn a_broker_that_serves_already_is_left_as_it_was() {
    let mut broker = Broker::start(&[]);
    broker.wait_for("\"ready:");
    let address = format!("http://{}", broker.address());
    is_sound(&report(&["all", "--address", &address]), 2);
    let queues = leasehold(&["queue", "list", "--json", "--address", &address]).output().expect("the program runs");
    assert!(queues.status.success(), "{queues:?}");
    // a deleted queue is shown until every replica knows of it, and says so
    let left = String::from_utf8(queues.stdout).expect("text");
    for line in left.lines() {
        let queue: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!((&queue["ready"]["count"], &queue["deleting"]), (&0.into(), &true.into()), "{line}");
    }
}

#[test]
fn a_measurement_that_is_stopped_prints_what_there_is() {
    let mut child = leasehold(&["bench", "all", "--jobs", "50000000", "--rounds", "1", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let (mut said, mut stderr) = (String::new(), child.stderr.take().expect("a pipe"));
    let mut letter = [0];
    while !said.contains("round 1 of 1") {
        assert!(stderr.read(&mut letter).expect("a readable pipe") > 0, "it ended: {said}");
        said.push(char::from(letter[0]));
    }
    kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
    stderr.read_to_string(&mut said).expect("text");
    let output = child.wait_with_output().expect("it is our child");
    assert_eq!(output.status.code(), Some(1), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert_eq!((&report["stopped"], &report["lost"]), (&true.into(), &Value::Null), "{report}");
}

#[test]
fn what_does_not_go_together_is_refused_before_anything_is_begun() {
    for (arguments, code, said) in [
        (&["all", "--held-snapshot"][..], 64, "--database-url"),
        (&["all", "--broker-pid", "1"], 64, "--address"),
        (&["all", "--address", "127.0.0.1:1", "--set", "lanes.count=4"], 64, "--set"),
        (&["drain", "--queues", "100", "--streams", "1"], 64, "--streams"),
        (&["latency", "--backlog", "5"], 64, "--backlog"),
        (&["all", "--database-url", "sqlite://x"], 64, "postgres://"),
        (&["all", "--set", "no_such_option=1"], 69, "no_such_option"),
        (&["all", "--address", "127.0.0.1:1"], 69, "cannot reach"),
        (&["all", "--payload", "8"], 64, "24"),
    ] {
        let output = bench(arguments).output().expect("the program runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
        assert!(stderr.to_lowercase().contains(said), "{arguments:?}: {stderr}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}
