//! Commands that a signal ends in the middle of their work.

use rustix::process::Signal;

use super::{broker::Broker, shell::Shell};

fn broker() -> (Broker, Shell) {
    let mut broker = Broker::start(&[]);
    broker.wait_for("\"ready:");
    let shell = Shell::of(&broker);
    (broker, shell)
}

fn dead(shell: &Shell) -> usize {
    shell.run(&["dead", "list", "work", "--json"]).json().len()
}

#[test]
fn a_redrive_that_is_interrupted_says_how_many_jobs_it_redrove() {
    let (_broker, shell) = broker();
    shell.feed(&["enqueue", "work", "--quiet"], "job\n".repeat(60).as_bytes()).ok();
    shell.run(&["lease", "work", "--exec", "exit 65", "--parallel", "10", "--quiet"]).ok();
    assert_eq!(dead(&shell), 60);
    let redrive = shell.start(&["dead", "redrive", "work", "--rate", "5"]);
    // the report of an earlier step has come when a later one is done
    while dead(&shell) > 50 {}
    redrive.signal(Signal::INT);
    let ended = redrive.end();
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert!(ended.stderr.contains("ended by SIGINT"), "{}", ended.stderr);
    assert!(ended.stderr.contains("jobs were redriven"), "{}", ended.stderr);
    assert!(dead(&shell) > 0, "it went on");
}

#[test]
fn an_enqueue_that_is_interrupted_says_which_lines_were_stored() {
    let (_broker, shell) = broker();
    let (mut enqueue, _stdin) = shell.start_fed(&["enqueue", "work"], b"a\nb\nc\n");
    for _ in 0..3 {
        enqueue.line().expect("an id");
    }
    enqueue.signal(Signal::TERM);
    let ended = enqueue.end();
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert!(ended.stderr.contains("ended by SIGTERM"), "{}", ended.stderr);
    assert!(ended.stderr.contains("lines 1 to 3 were stored"), "{}", ended.stderr);
    assert_eq!(shell.run(&["lease", "work", "--ack", "--json"]).json().len(), 3);
}
