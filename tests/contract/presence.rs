//! What replicas write about themselves.

use std::{collections::BTreeSet, time::Duration};

use leasehold::{
    model::{ReplicaId, StreamId, StreamNumber, Timestamp},
    store::engine::{Attendance, DemandReport, Page, Rates, Report, StreamRecord, StreamReport, StreamsWalk},
};

use super::{
    bench::{Bench, assert_about, queue_name},
    database::{Database, caller},
};

const MINUTE: Duration = Duration::from_secs(60);

/// Of a replica that has nothing to say but that it is there.
pub(crate) fn report(replica: ReplicaId) -> Report {
    Report {
        replica,
        name: format!("replica-{}", replica.0),
        version: "1.2.3".into(),
        age: Duration::from_secs(90),
        anew: false,
        streams: Vec::new(),
        closed: Vec::new(),
        demand: Vec::new(),
        unasked: Vec::new(),
        rates: Vec::new(),
        quiet: Vec::new(),
        absent: MINUTE,
    }
}

pub(crate) fn stream(replica: u32, number: u32, queues: &[&str]) -> StreamReport {
    StreamReport {
        stream: StreamId { replica: ReplicaId(replica), number: StreamNumber(number) },
        consumer: format!("pod '{number}'"),
        peer: "10.0.0.1:5".into(),
        caller: caller(),
        queues: queues.iter().map(|name| queue_name(name)).collect(),
        max_in_flight: 10,
        in_flight: 3,
        oldest_lease: Some(Duration::from_secs(20)),
        age: Duration::from_secs(40),
    }
}

fn demand(queue: &str, streams: u64, free_credit: u64) -> DemandReport {
    DemandReport { queue: queue_name(queue), streams, free_credit }
}

async fn attend(bench: &mut Bench, report: &Report) -> bool {
    bench.session.attend(&caller(), report).await.expect("written").unknown_before
}

async fn page(bench: &mut Bench, walk: StreamsWalk) -> Page<StreamRecord, StreamId> {
    bench.session.list_streams(&caller(), &walk).await.expect("streams")
}

fn walk(queue: Option<&str>) -> StreamsWalk {
    StreamsWalk { queue: queue.map(queue_name), after: None, absent: MINUTE, rows: 1_000, found: 1_000 }
}

async fn numbers(bench: &mut Bench, queue: Option<&str>) -> Vec<(u32, u32)> {
    let page = page(bench, walk(queue)).await;
    assert_eq!(page.next, None);
    let mut all: Vec<_> = page.rows.iter().map(|row| (row.stream.replica.0, row.stream.number.0)).collect();
    all.sort_unstable();
    all
}

async fn attendance(bench: &mut Bench, queues: &[&str]) -> Vec<Attendance> {
    let names: Vec<_> = queues.iter().map(|name| queue_name(name)).collect();
    bench.session.attendance(&caller(), &names, MINUTE).await.expect("sums")
}

pub(crate) async fn a_stream_is_shown_as_its_replica_wrote_it_down(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let said = Report { streams: vec![stream(u32::MAX, 1, &["a", "b.c"])], ..report(ReplicaId(u32::MAX)) };
    assert!(attend(&mut bench, &said).await, "nobody knew it");
    assert!(!attend(&mut bench, &report(ReplicaId(u32::MAX))).await);
    let shown = page(&mut bench, walk(None)).await.rows.pop().expect("a stream");
    assert_eq!(shown.stream, said.streams[0].stream);
    assert_eq!((shown.replica.as_str(), shown.consumer.as_str()), ("replica-4294967295", "pod '1'"));
    assert_eq!((shown.peer.as_str(), shown.caller.as_str()), ("10.0.0.1:5", "contract"));
    assert_eq!(shown.queues, [queue_name("a"), queue_name("b.c")]);
    assert_eq!((shown.max_in_flight, shown.in_flight), (10, 3));
    let oldest = shown.oldest_lease.expect("it holds some");
    assert!(oldest >= Duration::from_secs(20) && oldest < Duration::from_secs(40), "{oldest:?}");
    assert_about(shown.seen_at.since(shown.opened_at), Duration::from_secs(50));
    let idle = StreamReport { in_flight: 0, oldest_lease: None, ..said.streams[0].clone() };
    attend(&mut bench, &Report { streams: vec![idle], ..report(ReplicaId(u32::MAX)) }).await;
    let shown = page(&mut bench, walk(None)).await.rows.pop().expect("a stream");
    assert_eq!((shown.in_flight, shown.oldest_lease), (0, None));
}

