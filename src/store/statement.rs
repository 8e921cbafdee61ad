//! What acts on their own are called.

/// An act that runs alone: its name, the same in metrics, spans and the ledger, and which lanes may take it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Statement {
    pub(super) name: &'static str,
    pub(super) reads: bool,
    /// What it keeps in memory while it waits.
    pub(super) bytes: usize,
}

/// Of one that carries nothing large.
const SMALL: usize = 1_024;

impl Statement {
    /// One that only reads.
    pub(super) const fn reading(name: &'static str) -> Self {
        Self { name, reads: true, bytes: SMALL }
    }

    /// One that may write.
    pub(super) const fn writing(name: &'static str) -> Self {
        Self { name, reads: false, bytes: SMALL }
    }

    /// The same with something large.
    pub(super) const fn carrying(self, bytes: usize) -> Self {
        Self { bytes: SMALL + bytes, ..self }
    }
}
