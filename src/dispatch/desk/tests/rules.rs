//! The rules, one by one.

use std::time::Duration;

use super::world::{REPLICA, World, queue, spec};
use crate::{
    dispatch::frame::DrainReason,
    model::{Caller, LeaseId, QueueId, Reason, Timestamp},
    store::engine::{LeaseRef, Wake},
};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_job_enqueued_here_is_sent_at_once() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 1));
    world.enqueue("q", 1);
    let received = world.read(stream);
    assert_eq!(received.jobs.len(), 1);
    assert!(world.told.is_empty(), "no other replica needs to know");
}

#[test]
fn one_job_costs_one_claim_however_many_streams_wait() {
    let mut world = World::new(&["q"]);
    let streams: Vec<_> = (0..1_000).map(|_| world.open(spec(&["q"], 10))).collect();
    world.claims.clear();
    world.enqueue("q", 1);
    assert_eq!(world.claims.len(), 1);
    assert!(world.claims[0].1 <= 16, "a claim for one job does not ask for a thousand");
    let got: usize = streams.into_iter().map(|stream| world.read(stream).jobs.len()).sum();
    assert_eq!(got, 1);
}

#[test]
fn one_claim_serves_many_streams_evenly() {
    let mut world = World::new(&["q"]);
    let streams: Vec<_> = (0..10).map(|_| world.open(spec(&["q"], 100))).collect();
    world.claims.clear();
    world.enqueue("q", 10);
    assert_eq!(world.claims.len(), 1);
    for stream in streams {
        assert_eq!(world.read(stream).jobs.len(), 1);
    }
}

#[test]
fn nothing_is_claimed_without_credit_and_nothing_for_a_full_buffer() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 10));
    world.enqueue("q", 1_000);
    assert_eq!(world.leased(), 10);
    let received = world.read(stream);
    assert_eq!((received.jobs.len(), world.leased()), (10, 10));
    world.ack(&received.jobs[0].token);
    assert_eq!(world.leased(), 10);
    world.ack(&received.jobs[1].token);
    assert_eq!(world.leased(), 9, "the buffer holds the job claimed after the first Ack");
    assert_eq!(world.read(stream).jobs.len(), 1);
    assert_eq!(world.read(stream).jobs.len(), 1, "reading the first freed the buffer for the second");
}

#[test]
fn settling_a_lease_twice_returns_one_credit() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 2));
    world.enqueue("q", 10);
    let received = world.read(stream);
    world.ack(&received.jobs[0].token);
    world.ack(&received.jobs[0].token);
    assert_eq!(world.read(stream).jobs.len(), 1);
    assert_eq!(world.leased(), 2);
}

#[test]
fn what_was_not_sent_goes_back_without_an_attempt_when_the_stream_is_gone() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 10));
    world.enqueue("q", 10);
    assert_eq!(world.leased(), 10);
    world.close(stream);
    assert_eq!(world.leased(), 0);
    assert!(world.rows.values().all(|row| row.attempts == 0));
    assert!(matches!(&world.told[..], [Wake::Ready { .. }]), "other replicas may have streams");
}

#[test]
fn jobs_that_land_after_their_stream_is_gone_go_back() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 10));
    world.hold = true;
    world.enqueue("q", 10);
    world.close(stream);
    world.let_go();
    assert_eq!(world.leased(), 0);
    assert!(world.rows.values().all(|row| row.attempts == 0));
}

#[test]
fn jobs_unread_for_half_of_their_lease_go_back_until_the_reader_asks_again() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 10));
    world.read(stream);
    world.enqueue("q", 10);
    world.pass(Duration::from_secs(14));
    assert_eq!(world.leased(), 10);
    world.pass(2 * SECOND);
    assert_eq!(world.leased(), 0);
    let other = world.open(spec(&["q"], 4));
    assert_eq!(world.read(other).jobs.len(), 4, "a healthy consumer gets them");
    assert!(world.read(stream).jobs.is_empty());
    let received = world.read(stream);
    assert_eq!(received.jobs.len(), 6);
    assert!(received.jobs.iter().all(|job| job.job.attempt == 1));
}

