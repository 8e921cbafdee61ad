use super::*;

fn facts(state: JobState) -> Facts {
    Facts {
        state,
        now: Timestamp(100_000_000),
        available_at: Timestamp(1_000_000),
        ready_at: Some(Timestamp(1_000_000)),
        held: false,
        head: None,
        ahead_in_key: Count::default(),
        ahead: Count::default(),
        paused: false,
        streams: 1,
        free_credit: 1,
        lease_until: None,
        consumer: None,
        cancel_requested: false,
        attempt: 0,
        last_error: None,
    }
}

fn reasons(facts: &Facts) -> Vec<WaitReason> {
    explain(facts).into_iter().map(|wait| wait.reason).collect()
}

#[test]
fn a_ready_job_with_consumers_that_have_credit_waits_for_nothing() {
    assert_eq!(reasons(&facts(JobState::Ready)), [WaitReason::None]);
}

#[test]
fn nobody_asking_and_nobody_able_are_told_apart() {
    let mut job = Facts { streams: 0, free_credit: 0, ..facts(JobState::Ready) };
    assert_eq!(reasons(&job), [WaitReason::NoConsumer]);
    job.streams = 3;
    assert_eq!(reasons(&job), [WaitReason::NoCredit]);
    assert!(explain(&job)[0].explanation.starts_with("3 Lease streams"), "{:?}", explain(&job));
}

#[test]
fn what_would_have_to_change_first_comes_first() {
    use WaitReason::{BehindOthers, Held, NoCredit, QueuePaused};
    let job = Facts {
        held: true,
        paused: true,
        free_credit: 0,
        ahead: Count { value: 7, at_least: false },
        ..facts(JobState::Ready)
    };
    assert_eq!(reasons(&job), [Held, QueuePaused, NoCredit, BehindOthers]);
    assert_eq!(explain(&job)[3].ahead, Some(Count { value: 7, at_least: false }));
}

#[test]
fn a_count_past_its_bound_is_said_to_be_one() {
    let job = Facts { ahead: Count::of(10_001), ..facts(JobState::Ready) };
    assert!(explain(&job)[0].explanation.starts_with("more than 10000 ready jobs"), "{:?}", explain(&job));
}

#[test]
fn a_scheduled_job_says_until_when_and_what_keeps_it_then() {
    let due = Timestamp(160_000_000);
    let mut job = Facts { ready_at: Some(due), paused: true, streams: 0, ..facts(JobState::Scheduled) };
    assert_eq!(reasons(&job), [WaitReason::Scheduled, WaitReason::QueuePaused, WaitReason::NoConsumer]);
    assert_eq!(explain(&job)[0].until, Some(due));
    assert!(explain(&job)[0].explanation.starts_with("it is due in 60.0 s"));
    job.attempt = 2;
    job.last_error = Some("card declined".into());
    assert!(explain(&job)[0].explanation.contains("after 2 that failed, the last with: card declined"));
    // How many go first when it is due nobody knows.
    let later = Facts { free_credit: 0, streams: 1, ahead: Count::of(5), paused: false, ..job };
    assert_eq!(reasons(&later), [WaitReason::Scheduled]);
}

#[test]
fn a_blocked_job_names_the_one_that_has_its_turn() {
    let job = Facts { head: Some(JobId(5)), ahead_in_key: Count::of(2), ready_at: None, ..facts(JobState::Blocked) };
    let waits = explain(&job);
    assert_eq!((waits[0].reason, waits[0].blocking), (WaitReason::Blocked, Some(JobId(5))));
    assert_eq!(waits[0].ahead, Some(Count { value: 3, at_least: false }), "the one that has its turn is one of them");
    let later = Facts { available_at: Timestamp(200_000_000), ..job };
    assert_eq!(reasons(&later), [WaitReason::Blocked, WaitReason::Scheduled]);
}

#[test]
fn a_blocked_job_whose_key_nobody_has_waits_for_its_adoption() {
    assert_eq!(reasons(&Facts { ready_at: None, ..facts(JobState::Blocked) }), [WaitReason::Adoption]);
}

#[test]
fn a_leased_job_says_by_whom_until_when_and_nothing_about_others() {
    let until = Timestamp(130_000_000);
    let mut job = Facts {
        lease_until: Some(until),
        consumer: Some("pod-7".into()),
        streams: 0,
        paused: true,
        ..facts(JobState::Leased)
    };
    let waits = explain(&job);
    assert_eq!(waits.len(), 1);
    assert_eq!((waits[0].until, waits[0].consumer.as_deref()), (Some(until), Some("pod-7")));
    assert!(waits[0].explanation.contains("leased by consumer 'pod-7'; unless extended, the lease ends in 30.0 s"));
    job.cancel_requested = true;
    job.consumer = None;
    job.lease_until = Some(Timestamp(1));
    let text = explain(&job)[0].explanation.clone();
    assert!(text.contains("closed") && text.contains("reaper") && text.contains("to be cancelled"), "{text}");
    job.held = true;
    assert_eq!(reasons(&job), [WaitReason::Leased, WaitReason::Held]);
}

#[test]
fn an_end_is_the_only_reason_where_there_is_one() {
    let dead = Facts {
        attempt: 20,
        last_error: Some("no such order".into()),
        paused: true,
        streams: 0,
        held: true,
        ..facts(JobState::Dead)
    };
    assert_eq!(reasons(&dead), [WaitReason::Dead]);
    assert!(explain(&dead)[0].explanation.contains("20 attempts, the last of which ended with: no such order"));
    assert_eq!(reasons(&facts(JobState::Acked)), [WaitReason::Acked]);
}
