//! How many names are told apart, whatever programs call themselves.

use std::collections::HashSet;

use super::name::Name;

/// Whose connections are summed together: those of one name, the broker's apart from others'.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Holder {
    /// Whom they work for.
    pub name: Name,
    /// They are brokers' lanes and listeners.
    pub broker: bool,
}

impl Holder {
    fn other(&self) -> Self {
        Self { name: Name::other(), broker: self.broker }
    }
}

/// Places for names. Configured ones and the broker's own work always have one; of the others those that come first do, and
/// the rest are `other`. A place, once taken, is kept: the sums that metrics show must only grow.
#[derive(Debug)]
pub(super) struct Places {
    at_most: usize,
    configured: HashSet<Name>,
    taken: HashSet<Holder>,
}

impl Places {
    pub(super) fn new(at_most: usize, configured: impl IntoIterator<Item = Name>) -> Self {
        Self { at_most, configured: configured.into_iter().collect(), taken: HashSet::new() }
    }

    /// Under which name `holder` is summed.
    pub(super) fn admit(&mut self, holder: Holder) -> Holder {
        let own = holder.broker && holder.name.as_str().starts_with("leasehold.");
        if own || holder.name == Name::unattributed() || self.configured.contains(&holder.name) {
            return holder;
        }
        if self.taken.contains(&holder) {
            return holder;
        }
        if self.taken.len() >= self.at_most {
            return holder.other();
        }
        self.taken.insert(holder.clone());
        holder
    }
}