#[test]
fn a_job_enqueued_elsewhere_is_found_by_looking_within_the_interval() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 1));
    world.pass(5 * SECOND);
    world.store("q", 1, 100);
    world.pass(Duration::from_millis(1_100));
    assert_eq!(world.read(stream).jobs.len(), 1);
}

#[test]
fn a_wake_up_brings_a_claim_at_once() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 1));
    world.pass(5 * SECOND);
    world.store("q", 1, 100);
    world.wakes.push(Wake::Ready { queues: vec![QueueId(1)] });
    world.run();
    assert_eq!(world.read(stream).jobs.len(), 1);
    assert!(world.told.is_empty(), "a wake-up is not passed on");
}

#[test]
fn ten_thousand_idle_queues_and_streams_cost_one_look_a_second() {
    let mut world = World::new(&[]);
    for number in 0..1_000 {
        let name = format!("q{number}");
        if number % 2 == 0 {
            world.create(&name);
        }
        for _ in 0..3 {
            world.open(spec(&[&name], 5));
        }
    }
    world.pass(3 * SECOND);
    (world.looks, world.look_ups, world.inspected) = (0, 0, 0);
    world.claims.clear();
    world.pass(20 * SECOND);
    assert!(world.claims.is_empty());
    assert!((18..=23).contains(&world.looks), "{} looks", world.looks);
    assert!(world.look_ups <= 12, "{} look-ups of absent queues", world.look_ups);
    assert_eq!(world.inspected, 0);
}

#[test]
fn a_scheduled_job_is_claimed_when_it_is_due() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 1));
    let job = world.store("q", 1, 100)[0];
    let due = world.rows[&job].ready_at.plus(Duration::from_millis(5_300));
    world.rows.get_mut(&job).expect("stored").ready_at = due;
    world.mail.due.push((QueueId(1), world.now + Duration::from_millis(5_301)));
    world.run();
    world.pass(Duration::from_millis(5_290));
    assert!(world.read(stream).jobs.is_empty());
    world.pass(Duration::from_millis(20));
    assert_eq!(world.read(stream).jobs.len(), 1);
}

#[test]
fn a_queue_that_comes_into_being_is_served_on_the_first_hint() {
    let mut world = World::new(&["a"]);
    let stream = world.open(spec(&["late"], 1));
    world.enqueue("late", 1);
    assert_eq!(world.read(stream).jobs.len(), 1);
}

#[test]
fn a_queue_that_comes_into_being_unheard_is_found_in_time() {
    let mut world = World::new(&["a"]);
    let stream = world.open(spec(&["late"], 1));
    world.store("late", 1, 10);
    world.pass(3 * SECOND);
    assert_eq!(world.read(stream).jobs.len(), 1);
}

#[test]
fn queues_of_one_stream_are_served_in_turn() {
    let mut world = World::new(&["a", "b", "c"]);
    world.store("a", 50, 10);
    world.store("b", 50, 10);
    world.store("c", 2, 10);
    let stream = world.open(spec(&["a", "b", "c"], 1));
    let mut counts = std::collections::BTreeMap::<String, u32>::new();
    for _ in 0..20 {
        let received = world.read(stream);
        for job in &received.jobs {
            *counts.entry(job.queue.to_string()).or_default() += 1;
            world.ack(&job.token);
        }
    }
    assert_eq!(counts["c"], 2);
    assert!(counts["a"].abs_diff(counts["b"]) <= 1, "{counts:?}");
}

#[test]
fn a_round_gives_no_queue_more_than_its_share() {
    let mut world = World::new(&["a", "b"]);
    let stream = world.open(spec(&["a", "b"], 10));
    world.store("a", 100, 10);
    world.store("b", 100, 10);
    world.mail.ready.insert(QueueId(1), 100);
    world.mail.ready.insert(QueueId(2), 100);
    world.run();
    let received = world.read(stream);
    assert_eq!(received.jobs.iter().filter(|job| job.queue == queue("a")).count(), 5);
    assert_eq!(received.jobs.len(), 10);
}

