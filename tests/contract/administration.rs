//! Queues as operators steer them: switches, changes, lists, counts.

use std::time::Duration;

use leasehold::{
    model::{Count, NackAction, Priority, QueueId, QueueSettings, Start, Timestamp},
    store::{
        engine::{CountSpot, QueueCounts, QueueRow},
        error::EngineError,
    },
};

use super::{
    bench::{Bench, changed, job, keyed, lease, nack_row, once, priority, queue_name},
    database::{Database, caller},
};

pub(crate) fn spot(queue: QueueId) -> CountSpot {
    CountSpot { queue, floors: [Timestamp::BEGINNING; Priority::LEVELS], lease_floor: Timestamp::BEGINNING }
}

fn exactly(value: u64) -> Count {
    Count { value, at_least: false }
}

async fn row(bench: &mut Bench, name: &str) -> Option<QueueRow> {
    bench.session.find_queues(&caller(), &[queue_name(name)], None).await.expect("an answer").pop()
}

async fn change(bench: &mut Bench, row: &QueueRow, settings: &QueueSettings) -> Option<QueueRow> {
    bench.session.change_queue(&caller(), row.id, row.version, settings).await.expect("an answer")
}

pub(crate) async fn of_two_changes_at_once_one_is_told_to_look_again(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let seen = bench.queue_with("orders", &QueueSettings::default()).await;
    let paused = QueueSettings { paused: true, ..seen.settings.clone() };
    let first = change(&mut bench, &seen, &paused).await.expect("nobody was quicker");
    assert_eq!((&first.settings, first.id), (&paused, seen.id));
    assert!(first.version > seen.version);
    let patient = QueueSettings { max_attempts: 99, ..seen.settings.clone() };
    assert_eq!(change(&mut bench, &seen, &patient).await, None, "it has another version by now");
    assert_eq!(row(&mut bench, "orders").await, Some(first.clone()), "and nothing changed");
    assert!(change(&mut bench, &first, &patient).await.is_some());
}

pub(crate) async fn a_queue_that_is_not_there_or_being_deleted_is_not_changed(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let seen = bench.queue_with("orders", &QueueSettings::default()).await;
    let stranger = QueueRow { id: QueueId(seen.id.0 + 1_000), ..seen.clone() };
    assert_eq!(change(&mut bench, &stranger, &QueueSettings::default()).await, None);
    assert!(bench.session.close_queue(&caller(), seen.id).await.expect("an answer"));
    let closing = row(&mut bench, "orders").await.expect("it is still there");
    assert!(closing.closing && closing.is_paused());
    assert_eq!(change(&mut bench, &closing, &QueueSettings::default()).await, None);
}

