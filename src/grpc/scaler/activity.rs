//! Whether a queue is active, each time that it changes.

use futures_util::{Stream, stream};
use tokio::sync::watch;

use crate::model::{QueueLoad, Scaling};

/// What `first` says, then whatever differs from what was said last. Ends when nobody looks at the queue any more.
pub(super) fn states(
    scaling: Scaling,
    first: QueueLoad,
    seen: watch::Receiver<Option<QueueLoad>>,
) -> impl Stream<Item = bool> + Send {
    let first = scaling.is_active(&first);
    stream::unfold((scaling, seen, None), move |(scaling, mut seen, said)| async move {
        let Some(said) = said else {
            return Some((first, (scaling, seen, Some(first))));
        };
        loop {
            seen.changed().await.ok()?;
            let active = (*seen.borrow_and_update()).map(|load| scaling.is_active(&load));
            if let Some(active) = active.filter(|active| *active != said) {
                return Some((active, (scaling, seen, Some(active))));
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::{FutureExt as _, StreamExt as _};

    use super::*;
    use crate::model::{QueueName, ScalingMetric};

    #[test]
    fn only_changes_are_said_and_the_first_state_at_once() {
        let queue = QueueName::parse("queue", "mail").expect("a name");
        let scaling = Scaling { queue, targets: vec![(ScalingMetric::Ready, 1.0)], activation_ready: 2 };
        let (sender, seen) = watch::channel(None);
        let mut states = pin!(states(scaling, QueueLoad::default(), seen));
        let mut next = || states.next().now_or_never();
        assert_eq!(next(), Some(Some(false)));
        let load = |ready| Some(QueueLoad { ready, ..QueueLoad::default() });
        for (now, said) in [(load(2), None), (load(3), Some(Some(true))), (load(9), None), (load(1), Some(Some(false)))]
        {
            sender.send_replace(now);
            assert_eq!(next(), said, "{now:?}");
        }
        drop(sender);
        assert_eq!(next(), Some(None));
    }
}
