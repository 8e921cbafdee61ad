use super::*;
use crate::model::Backoff;

fn request(paths: &[&str], settings: v1::QueueSettings) -> v1::UpdateQueueRequest {
    let paths = paths.iter().map(|path| (*path).to_owned()).collect();
    v1::UpdateQueueRequest {
        queue: "orders".into(),
        settings: Some(settings),
        update_mask: Some(prost_types::FieldMask { paths }),
        create: false,
    }
}

fn read(request: &v1::UpdateQueueRequest) -> Result<QueueUpdate, Failure> {
    queue_update(request, &Limits::default())
}

fn fields(refused: Result<QueueUpdate, Failure>) -> Vec<String> {
    refused.expect_err("refused").invalid.into_iter().map(|fault| fault.field).collect()
}

#[expect(clippy::unnecessary_wraps, reason = "as the fields of a message have it")]
fn seconds(seconds: i64) -> Option<prost_types::Duration> {
    Some(prost_types::Duration { seconds, nanos: 0 })
}

const ALL: [&str; 12] = [
    "paused",
    "disabled_reason",
    "lease_duration",
    "max_attempts",
    "backoff_base",
    "backoff_cap",
    "idempotency_retention",
    "dead_retention",
    "max_backlog_jobs",
    "max_backlog_bytes",
    "time_to_live",
    "acked_retention",
];

#[test]
fn the_mask_knows_every_field_of_the_contract() {
    use prost::Message as _;
    let set = prost_types::FileDescriptorSet::decode(v1::FILE_DESCRIPTOR_SET).expect("compiled in");
    let settings =
        set.file.iter().flat_map(|file| &file.message_type).find(|message| message.name() == "QueueSettings");
    let fields: Vec<&str> =
        settings.expect("there").field.iter().map(prost_types::FieldDescriptorProto::name).collect();
    assert_eq!(fields, ALL);
    read(&request(&ALL, v1::QueueSettings::default())).expect("all of them, to their defaults");
}

#[test]
fn only_fields_that_the_mask_names_change() {
    let sent = v1::QueueSettings { paused: Some(true), max_attempts: Some(7), ..v1::QueueSettings::default() };
    let update = read(&request(&["max_attempts"], sent)).expect("valid");
    let current = QueueSettings { time_to_live: Some(SECOND), ..QueueSettings::default() };
    let changed = update.apply(&current, &QueueSettings::default()).expect("valid");
    assert_eq!(changed, QueueSettings { max_attempts: 7, ..current });
}

#[test]
fn a_field_that_is_named_and_not_set_goes_back_to_its_default() {
    let defaults = QueueSettings { max_backlog_jobs: Some(9), max_attempts: 3, ..QueueSettings::default() };
    let current = QueueSettings {
        paused: true,
        disabled_reason: Some("why".into()),
        lease_duration: SECOND,
        max_attempts: 1,
        backoff: Backoff { base: SECOND, cap: SECOND },
        idempotency_retention: SECOND,
        dead_retention: SECOND,
        max_backlog_jobs: Some(1),
        max_backlog_bytes: Some(1),
        time_to_live: Some(SECOND),
        acked_retention: Some(SECOND),
    };
    let update = read(&request(&ALL, v1::QueueSettings::default())).expect("valid");
    assert_eq!(update.apply(&current, &defaults).expect("valid"), defaults);
}

#[test]
fn an_empty_reason_switches_the_queue_on() {
    let sent = v1::QueueSettings { disabled_reason: Some(String::new()), ..v1::QueueSettings::default() };
    let update = read(&request(&["disabled_reason"], sent)).expect("valid");
    let current = QueueSettings { disabled_reason: Some("why".into()), ..QueueSettings::default() };
    let changed = update.apply(&current, &QueueSettings::default()).expect("valid");
    assert_eq!(changed.disabled_reason, None);
}

#[test]
fn the_first_pause_is_never_longer_than_the_longest_whichever_of_them_changes() {
    let sent = v1::QueueSettings { backoff_cap: seconds(5), ..v1::QueueSettings::default() };
    let update = read(&request(&["backoff_cap"], sent)).expect("valid by itself");
    let slow = QueueSettings {
        backoff: Backoff { base: Duration::from_secs(10), cap: Duration::from_secs(20) },
        ..QueueSettings::default()
    };
    let refused = update.apply(&slow, &QueueSettings::default()).expect_err("the queue's base is longer");
    assert_eq!(refused.invalid[0].field, "settings.backoff_base");
    assert!(update.apply(&QueueSettings::default(), &QueueSettings::default()).is_ok());
}