#[test]
fn byte_credit_holds_and_what_does_not_fit_goes_back() {
    let mut world = World::new(&["q"]);
    let mut asked = spec(&["q"], 100);
    asked.max_in_flight_bytes = 1_000;
    let stream = world.open(asked);
    world.enqueue_sized("q", 3, 10);
    assert_eq!(world.read(stream).jobs.len(), 1, "the first job tells how large jobs are");
    let mut got = 1;
    while got < 3 {
        got += world.read(stream).jobs.len();
    }
    world.enqueue_sized("q", 50, 600);
    let received = world.read(stream);
    assert_eq!(received.jobs.len(), 1);
    assert_eq!(world.leased(), 4);
    assert_eq!(world.rows.values().filter(|row| row.attempts > 0).count(), 4);
}

#[test]
fn a_job_larger_than_the_byte_credit_is_sent_alone() {
    let mut world = World::new(&["q"]);
    let mut asked = spec(&["q"], 100);
    asked.max_in_flight_bytes = 1_000;
    let stream = world.open(asked);
    world.enqueue_sized("q", 2, 5_000);
    let received = world.read(stream);
    assert_eq!(received.jobs.len(), 1);
    world.ack(&received.jobs[0].token);
    assert_eq!(world.read(stream).jobs.len(), 1);
}

#[test]
fn an_expired_lease_returns_its_credit_only_when_the_database_says_so() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 1));
    world.enqueue("q", 2);
    let first = world.read(stream);
    // Extended through another replica.
    let job = first.jobs[0].token.job;
    let row = world.rows.get_mut(&job).expect("leased");
    row.lease_until = row.lease_until.plus(Duration::from_secs(30));
    world.pass(Duration::from_secs(40));
    assert!(world.read(stream).jobs.is_empty());
    world.pass(Duration::from_secs(25));
    let received = world.read(stream);
    assert_eq!(received.jobs.len(), 1, "neither settled nor reaped, but not outstanding either");
}

#[test]
fn a_reaped_lease_is_revoked_and_its_credit_comes_back() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 1));
    world.enqueue("q", 2);
    let first = world.read(stream);
    world.pass(Duration::from_millis(30_500));
    world.mail.reaped = world.reap();
    world.run();
    let received = world.read(stream);
    assert_eq!(received.revoked.len(), 1);
    assert_eq!(received.revoked[0].token, first.jobs[0].token);
    assert!(!received.revoked[0].cancel_requested);
    assert_eq!(received.jobs.len(), 1);
}

#[test]
fn credit_of_jobs_settled_elsewhere_comes_back_by_hint_or_by_reading() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 2));
    world.enqueue("q", 10);
    let received = world.read(stream);
    let jobs: Vec<_> = received.jobs.iter().map(|job| job.token.job).collect();
    world.rows.remove(&jobs[0]);
    world.wakes.push(Wake::Settled { replica: REPLICA, jobs: vec![jobs[0]] });
    world.run();
    assert_eq!(world.read(stream).jobs.len(), 1, "by hint, at once");
    world.rows.remove(&jobs[1]);
    world.pass(Duration::from_millis(1_200));
    assert_eq!(world.read(stream).jobs.len(), 1, "by reading, within the interval");
}

#[test]
fn a_forged_hint_returns_no_credit() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 2));
    world.enqueue("q", 10);
    let jobs = world.read(stream).jobs.iter().map(|job| job.token.job).collect();
    world.wakes.push(Wake::Settled { replica: REPLICA, jobs });
    world.run();
    assert_eq!(world.leased(), 2);
    assert!(world.read(stream).jobs.is_empty());
}

#[test]
fn a_cancel_request_is_told_once() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 1));
    world.enqueue("q", 1);
    let token = world.read(stream).jobs[0].token;
    world.rows.get_mut(&token.job).expect("leased").cancel_requested = true;
    world.pass(5 * SECOND);
    let received = world.read(stream);
    assert_eq!(received.revoked.len(), 1);
    assert!(received.revoked[0].cancel_requested);
    assert_eq!(world.leased(), 1, "the lease stands");
}

