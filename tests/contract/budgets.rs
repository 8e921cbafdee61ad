//! Callers' budgets.

use std::time::Duration;

use leasehold::{
    model::{Budget, Caller, Share},
    store::engine::CallerBudget,
};

use super::{
    bench::Bench,
    database::{Database, caller},
};

const ROOM: usize = 1_000;

fn named(name: &str) -> Caller {
    Caller::with_budget(name).expect("a caller with a budget")
}

fn lanes(count: u32) -> Budget {
    Budget { max_lanes: Some(count), ..Budget::default() }
}

pub(crate) async fn a_budget_is_kept_as_given_and_replaced_whole(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    assert_eq!(bench.session.budgets(&caller(), ROOM).await.expect("an answer"), []);
    let everything = Budget {
        max_lanes: Some(Budget::MAX_LANES),
        max_wait: Duration::from_micros(1_234_567),
        share: Share::millionths(1),
    };
    let nothing = Budget { max_lanes: None, max_wait: Budget::MAX_WAIT, share: None };
    for (name, budget) in
        [("zebra", &everything), ("adder", &lanes(1)), ("unattributed", &nothing), ("a.b_c-d", &nothing)]
    {
        assert!(bench.session.set_budget(&caller(), &named(name), Some(budget), ROOM).await.expect("kept"), "{name}");
    }
    let kept = bench.session.budgets(&caller(), ROOM).await.expect("an answer");
    let of = |name: &str, budget: &Budget| CallerBudget { caller: named(name), budget: *budget };
    assert_eq!(
        kept,
        [of("a.b_c-d", &nothing), of("adder", &lanes(1)), of("unattributed", &nothing), of("zebra", &everything)]
    );
    assert!(bench.session.set_budget(&caller(), &named("zebra"), Some(&nothing), ROOM).await.expect("kept"));
    let kept = bench.session.budgets(&caller(), ROOM).await.expect("an answer");
    assert_eq!(kept[3], of("zebra", &nothing), "nothing of the old one is left");
}

pub(crate) async fn a_removed_budget_is_gone_and_removing_it_again_says_so(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    bench.session.set_budget(&caller(), &named("a"), Some(&lanes(1)), ROOM).await.expect("kept");
    bench.session.set_budget(&caller(), &named("b"), Some(&lanes(2)), ROOM).await.expect("kept");
    assert!(bench.session.set_budget(&caller(), &named("a"), None, ROOM).await.expect("an answer"));
    assert!(!bench.session.set_budget(&caller(), &named("a"), None, ROOM).await.expect("an answer"));
    let left = bench.session.budgets(&caller(), ROOM).await.expect("an answer");
    assert_eq!(left, [CallerBudget { caller: named("b"), budget: lanes(2) }]);
}

pub(crate) async fn past_their_bound_only_callers_that_have_a_budget_get_another(db: &dyn Database) {
    let mut bench = Bench::on(db).await;
    for name in ["a", "b"] {
        assert!(bench.session.set_budget(&caller(), &named(name), Some(&lanes(1)), 2).await.expect("kept"));
    }
    assert!(!bench.session.set_budget(&caller(), &named("c"), Some(&lanes(1)), 2).await.expect("an answer"));
    assert!(bench.session.set_budget(&caller(), &named("b"), Some(&lanes(2)), 2).await.expect("kept"));
    let kept = bench.session.budgets(&caller(), ROOM).await.expect("an answer");
    let shown: Vec<_> = kept.iter().map(|kept| (kept.caller.as_str(), kept.budget.max_lanes)).collect();
    assert_eq!(shown, [("a", Some(1)), ("b", Some(2))]);
    assert_eq!(bench.session.budgets(&caller(), 1).await.expect("an answer").len(), 1);
}
