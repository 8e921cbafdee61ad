//! Looking at the database's users: what every engine tells, be it little.

use leasehold::store::engine::{SessionKind, SessionState};

use super::{
    bench::{Bench, job},
    database::{Database, caller},
};

pub(crate) async fn a_look_at_the_sessions_sees_at_least_itself(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let _other = db.session().await;
    let seen = bench.session.sessions(&caller(), 1_000).await.expect("a look");
    let own: Vec<_> = seen.sessions.iter().filter(|session| session.observer).collect();
    assert_eq!(own.len(), 1, "{seen:?}");
    assert_eq!((own[0].kind, own[0].state), (SessionKind::Client, SessionState::Active));
    assert!(!own[0].waiting && own[0].blocked_by.is_empty());
    assert!(seen.sessions.iter().filter(|session| session.kind == SessionKind::Client).count() >= 2);
    assert!(seen.connections >= 2 && seen.max_connections >= seen.connections && seen.elsewhere <= seen.connections);
    assert_eq!(seen.left_out, 0);
    assert!(seen.blind_spots.iter().all(|spot| spot.ends_with('.')), "{:?}", seen.blind_spots);
    let mut ids: Vec<_> = seen.sessions.iter().map(|session| session.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), seen.sessions.len(), "each once");
}

pub(crate) async fn a_look_reads_no_more_sessions_than_asked_for(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let _others = [db.session().await, db.session().await];
    let whole = bench.session.sessions(&caller(), 1_000).await.expect("a look");
    let part = bench.session.sessions(&caller(), 1).await.expect("a look");
    assert_eq!(part.sessions.len(), 1);
    assert!(part.left_out >= 2 && whole.sessions.len() >= 3, "{} and {}", part.left_out, whole.sessions.len());
}

pub(crate) async fn a_session_that_went_is_seen_no_more(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let ids = |seen: &leasehold::store::engine::SessionsSeen| -> Vec<i64> {
        seen.sessions.iter().map(|session| session.id).collect()
    };
    let before = ids(&bench.session.sessions(&caller(), 1_000).await.expect("a look"));
    let other = db.session().await;
    let with = ids(&bench.session.sessions(&caller(), 1_000).await.expect("a look"));
    let new: Vec<_> = with.into_iter().filter(|id| !before.contains(id)).collect();
    assert_eq!(new.len(), 1);
    drop(other);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while ids(&bench.session.sessions(&caller(), 1_000).await.expect("a look")).contains(&new[0]) {
        assert!(std::time::Instant::now() < deadline, "the session stays");
    }
}

pub(crate) async fn a_look_at_the_horizon_is_answered_and_leaves_itself_out(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    let queue = bench.queue("orders").await;
    bench.enqueue_one(job(queue, "x")).await;
    let seen = bench.session.sessions(&caller(), 1_000).await.expect("a look");
    let own = seen.sessions.iter().find(|session| session.observer).expect("itself").id.to_string();
    let horizon = bench.session.horizon(&caller(), 100).await.expect("a look");
    assert!(horizon.holders.iter().all(|holder| holder.name != own), "{horizon:?}");
    assert!(horizon.holders.is_sorted_by_key(|holder| (holder.catalogs_only, std::cmp::Reverse(holder.transactions))));
    let tables = bench.session.tables(&caller()).await.expect("a look");
    assert!(tables.is_sorted_by(|a, b| a.table < b.table), "{tables:?}");
    assert!(tables.is_empty() || tables.iter().any(|table| table.table == "job"), "ours, where there are statistics");
}
