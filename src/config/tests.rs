use std::{io::Write as _, time::Duration};

use secrecy::ExposeSecret as _;
use tempfile::NamedTempFile;

use super::{
    Config, Database, Faults, Sources,
    kind::Given,
    sections::{LogFormat, LogLevel},
};
use crate::model::Share;

fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().expect("a temporary file");
    file.write_all(text.as_bytes()).expect("room for it");
    file
}

fn sources(toml: Option<&NamedTempFile>, environment: &[(&str, &str)], flags: &[(&str, &str)]) -> Sources {
    let own =
        |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect::<Vec<_>>();
    Sources {
        file: toml.map(|file| file.path().to_owned()),
        environment: own(environment).into_iter().map(|(name, value)| (name, Some(value))).collect(),
        flags: own(flags),
    }
}

fn load(toml: &str, environment: &[(&str, &str)], flags: &[(&str, &str)]) -> Result<Config, Faults> {
    Config::load(&sources(Some(&file(toml)), environment, flags)).map(|(config, _)| config)
}

fn faults(toml: &str, environment: &[(&str, &str)], flags: &[(&str, &str)]) -> String {
    load(toml, environment, flags).expect_err("faults").to_string()
}

#[test]
fn defaults_are_those_that_were_promised() {
    let (config, origins) = Config::load(&Sources::default()).expect("defaults are fine");
    assert!(origins.is_empty());
    assert!(matches!(config.broker.database_url, Database::Embedded));
    assert_eq!(config.broker.listen.to_string(), "127.0.0.1:7070");
    assert_eq!(config.broker.http_listen.to_string(), "127.0.0.1:7071");
    assert_eq!(config.broker.data_dir.to_str(), Some("./leasehold-data"));
    assert_eq!(config.lanes.count, 8);
    assert_eq!(config.lanes.waiting_requests, 10_000);
    assert_eq!(config.server.drain_timeout, Duration::from_secs(25));
    assert_eq!((config.broker.log_format, config.broker.log_level), (LogFormat::Human, LogLevel::Info));
}

#[test]
fn request_limits_and_queue_settings_default_to_those_of_the_model() {
    let (config, _) = Config::load(&Sources::default()).expect("defaults are fine");
    assert_eq!(config.request_limits(), crate::model::Limits::default());
    assert_eq!(config.queue_settings(), crate::model::QueueSettings::default());
}

#[test]
fn unflushed_claims_are_refused_where_no_server_can_keep_them() {
    let toml = "[lanes]\nunflushed_claims = true";
    for url in [&[][..], &[("LEASEHOLD_DATABASE_URL", "mysql://somebody@db/jobs")]] {
        let said = faults(toml, url, &[]);
        assert!(said.contains("lanes.unflushed_claims") && said.contains("PostgreSQL alone"), "{said}");
    }
    let config = load(toml, &[("LEASEHOLD_DATABASE_URL", "postgres://somebody@db/jobs")], &[]).expect("PostgreSQL can");
    assert!(config.lanes.unflushed_claims);
    assert!(!load("", &[], &[]).expect("defaults are fine").lanes.unflushed_claims, "nobody loses claims unasked");
}

#[test]
fn flags_win_over_the_environment_over_the_file_over_defaults() {
    let toml = "log_level = 'warn'\n[lanes]\ncount = 4\nidle_use = '20s'\nlock_timeout = '1s'";
    let environment = [("LEASEHOLD_LANES_COUNT", "5"), ("LEASEHOLD_LANES_IDLE_USE", "21s")];
    let config = load(toml, &environment, &[("lanes.count", "6")]).expect("all fine");
    assert_eq!(config.lanes.count, 6);
    assert_eq!(config.lanes.idle_use, Duration::from_secs(21));
    assert_eq!(config.lanes.lock_timeout, Duration::from_secs(1));
    assert_eq!(config.lanes.connect_timeout, Duration::from_secs(5));
    assert_eq!(config.broker.log_level, LogLevel::Warn);
}

#[test]
fn the_environment_may_name_the_file() {
    let toml = file("[lanes]\ncount = 4");
    let path = toml.path().to_str().expect("UTF-8");
    let (config, _) = Config::load(&sources(None, &[("LEASEHOLD_CONFIG", path)], &[])).expect("all fine");
    assert_eq!(config.lanes.count, 4);
}

