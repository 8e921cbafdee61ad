//! Budgets of single callers: one section for each, named after it.

use crate::{
    config::{
        declared::Declared,
        kind::{Kind, Optional, Part, Span, Whole},
        layers::Layers,
    },
    model::{Budget, Caller, Share},
};

const MAX_LANES: Optional<Whole<u32>> = Optional(Whole::new(1, 1, Budget::MAX_LANES));
const MAX_WAIT: Span = Span::millis(1_000, 1, 60_000);
const SHARE: Optional<Part> = Optional(Part::WHOLE);

/// The section's name in documents.
pub(in crate::config) const NAME: &str = "callers.NAME";

/// What its options are about.
pub(in crate::config) const ABOUT: &str = "\
What one caller may have of the lanes, by its name, such as `[callers.checkout]`; a name with a full stop stands in quotes,
`[callers.\"eu.checkout\"]`. `unattributed` stands for calls that name no caller. A caller with such a section always has a
comment text, a place in the ledger and metric series of its own. In the environment the name is written in capitals,
`LEASEHOLD_CALLERS_CHECKOUT_MAX_LANES`, so only names of letters, digits and `_` can stand there. There are no flags. Each
replica keeps a budget for its own lanes. A budget that was set by `SetCallerBudget` goes first, as a whole.";

/// Its options, without the caller's name.
pub(in crate::config) const KEYS: [&str; 3] = ["max_lanes", "max_wait", "share"];

/// Its options, for documentation.
pub(in crate::config) fn declared() -> Vec<Declared> {
    fn option(key: &str, doc: &'static str, kind: &impl Kind) -> Declared {
        Declared::new("", key, doc, kind)
    }
    vec![
        option(
            KEYS[0],
            "Lanes of each replica that it may hold at once, settling included; no cap where unset. The last of them is for \
             settling; with 1, settling goes first.",
            &MAX_LANES,
        ),
        option(KEYS[1], "A request that the budget keeps waiting for longer is refused as `CALLER_BUDGET`.", &MAX_WAIT),
        option(
            KEYS[2],
            "Part of all lane time that it gets while others wait for lanes; no cap where unset. Settling is never held up by it.",
            &SHARE,
        ),
    ]
}

/// The budgets of all callers that were spoken of.
pub(in crate::config) fn read(layers: &mut Layers) -> Vec<(Caller, Budget)> {
    let named: Vec<Caller> = layers.named_callers().cloned().collect();
    named
        .into_iter()
        .map(|caller| {
            let key = |option: usize| format!("callers.{caller}.{}", KEYS[option]);
            let max_lanes = layers.read(&key(0), &MAX_LANES);
            let max_wait = layers.read(&key(1), &MAX_WAIT);
            let share: Option<Share> = layers.read(&key(2), &SHARE);
            (caller, Budget { max_lanes, max_wait, share })
        })
        .collect()
}