#[test]
fn bad_values_of_every_field_are_refused_by_name() {
    let second = seconds(1);
    let base = || v1::QueueSettings { lease_duration: second, ..v1::QueueSettings::default() };
    let cases: Vec<(&str, v1::QueueSettings)> = vec![
        ("disabled_reason", v1::QueueSettings { disabled_reason: Some("x".repeat(201)), ..base() }),
        ("disabled_reason", v1::QueueSettings { disabled_reason: Some("a\nb".into()), ..base() }),
        ("disabled_reason", v1::QueueSettings { disabled_reason: Some("a\0b".into()), ..base() }),
        ("lease_duration", v1::QueueSettings { lease_duration: seconds(0), ..base() }),
        ("lease_duration", v1::QueueSettings { lease_duration: seconds(43_201), ..base() }),
        ("max_attempts", v1::QueueSettings { max_attempts: Some(0), ..base() }),
        ("max_attempts", v1::QueueSettings { max_attempts: Some(1_001), ..base() }),
        ("max_attempts", v1::QueueSettings { max_attempts: Some(65_537), ..base() }),
        ("backoff_base", v1::QueueSettings { backoff_base: seconds(0), ..base() }),
        ("backoff_base", v1::QueueSettings { backoff_base: seconds(31_536_001), ..base() }),
        ("backoff_cap", v1::QueueSettings { backoff_cap: seconds(-1), ..base() }),
        ("idempotency_retention", v1::QueueSettings { idempotency_retention: seconds(0), ..base() }),
        ("idempotency_retention", v1::QueueSettings { idempotency_retention: seconds(31_536_001), ..base() }),
        ("dead_retention", v1::QueueSettings { dead_retention: seconds(315_360_001), ..base() }),
        ("dead_retention", v1::QueueSettings { dead_retention: seconds(-1), ..base() }),
        ("max_backlog_jobs", v1::QueueSettings { max_backlog_jobs: Some(0), ..base() }),
        ("max_backlog_jobs", v1::QueueSettings { max_backlog_jobs: Some(u64::MAX), ..base() }),
        ("max_backlog_bytes", v1::QueueSettings { max_backlog_bytes: Some(0), ..base() }),
        ("time_to_live", v1::QueueSettings { time_to_live: seconds(0), ..base() }),
        ("time_to_live", v1::QueueSettings { time_to_live: seconds(31_536_001), ..base() }),
        ("acked_retention", v1::QueueSettings { acked_retention: seconds(0), ..base() }),
        ("acked_retention", v1::QueueSettings { acked_retention: seconds(2_592_001), ..base() }),
    ];
    for (field, settings) in cases {
        assert_eq!(fields(read(&request(&[field], settings))), [format!("settings.{field}")], "{field}");
    }
}

#[test]
fn everything_wrong_with_an_update_is_said_at_once() {
    let mut wrong = request(&["paused", "priority", "max_attempts"], v1::QueueSettings::default());
    wrong.queue = "Orders".into();
    wrong.settings = Some(v1::QueueSettings { max_attempts: Some(0), ..v1::QueueSettings::default() });
    assert_eq!(fields(read(&wrong)), ["queue", "update_mask.paths[1]", "settings.max_attempts"]);
}

#[test]
fn an_update_that_names_nothing_is_refused_unless_it_creates() {
    let mut nothing = request(&[], v1::QueueSettings::default());
    assert_eq!(fields(read(&nothing)), ["update_mask"]);
    nothing.create = true;
    read(&nothing).expect("the queue merely comes into being");
}

#[test]
fn the_audit_log_hears_each_field_with_its_value() {
    let sent = v1::QueueSettings {
        paused: Some(true),
        disabled_reason: Some("too \"busy\"".into()),
        ..v1::QueueSettings::default()
    };
    let update = read(&request(&["paused", "disabled_reason", "time_to_live"], sent)).expect("valid");
    assert_eq!(update.to_string(), r#"queue=orders paused=true disabled_reason="too \"busy\"" time_to_live=default"#);
}

#[test]
fn a_queues_settings_go_out_as_they_can_come_in() {
    let settings = QueueSettings {
        paused: true,
        disabled_reason: Some("why".into()),
        max_backlog_jobs: Some(3),
        time_to_live: Some(Duration::from_millis(1_500)),
        ..QueueSettings::default()
    };
    let name = QueueName::parse("queue", "orders").expect("a name");
    let row = QueueRow { id: crate::model::QueueId(1), name, settings: settings.clone(), version: 4, closing: false };
    let sent = queue(&row);
    assert_eq!((sent.name.as_str(), sent.deleting), ("orders", false));
    let update = read(&request(&ALL, sent.settings.expect("settings"))).expect("valid");
    let usual = QueueSettings::default();
    assert_eq!(update.apply(&usual, &usual).expect("valid"), settings);
}