#[test]
fn all_faults_are_reported_at_once_each_with_its_place() {
    let toml = "listn = '127.0.0.1:1'\n[lanes]\ncount = 2\n[limits]\nbatch = 1001\npayload_bytes = '4 MiB'";
    let environment = [("LEASEHOLD_LANES_IDLE_USE", "30"), ("LEASEHOLD_DATABSE_URL", "postgres://u:hunter2@db/app")];
    let flags = [("drain", ""), ("http_listen", "0.0.0.0:7071"), ("streams.heartbeat", "0s")];
    let text = faults(toml, &environment, &flags[1..]);
    for part in [
        ": listn: is no option; did you mean listen?",
        ": lanes.count: must be a whole number from 3 to 256, and is '2'",
        ": limits.batch: must be a whole number from 1 to 1000, and is '1001'",
        ": limits.payload_bytes: must be a size from 1 to 3 MiB, and is '4 MiB'",
        "LEASEHOLD_LANES_IDLE_USE: must be a length of time from 1s to 10m with its unit",
        "LEASEHOLD_DATABSE_URL: is no option; did you mean LEASEHOLD_DATABASE_URL?",
        "--streams-heartbeat: must be a length of time from 1s to 10m",
        "--http-listen: must be a loopback address",
        "has 8 faults",
    ] {
        assert!(text.contains(part), "'{part}' is missing in {text}");
    }
    assert!(!text.contains("hunter2"), "{text}");
}

#[test]
fn a_fault_in_a_layer_that_another_one_covers_is_a_fault() {
    let text = faults("[lanes]\ncount = 0", &[], &[("lanes.count", "8")]);
    assert!(text.contains(": lanes.count: must be"), "{text}");
}

#[test]
fn unknown_sections_are_named_with_the_nearest_one() {
    let text = faults("[lane]\ncount = 8\n[nonsense]\na = 1", &[], &[]);
    assert!(text.contains("[lane]: is no section; did you mean lanes?"), "{text}");
    assert!(text.contains("[nonsense]: is no section"), "{text}");
}