pub(crate) async fn queues_are_listed_by_name_from_a_place_on(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    for name in ["b", "a.2", "a", "a-1", "a_3", "az", "0"] {
        bench.queue(name).await;
    }
    let mut named = async |prefix: &str, after: &str, limit| {
        let rows = bench.session.list_queues(&caller(), prefix, after, limit).await.expect("a list");
        rows.into_iter().map(|row| row.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(named("", "", 100).await, ["0", "a", "a-1", "a.2", "a_3", "az", "b"], "byte for byte");
    assert_eq!(named("", "a", 2).await, ["a-1", "a.2"]);
    assert_eq!(named("a", "", 100).await, ["a", "a-1", "a.2", "a_3", "az"]);
    assert_eq!(named("a", "a.2", 100).await, ["a_3", "az"]);
    assert_eq!(named("az", "b", 100).await, Vec::<String>::new());
    assert_eq!(named("c", "", 100).await, Vec::<String>::new());
}

/// Whether a job is taken in.
async fn takes(bench: &mut Bench, queues: &[QueueId]) -> bool {
    let jobs: Vec<_> = queues.iter().map(|queue| job(*queue, "x")).collect();
    let plain = bench.try_enqueue(&jobs).await;
    let keys: Vec<_> = queues.iter().map(|queue| keyed(*queue, "k", "x")).collect();
    let with_keys = bench.try_enqueue(&keys).await;
    match (plain, with_keys) {
        (Ok(_), Ok(_)) => true,
        (Err(EngineError::QueueClosed), Err(EngineError::QueueClosed)) => false,
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn a_disabled_queue_takes_no_job_and_gives_what_it_has(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let other = bench.queue("other").await;
    let seen = bench.queue_with("orders", &QueueSettings::default()).await;
    bench.enqueue_one(job(seen.id, "before")).await;
    let disabled = QueueSettings { disabled_reason: Some("maintenance".into()), ..seen.settings.clone() };
    let now = change(&mut bench, &seen, &disabled).await.expect("changed");
    assert!(!takes(&mut bench, &[seen.id]).await);
    assert!(!takes(&mut bench, &[other, seen.id]).await, "all or nothing");
    assert_eq!(db.number("select count(*) from job").await, 1);
    assert!(takes(&mut bench, &[other]).await);
    let claimed = bench.claim_one(seen.id).await;
    bench.ack_one(lease(&claimed)).await;
    change(&mut bench, &now, &seen.settings).await.expect("changed");
    assert!(takes(&mut bench, &[seen.id, other]).await);
}

pub(crate) async fn a_queue_that_is_gone_or_being_deleted_takes_no_job(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    assert!(!takes(&mut bench, &[QueueId(queue.0 + 1_000)]).await, "nobody would ever lease it");
    bench.session.close_queue(&caller(), queue).await.expect("an answer");
    assert!(!takes(&mut bench, &[queue]).await);
    bench.session.reopen_queue(&caller(), queue).await.expect("an answer");
    assert!(takes(&mut bench, &[queue]).await);
}

pub(crate) async fn counts_tell_the_states_apart(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let (queue, other) = (bench.queue("orders").await, bench.queue("other").await);
    let later = |row| changed(row, |job| job.start = Start::After(Duration::from_secs(3_600)));
    let urgent = |row| changed(row, |job| job.priority = priority(9));
    // Of these, the first three are claimed.
    bench.enqueue(&[urgent(job(queue, "1")), urgent(job(queue, "2")), urgent(once(queue, "i", "3"))]).await;
    let leased = bench.claim(queue, 3).await;
    assert!(bench.nack_one(nack_row(lease(&leased[0]), NackAction::Reject)).await.dead);
    bench.enqueue(&[keyed(queue, "k", "4"), keyed(queue, "k", "5"), keyed(queue, "k", "6")]).await;
    bench.enqueue(&[urgent(job(queue, "7")), later(job(queue, "8")), later(urgent(job(queue, "9")))]).await;
    bench.enqueue(&[job(other, "x")]).await;
    let counts = bench.session.count_jobs(&caller(), &[spot(queue), spot(other)]).await.expect("counts");
    assert_eq!(counts.len(), 2);
    let QueueCounts { ready, scheduled, blocked, leased, dead, oldest_ready } = counts[0];
    assert_eq!([ready, scheduled, blocked, leased, dead].map(|count| count.value), [2, 2, 2, 2, 1]);
    assert!([ready, scheduled, blocked, leased, dead].iter().all(|count| !count.at_least));
    let (_, age) = oldest_ready.expect("one is ready");
    assert!(age < Duration::from_secs(60), "{age:?}");
    assert_eq!(counts[1].ready, exactly(1));
    assert_eq!(counts[1].scheduled, exactly(0));
    assert_eq!(bench.session.count_jobs(&caller(), &[]).await.expect("no counts"), []);
}

pub(crate) async fn the_oldest_ready_job_is_found_whatever_its_level(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let at = |level, row| changed(row, |job| job.priority = priority(level));
    bench.enqueue(&[at(9, job(queue, "new")), at(0, job(queue, "old")), at(4, job(queue, "middle"))]).await;
    let old = db.instant(Timestamp(5_000_000));
    db.execute(&format!("update job set ready_at = {old} where priority = 0")).await;
    let counts = bench.session.count_jobs(&caller(), &[spot(queue)]).await.expect("counts");
    assert_eq!(counts[0].oldest_ready.expect("one is ready").0, Timestamp(5_000_000));
    let floors = [Timestamp(5_000_000); Priority::LEVELS];
    let later = CountSpot { floors, ..spot(queue) };
    let counts = bench.session.count_jobs(&caller(), &[later]).await.expect("counts");
    assert_eq!(counts[0].ready, exactly(2), "nothing at or before a floor is walked");
    assert!(counts[0].oldest_ready.expect("one is ready").0 > Timestamp(5_000_000));
}

pub(crate) async fn an_empty_queue_has_no_oldest_job(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    let counts = bench.session.count_jobs(&caller(), &[spot(queue)]).await.expect("counts");
    assert_eq!(counts, [QueueCounts::default()]);
}

pub(crate) async fn counts_are_exact_to_ten_thousand_and_say_so_beyond(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    for _ in 0..10 {
        bench.enqueue(&(0..1_000).map(|_| job(queue, "")).collect::<Vec<_>>()).await;
    }
    let ready = bench.session.count_jobs(&caller(), &[spot(queue)]).await.expect("counts")[0].ready;
    assert_eq!(ready, exactly(10_000));
    bench.enqueue(&[changed(job(queue, ""), |job| job.priority = priority(0)), job(queue, "")]).await;
    let ready = bench.session.count_jobs(&caller(), &[spot(queue)]).await.expect("counts")[0].ready;
    assert_eq!(ready, Count { value: 10_000, at_least: true });
}

pub(crate) async fn an_acked_job_is_kept_where_its_queue_keeps_them(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let keeping = QueueSettings { acked_retention: Some(Duration::from_secs(3_600)), ..QueueSettings::default() };
    let (kept, gone) = (bench.queue_with("kept", &keeping).await.id, bench.queue("gone").await);
    bench.enqueue(&[once(kept, "i", "payload"), keyed(kept, "k", "a"), keyed(kept, "k", "b")]).await;
    bench.enqueue(&[job(gone, "x"), job(gone, "y")]).await;
    let mut leases: Vec<_> = bench.claim(kept, 10).await.iter().map(lease).collect();
    assert_eq!(leases.len(), 2, "one waits behind its key");
    leases.extend(bench.claim(gone, 10).await.iter().map(lease));
    leases.push(leases[0]);
    let acked = bench.ack(&leases).await;
    assert_eq!(acked.iter().filter(|row| row.held == leasehold::store::engine::Held::Ok).count(), 4, "one came twice");
    assert!(acked.iter().any(|row| row.readied == Some(kept)), "its key goes on all the same");
    assert_eq!(db.number("select count(*) from job").await, 1);
    assert_eq!(db.number("select count(*) from acked_job").await, 2);
    let whole = format!(
        "select count(*) from acked_job where queue_id = {} and attempt = 1 and lease_number = 1 and expires_at > acked_at \
         and idempotency_key = 'i'",
        kept.0
    );
    assert_eq!(db.number(&whole).await, 1);
    let late = bench.ack(&leases).await;
    assert!(late.iter().all(|row| row.held == leasehold::store::engine::Held::Gone), "a repeated Ack says so");
}

pub(crate) async fn acked_jobs_go_when_their_time_is_over(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let keeping = QueueSettings { acked_retention: Some(Duration::from_secs(3_600)), ..QueueSettings::default() };
    let queue = bench.queue_with("kept", &keeping).await.id;
    bench.enqueue(&(0..5).map(|_| job(queue, "")).collect::<Vec<_>>()).await;
    let leases: Vec<_> = bench.claim(queue, 5).await.iter().map(lease).collect();
    bench.ack(&leases).await;
    let past = db.instant(Timestamp(1_000_000));
    db.execute(&format!("update acked_job set expires_at = {past} where id % 2 = 0 or id > 3")).await;
    let over = db.number(&format!("select count(*) from acked_job where expires_at = {past}")).await;
    let mut floor = Timestamp::BEGINNING;
    let mut removed = 0;
    while removed < over {
        let pruned = bench.session.prune_acked(&caller(), floor, 2).await.expect("a pass");
        assert!((1..=2).contains(&pruned.rows));
        removed += i64::try_from(pruned.rows).expect("few");
        floor = pruned.floor;
    }
    assert_eq!(bench.session.prune_acked(&caller(), floor, 2).await.expect("a pass").rows, 0);
    assert_eq!(db.number("select count(*) from acked_job").await, 5 - over);
}

pub(crate) async fn the_database_says_its_version(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let version = bench.session.version(&caller()).await.expect("an answer");
    assert!(version.starts_with(|digit: char| digit.is_ascii_digit()), "{version}");
}
