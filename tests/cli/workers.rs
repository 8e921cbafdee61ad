//! `leasehold lease --exec` through many failures: nothing is lost.

use std::{collections::BTreeMap, net::TcpListener};

use rustix::process::Signal;

use super::{
    broker::Broker,
    shell::{Running, Shell},
};

/// Says what it does on stdout, one short line at a time. Without a payload it does nothing: its worker was killed before it had
/// written one.
const COMMAND: &str = "read n
[ -n \"$n\" ] || exit 1
case $n in
    *0) echo \"rejected $n\"; echo 'no such order' >&2; exit 65 ;;
    *3) [ $LEASEHOLD_JOB_ATTEMPT = 1 ] && { echo \"failed $n\"; exit 1; } ;;
    *7) [ $LEASEHOLD_JOB_ATTEMPT = 1 ] && { echo \"crashed $n\"; kill -9 $$; } ;;
    *9) [ $LEASEHOLD_JOB_LEASE_NUMBER = 1 ] && { echo \"released $n\"; exit 75; } ;;
esac
echo \"done $n\"";

/// What commands said, by job.
#[derive(Default)]
struct Said(BTreeMap<u32, Vec<String>>);

impl Said {
    /// Reads on until this many jobs have ended for good, in whichever worker.
    fn read(&mut self, worker: &mut Running, ends: usize) {
        while self.ended() < ends {
            self.heard(&worker.line().expect("the worker goes on"));
        }
    }

    /// What a killed worker had said and nobody had read yet.
    fn read_the_rest(&mut self, worker: &mut Running) {
        while let Some(line) = worker.line() {
            self.heard(&line);
        }
    }

    fn heard(&mut self, line: &str) {
        let (word, number) = line.split_once(' ').expect("two words");
        self.0.entry(number.parse().expect("a number")).or_default().push(word.to_owned());
    }

    fn ended(&self) -> usize {
        self.0.values().filter(|said| said.iter().any(|word| word == "done" || word == "rejected")).count()
    }
}

#[test]
fn no_job_is_lost_when_commands_fail_and_a_worker_is_killed() {
    let jobs: u32 = if std::env::var_os("LEASEHOLD_TEST_LONG").is_some() { 1_000 } else { 300 };
    let mut broker = Broker::start(&[]);
    broker.wait_for("\"ready:");
    let shell = Shell::of(&broker);
    let lines: Vec<String> = (1..=jobs).map(|n| n.to_string()).collect();
    shell.feed(&["enqueue", "work", "-q"], lines.join("\n").as_bytes()).ok();

    let flags = ["--follow", "--parallel", "8", "--lease", "2s", "--retry-delay", "50ms", "--release-delay", "10ms"];
    let arguments = [&["lease", "work", "--exec", COMMAND][..], &flags].concat();
    let mut said = Said::default();
    let mut first = shell.start(&arguments);
    said.read(&mut first, jobs as usize / 3);
    first.signal(Signal::KILL);
    said.read_the_rest(&mut first);
    drop(first);
    let mut second = shell.start(&arguments);
    said.read(&mut second, jobs as usize);
    second.signal(Signal::TERM);
    let ended = second.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("jobs leased"), "{}", ended.stderr);

    assert_eq!(said.0.keys().copied().collect::<Vec<_>>(), (1..=jobs).collect::<Vec<_>>());
    for (n, said) in &said.0 {
        let last = if n % 10 == 0 { "rejected" } else { "done" };
        assert_eq!(said.last().map(String::as_str), Some(last), "job {n}: {said:?}");
    }
    let failed = |word: &str| said.0.values().filter(|said| said.iter().any(|one| one == word)).count();
    assert!(failed("failed") > 0 && failed("crashed") > 0 && failed("released") > 0, "every kind of failure was there");
    assert!(shell.run(&["lease", "work"]).stderr.contains("no job is ready"), "all jobs have ended");
}

#[test]
fn a_worker_outlives_its_broker_and_settles_what_it_holds_with_the_next_one() {
    for signal in [Signal::KILL, Signal::TERM] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let url = format!("sqlite://{}", directory.path().join("jobs.db").display());
        let start = |address: &str| {
            let mut broker = Broker::start_at(address, &["--database-url", &url, "--migrate"]);
            broker.wait_for("\"ready:");
            broker
        };
        let address = {
            let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
            free.local_addr().expect("it is bound").to_string()
        };
        let mut broker = start(&address);
        let shell = Shell::of(&broker);
        shell.feed(&["enqueue", "work", "-q"], b"1\n2\n3\n").ok();
        let gate = directory.path().join("gate");
        let command = format!(
            "read n; echo begun $n; [ $n = 2 ] && {{ mkfifo {0}; echo ready; cat {0}; }}; echo ended $n",
            gate.display()
        );
        let mut worker = shell.start(&["lease", "work", "--follow", "--exec", &command]);
        worker.until("ready");
        broker.signal(signal);
        broker.end();
        let broker = start(&address);
        drop(std::fs::OpenOptions::new().write(true).open(&gate).expect("a pipe"));
        worker.until("ended 3");
        worker.signal(Signal::TERM);
        let ended = worker.end();
        assert!(
            ended.stderr.contains("3 jobs leased: 3 acked, 0 to be retried, 0 dead"),
            "{signal:?}: {}",
            ended.stderr
        );
        assert_eq!(ended.code, Some(0));
        assert!(shell.run(&["lease", "work"]).stderr.contains("no job is ready"));
        drop(broker);
    }
}

#[test]
fn places_that_are_free_again_after_a_drain_are_used() {
    // streams of this broker live for about a second, so that most jobs belong to an earlier one
    let mut broker = Broker::start(&["--streams-max-age", "1s"]);
    broker.wait_for("\"ready:");
    let shell = Shell::of(&broker);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let gate = directory.path().join("gate");
    std::process::Command::new("mkfifo").arg(&gate).status().expect("a pipe");
    let lines: Vec<String> = (1..=40).map(|n| n.to_string()).collect();
    shell.feed(&["enqueue", "work", "-q"], lines.join("\n").as_bytes()).ok();
    let command = format!("read n; echo begun $n; [ $n = 1 ] && cat {}; sleep 0.2; echo ended $n", gate.display());
    let mut worker = shell.start(&["lease", "work", "--exec", &command, "--parallel", "3"]);
    let mut ended = 0;
    while ended < 39 {
        ended += usize::from(worker.line().expect("it goes on").starts_with("ended"));
    }
    drop(std::fs::OpenOptions::new().write(true).open(&gate).expect("a pipe"));
    let ended = worker.end();
    assert!(ended.stderr.contains("40 jobs leased: 40 acked"), "{}", ended.stderr);
}