#[test]
fn a_failed_claim_is_never_an_empty_queue() {
    let mut world = World::new(&["q"]);
    world.store("q", 1, 10);
    world.away = true;
    let mut asked = spec(&["q"], 5);
    asked.stop_when_empty = true;
    let stream = world.open(asked);
    world.pass(Duration::from_secs(40));
    let received = world.read(stream);
    assert!(received.end.is_none());
    assert!(received.heartbeats.last().expect("quiet for long").1, "claims are failing");
    world.away = false;
    world.pass(Duration::from_secs(6));
    let received = world.read(stream);
    assert_eq!(received.jobs.len(), 1);
    assert!(received.end.is_none());
    world.ack(&received.jobs[0].token);
    assert_eq!(world.read(stream).end, Some(Ok(())));
}

#[test]
fn a_stream_that_stops_when_empty_finds_what_lies_left_of_the_cursor() {
    let mut world = World::new(&["q"]);
    let first = world.open(spec(&["q"], 10));
    world.enqueue("q", 3);
    assert_eq!(world.read(first).jobs.len(), 3);
    world.close(first);
    let job = world.store("q", 1, 10)[0];
    world.rows.get_mut(&job).expect("stored").ready_at = Timestamp(5);
    let mut asked = spec(&["q"], 10);
    asked.stop_when_empty = true;
    let stream = world.open(asked);
    let received = world.read(stream);
    assert_eq!(received.jobs.len(), 1);
    world.ack(&received.jobs[0].token);
    assert_eq!(world.read(stream).end, Some(Ok(())));
}

#[test]
fn a_stream_that_stops_when_empty_does_not_wait_for_queues_that_do_not_exist() {
    let mut world = World::new(&["q"]);
    let mut asked = spec(&["q", "nowhere"], 10);
    asked.stop_when_empty = true;
    let stream = world.open(asked);
    assert_eq!(world.read(stream).end, Some(Ok(())));
}

#[test]
fn a_claim_that_failed_is_walked_again() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 1));
    world.enqueue("q", 1);
    let first = world.read(stream).jobs.remove(0);
    world.away = true;
    world.enqueue("q", 1);
    world.ack(&first.token);
    assert!(world.read(stream).jobs.is_empty());
    world.away = false;
    world.pass(SECOND);
    assert_eq!(world.read(stream).jobs.len(), 1);
}

#[test]
fn a_job_left_of_the_cursor_is_found_by_the_look_back() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 10));
    world.enqueue("q", 1);
    assert_eq!(world.read(stream).jobs.len(), 1);
    let job = world.store("q", 1, 10)[0];
    let row = world.rows.get_mut(&job).expect("stored");
    row.ready_at = row.ready_at.minus(Duration::from_secs(20)); // its transaction was open for so long
    world.mail.ready.insert(QueueId(1), 1);
    world.run();
    assert!(world.read(stream).jobs.is_empty(), "the cursor has passed it");
    world.pass(Duration::from_millis(1_200));
    assert_eq!(world.read(stream).jobs.len(), 1);
}

#[test]
fn after_everything_may_have_been_missed_a_look_walks_everything() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 10));
    world.enqueue("q", 1);
    world.read(stream);
    world.pass(2 * SECOND); // the first look walks everything anyway
    let job = world.store("q", 1, 10)[0];
    world.rows.get_mut(&job).expect("stored").ready_at = Timestamp(5);
    world.pass(5 * SECOND);
    assert!(world.read(stream).jobs.is_empty());
    world.wakes.push(Wake::Everything);
    world.run();
    assert_eq!(world.read(stream).jobs.len(), 1);
}

#[test]
fn jobs_that_no_stream_here_can_take_are_told_to_other_replicas() {
    let mut world = World::new(&["q"]);
    world.enqueue("q", 1);
    assert_eq!(world.told, [Wake::Ready { queues: vec![QueueId(1)] }], "no stream at all");
    world.told.clear();
    let stream = world.open(spec(&["q"], 1));
    world.read(stream);
    world.enqueue("q", 1);
    assert_eq!(world.told, [Wake::Ready { queues: vec![QueueId(1)] }], "no credit left");
    world.told.clear();
    let other = world.open(spec(&["q"], 10));
    assert_eq!(world.read(other).jobs.len(), 1, "the one that was told of is still there");
    world.enqueue("q", 3);
    assert!(world.told.is_empty(), "all were taken here");
}

