//! `leasehold enqueue`, and `lease` as it prints.

use super::{broker::Broker, shell::Shell};

fn broker() -> (Broker, Shell) {
    let mut broker = Broker::start(&[]);
    broker.wait_for("\"ready:");
    let shell = Shell::of(&broker);
    (broker, shell)
}

/// Payloads of all jobs of a queue, which are acked.
fn payloads(shell: &Shell, queue: &str) -> Vec<String> {
    let jobs = shell.run(&["lease", queue, "--ack", "--json"]).json();
    jobs.iter().map(|job| job["payload"].as_str().expect("a text").to_owned()).collect()
}

#[test]
fn every_line_of_stdin_becomes_a_job_in_order_and_its_id_is_printed() {
    let (_broker, shell) = broker();
    let lines: Vec<String> = (1..=2_345).map(|n| format!("line {n}")).collect();
    let ended = shell.feed(&["enqueue", "work", "--batch", "1000"], lines.join("\n").as_bytes());
    assert!(ended.stderr.contains("enqueued 2345 jobs"), "{}", ended.stderr);
    assert_eq!(ended.ok().lines().count(), lines.len());
    assert_eq!(payloads(&shell, "work"), lines);
}

#[test]
fn all_that_a_job_can_have_is_given_by_flags() {
    let (_broker, shell) = broker();
    let flags = ["--content-type", "text/plain", "--header", "a=b=c", "--header", "d=", "--priority", "9"];
    let keys = ["--max-attempts", "3", "--ordering-key", "k", "--idempotency-key", "i", "--at", "2020-02-29T00:00:00Z"];
    let arguments = [&["enqueue", "work", "hello\u{1b}[2J"][..], &flags, &keys].concat();
    shell.run(&arguments).ok();
    let jobs = shell.run(&["lease", "work", "--json"]).json();
    let job = &jobs[0];
    assert_eq!(job["payload"], "hello\u{1b}[2J");
    assert_eq!(job["content_type"], "text/plain");
    assert_eq!(job["headers"], serde_json::json!({"a": "b=c", "d": ""}));
    assert_eq!((&job["priority"], &job["max_attempts"]), (&9.into(), &3.into()));
    assert_eq!((&job["ordering_key"], &job["idempotency_key"]), (&"k".into(), &"i".into()));
    assert_eq!(job["available_at"], "2020-02-29T00:00:00Z");
}

#[test]
fn the_same_lines_with_the_same_key_are_the_same_jobs() {
    let (_broker, shell) = broker();
    let arguments = ["enqueue", "work", "--idempotency-key", "import-7"];
    let first = shell.feed(&arguments, b"a\nb\n").ok();
    let again = shell.feed(&arguments, b"a\nb\nc\n").ok();
    let marked: Vec<String> = first.lines().map(|id| format!("{id} duplicate")).collect();
    assert_eq!(again.lines().take(2).collect::<Vec<_>>(), marked);
    assert_eq!(payloads(&shell, "work"), ["a", "b", "c"]);
    let other = shell.feed(&arguments, b"a\nother\n");
    assert_eq!(other.code, Some(73), "{other:?}");
    assert!(other.stderr.contains("KEY_REUSED"), "{}", other.stderr);
}

#[test]
fn a_file_is_one_payload_byte_for_byte() {
    let (_broker, shell) = broker();
    let bytes: Vec<u8> = (0..=255).chain([b'\n']).collect();
    shell.feed(&["enqueue", "work", "--file", "-"], &bytes).ok();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("payload");
    std::fs::write(&path, &bytes).expect("written");
    shell.run(&["enqueue", "work", "--file", path.to_str().expect("UTF-8")]).ok();
    for job in shell.run(&["lease", "work", "--ack", "--json"]).json() {
        use base64::Engine as _;
        let text = job["payload_base64"].as_str().expect("it is no text");
        assert_eq!(base64::engine::general_purpose::STANDARD.decode(text).expect("base64"), bytes);
    }
}

#[test]
fn a_refused_batch_says_how_many_lines_were_stored_before_it() {
    let (_broker, shell) = broker();
    let large = "x".repeat((1 << 20) + 1);
    let ended = shell.feed(&["enqueue", "work", "--batch", "1"], format!("a\nb\n{large}\nc\n").as_bytes());
    assert_eq!(ended.code, Some(65), "{ended:?}");
    assert!(ended.stderr.contains("lines 1 to 2 were stored"), "{}", ended.stderr);
    assert_eq!(payloads(&shell, "work"), ["a", "b"]);
}

#[test]
fn printing_leases_no_more_jobs_than_are_printed() {
    let (_broker, shell) = broker();
    shell.feed(&["enqueue", "work", "-q"], b"1\n2\n3\n4\n5\n").ok();
    let printed = shell.run(&["lease", "work", "--count", "2"]).ok();
    assert_eq!(printed.lines().count(), 2, "{printed}");
    let rest = shell.run(&["lease", "work", "--ack", "--json"]).json();
    assert!(rest.iter().all(|job| job["attempt"] == 1), "{rest:?}");
    assert_eq!(rest.len(), 3);
    // the first column is what ack, nack and extend take
    let extended = shell.feed(&["extend", "--lease", "1m", "--json"], printed.as_bytes()).json();
    assert!(extended.iter().all(|result| result["status"] == "ok"), "{extended:?}");
    assert_eq!(shell.feed(&["ack"], printed.as_bytes()).code, Some(0));
    assert!(shell.run(&["lease", "work"]).stderr.contains("no job is ready"));
}

#[test]
fn what_was_sent_is_printed_as_text_on_one_line() {
    let (_broker, shell) = broker();
    shell.feed(&["enqueue", "work", "-q", "--file", "-"], b"\x1b]0;owned\x07\r\n\xff").ok();
    for arguments in [&["lease", "work"][..], &["lease", "work", "--json"]] {
        let printed = shell.run(arguments).ok();
        assert!(!printed.trim_end_matches('\n').chars().any(char::is_control), "{printed:?}");
        let token = printed.split_whitespace().next().expect("a token").to_owned();
        let token = token.strip_prefix("{\"lease_token\":\"").map_or(token.clone(), |rest| rest[..48].to_owned());
        shell.run(&["nack", &token, "--as", "release"]).ok();
    }
}