#[test]
fn a_file_that_is_no_toml_is_named_with_its_line_and_not_quoted() {
    let text = faults("log_level = 'info'\ndatabase_url = 'postgres://u:hunter2@db", &[], &[]);
    assert!(text.contains(", line 2: must be TOML"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
}

#[test]
fn a_file_that_is_missing_is_a_fault_of_who_named_it() {
    let missing = Sources { file: Some("/nonexistent/leasehold.toml".into()), ..Sources::default() };
    let text = Config::load(&missing).expect_err("no such file").to_string();
    assert!(text.contains("--config: /nonexistent/leasehold.toml cannot be read"), "{text}");
}

#[test]
fn the_database_url_may_stand_in_a_file_of_its_own() {
    let secret = file("  postgres://u:hunter2@db/app\n");
    let path = secret.path().to_str().expect("UTF-8");
    let config = load("", &[("LEASEHOLD_DATABASE_URL_FILE", path)], &[]).expect("all fine");
    assert!(
        matches!(config.broker.database_url, Database::Postgres(url) if url.expose_secret() == "postgres://u:hunter2@db/app")
    );
}

#[test]
fn a_file_with_the_database_url_that_is_missing_long_or_no_url_is_named_and_not_quoted() {
    let long = "x".repeat(20_000);
    for (content, rule) in [
        ("hunter2", "what it holds must begin with postgres://"),
        (&long, "more than 16384 bytes"),
        ("", "what it holds must"),
    ] {
        let secret = file(content);
        let path = secret.path().to_str().expect("UTF-8");
        let text = faults("", &[], &[("database_url_file", path)]);
        assert!(text.contains(&format!("--database-url-file: {path}: ")) && text.contains(rule), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
    let text = faults("database_url_file = '/nonexistent/url'", &[], &[]);
    assert!(text.contains(": database_url_file: /nonexistent/url: cannot be read"), "{text}");
}

#[test]
fn the_database_is_named_in_one_place() {
    let secret = file("postgres://u:hunter2@db/app");
    let path = secret.path().to_str().expect("UTF-8");
    let text =
        faults("", &[("LEASEHOLD_DATABASE_URL", "postgres://u@db/b"), ("LEASEHOLD_DATABASE_URL_FILE", path)], &[]);
    assert!(text.contains("LEASEHOLD_DATABASE_URL and LEASEHOLD_DATABASE_URL_FILE: only one of the two"), "{text}");
}

#[test]
fn values_of_the_wrong_type_are_faults() {
    let text =
        faults("listen = ['a', 'b']\nmigrate = 1\ndata_dir = ''\n[lanes]\ncount = 8.5\nidle_use = {a = 1}", &[], &[]);
    for key in [": listen: ", ": migrate: ", ": data_dir: ", ": lanes.count: ", ": lanes.idle_use: "] {
        assert!(text.contains(key), "'{key}' is missing in {text}");
    }
}

#[test]
fn addresses_that_others_reach_need_a_word_of_consent() {
    for key in ["listen", "http_listen"] {
        for address in ["0.0.0.0:1", "[::]:1", "192.0.2.7:1"] {
            let refused = faults("", &[], &[(key, address)]);
            assert!(refused.contains("must be a loopback address"), "{refused}");
            load("", &[], &[(key, address), ("insecure_plaintext", "true")]).expect("consent was given");
        }
        load("", &[], &[(key, "[::1]:1")]).expect("loopback needs none");
    }
}

#[test]
fn rules_between_options_name_every_one_of_them() {
    let text = faults(
        "[lanes]\nlock_timeout = '30s'\n[queues]\nbackoff_base = '1h'",
        &[("LEASEHOLD_LIMITS_LEASE_MIN", "1m")],
        &[("limits.payload_bytes", "3 MiB"), ("server.request_bytes", "3 MiB")],
    );
    for part in [
        "lanes.lock_timeout and lanes.statement_timeout (its default): the first must not be longer",
        "queues.backoff_base and queues.backoff_cap (its default): the first must not be longer",
        "queues.lease_duration (its default) and LEASEHOLD_LIMITS_LEASE_MIN and",
        "--limits-payload-bytes and limits.header_bytes (its default) and --server-request-bytes: the last must hold",
    ] {
        assert!(text.contains(part), "'{part}' is missing in {text}");
    }
}

#[test]
fn the_largest_payload_that_may_be_configured_fits_the_default_request() {
    load("[limits]\npayload_bytes = '3 MiB'", &[], &[]).expect("3 MiB is promised");
}

#[test]
fn a_password_does_not_show_in_debug_output() {
    let config = load("", &[("LEASEHOLD_DATABASE_URL", "postgres://u:hunter2@db/app")], &[]).expect("a fine URL");
    let shown = format!("{config:?}");
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn none_takes_back_what_a_lower_layer_said() {
    let toml = "[queues]\nmax_backlog_jobs = 10";
    assert_eq!(load(toml, &[], &[]).expect("fine").queues.max_backlog_jobs, Some(10));
    assert_eq!(load(toml, &[], &[("queues.max_backlog_jobs", "none")]).expect("fine").queues.max_backlog_jobs, None);
}

#[test]
fn every_option_has_a_line_of_documentation_and_a_default_that_it_accepts() {
    let options: Vec<_> = Config::sections().into_iter().flat_map(|section| section.options).collect();
    assert!(options.len() > 60);
    for option in options {
        assert!(option.doc.ends_with('.'), "{}: {}", option.key, option.doc);
        assert!(!option.description.range.is_empty(), "{}", option.key);
        if !option.description.default.is_empty() {
            let said = sources(None, &[], &[(&option.key, &option.description.default)]);
            assert!(Config::load(&said).is_ok(), "{} = {}", option.key, option.description.default);
        }
    }
}

#[test]
fn an_empty_value_is_never_taken_for_no_value() {
    let text = faults("", &[("LEASEHOLD_DATABASE_URL", "")], &[]);
    assert!(text.contains("LEASEHOLD_DATABASE_URL: must not be empty"), "{text}");
    assert!(Given::One(String::new()).single().is_err());
}

#[test]
fn the_reference_page_is_what_the_declarations_say() {
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/configuration.md")).expect("the page");
    assert!(
        page == super::reference(),
        "docs/configuration.md is stale: leasehold config docs > docs/configuration.md"
    );
}

#[test]
fn a_section_named_after_a_caller_is_its_budget() {
    let toml = "[callers]\nnames = [\"mail\"]\n[callers.checkout]\nmax_lanes = 2\nmax_wait = \"300ms\"\nshare = 0.25\n\
                [callers.\"eu.search\"]\nshare = 1\n[callers.unattributed]\nmax_lanes = 1";
    let config = load(
        toml,
        &[("LEASEHOLD_CALLERS_BULK_IMPORT_MAX_LANES", "3"), ("LEASEHOLD_CALLERS_CHECKOUT_SHARE", "0.5")],
        &[],
    )
    .expect("fine");
    let shown: Vec<_> = config
        .budgets
        .iter()
        .map(|(caller, is)| {
            (caller.as_str(), is.max_lanes, is.max_wait.as_millis(), is.share.map(Share::in_millionths))
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("bulk_import", Some(3), 1_000, None),
            ("checkout", Some(2), 300, Some(500_000)),
            ("eu.search", None, 1_000, Some(1_000_000)),
            ("unattributed", Some(1), 1_000, None),
        ]
    );
    let named: Vec<_> = config.named_callers().iter().map(ToString::to_string).collect();
    assert_eq!(named, ["bulk_import", "checkout", "eu.search", "mail"], "each of them has series of its own");
}

#[test]
fn faults_of_a_callers_budget_name_caller_and_option() {
    let text = faults(
        "[callers.checkout]\nmax_lanes = 0\nmax_wait = \"2m\"\nshare = 1.5\nmax_lane = 1\n\
         [callers.\"leasehold.reaper\"]\nmax_lanes = 1\n[callers.Shop]\n[callers.other]\n[lanes.checkout]\ncount = 1",
        &[
            ("LEASEHOLD_CALLERS_MAIL_SHARE", "0"),
            ("LEASEHOLD_CALLERS_OTHER_MAX_LANES", "1"),
            ("LEASEHOLD_CALLERS_A_MAX_LANE", "1"),
        ],
        &[],
    );
    for fault in [
        "callers.checkout.max_lanes: must be a whole number from 1 to 10000, and is '0'",
        "callers.checkout.max_wait: must be a length of time from 1ms to 1m",
        "callers.checkout.share: must be a number above 0 to 1, and is '1.5'",
        "callers.checkout.max_lane: is no option; did you mean max_lanes?",
        "[callers.leasehold.reaper]: is no caller: the broker's own callers",
        "[callers.Shop]: is no caller: must match",
        "[callers.other]: is no caller",
        "lanes.checkout: is no option",
        "LEASEHOLD_CALLERS_MAIL_SHARE: must be a number above 0 to 1, and is '0'",
        "LEASEHOLD_CALLERS_OTHER_MAX_LANES: is no option",
        "LEASEHOLD_CALLERS_A_MAX_LANE: is no option",
    ] {
        assert!(text.contains(fault), "{fault}\n\n{text}");
    }
}

#[test]
fn a_collector_has_headers_that_no_output_shows() {
    let file = "[telemetry]\notlp_endpoint = 'http://collector:4317'\nsample = 0.5\nresource = ['zone=a', 'team=shop']";
    let config = load(file, &[("LEASEHOLD_TELEMETRY_OTLP_HEADERS", "x-key=hunter2")], &[]).expect("all fine");
    assert_eq!(config.telemetry.otlp_endpoint.as_deref(), Some("http://collector:4317"));
    assert!((config.telemetry.sample - 0.5).abs() < f64::EPSILON);
    assert_eq!(config.telemetry.otlp_headers.pairs(), [("x-key".to_owned(), "hunter2".to_owned())]);
    assert!(!format!("{config:?}").contains("hunter2"));
}

#[test]
fn telemetry_leaves_room_for_the_drain_and_batches_fit_their_queue() {
    let file = "[telemetry]\notlp_endpoint = 'http://collector:4317'\nflush_timeout = '20s'\nqueue = 64";
    let text = faults(file, &[], &[]);
    for part in [
        "telemetry.flush_timeout and server.drain_timeout (its default): the first must be half",
        "telemetry.batch (its default) and ",
    ] {
        assert!(text.contains(part), "'{part}' is missing in {text}");
    }
    for wrong in ["sample = 1.5", "otlp_endpoint = 'https://collector'", "otlp_headers = 'hunter2'"] {
        let text = faults(&format!("[telemetry]\n{wrong}"), &[], &[]);
        assert!(text.contains(": telemetry.") && !text.contains("hunter2"), "{text}");
    }
}
