//! The faults of one request.

use crate::model::{Failure, Invalid};

/// Gathers what is wrong with a request, so that its sender hears it all at once.
#[derive(Default)]
pub(super) struct Faults(Vec<Invalid>);

impl Faults {
    /// No more are looked for: the answer has to fit into response headers.
    pub(super) const AT_MOST: usize = 20;

    /// Whether looking further is of no use.
    pub(super) fn is_full(&self) -> bool {
        self.0.len() >= Self::AT_MOST
    }

    /// One more fault.
    pub(super) fn note(&mut self, fault: Invalid) {
        if !self.is_full() {
            self.0.push(fault);
        }
    }

    /// The value of `checked`; where it is a fault, that is noted.
    pub(super) fn keep<T>(&mut self, checked: Result<T, Invalid>) -> Option<T> {
        checked.map_err(|fault| self.note(fault)).ok()
    }

    /// `value`, unless anything was wrong.
    pub(super) fn or<T>(self, value: T) -> Result<T, Failure> {
        if self.0.is_empty() { Ok(value) } else { Err(Failure::invalid(self.0)) }
    }
}
