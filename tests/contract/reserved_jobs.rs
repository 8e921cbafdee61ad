//! Jobs that come with a reservation, with its commit, or with its expiry.

use leasehold::{
    model::{ReservationState, Timestamp},
    store::{
        engine::{Cart, End, Ended, Reserved},
        error::EngineError,
    },
};

use super::{
    bench::{Bench, ids, job, keyed, once, payloads},
    database::{Database, caller},
    reservations::{adopted, audit, balance, cart, end, find, hold, overdue, reserve},
    stocks::{POOL, at, deliver},
};

pub(crate) async fn nothing_keeps_an_expiry_from_its_end(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let (off, gone, cup) = (bench.queue("off").await, bench.queue("gone").await, at("cup"));
    deliver(&mut bench, &[(cup.clone(), 2)]).await;
    let mut lapsing = overdue("lapsing", &[(cup.clone(), 2)]);
    lapsing.jobs_on_expiry = vec![job(off, "to a queue that is off"), job(gone, "to one that goes away")];
    let lapsed = hold(&mut bench, &lapsing).await;
    db.execute("update queue set disabled_reason = 'moved' where name = 'off'").await;
    assert!(bench.session.close_queue(&caller(), gone).await.expect("an answer"));
    let swept = bench.session.sweep_expired(&caller(), Timestamp::BEGINNING, 100).await.expect("a pass");
    assert_eq!((swept.lags.len(), swept.jobs), (1, 1));
    assert_eq!(find(&mut bench, lapsed).await.state, ReservationState::Expired);
    assert_eq!(adopted(&mut bench, off).await, ["to a queue that is off"]);
    assert_eq!(adopted(&mut bench, gone).await, Vec::<String>::new());
}

pub(crate) async fn jobs_come_with_what_they_belong_to_and_once(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let (queue, cup) = (bench.queue("q").await, at("cup"));
    deliver(&mut bench, &[(cup.clone(), 5)]).await;
    let known = bench.enqueue_one(once(queue, "known", "known")).await.job;
    let mut with_jobs = cart("r", &[(cup.clone(), 1)]);
    with_jobs.jobs = vec![job(queue, "plain"), keyed(queue, "k", "keyed"), once(queue, "known", "known")];
    let Reserved::New { reservation, jobs, .. } = reserve(&mut bench, &with_jobs).await else {
        panic!("there is stock")
    };
    assert_eq!(reservation.jobs, ids(&jobs));
    assert_eq!(reservation.jobs[2], known);
    assert_eq!(jobs.iter().map(|job| job.duplicate).collect::<Vec<_>>(), [false, false, true]);
    match reserve(&mut bench, &with_jobs).await {
        Reserved::Known(now) => assert_eq!(now.jobs, reservation.jobs, "the same ones again"),
        other => panic!("{other:?}"),
    }
    let paid = vec![job(queue, "paid")];
    let Ended::Now { reservation: committed, jobs } =
        end(&mut bench, reservation.id, ReservationState::Committed, paid.clone()).await
    else {
        panic!("it was held")
    };
    assert_eq!((&committed.commit_jobs, &committed.jobs), (&ids(&jobs), &reservation.jobs));
    match end(&mut bench, reservation.id, ReservationState::Committed, paid).await {
        Ended::Before(row) => assert_eq!(row.commit_jobs, committed.commit_jobs, "the first call's"),
        other => panic!("{other:?}"),
    }
    let mut stored = payloads(&bench.claim(queue, 10).await);
    stored.sort();
    assert_eq!(stored, ["keyed", "known", "paid", "plain"]);
}

pub(crate) async fn a_job_that_cannot_be_stored_keeps_the_rest_from_happening(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let (queue, closed, cup) = (bench.queue("q").await, bench.queue("closed").await, at("cup"));
    deliver(&mut bench, &[(cup.clone(), 5)]).await;
    bench.enqueue_one(once(queue, "known", "known")).await;
    assert!(bench.session.close_queue(&caller(), closed).await.expect("an answer"));
    let held = hold(&mut bench, &cart("held", &[(cup.clone(), 1)])).await;
    for (jobs, refused) in [
        (vec![job(queue, "x"), once(queue, "known", "other")], EngineError::KeyReused { index: 1 }),
        (vec![job(queue, "x"), job(closed, "y")], EngineError::QueueClosed),
    ] {
        for quantity in [1, POOL + 1] {
            let cart = Cart { jobs: jobs.clone(), ..cart("r", &[(cup.clone(), quantity.min(4))]) };
            let answers = [
                bench.session.reserve_fast(&caller(), &cart).await,
                bench.session.reserve_slow(&caller(), &cart).await,
            ];
            assert_eq!(answers, [Err(refused.clone()), Err(refused.clone())]);
        }
        let commit = End { reservation: held, state: ReservationState::Committed, jobs };
        let answer = bench.session.end_reservation(&caller(), &commit).await;
        assert_eq!(answer, Err(refused));
    }
    assert_eq!(find(&mut bench, held).await.state, ReservationState::Held);
    assert_eq!(balance(&mut bench, &cup).await, (5, 1));
    assert_eq!(payloads(&bench.claim(queue, 10).await), ["known"]);
    audit(&mut bench).await;
}
