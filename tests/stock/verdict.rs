//! What the model says to each answer.

use std::time::Duration;

use leasehold::{
    model::ReservationState,
    store::engine::{Adjusted, Ended, ReservationRow, Reserved},
};

use super::{
    doing::Doing,
    model::{Adjusting, Fate, Made},
    run::Run,
};

impl Run<'_> {
    pub(super) fn adjusted(&mut self, adjusting: &Adjusting, known: bool, repeated: bool, answer: Adjusted) {
        let takes: Vec<(usize, i64)> = adjusting.deltas.iter().map(|&(key, delta)| (key, -delta)).collect();
        match answer {
            Adjusted::Made { stocks, duplicate } => {
                if known {
                    assert!(duplicate, "made twice: {adjusting:?}");
                } else {
                    assert!(!duplicate || repeated, "known before it was made: {adjusting:?}");
                    assert_eq!(self.model.short(&takes), [], "taken from what is held: {adjusting:?}");
                    self.model.adjust(adjusting.clone());
                }
                for (stock, &(key, _)) in stocks.iter().zip(&adjusting.deltas) {
                    assert_eq!(stock.key, self.desk.keys[key]);
                    assert_eq!(
                        (stock.balance.on_hand, stock.balance.held),
                        (self.model.on_hand[key], self.model.held(key))
                    );
                }
                assert_eq!(stocks.len(), adjusting.deltas.len());
            }
            Adjusted::SoldOut(lines) => {
                assert!(!known, "a repetition decides nothing");
                let said: Vec<_> = lines.iter().map(|line| (line.line, line.available)).collect();
                assert_eq!(said, self.model.short(&takes), "{adjusting:?}");
                assert_ne!(said, [], "sold out of nothing");
            }
            other => panic!("{adjusting:?}: {other:?}"),
        }
    }

    pub(super) async fn reserved(&mut self, doing: &Doing, repeated: bool, answer: Reserved) {
        let Doing::Reserve { reference, lines, brief, jobs, known } = doing else { unreachable!("asked for") };
        let units: Vec<(usize, i64)> = lines.iter().map(|&(key, quantity)| (key, i64::from(quantity))).collect();
        let row = match (answer, known) {
            (Reserved::KeyReused, Some((_, true))) => return,
            (Reserved::Known(row), Some((place, false))) => return self.seen(*place, &row),
            (Reserved::SoldOut(said), None) => {
                let said: Vec<_> = said.iter().map(|line| (line.line, line.available)).collect();
                assert_eq!(said, self.model.short(&units), "a false refusal: {doing:?}");
                assert_ne!(said, [], "sold out of nothing");
                return;
            }
            (Reserved::New { reservation, jobs: stored, .. }, None) => {
                assert_eq!(stored.len(), if *jobs { 2 } else { 0 });
                assert_eq!(stored.iter().map(|one| one.job).collect::<Vec<_>>(), reservation.jobs);
                reservation
            }
            (Reserved::Known(row), None) if repeated => row,
            (answer, _) => panic!("{doing:?}: {answer:?}"),
        };
        assert_eq!(self.model.short(&units), [], "oversold: {doing:?}");
        assert_eq!((row.reference.as_str(), &row.lines), (reference.as_str(), &self.desk.lines(lines)));
        assert_eq!(row.jobs.len(), if *jobs { 2 } else { 0 });
        let (lines, fate) = (lines.clone(), Fate::Held);
        self.model.made.push(Made {
            id: row.id,
            reference: reference.clone(),
            lines,
            brief: *brief,
            jobs: *jobs,
            fate,
        });
        self.model.jobs += row.jobs.len();
        if *brief {
            self.wait_until_due(self.model.made.len() - 1).await;
        }
    }

    /// Its units count as free as soon as its time is over, whether or not anybody ended it.
    async fn wait_until_due(&mut self, place: usize) {
        self.model.made[place].fate = Fate::Due;
        let key = self.model.made[place].lines[0].0;
        let patience = tokio::time::Instant::now() + Duration::from_secs(60);
        while self.balance(key).await.1 != self.model.held(key) {
            assert!(tokio::time::Instant::now() < patience, "a hold of a millisecond lasts for a minute");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    pub(super) fn ended(&mut self, place: usize, wanted: ReservationState, repeated: bool, answer: Ended) {
        let fate = self.model.made[place].fate;
        match answer {
            Ended::Now { reservation, jobs } => {
                assert_eq!(reservation.state, wanted);
                let with_job = self.model.made[place].jobs && wanted == ReservationState::Committed;
                assert_eq!(jobs.len(), usize::from(with_job));
                self.model.end(place, wanted);
                self.seen(place, &reservation);
            }
            Ended::Before(row) => {
                if repeated && row.state == wanted && matches!(fate, Fate::Held | Fate::Due) {
                    self.model.end(place, wanted);
                }
                self.seen(place, &row);
                assert!(matches!(self.model.made[place].fate, Fate::Ended(_)), "not ended though it is held");
            }
            Ended::Gone => panic!("{:?} is gone", self.model.made[place]),
        }
    }

    pub(super) fn extended(&mut self, place: usize, row: &ReservationRow) {
        if row.state == ReservationState::Held && self.model.made[place].fate == Fate::Due {
            self.model.made[place].fate = Fate::Held;
        }
        self.seen(place, row);
    }

    /// The reservation as the database has it, which may say that one is expired whose time is over.
    pub(super) fn seen(&mut self, place: usize, row: &ReservationRow) {
        if row.state == ReservationState::Expired && self.model.made[place].fate == Fate::Due {
            self.model.end(place, ReservationState::Expired);
        }
        let made = &self.model.made[place];
        let state = match made.fate {
            Fate::Held | Fate::Due => ReservationState::Held,
            Fate::Ended(state) => state,
        };
        assert_eq!((row.id, row.state, row.reference.as_str()), (made.id, state, made.reference.as_str()));
        assert_eq!(row.lines, self.desk.lines(&made.lines));
        assert_eq!(row.ended_at.is_some(), state != ReservationState::Held);
    }
}
