//! An operator's story, by the command line alone: a queue falls behind, is explained, paused, purged in part, its dead jobs are
//! redriven at a rate, and nothing is lost.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    path::Path,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use serde_json::Value;

use super::{
    broker::Broker,
    shell::{Ended, Shell},
    snapshot,
};

/// Every seventh order is for a country whose tax service is down, until somebody repairs it. Orders
/// wait until packing is open.
const WORKER: &str = "read order
if [ $((order % 7)) = 0 ] && [ ! -e repaired ]; then
    echo 'tax service: connection refused' >&2
    exit 65
fi
while [ ! -e open ]; do sleep 0.1; done
echo $order >> done";

/// A shell whose commands and answers are written down.
struct Terminal {
    shell: Shell,
    transcript: String,
}

impl Terminal {
    /// Something that the operator thinks.
    fn think(&mut self, text: &str) {
        writeln!(self.transcript, "# {text}").expect("a String");
    }

    /// Runs a command and writes down what it said.
    fn run(&mut self, line: &str) -> Ended {
        self.feed(line, "", "")
    }

    /// The same with a stdin, of which the transcript says where it came from.
    fn feed(&mut self, line: &str, before: &str, stdin: &str) -> Ended {
        let arguments: Vec<&str> = line.split(' ').collect();
        let ended = self.shell.feed(&arguments, stdin.as_bytes());
        write!(self.transcript, "$ {before}leasehold {line}\n{}{}", ended.stdout, ended.stderr).expect("a String");
        if ended.code != Some(0) {
            writeln!(self.transcript, "(exit code {:?})", ended.code.unwrap_or_default()).expect("a String");
        }
        self.transcript.push('\n');
        ended
    }

    /// The counts of the queue.
    fn counts(&self) -> Value {
        self.shell.run(&["queue", "show", "orders", "--json"]).json().remove(0)["counts"].take()
    }

    /// Asks until this holds of the queue's counts.
    fn until(&self, what: &str, holds: impl Fn(&Value) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let counts = self.counts();
            if holds(&counts) {
                return;
            }
            assert!(Instant::now() < deadline, "{what}: {counts}\n{}", self.transcript);
        }
    }
}

fn numbers(path: &Path) -> BTreeSet<u64> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| line.parse().expect("a number")).collect()
}

#[test]
fn a_queue_falls_behind_and_an_operator_puts_it_right_without_losing_a_job() {
    let mut broker = Broker::start(&["--upkeep-presence-interval", "1s", "--replica-name", "broker-1"]);
    broker.wait_for("\"ready:");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str| directory.path().join(name);
    let mut operator = Terminal { shell: Shell::of(&broker), transcript: String::new() };

    // orders 1 to 400, and a worker that gets stuck at the first ones that do not fail
    let orders: Vec<String> = (1..=400).map(|n| n.to_string()).collect();
    operator.think("checkout enqueues 400 orders; a worker with two places takes them");
    let enqueue = "enqueue orders --quiet --caller checkout";
    operator.feed(enqueue, "seq 400 | ", &orders.join("\n")).ok();
    let command = format!("cd {}; {WORKER}", directory.path().display());
    let worker = operator.shell.start(&[
        "lease",
        "orders",
        "--follow",
        "--parallel",
        "2",
        "--consumer",
        "packing-1",
        "--caller",
        "packing",
        "--exec",
        &command,
    ]);
    operator.until("the worker is full", |counts| {
        counts["leased"] == 2
            && counts["streams"] == 1
            && counts["free_credit"] == 0
            && counts["rates"]["enqueued"] != 0.0
    });
    operator.think("the shop says that nothing is being packed");
    operator.run("queue list").ok();
    operator.run("consumers orders").ok();
    operator.run("job list orders --limit 3").ok();
    operator.run("job explain 100").ok();

    operator.think("stop it while we look");
    operator.run("queue pause orders").ok();
    operator.run("job explain 100").ok();
    operator.think("the hundred oldest were packed by hand in the meantime");
    let purge = "queue purge orders --state ready --limit 100";
    operator.run(&format!("{purge} --dry-run")).ok();
    assert_eq!(operator.run(purge).code, Some(64), "nobody can be asked");
    operator.run(&format!("{purge} --yes")).ok();
    assert!(!numbers(&at("done")).contains(&100));

    operator.think("the packing line runs again");
    std::fs::write(at("open"), "").expect("written");
    operator.run("queue resume orders").ok();
    operator.until("all is worked off", |counts| counts["ready"] == 0 && counts["leased"] == 0);
    operator.run("queue list").ok();

    operator.think("what died?");
    operator.run("dead list orders --limit 3").ok();
    operator.run("dead redrive orders --error-contains tax --dry-run").ok();
    std::fs::write(at("repaired"), "").expect("written");
    operator.think("the tax service is back; it can take ten a second");
    let dead = operator.counts()["dead"].as_u64().expect("a number");
    let began = Instant::now();
    operator.run("dead redrive orders --rate 10 --limit 20").ok();
    assert!(began.elapsed() >= Duration::from_millis(1_500), "20 at 10 a second took {:?}", began.elapsed());
    operator.run("dead redrive orders --rate 1000").ok();
    operator.until("all is worked off", |counts| counts["ready"] == 0 && counts["leased"] == 0);
    operator.run("queue list").ok();
    worker.signal(Signal::TERM);
    let ended = worker.end();
    writeln!(operator.transcript, "# the worker's last words: {}", ended.stderr.lines().last().unwrap_or_default())
        .expect("a String");

    // every order was either packed or purged, and none was both
    let done = numbers(&at("done"));
    let purged: BTreeSet<u64> = (1..=400).filter(|order| !done.contains(order)).collect();
    assert_eq!((done.len(), purged.len()), (300, 100), "{}", operator.transcript);
    assert!(purged.last() < done.iter().rev().nth(250), "the oldest were purged: {purged:?}");
    assert!(dead > 20, "{dead} jobs had died");
    let counts = operator.counts();
    for state in ["ready", "scheduled", "blocked", "leased", "dead"] {
        assert_eq!(counts[state], 0, "{counts}");
    }
    println!("{}", operator.transcript);
    snapshot::compare("story.txt", &snapshot::steady(&operator.transcript));
}
