//! Labels of callers: as many as there may be, the rest together as `other`.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use opentelemetry::KeyValue;

use super::names::key;
use crate::model::Caller;

/// Labels by caller. Those known from the start and the broker's own always have one; of the others the first `at_most` do. A
/// series, once begun, is never given up: its sum must stay exact.
pub(super) struct CallerLabels {
    known: RwLock<HashMap<Caller, KeyValue>>,
    other: KeyValue,
    more: usize,
}

impl CallerLabels {
    /// With a label for each of the `named`, and `more` for callers that come up.
    pub(super) fn new(named: &[Caller], more: usize) -> Self {
        let unattributed = Caller::unattributed();
        let known = named.iter().chain([&unattributed]).map(|caller| (caller.clone(), label(caller))).collect();
        Self { known: RwLock::new(known), other: label(&Caller::other()), more: named.len() + 1 + more }
    }

    /// The labels that are there from the start, and the one of all without.
    pub(super) fn fixed(&self) -> Vec<KeyValue> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.values().chain([&self.other]).cloned().collect()
    }

    /// The label of `caller`, which is its own from now on whatever the bound says. Whoever asks keeps such callers bounded.
    pub(super) fn keep(&self, caller: &Caller) -> KeyValue {
        if let Some(label) = self.known.read().unwrap_or_else(PoisonError::into_inner).get(caller) {
            return label.clone();
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.entry(caller.clone()).or_insert_with(|| label(caller)).clone()
    }

    /// The label of `caller`.
    pub(super) fn of(&self, caller: &Caller) -> KeyValue {
        if cfg!(leasehold_without_attribution) {
            return self.other.clone();
        }
        // whatever thread died with the lock held left a whole map behind
        if let Some(label) = self.known.read().unwrap_or_else(PoisonError::into_inner).get(caller) {
            return label.clone();
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let own = caller.as_str().starts_with("leasehold.");
        if !own && known.keys().filter(|caller| !caller.as_str().starts_with("leasehold.")).count() >= self.more {
            return self.other.clone();
        }
        known.entry(caller.clone()).or_insert_with(|| label(caller)).clone()
    }
}

/// Its text is shared by all its copies.
fn label(caller: &Caller) -> KeyValue {
    KeyValue::new(key::CALLER, Arc::<str>::from(caller.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(labels: &CallerLabels, name: &str) -> String {
        labels.of(&Caller::parse(name).expect(name)).value.to_string()
    }

    #[test]
    fn callers_past_the_bound_share_a_label_and_named_ones_never_do() {
        let named = [Caller::parse("checkout").expect("a fine name")];
        let labels = CallerLabels::new(&named, 2);
        assert_eq!(label(&labels, "first"), "first");
        assert_eq!(label(&labels, "second"), "second");
        assert_eq!(label(&labels, "third"), "other");
        assert_eq!(label(&labels, "checkout"), "checkout");
        assert_eq!(label(&labels, "first"), "first");
    }

    #[test]
    fn a_caller_that_is_kept_has_a_label_past_the_bound() {
        let labels = CallerLabels::new(&[], 0);
        let late = Caller::parse("late").expect("a fine name");
        assert_eq!(label(&labels, "late"), "other");
        assert_eq!(labels.keep(&late).value.to_string(), "late");
        assert_eq!(label(&labels, "late"), "late");
    }

    #[test]
    fn the_brokers_own_work_always_has_a_label_and_takes_none_away() {
        let labels = CallerLabels::new(&[], 1);
        assert_eq!(labels.of(&Caller::broker("reaper")).value.to_string(), "leasehold.reaper");
        assert_eq!(label(&labels, "first"), "first");
        assert_eq!(labels.of(&Caller::broker("pruner")).value.to_string(), "leasehold.pruner");
        assert_eq!(labels.of(&Caller::unattributed()).value.to_string(), "unattributed");
    }
}
