use super::*;

fn line(item: &str, quantity: u32) -> v1::ReservationLine {
    v1::ReservationLine { key: Some(v1::StockKey { item: item.into(), location: "here".into() }), quantity }
}

fn request() -> v1::ReserveRequest {
    v1::ReserveRequest { reference: "checkout-1".into(), lines: vec![line("a", 1)], ..v1::ReserveRequest::default() }
}

fn job() -> v1::NewJob {
    v1::NewJob { queue: "q".into(), ..v1::NewJob::default() }
}

fn checked(request: v1::ReserveRequest) -> Result<NewReservation, Vec<String>> {
    let by = Reserve { limits: &Limits::default(), trace: None, now: SystemTime::UNIX_EPOCH };
    reserve_request(request, &by).map_err(|failure| failure.invalid.into_iter().map(|fault| fault.field).collect())
}

fn faults(request: v1::ReserveRequest) -> Vec<String> {
    checked(request).expect_err("it is refused")
}

#[test]
fn a_cart_at_its_limits_is_taken_and_holds_for_a_quarter_of_an_hour() {
    let mut largest = request();
    largest.lines = (0..100).map(|n| line(&format!("{n}"), 1_000_000)).collect();
    largest.jobs = vec![job(); 60];
    largest.jobs_on_expiry = vec![job(); 40];
    let kept = checked(largest).expect("it is within the limits");
    assert_eq!((kept.lines.len(), kept.jobs.len(), kept.jobs_on_expiry.len()), (100, 60, 40));
    assert_eq!(kept.time_to_live, Duration::from_mins(15));
}

#[test]
fn carts_past_their_limits_are_refused() {
    for count in [0, 101] {
        let lines = (0..count).map(|n| line(&format!("{n}"), 1)).collect();
        assert_eq!(faults(v1::ReserveRequest { lines, ..request() }), ["lines"]);
    }
    for quantity in [0, 1_000_001, u32::MAX] {
        let lines = vec![line("a", quantity)];
        assert_eq!(faults(v1::ReserveRequest { lines, ..request() }), ["lines[0].quantity"]);
    }
    let twice = vec![line("a", 1), line("b", 1), line("a", 2)];
    assert_eq!(faults(v1::ReserveRequest { lines: twice, ..request() }), ["lines[2].key"]);
    let keyless = vec![v1::ReservationLine { key: None, quantity: 1 }];
    assert_eq!(faults(v1::ReserveRequest { lines: keyless, ..request() }), ["lines[0].key"]);
    let jobs = v1::ReserveRequest { jobs: vec![job(); 61], jobs_on_expiry: vec![job(); 40], ..request() };
    assert_eq!(faults(jobs), ["jobs"]);
}

#[test]
fn names_that_are_none_are_refused() {
    for bad in ["", "a\0", "é", &"x".repeat(201)] {
        assert_eq!(faults(v1::ReserveRequest { reference: bad.into(), ..request() }), ["reference"]);
        let lines = vec![line(bad, 1)];
        assert_eq!(faults(v1::ReserveRequest { lines, ..request() }), ["lines[0].key.item"]);
    }
}

#[test]
fn a_hold_lasts_a_second_to_a_day() {
    let of = |seconds, nanos| v1::ReserveRequest {
        time_to_live: Some(prost_types::Duration { seconds, nanos }),
        ..request()
    };
    for (seconds, nanos) in [(1, 0), (86_400, 0)] {
        assert!(checked(of(seconds, nanos)).is_ok());
    }
    for (seconds, nanos) in [(0, 0), (0, 999_999_999), (86_400, 1), (-1, 0), (i64::MAX, 0), (1, -1)] {
        assert_eq!(faults(of(seconds, nanos)), ["time_to_live"]);
    }
}

#[test]
fn a_job_on_expiry_has_neither_a_key_of_its_own_nor_a_fixed_start() {
    let mut keyed = job();
    keyed.idempotency_key = "k".into();
    keyed.start = Some(v1::new_job::Start::AvailableAt(prost_types::Timestamp { seconds: 1, nanos: 0 }));
    let refused = faults(v1::ReserveRequest { jobs_on_expiry: vec![job(), keyed], ..request() });
    assert_eq!(refused, ["jobs_on_expiry[1].idempotency_key", "jobs_on_expiry[1].available_at"]);
}

#[test]
fn reservations_are_asked_for_by_what_was_given_out() {
    use v1::get_reservation_request::By;
    let find = |by| find_request(&v1::GetReservationRequest { by });
    assert_eq!(find(Some(By::ReservationId("7".into()))), Ok(ReservationRef::Id(ReservationId(7))));
    for bad in [None, Some(By::ReservationId("x".into())), Some(By::Reference(String::new()))] {
        assert!(find(bad).is_err());
    }
}
