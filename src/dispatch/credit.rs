//! What one stream may still be given.

/// Credit of one stream, by jobs and by payload bytes.
///
/// Every unit is free, reserved (a slot in a claim that is under way) or used (a lease outstanding). `used + reserved` never
/// exceeds the jobs that the stream asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Credit {
    max: u32,
    max_bytes: u64,
    used: u32,
    used_bytes: u64,
    reserved: u32,
    reserved_bytes: u64,
}

impl Credit {
    /// Everything free. No bound on bytes where `max_bytes` is 0.
    pub(super) fn new(max: u32, max_bytes: u64) -> Self {
        Self { max, max_bytes, used: 0, used_bytes: 0, reserved: 0, reserved_bytes: 0 }
    }

    /// Leases that may be outstanding.
    pub(super) fn most(&self) -> u32 {
        self.max
    }

    /// Leases outstanding.
    pub(super) fn used(&self) -> u32 {
        self.used
    }

    /// Payload bytes outstanding.
    pub(super) fn used_bytes(&self) -> u64 {
        self.used_bytes
    }

    /// Whether it ends before the jobs do.
    pub(super) fn is_bounded_in_bytes(&self) -> bool {
        self.max_bytes > 0
    }

    /// Neither used nor reserved.
    pub(super) fn free(&self) -> u32 {
        self.max.saturating_sub(self.used).saturating_sub(self.reserved)
    }

    /// Not used; what one round of claims divides between queues.
    pub(super) fn unused(&self) -> u32 {
        self.max.saturating_sub(self.used)
    }

    /// Nothing outstanding and no claim under way.
    pub(super) fn is_untouched(&self) -> bool {
        self.used == 0 && self.reserved == 0
    }

    /// Jobs of about `average` payload bytes that may be claimed now. Where the average is not known and bytes are bounded,
    /// one: it will tell.
    pub(super) fn room(&self, average: Option<u64>) -> u32 {
        let free = self.free();
        if self.max_bytes == 0 {
            return free;
        }
        let left = self.max_bytes.saturating_sub(self.used_bytes).saturating_sub(self.reserved_bytes);
        let by_bytes = match average {
            Some(average) => u32::try_from(left / average.max(1)).unwrap_or(u32::MAX),
            None => u32::from(left > 0),
        };
        // A single job may be larger than the bound, but only when nothing is outstanding.
        let at_least = u32::from(self.is_untouched());
        free.min(by_bytes.max(at_least))
    }

    /// Sets `jobs` slots of about `bytes` payload bytes aside.
    pub(super) fn reserve(&mut self, jobs: u32, bytes: u64) {
        debug_assert!(jobs <= self.free(), "a slot without credit");
        self.reserved += jobs;
        self.reserved_bytes = self.reserved_bytes.saturating_add(bytes);
    }

    /// The claim that [`Credit::reserve`] was for has ended.
    pub(super) fn unreserve(&mut self, jobs: u32, bytes: u64) {
        self.reserved = self.reserved.saturating_sub(jobs);
        self.reserved_bytes = self.reserved_bytes.saturating_sub(bytes);
    }

    /// Uses credit for a job; says no where it does not fit.
    #[must_use]
    pub(super) fn admit(&mut self, bytes: u64) -> bool {
        let fits = self.max_bytes == 0 || self.used == 0 || self.used_bytes.saturating_add(bytes) <= self.max_bytes;
        if self.used >= self.max || !fits {
            return false;
        }
        self.used += 1;
        self.used_bytes = self.used_bytes.saturating_add(bytes);
        true
    }

    /// A job that was admitted is outstanding no more.
    pub(super) fn release(&mut self, bytes: u64) {
        self.used = self.used.saturating_sub(1);
        self.used_bytes = self.used_bytes.saturating_sub(bytes);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_single_larger_job_goes_when_nothing_is_outstanding() {
        let mut credit = Credit::new(10, 100);
        assert_eq!(credit.room(Some(1_000)), 1);
        assert!(credit.admit(1_000));
        assert_eq!(credit.room(Some(1)), 0);
        assert!(!credit.admit(1));
        credit.release(1_000);
        assert!(credit.admit(60));
        assert!(!credit.admit(41));
        assert!(credit.admit(40));
    }

    #[test]
    fn bytes_of_slots_under_way_count() {
        let mut credit = Credit::new(10, 100);
        assert_eq!(credit.room(None), 1);
        assert_eq!(credit.room(Some(10)), 10);
        credit.reserve(6, 60);
        assert_eq!(credit.room(Some(10)), 4);
        credit.unreserve(6, 60);
        assert_eq!(credit.room(Some(50)), 2);
    }

    proptest! {
        #[test]
        fn used_and_reserved_never_exceed_what_was_asked_for(
            max in 1u32..50,
            max_bytes in 0u64..1_000,
            steps in proptest::collection::vec((0u8..3, 0u64..200), 0..200),
        ) {
            let mut credit = Credit::new(max, max_bytes);
            let (mut slots, mut jobs): (Vec<(u32, u64)>, Vec<u64>) = (Vec::new(), Vec::new());
            for (step, bytes) in steps {
                match step {
                    0 => {
                        let room = credit.room(Some(bytes));
                        credit.reserve(room, u64::from(room) * bytes);
                        slots.push((room, bytes));
                    }
                    1 => if let Some((room, average)) = slots.pop() {
                        credit.unreserve(room, u64::from(room) * average);
                        for _ in 0..room {
                            if credit.admit(bytes) {
                                jobs.push(bytes);
                            }
                        }
                    },
                    _ => if let Some(bytes) = jobs.pop() {
                        credit.release(bytes);
                    },
                }
                prop_assert_eq!(credit.used() as usize, jobs.len());
                prop_assert_eq!(credit.used_bytes(), jobs.iter().sum::<u64>());
                prop_assert!(credit.used() + credit.reserved <= max);
                prop_assert!(max_bytes == 0 || jobs.len() == 1 || credit.used_bytes() <= max_bytes);
            }
        }
    }
}
