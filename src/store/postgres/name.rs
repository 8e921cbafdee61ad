//! The schema's name, where it is not `leasehold`.
//!
//! Statements and migrations are written for the schema `leasehold`. In a schema of another name they are the same texts
//! with that word replaced: once per text, when it is made.

use crate::model::ReplicaId;

/// The name in the texts.
pub(super) const WRITTEN: &str = "leasehold";

/// What distinguishes one schema's broker from another's in the same database.
#[derive(Debug, Clone)]
pub(super) struct SchemaName(String);

impl SchemaName {
    /// `name` must be an identifier that needs no quotes.
    pub(super) fn new(name: String) -> Self {
        Self(name)
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// The channel on which all replicas hear of ready queues.
    pub(super) fn ready_channel(&self) -> String {
        format!("{}_ready", self.0)
    }

    /// The channel on which a replica hears of jobs that others settled for it.
    pub(super) fn settled_channel(&self, replica: ReplicaId) -> String {
        format!("{}_settled_{:08x}", self.0, replica.0)
    }

    /// Key of the lock under which one process at a time migrates. For the schema `leasehold` it is the number of the first
    /// version, arbitrary and ours for ever.
    pub(super) fn migration_lock(&self) -> i64 {
        const FIRST: u64 = 5_500_148_632_171_246_573;
        (FIRST ^ hash(&self.0) ^ hash(WRITTEN)).cast_signed()
    }
}

/// FNV-1a: the same on every machine and in every version.
fn hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_have_locks_of_their_own_and_the_first_one_keeps_its_number() {
        let lock = |name: &str| SchemaName::new(name.into()).migration_lock();
        assert_eq!(lock("leasehold"), 5_500_148_632_171_246_573);
        assert_ne!(lock("jobs_a"), lock("jobs_b"));
        assert_ne!(lock("jobs_a"), lock("leasehold"));
    }
}
