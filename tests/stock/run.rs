//! A run of acts against an engine and the model, compared after each.

use std::time::Duration;

use leasehold::{
    model::{LedgerKind, ReservationId, ReservationState, StockKey},
    store::engine::{LedgerRow, ReservationRef, ReservationRow, VerifyWalk},
};

use super::{
    acts::{Act, KEYS},
    doing::{Answer, Desk, Doing},
    model::{Adjusting, Fate, Made, Model},
};
use crate::contract::{
    bench::Bench,
    database::{Database, caller},
};

/// One run.
pub(super) struct Run<'a> {
    db: &'a dyn Database,
    bench: Option<Bench>,
    pub(super) desk: Desk,
    pub(super) model: Model,
    references: usize,
}

impl<'a> Run<'a> {
    pub(super) async fn new(db: &'a dyn Database, name: String) -> Self {
        let mut bench = Bench::on(db).await;
        let queue = bench.queue(&name).await;
        let key =
            |n: usize| StockKey::parse("key", &format!("{name}-{}", n / 2), ["east", "west"][n % 2]).expect("a key");
        let desk = Desk { queue, keys: (0..KEYS).map(key).collect(), name };
        Self { db, bench: Some(bench), desk, model: Model::default(), references: 0 }
    }

    pub(super) async fn play(&mut self, acts: &[Act]) {
        for act in acts {
            match act {
                Act::Crash(after, act) => self.crash(*after, act).await,
                act => {
                    let doing = self.intend(act);
                    self.act(&doing, false).await;
                }
            }
            self.compare().await;
        }
        self.end().await;
    }

    fn bench(&mut self) -> &mut Bench {
        self.bench.as_mut().expect("a session between acts")
    }

    fn name_one(&mut self, kind: &str) -> String {
        self.references += 1;
        format!("{}-{kind}-{}", self.desk.name, self.references)
    }

    /// The act with everything decided that chance or the past decides, so that it can be repeated.
    fn intend(&mut self, act: &Act) -> Doing {
        let pick = |wanted: usize, many: usize| (many > 0).then(|| wanted % many);
        match act {
            Act::Adjust(deltas) => {
                Doing::Adjust(Adjusting { reference: self.name_one("adjust"), deltas: deltas.clone() }, false)
            }
            Act::AdjustAgain(wanted) => pick(*wanted, self.model.adjusted.len())
                .map_or(Doing::Nothing, |place| Doing::Adjust(self.model.adjusted[place].clone(), true)),
            Act::Reserve { lines, brief, jobs } => Doing::Reserve {
                reference: self.name_one("cart"),
                lines: lines.clone(),
                brief: *brief,
                jobs: *jobs,
                known: None,
            },
            Act::ReserveAgain(wanted) => self.again(pick(*wanted, self.model.made.len()), 0),
            Act::ReserveOther(wanted) => self.again(pick(*wanted, self.model.made.len()), 1),
            Act::Commit(wanted) => pick(*wanted, self.model.made.len())
                .map_or(Doing::Nothing, |place| Doing::End(place, ReservationState::Committed)),
            Act::Release(wanted) => pick(*wanted, self.model.made.len())
                .map_or(Doing::Nothing, |place| Doing::End(place, ReservationState::Released)),
            Act::Extend(wanted) => pick(*wanted, self.model.made.len()).map_or(Doing::Nothing, Doing::Extend),
            Act::Sweep(limit) => Doing::Sweep(*limit),
            Act::Refill => Doing::Refill,
            Act::Crash(..) => unreachable!("crashes are not nested"),
        }
    }

    fn again(&self, place: Option<usize>, more: u32) -> Doing {
        let Some(place) = place else { return Doing::Nothing };
        let Made { reference, lines, brief, jobs, .. } = self.model.made[place].clone();
        let lines = lines.into_iter().map(|(key, quantity)| (key, quantity + more)).collect();
        Doing::Reserve { reference, lines, brief, jobs, known: Some((place, more > 0)) }
    }

    /// Does it and loses the connection meanwhile; then repeats it on another one, which tells what became of it.
    async fn crash(&mut self, after: Duration, act: &Act) {
        let doing = self.intend(act);
        let mut bench = self.bench.take().expect("a session between acts");
        drop(tokio::time::timeout(after, self.desk.send(&mut bench, &self.model, &doing)).await);
        drop(bench);
        self.alone().await;
        self.bench = Some(Bench::on(self.db).await);
        self.act(&doing, true).await;
    }

