//! What is refused before anything begins, and how the program says so.

use std::net::TcpListener;

use super::broker::{Broker, leasehold};

/// Exit code and what was said on stderr.
fn run(arguments: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, String) {
    let output = leasehold(arguments).envs(variables.iter().copied()).output().expect("the program runs");
    (output.status.code(), String::from_utf8(output.stderr).expect("text"))
}

#[test]
fn every_fault_is_named_and_the_exit_code_is_64() {
    let variables = [("LEASEHOLD_LANES_COUNT", "1"), ("LEASEHOLD_DATABSE_URL", "postgres://u:hunter2@db/app")];
    let (code, said) = run(&["serve", "--listen", "0.0.0.0:0", "--limits-payload-bytes", "4 MiB"], &variables);
    assert_eq!(code, Some(64), "{said}");
    for part in ["LEASEHOLD_LANES_COUNT:", "LEASEHOLD_DATABSE_URL:", "--listen:", "--limits-payload-bytes:"] {
        assert!(said.contains(part), "'{part}' is missing in {said}");
    }
    assert!(!said.contains("hunter2"), "{said}");
}

/// Exit code and what was printed.
fn printed(arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = leasehold(arguments);
    command.env("LEASEHOLD_DATABASE_URL", "postgres://u:hunter2@db/app").env("LEASEHOLD_LANES_COUNT", "5");
    let output = command.output().expect("the program runs");
    (output.status.code(), String::from_utf8(output.stdout).expect("text"))
}

#[test]
fn a_configuration_is_checked_without_a_database() {
    let (code, said) = printed(&["config", "check", "--replica-name", "a"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.starts_with("the configuration is fine: 3 of "), "{said}");
    let (code, said) = run(&["config", "check", "--lanes-count", "1", "--queues-max-attempts", "0"], &[]);
    assert_eq!(code, Some(64), "{said}");
    assert!(said.contains("2 faults") && said.contains("--lanes-count:"), "{said}");
}

#[test]
fn a_url_that_the_driver_does_not_take_is_a_fault_and_is_not_shown() {
    for url in ["postgres://u:hunter2@db:port/app", "mysql://u:hunter2@db:port/app"] {
        let (code, said) = run(&["config", "check"], &[("LEASEHOLD_DATABASE_URL", url)]);
        assert_eq!(code, Some(64), "{said}");
        assert!(said.contains("database_url:") && !said.contains("hunter2"), "{said}");
    }
}

#[test]
fn every_option_is_printed_with_its_origin_and_no_secret() {
    let (code, table) = printed(&["config", "print", "--database-schema", "jobs"]);
    assert_eq!(code, Some(0), "{table}");
    assert!(!table.contains("hunter2"), "{table}");
    let line = |key: &str| table.lines().find(|line| line.starts_with(key)).unwrap_or_default();
    assert!(line("database_url ").contains("(not shown)") && line("database_url ").ends_with("LEASEHOLD_DATABASE_URL"));
    assert!(line("database_schema ").contains(" jobs ") && line("database_schema ").ends_with("--database-schema"));
    assert!(line("lanes.count ").contains(" 5 ") && line("listen ").ends_with(" default"), "{table}");
    assert_eq!(printed(&["config", "show", "--database-schema", "jobs"]).1, table, "the old name says the same");
}

#[test]
fn a_schema_is_for_postgresql_alone_and_must_be_a_plain_name() {
    let (code, said) = run(&["config", "check", "--database-schema", "jobs"], &[]);
    assert!(code == Some(64) && said.contains("for PostgreSQL alone"), "{said}");
    let url = [("LEASEHOLD_DATABASE_URL", "postgres://u@db/app")];
    let (code, said) = run(&["config", "check", "--database-schema", "Jobs"], &url);
    assert!(code == Some(64) && said.contains("--database-schema: must match [a-z_]"), "{said}");
}

#[test]
fn an_unknown_flag_ends_with_64() {
    let (code, said) = run(&["serve", "--listn", "127.0.0.1:0"], &[]);
    assert_eq!(code, Some(64), "{said}");
    assert!(said.contains("--listen"), "{said}");
}

#[test]
fn a_socket_that_is_taken_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("it is bound").to_string();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().to_str().expect("UTF-8");
    let (code, said) = run(&["serve", "--listen", &address, "--data-dir", path], &[]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains(&address), "{said}");
}

#[test]
fn a_database_that_cannot_be_reached_keeps_the_broker_alive_and_unready() {
    let broker = Broker::start(&["--database-url", "postgres://nobody@127.0.0.1:1/nothing"]);
    assert!(broker.get("/livez").0.contains("200"));
    assert!(broker.get("/readyz").0.contains("503"));
}

#[test]
fn migrate_says_that_the_database_cannot_be_reached_by_69() {
    let (code, said) = run(&["migrate", "status", "--database-url", "postgres://u:hunter2@127.0.0.1:1/nothing"], &[]);
    assert_eq!(code, Some(69), "{said}");
    assert!(!said.contains("hunter2"), "{said}");
}

#[test]
fn migrate_lists_what_is_missing_and_then_what_was_applied() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().to_str().expect("UTF-8");
    let list = |command: &str| {
        let output = leasehold(&["migrate", command, "--data-dir", path]).output().expect("the program runs");
        (output.status.code(), String::from_utf8(output.stdout).expect("text"))
    };
    let (code, missing) = list("status");
    assert_eq!(code, Some(1), "{missing}");
    assert!(missing.lines().count() > 0 && missing.lines().all(|line| line.ends_with(" missing")), "{missing}");
    let (code, applied) = list("up");
    assert_eq!(code, Some(0), "{applied}");
    assert_eq!(list("status"), (Some(0), applied.clone()));
    assert_eq!(applied, missing.replace(" missing", " applied"));
}
