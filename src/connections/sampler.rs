//! Looks at the database's sessions once a second, and less often while nobody holds anything.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use rand::Rng as _;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{SamplerOptions, name::Name, places::Holder, tally::Tally, view::View};
use crate::{
    model::{Failure, Reason},
    store::Store,
};

/// Looking takes at most this part of the time.
const SHARE: u32 = 20;
/// However long a look takes, the next one comes after this.
const SLOWEST: Duration = Duration::from_secs(10);
/// No two looks that clients ask for come closer than this.
const FRESH: Duration = Duration::from_millis(200);

/// What became of the looks, since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Looks {
    /// Those that saw something.
    pub taken: u64,
    /// Those that no lane was free for in time.
    pub skipped: u64,
    /// Those that the database answered with an error, or not.
    pub failed: u64,
}

/// What is known by now, for whoever reads metrics.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    /// The last look, where it is not too long ago to be true.
    pub view: Option<Arc<View>>,
    /// Estimated time for which each holder held connections since the start.
    pub held: Vec<(Holder, Duration)>,
    /// What became of the looks.
    pub looks: Looks,
}

/// Takes samples, one at a time.
pub(super) struct Sampler {
    store: Store,
    options: SamplerOptions,
    /// Held while a look is under way, so that there is never a second one.
    tally: tokio::sync::Mutex<Tally>,
    known: Mutex<Known>,
}

/// What the loop goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// Somebody holds something.
    Busy,
    /// Nobody but brokers at their own work does.
    Quiet,
    /// Nobody else can ever be there.
    Alone,
}

impl Sampler {
    pub(super) fn new(store: Store, options: SamplerOptions) -> Self {
        let tally = Tally::new(options.interval, options.names, options.configured.iter().map(Name::from));
        Self { store, options, tally: tokio::sync::Mutex::new(tally), known: Mutex::default() }
    }

    /// What is known by now; asks nobody.
    pub(super) fn known(&self) -> Known {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let too_old = 2 * self.options.quiet_interval.max(SLOWEST);
        known.view = known.view.filter(|view| view.taken.elapsed() < too_old);
        known
    }

    /// A view that is not older than an interval; looks where there is none. To be run to its end: a look that nobody waits for
    /// would let the next one begin beside it.
    pub(super) async fn view(self: Arc<Self>) -> Result<Arc<View>, Failure> {
        let asked = Instant::now();
        let mut tally = self.tally.lock().await;
        let fresh_for = if self.options.enabled { self.options.interval } else { FRESH };
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).view.clone();
        // All who asked while somebody looked share the next look.
        match known.filter(|view| view.taken + fresh_for > asked) {
            Some(view) => Ok(view),
            None => self.look(&mut tally, self.options.interval).await.map(|(view, _)| view),
        }
    }

    /// Looks; what it sees stands for the time since the look before, up to `at_most`.
    async fn look(&self, tally: &mut Tally, at_most: Duration) -> Result<(Arc<View>, Pace), Failure> {
        let begun = Instant::now();
        let looked = self.store.sessions(self.options.sessions).await;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match looked {
            Ok(seen) => {
                known.looks.taken += 1;
                let alone = seen.alone;
                // Between the question and the answer, whenever the database looked.
                let taken = begun + begun.elapsed() / 2;
                let view = Arc::new(tally.add(seen, taken, at_most));
                known.view = Some(Arc::clone(&view));
                known.held = tally.held();
                let pace = if alone { Pace::Alone } else { pace(&view) };
                Ok((view, pace))
            }
            Err(failure) => {
                if wants_a_lane(&failure) {
                    known.looks.skipped += 1;
                } else {
                    known.looks.failed += 1;
                }
                Err(failure)
            }
        }
    }

    /// The loop, until `stop`.
    pub(super) async fn run(self: Arc<Self>, stop: CancellationToken) {
        let (interval, quiet) = (self.options.interval, self.options.quiet_interval.max(self.options.interval));
        let mut pause = interval;
        let mut failing = false;
        loop {
            // Not in step with anybody's work.
            let wait = pause.mul_f64(rand::rng().random_range(0.75..1.25));
            if stop.run_until_cancelled(sleep(wait)).await.is_none() {
                return;
            }
            let begun = Instant::now();
            let looked = {
                let mut tally = self.tally.lock().await;
                self.look(&mut tally, 2 * pause).await
            };
            match &looked {
                Ok(_) if failing => tracing::info!("the database's sessions are seen again"),
                Err(failure) if !failing && !wants_a_lane(failure) => {
                    tracing::warn!(%failure, "the database's sessions cannot be seen; it is tried again");
                }
                _ => {}
            }
            failing = matches!(&looked, Err(failure) if !wants_a_lane(failure));
            let next = match looked {
                Ok((_, Pace::Alone)) => return,
                Ok((_, Pace::Quiet)) => (2 * pause).min(quiet),
                Ok((_, Pace::Busy)) => interval,
                Err(_) => (2 * pause).min(SLOWEST.max(interval)),
            };
            pause = next.max((begun.elapsed() * SHARE).min(SLOWEST));
        }
    }
}

/// Of lanes that are all at work or away other parts of the broker tell.
fn wants_a_lane(failure: &Failure) -> bool {
    matches!(failure.reason, Reason::Overloaded | Reason::Draining | Reason::DatabaseUnavailable)
}

/// Brokers' own work goes on all the time and is short.
fn pace(view: &View) -> Pace {
    let own = |holder: &Holder| holder.broker && holder.name.as_str().starts_with("leasehold.");
    let works =
        view.callers.iter().any(|caller| !own(&caller.holder) && caller.active + caller.idle_in_transaction > 0);
    if works { Pace::Busy } else { Pace::Quiet }
}