#[test]
fn a_quiet_stream_hears_a_heartbeat_and_a_busy_one_does_not() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 1));
    world.read(stream);
    world.pass(Duration::from_secs(16));
    assert_eq!(world.read(stream).heartbeats, [(0, false)]);
    world.pass(Duration::from_secs(10));
    world.enqueue("q", 1);
    world.read(stream);
    world.pass(Duration::from_secs(14));
    assert!(world.read(stream).heartbeats.is_empty());
    world.pass(Duration::from_secs(2));
    assert_eq!(world.read(stream).heartbeats, [(1, false)]);
}

#[test]
fn an_old_stream_is_drained_and_its_unsent_jobs_go_back() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 10));
    world.read(stream);
    world.pass(Duration::from_secs(299));
    world.enqueue("q", 1);
    world.pass(2 * SECOND);
    let received = world.read(stream);
    assert!(received.jobs.is_empty());
    assert_eq!((received.drains, received.end), (vec![DrainReason::Age], Some(Ok(()))));
    assert_eq!(world.leased(), 0);
}

#[test]
fn a_deadline_ends_the_stream_with_its_reason_and_leases_stand() {
    let mut world = World::new(&["q"]);
    let mut asked = spec(&["q"], 10);
    asked.deadline = Some(world.now + Duration::from_secs(3));
    let stream = world.open(asked);
    world.enqueue("q", 1);
    assert_eq!(world.read(stream).jobs.len(), 1);
    world.pass(4 * SECOND);
    let failure = world.read(stream).end.expect("ended").expect_err("by deadline");
    assert_eq!(failure.reason, Reason::Deadline);
    assert_eq!(world.leased(), 1);
}

#[test]
fn a_drain_gives_back_what_is_under_way_and_grants_nothing_more() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 10));
    let other = world.open(spec(&["q"], 10));
    world.enqueue("q", 5);
    world.hold = true;
    world.enqueue("q", 30);
    world.desk.drain();
    world.turn();
    assert!(!world.desk.is_drained(), "a claim is under way");
    world.let_go();
    assert_eq!(world.leased(), 0);
    assert!(world.desk.is_drained());
    for stream in [stream, other] {
        let received = world.read(stream);
        assert!(received.jobs.is_empty());
        assert_eq!((received.drains, received.end), (vec![DrainReason::Shutdown], Some(Ok(()))));
    }
    world.enqueue("q", 5);
    world.pass(10 * SECOND);
    assert_eq!(world.leased(), 0);
}

#[test]
fn callers_claim_apart() {
    let mut world = World::new(&["q"]);
    world.open(spec(&["q"], 5));
    let mut asked = spec(&["q"], 5);
    asked.caller = Caller::parse("billing").expect("a name");
    world.open(asked);
    world.claims.clear();
    world.enqueue("q", 10);
    assert_eq!(world.leased(), 10);
    assert!(world.claims.len() >= 2);
}

#[test]
fn frames_stay_within_their_bound() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 10));
    world.enqueue_sized("q", 10, 300_000);
    let mut frames = Vec::new();
    loop {
        let mut received = super::world::Received::default();
        match world.read_frame(stream, &mut received) {
            Some(true) if !received.jobs.is_empty() => {
                frames.push(received.jobs.iter().map(|job| job.job.payload.len()).sum::<usize>());
            }
            Some(_) => {}
            None if world.leased() == 10 && frames.len() >= 4 => break,
            None => world.run(),
        }
    }
    assert!(frames.iter().all(|bytes| *bytes <= 1 << 20), "{frames:?}");
    assert_eq!(frames.iter().sum::<usize>(), 3_000_000);
}

#[test]
fn a_lease_reference_that_is_not_ours_changes_nothing() {
    let mut world = World::new(&["q"]);
    let stream = world.open(spec(&["q"], 1));
    world.enqueue("q", 2);
    let token = world.read(stream).jobs[0].token;
    world.mail.settled.push(LeaseRef { job: token.job, lease: LeaseId(token.lease.0 ^ 1) });
    world.run();
    assert_eq!(world.leased(), 1);
}