    /// Returns once the database has noticed that nobody is there any more.
    async fn alone(&self) {
        let others = match self.db.engine().system() {
            "postgresql" => {
                "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
            }
            "sqlite" => return, // one writer: whatever comes next waits for it
            _ => "select count(*) from information_schema.processlist where db = database() and id <> connection_id()",
        };
        let patience = tokio::time::Instant::now() + Duration::from_secs(60);
        while self.db.number(others).await > 0 {
            assert!(tokio::time::Instant::now() < patience, "a lost session goes on for a minute");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Does it. `repeated`: it may have been done before, and nothing else since.
    async fn act(&mut self, doing: &Doing, repeated: bool) {
        let mut bench = self.bench.take().expect("a session between acts");
        let answer = self.desk.send(&mut bench, &self.model, doing).await;
        self.bench = Some(bench);
        match (doing, answer) {
            (Doing::Adjust(adjusting, known), Answer::Adjusted(answer)) => {
                self.adjusted(adjusting, *known, repeated, answer);
            }
            (Doing::Reserve { .. }, Answer::Reserved(answer)) => self.reserved(doing, repeated, answer).await,
            (Doing::End(place, state), Answer::Ended(answer)) => self.ended(*place, *state, repeated, answer),
            (Doing::Extend(place), Answer::Row(row)) => self.extended(*place, &row.expect("it exists")),
            (Doing::Sweep(limit), _) => self.look_for_expired(*limit).await,
            _ => {}
        }
    }

    pub(super) async fn find(&mut self, id: ReservationId) -> ReservationRow {
        let by = ReservationRef::Id(id);
        let found = self.bench().session.find_reservation(&caller(), &by).await.expect("an answer");
        found.expect("a reservation that was made")
    }

    async fn look_for_expired(&mut self, limit: usize) {
        for place in 0..self.model.made.len() {
            if self.model.made[place].fate == Fate::Due {
                let row = self.find(self.model.made[place].id).await;
                self.seen(place, &row);
                assert!(
                    limit < self.model.made.len() || row.state == ReservationState::Expired,
                    "a sweep passed over {row:?}"
                );
            }
        }
    }

    pub(super) async fn balance(&mut self, key: usize) -> (i64, i64) {
        let key = self.desk.keys[key].clone();
        let row =
            self.bench().session.stocks_of(&caller(), std::slice::from_ref(&key)).await.expect("an answer").remove(0);
        row.map_or((0, 0), |row| (row.balance.on_hand, row.balance.held))
    }

    /// R1, R2 and R3 after an act.
    async fn compare(&mut self) {
        for key in 0..KEYS {
            let expected = (self.model.on_hand[key], self.model.held(key));
            assert!(expected.1 <= expected.0, "the model itself is oversold");
            assert_eq!(self.balance(key).await, expected, "(on hand, held) of {}", self.desk.keys[key]);
        }
        for key in [0, 2] {
            let walk = VerifyWalk { item: Some(self.desk.keys[key].item.clone()), after: None, limit: 100 };
            let verified = self.bench().session.verify(&caller(), &walk).await.expect("a comparison");
            assert_eq!(verified.differences, [], "books that do not agree");
        }
    }

    /// Whether the ledger tells the same story (R1, R3, R5), and no job was stored twice (R4).
    async fn end(&mut self) {
        self.act(&Doing::Sweep(1_000), false).await;
        self.compare().await;
        for place in 0..self.model.made.len() {
            let row = self.find(self.model.made[place].id).await;
            self.seen(place, &row);
        }
        for key in 0..KEYS {
            let entries = self.entries(key).await;
            let (mut on_hand, mut held) = (0, 0);
            for entry in &entries {
                on_hand += entry.movement.on_hand;
                held += entry.movement.held;
                assert!((0..=on_hand).contains(&held), "held more than there was at {entry:?}");
            }
            assert_eq!((on_hand, held), (self.model.on_hand[key], self.model.held(key)));
            for made in self.model.made.iter().filter(|one| one.lines.iter().any(|line| line.0 == key)) {
                let kinds: Vec<LedgerKind> =
                    entries.iter().filter(|entry| entry.reservation == Some(made.id)).map(|entry| entry.kind).collect();
                assert_eq!(kinds, story(made.fate), "{made:?}");
            }
        }
        let stored = self.db.number(&format!("select count(*) from job where queue_id = {}", self.desk.queue.0)).await;
        assert_eq!(usize::try_from(stored), Ok(self.model.jobs), "jobs stored");
    }

    /// The ledger of a key, oldest first.
    async fn entries(&mut self, key: usize) -> Vec<LedgerRow> {
        let key = self.desk.keys[key].clone();
        let mut entries = self.bench().session.ledger(&caller(), &key, None, 1_000).await.expect("entries");
        assert!(entries.is_sorted_by(|a, b| a.id > b.id), "newest first");
        entries.reverse();
        entries
    }
}

/// Entries that the ledger has for each line of such a reservation.
fn story(fate: Fate) -> Vec<LedgerKind> {
    let end = match fate {
        Fate::Held | Fate::Due | Fate::Ended(ReservationState::Held) => None,
        Fate::Ended(ReservationState::Committed) => Some(LedgerKind::Commit),
        Fate::Ended(ReservationState::Released) => Some(LedgerKind::Release),
        Fate::Ended(ReservationState::Expired) => Some(LedgerKind::Expire),
    };
    [LedgerKind::Reserve].into_iter().chain(end).collect()
}
