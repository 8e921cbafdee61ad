use super::*;

const REPLICA: ReplicaId = ReplicaId(7);

fn name(queue: &str) -> QueueName {
    QueueName::parse("queue", queue).expect("a name")
}

fn stream(number: u32, queues: &[&str], in_flight: u32, opened_at: Instant) -> StreamState {
    let about = StreamFacts {
        consumer: format!("c{number}"),
        peer: "here".into(),
        caller: Caller::unattributed(),
        queues: queues.iter().map(|queue| name(queue)).collect(),
        max_in_flight: 10,
        opened_at,
    };
    StreamState {
        number: StreamNumber(number),
        about: Arc::new(about),
        in_flight,
        free_credit: 10 - in_flight,
        oldest_lease: (in_flight > 0).then_some(opened_at),
    }
}

fn told(start: Instant) -> Told {
    Told { sums: VecDeque::from([(start, HashMap::new())]), ..Told::default() }
}

fn sums(queue: i32, enqueued: u64) -> HashMap<QueueId, Totals> {
    HashMap::from([(QueueId(queue), Totals { enqueued, ..Totals::default() })])
}

fn enqueued(rate: f64) -> Rates {
    Rates { enqueued: rate, ..Rates::default() }
}

#[test]
fn only_what_changed_is_written() {
    let start = Instant::now();
    let mut told = told(start);
    let mut streams = vec![stream(1, &["a", "b"], 0, start), stream(2, &["b"], 3, start)];
    let all = told.changes(REPLICA, &streams, start, true);
    assert_eq!((all.changed.len(), all.wanted.len(), all.closed.len()), (2, 2, 0));
    assert_eq!((all.wanted[1].streams, all.wanted[1].free_credit), (2, 17), "both ask for b");
    told.remember(&streams);
    assert!(told.changes(REPLICA, &streams, start, false).is_empty(), "nothing happened");
    streams[0].in_flight = 1;
    streams[0].free_credit = 9;
    streams.pop();
    let changes = told.changes(REPLICA, &streams, start, false);
    assert_eq!(changes.changed.len(), 1);
    assert_eq!(changes.closed, [StreamId { replica: REPLICA, number: StreamNumber(2) }]);
    let wanted: Vec<_> = changes.wanted.iter().map(|d| (d.queue.as_str(), d.streams, d.free_credit)).collect();
    assert_eq!(wanted, [("a", 1, 9), ("b", 1, 9)]);
    told.remember(&streams);
    let gone = told.changes(REPLICA, &[], start, false);
    assert_eq!((gone.closed.len(), gone.unasked.len(), gone.changed.len()), (1, 2, 0));
    let anew = told.changes(REPLICA, &[], start, true);
    assert!(anew.is_empty(), "where all is said anew, what is gone is gone anyway");
}

#[test]
fn rates_are_over_the_last_minute_and_end_with_it() {
    let start = Instant::now();
    let mut told = told(start);
    let at = |seconds| start + Duration::from_secs(seconds);
    told.learn(|| sums(1, 100), at(10));
    assert_eq!(told.rates_now()[&QueueId(1)], enqueued(10.0), "of a replica that has run for ten seconds");
    told.learn(|| panic!("too soon"), at(10));
    for seconds in (20..=60).step_by(10) {
        told.learn(|| sums(1, 100), at(seconds));
    }
    assert_eq!(told.rates_now()[&QueueId(1)], enqueued(1.667), "a hundred in a minute");
    told.learn(|| sums(1, 100), at(70));
    assert!(told.rates_now().is_empty(), "nothing since a minute ago");
    assert!(told.sums.len() <= 8, "{} sums are kept", told.sums.len());
    told.learn(HashMap::new, at(80));
    assert!(told.rates_now().is_empty(), "sums that began anew are no jobs");
}

#[test]
fn a_queue_that_falls_quiet_is_taken_out() {
    let start = Instant::now();
    let mut told = told(start);
    told.learn(|| sums(5, 60), start + Duration::from_secs(60));
    let first = told.changes(REPLICA, &[], start, false);
    assert_eq!(first.moved, [(QueueId(5), enqueued(1.0))]);
    told.remember(&[]);
    told.learn(|| sums(5, 60), start + Duration::from_secs(120));
    let second = told.changes(REPLICA, &[], start, false);
    assert_eq!((second.moved.len(), second.quiet.as_slice()), (0, &[QueueId(5)][..]));
}

#[test]
fn many_streams_take_several_statements_of_a_thousand_rows() {
    let start = Instant::now();
    let told = told(start);
    let streams: Vec<_> = (1..=2_500).map(|n| stream(n, &["a"], 0, start)).collect();
    let mut changes = told.changes(REPLICA, &streams, start, true);
    let mut sizes = Vec::new();
    while !changes.is_empty() {
        let mut report = Report {
            replica: REPLICA,
            name: String::new(),
            version: String::new(),
            age: Duration::ZERO,
            anew: false,
            streams: Vec::new(),
            closed: Vec::new(),
            demand: Vec::new(),
            unasked: Vec::new(),
            rates: Vec::new(),
            quiet: Vec::new(),
            absent: Duration::ZERO,
        };
        changes.fill(&mut report);
        sizes.push((report.streams.len(), report.demand.len()));
    }
    assert_eq!(sizes, [(1_000, 1), (1_000, 0), (500, 0)]);
}
