//! Merged requests do not share a fate.

use leasehold::model::{Outcome, Reason};

use super::stage::{Stage, caller, calm, few_lanes, job, occupy_writers, put, submit};

async fn a_request_that_the_database_refuses_fails_alone_among_ninety_nine_good_ones(stage: Stage) {
    let options = few_lanes();
    let writers = stage.writers(&options);
    let store = stage.store(options).await;
    put(&store, job("q", "first")).await;
    let mut sql = stage.sql().await;
    sql.run(if stage.is_postgres() {
        "alter table job add constraint house_rule check (content_type <> 'poison')"
    } else {
        "create trigger house_rule before insert on job when new.content_type = 'poison'
         begin select raise(abort, 'house rule'); end"
    })
    .await;

    let mut held = stage.hold_writes().await;
    let blockers = occupy_writers(&store, writers, "q").await;
    let mut asking = Vec::new();
    for n in 0..100 {
        let content_type = if n == 37 { "poison".to_owned() } else { format!("good-{n}") };
        asking.push(submit(&store, calm("checkout"), vec![job("q", &content_type)]).await);
    }
    held.run("rollback").await;
    for blocker in blockers {
        blocker.await.expect("it ran").expect("stored once the writes went on");
    }
    for (n, asked) in asking.into_iter().enumerate() {
        match asked.await.expect("it ran") {
            Ok(_) => assert_ne!(n, 37),
            Err(refused) => {
                assert_eq!(n, 37, "{refused}");
                assert_eq!((refused.reason, refused.outcome), (Reason::InvalidField, Outcome::NotApplied), "{refused}");
                assert!(!refused.message.contains("insert"), "no SQL text: {refused}");
            }
        }
    }

    assert_eq!(sql.number("select count(*) from job where content_type like 'good-%'").await, 99);
    let holds = store.holds();
    let (_, holds) = holds.iter().find(|(by, _)| *by == caller("checkout")).expect("it held lanes");
    assert!(holds.count < 50, "the requests did not leave merged: lanes were held {} times", holds.count);
}

on_both_engines!(a_request_that_the_database_refuses_fails_alone_among_ninety_nine_good_ones);