pub(crate) async fn streams_are_found_by_whole_names_of_queues(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let streams = vec![stream(1, 1, &["orders"]), stream(1, 2, &["orders.eu", "mail"]), stream(1, 3, &["or"])];
    attend(&mut bench, &Report { streams, ..report(ReplicaId(1)) }).await;
    let streams = vec![stream(2, 1, &["mail", "orders"])];
    attend(&mut bench, &Report { streams, ..report(ReplicaId(2)) }).await;
    assert_eq!(numbers(&mut bench, None).await, [(1, 1), (1, 2), (1, 3), (2, 1)]);
    assert_eq!(numbers(&mut bench, Some("orders")).await, [(1, 1), (2, 1)]);
    assert_eq!(numbers(&mut bench, Some("mail")).await, [(1, 2), (2, 1)]);
    assert_eq!(numbers(&mut bench, Some("rders")).await, []);
}

pub(crate) async fn pages_of_streams_meet_each_once(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    for replica in [1, 0x8000_0001] {
        let streams = (1..=5).map(|n| stream(replica, n, &[if n % 2 == 0 { "even" } else { "odd" }])).collect();
        attend(&mut bench, &Report { streams, ..report(ReplicaId(replica)) }).await;
    }
    for (queue, expected) in [(None, 10), (Some("even"), 4)] {
        let (mut seen, mut after, mut pages) = (Vec::new(), None, 0);
        loop {
            let page = page(&mut bench, StreamsWalk { after, rows: 3, found: 2, ..walk(queue) }).await;
            assert!(page.rows.len() <= 2);
            seen.extend(page.rows.iter().map(|row| row.stream));
            pages += 1;
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let distinct = seen.iter().copied().collect::<BTreeSet<_>>();
        assert_eq!((seen.len(), distinct.len()), (expected, expected), "{queue:?} in {pages} pages");
    }
}

pub(crate) async fn what_is_said_anew_replaces_what_was_said(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let said = Report {
        streams: vec![stream(1, 1, &["a"]), stream(1, 2, &["a"])],
        demand: vec![demand("a", 2, 14), demand("b", 1, 1)],
        ..report(ReplicaId(1))
    };
    attend(&mut bench, &said).await;
    let other = Report { streams: vec![stream(2, 1, &["a"])], demand: vec![demand("a", 1, 7)], ..report(ReplicaId(2)) };
    attend(&mut bench, &other).await;
    let closed = Report {
        closed: vec![said.streams[0].stream],
        unasked: vec![queue_name("b")],
        demand: vec![demand("a", 1, 0)],
        ..report(ReplicaId(1))
    };
    attend(&mut bench, &closed).await;
    assert_eq!(numbers(&mut bench, None).await, [(1, 2), (2, 1)]);
    let sums = attendance(&mut bench, &["b", "a"]).await;
    assert_eq!((sums[0].streams, sums[1].streams, sums[1].free_credit), (0, 2, 7));
    let anew = Report { anew: true, streams: vec![stream(1, 9, &["a"])], ..report(ReplicaId(1)) };
    attend(&mut bench, &anew).await;
    assert_eq!(numbers(&mut bench, None).await, [(1, 9), (2, 1)], "nobody else's are touched");
    assert_eq!(attendance(&mut bench, &["a"]).await[0].streams, 1);
}

pub(crate) async fn sums_are_over_all_replicas_and_zero_where_nobody_is(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let (orders, mail) = (bench.queue("orders").await, bench.queue("mail").await);
    for replica in [1, 2] {
        let rates = Rates { enqueued: 1.5, leased: 2.0, acked: 0.25, retried: 3.0, expired: 4.0, dead: 5.5 };
        let said = Report {
            demand: vec![demand("orders", 2, 5), demand("not-yet", 1, 1)],
            rates: vec![(orders, rates), (mail, Rates { enqueued: 9.0, ..Rates::default() })],
            ..report(ReplicaId(replica))
        };
        attend(&mut bench, &said).await;
    }
    let sums = attendance(&mut bench, &["orders", "nobody", "not-yet", "mail"]).await;
    let both = Rates { enqueued: 3.0, leased: 4.0, acked: 0.5, retried: 6.0, expired: 8.0, dead: 11.0 };
    assert_eq!(sums[0], Attendance { streams: 4, free_credit: 10, rates: both });
    assert_eq!(sums[1], Attendance::default());
    assert_eq!((sums[2].streams, sums[2].rates), (2, Rates::default()));
    let mail_sums = Rates { enqueued: 18.0, ..Rates::default() };
    assert_eq!((sums[3].streams, sums[3].rates), (0, mail_sums));
    attend(&mut bench, &Report { quiet: vec![mail], ..report(ReplicaId(1)) }).await;
    let one = Rates { enqueued: 9.0, ..Rates::default() };
    assert_eq!(attendance(&mut bench, &["mail"]).await[0].rates, one);
    assert_eq!(attendance(&mut bench, &[]).await, []);
}

pub(crate) async fn replicas_that_were_not_heard_of_are_ignored_and_then_taken_out(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    for replica in [1, 2] {
        let streams = vec![stream(replica, 1, &["a"])];
        let said = Report { streams, demand: vec![demand("a", 1, 1)], ..report(ReplicaId(replica)) };
        attend(&mut bench, &said).await;
    }
    let past = db.instant(Timestamp(1_000_000));
    db.execute(&format!("update replica set seen_at = {past} where id = 1")).await;
    assert_eq!(numbers(&mut bench, None).await, [(2, 1)], "ignored");
    assert_eq!(attendance(&mut bench, &["a"]).await[0].streams, 1);
    attend(&mut bench, &report(ReplicaId(2))).await;
    assert_eq!(db.number("select count(*) from replica").await, 1, "taken out");
    assert_eq!(db.number("select count(*) from replica_stream").await, 1);
    assert_eq!(db.number("select count(*) from replica_demand").await, 1);
    assert!(attend(&mut bench, &report(ReplicaId(1))).await, "it hears that nothing is known of it any more");
}

pub(crate) async fn a_replica_that_leaves_takes_everything_along(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("a").await;
    for replica in [1, 2] {
        let said = Report {
            streams: vec![stream(replica, 1, &["a"])],
            demand: vec![demand("a", 1, 1)],
            rates: vec![(queue, Rates { enqueued: 1.0, ..Rates::default() })],
            ..report(ReplicaId(replica))
        };
        attend(&mut bench, &said).await;
    }
    bench.session.leave(&caller(), ReplicaId(1)).await.expect("taken out");
    bench.session.leave(&caller(), ReplicaId(1)).await.expect("once is enough");
    assert_eq!(numbers(&mut bench, None).await, [(2, 1)]);
    for table in ["replica", "replica_stream", "replica_demand", "replica_rate"] {
        assert_eq!(db.number(&format!("select count(*) from {table}")).await, 1, "{table}");
    }
}

pub(crate) async fn many_replicas_report_at_once(db: &dyn Database) {
    let mut reports = tokio::task::JoinSet::new();
    for replica in 1..=6 {
        let mut bench = Bench::on(db).await;
        reports.spawn(async move {
            for round in 0..10 {
                let streams = (1..=20).map(|n| stream(replica, n, &["a"])).collect();
                let said = Report {
                    anew: round % 3 == 0,
                    streams,
                    demand: vec![demand("a", 20, 140)],
                    ..report(ReplicaId(replica))
                };
                attend(&mut bench, &said).await;
            }
        });
    }
    while let Some(done) = reports.join_next().await {
        done.expect("no report fails");
    }
    let mut bench = Bench::on(db).await;
    assert_eq!(numbers(&mut bench, Some("a")).await.len(), 120);
    assert_eq!(attendance(&mut bench, &["a"]).await[0].free_credit, 840);
}
