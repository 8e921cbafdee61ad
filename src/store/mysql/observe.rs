//! Looking at the database's other users.
//!
//! What a user may see depends on its rights: without PROCESS the server shows it its own sessions and no transaction. So
//! this is more than one statement, each of which may be refused without the others.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use sqlx::mysql::MySqlRow;

use super::{
    fitness::Family,
    session::MysqlSession,
    value::{column, moment, narrow},
};
use crate::{
    model::Caller,
    store::{
        engine::{
            HolderKind, HolderRow, HorizonSeen, Observing, Quoting, SessionKind, SessionRow, SessionState,
            SessionsSeen, TableRow,
        },
        error::EngineError,
    },
};

const QUOTING: Quoting = Quoting { backslashes: true, dollars: false, backticks: true, hashes: true, nesting: false };

const NO_PROCESS: &str =
    "Transactions, locks and other users' sessions are hidden from the broker's user: grant it PROCESS.";

/// The connections of this process by the server's numbers.
#[derive(Debug, Default)]
pub(super) struct Connections(Mutex<BTreeSet<i64>>);

/// A connection among them, as long as this lives.
#[derive(Debug)]
pub(super) struct Seat {
    number: i64,
    connections: Arc<Connections>,
}

impl Connections {
    pub(super) fn seat(self: &Arc<Self>, number: i64) -> Seat {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(number);
        Seat { number, connections: Arc::clone(self) }
    }

    fn open(&self) -> BTreeSet<i64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.connections.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.number);
    }
}

/// An open transaction.
#[derive(Debug, Clone)]
struct Transaction {
    session: i64,
    waiting: bool,
    age: Duration,
    /// Its reads see the rows as they were when it began.
    keeps_snapshot: bool,
    active: bool,
}

#[async_trait]
impl Observing for MysqlSession {
    async fn sessions(&mut self, caller: &Caller, at_most: usize) -> Result<SessionsSeen, EngineError> {
        let look = self.statement(caller, include_str!("sql/sessions.sql"));
        let rows = self.read_alone(look, caller).await?;
        let first = rows.first().ok_or_else(|| EngineError::Bug("sessions: not even the own one".into()))?;
        let (at, max_connections) = (moment(first, "now")?, narrow(first, "max_connections")?);
        let transactions = self.transactions(caller).await?;
        let waits = self.lock_waits(caller, transactions.as_deref().unwrap_or_default()).await?;
        let mut blind_spots = Vec::new();
        if transactions.is_none() {
            blind_spots.push(NO_PROCESS.to_owned());
        }
        blind_spots.push(
            "The server knows no names of programs: other replicas' lanes look like other clients of the broker's user."
                .to_owned(),
        );
        let transactions: BTreeMap<i64, Transaction> =
            transactions.into_iter().flatten().map(|open| (open.session, open)).collect();
        let ours = self.shared.connections.open();
        let (mut connections, mut elsewhere) = (0, 0);
        let mut sessions = Vec::new();
        for row in &rows {
            let kind = kind(column(row, "command")?);
            let here = column::<i64>(row, "here")? != 0;
            if kind == SessionKind::Client {
                connections += 1;
                elsewhere += u32::from(!here);
            }
            if here || kind == SessionKind::Replication {
                sessions.push(session(row, kind, &transactions, &waits, &ours)?);
            }
        }
        let total = sessions.len();
        sessions.sort_by_key(|row| (row.state == SessionState::Idle, std::cmp::Reverse(row.in_state), row.id));
        sessions.truncate(at_most);
        Ok(SessionsSeen {
            at,
            left_out: u32::try_from(total - sessions.len()).unwrap_or(u32::MAX),
            sessions,
            connections,
            elsewhere,
            max_connections,
            quoting: QUOTING,
            alone: false,
            to_see_more: "begin the statement with the comment".to_owned(),
            blind_spots,
        })
    }

    async fn horizon(&mut self, caller: &Caller, at_most: usize) -> Result<HorizonSeen, EngineError> {
        let Some(transactions) = self.transactions(caller).await? else {
            return Ok(HorizonSeen { holders: Vec::new(), quoting: QUOTING, blind_spots: vec![NO_PROCESS.to_owned()] });
        };
        let look = self.statement(caller, include_str!("sql/sessions.sql"));
        let rows = self.read_alone(look, caller).await?;
        let ours = self.shared.connections.open();
        let behind = self.history(caller).await?;
        let mut holders = Vec::new();
        for open in transactions.iter().filter(|open| open.keeps_snapshot || open.active) {
            let row = rows.iter().find(|row| column::<i64>(row, "id").ok() == Some(open.session));
            let (statement, cut, observer) = match row {
                Some(row) => {
                    (text(row, "statement")?, column::<i64>(row, "cut")? != 0, column::<i64>(row, "observer")? != 0)
                }
                None => (String::new(), false, false),
            };
            if observer || holders.len() >= at_most {
                continue;
            }
            holders.push(HolderRow {
                kind: HolderKind::Session,
                name: open.session.to_string(),
                // The oldest one keeps all that waits; how much of it the others would keep is not told.
                transactions: if holders.is_empty() { behind } else { 0 },
                age: Some(open.age),
                broker: ours.contains(&open.session),
                application_name: String::new(),
                statement,
                cut,
                catalogs_only: false,
                advice: format!("end its transaction, or: kill {}", open.session),
            });
        }
        Ok(HorizonSeen {
            holders,
            quoting: QUOTING,
            blind_spots: vec![
                "Transactions prepared by XA PREPARE are not shown here: XA RECOVER lists them.".to_owned(),
            ],
        })
    }

    async fn tables(&mut self, caller: &Caller) -> Result<Vec<TableRow>, EngineError> {
        let look = self.statement(caller, include_str!("sql/tables.sql"));
        let rows = self.read_alone(look, caller).await?;
        rows.iter()
            .map(|row| {
                Ok(TableRow {
                    table: text(row, "table_name")?,
                    live_rows: narrow(row, "live_rows")?,
                    dead_rows: 0, // counted for the whole server alone
                    last_vacuum: None,
                    bytes: narrow(row, "bytes")?,
                })
            })
            .collect()
    }
}

impl MysqlSession {
    /// Nothing where the user may not see them.
    async fn transactions(&mut self, caller: &Caller) -> Result<Option<Vec<Transaction>>, EngineError> {
        let look = self.statement(caller, include_str!("sql/transactions.sql"));
        let rows = match self.read_alone(look, caller).await {
            Ok(rows) => rows,
            Err(EngineError::Unfit(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        rows.iter()
            .map(|row| {
                Ok(Transaction {
                    session: column(row, "id")?,
                    waiting: column::<i64>(row, "waiting")? != 0,
                    age: Duration::from_secs(narrow(row, "seconds")?),
                    keeps_snapshot: column::<i64>(row, "keeps_snapshot")? != 0,
                    active: column::<i64>(row, "active")? != 0,
                })
            })
            .collect::<Result<_, _>>()
            .map(Some)
    }

    /// Who each waiting session waits for. Asked only where one waits, since the answer stops the lock table for a moment.
    async fn lock_waits(
        &mut self,
        caller: &Caller,
        transactions: &[Transaction],
    ) -> Result<BTreeMap<i64, BTreeSet<i64>>, EngineError> {
        let mut waits: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
        if !transactions.iter().any(|open| open.waiting) {
            return Ok(waits);
        }
        let sql = match self.fitness.family {
            Family::MariaDb => include_str!("sql/lock_waits_mariadb.sql"),
            Family::MySql => include_str!("sql/lock_waits_mysql.sql"),
        };
        let look = self.statement(caller, sql);
        let rows = match self.read_alone(look, caller).await {
            Ok(rows) => rows,
            Err(EngineError::Unfit(_)) => return Ok(waits),
            Err(error) => return Err(error),
        };
        for row in rows {
            let holds: Option<i64> = column(&row, "holds")?;
            waits.entry(column(&row, "waits")?).or_default().extend(holds);
        }
        Ok(waits)
    }

    async fn history(&mut self, caller: &Caller) -> Result<u64, EngineError> {
        let look = self.statement(caller, include_str!("sql/history.sql"));
        match self.read_alone(look, caller).await {
            Ok(rows) => rows.first().map_or(Ok(0), |row| narrow(row, "transactions")),
            Err(EngineError::Unfit(_)) => Ok(0),
            Err(error) => Err(error),
        }
    }
}

fn kind(command: &str) -> SessionKind {
    match command {
        "Daemon" => SessionKind::Background,
        "Binlog Dump" | "Binlog Dump GTID" => SessionKind::Replication,
        command if command.starts_with("Slave") => SessionKind::Replication,
        _ => SessionKind::Client,
    }
}

fn session(
    row: &MySqlRow,
    kind: SessionKind,
    transactions: &BTreeMap<i64, Transaction>,
    waits: &BTreeMap<i64, BTreeSet<i64>>,
    ours: &BTreeSet<i64>,
) -> Result<SessionRow, EngineError> {
    let id = column(row, "id")?;
    let open = transactions.get(&id);
    let sleeps = column::<&str>(row, "command")? == "Sleep";
    let host = text(row, "host")?;
    let broker = ours.contains(&id);
    Ok(SessionRow {
        id,
        kind,
        leader: None,
        broker,
        observer: column::<i64>(row, "observer")? != 0,
        state: match (sleeps, open) {
            (false, _) => SessionState::Active,
            (true, Some(_)) => SessionState::IdleInTransaction,
            (true, None) => SessionState::Idle,
        },
        in_state: Duration::from_secs(column::<i64>(row, "seconds")?.try_into().unwrap_or(0)),
        transaction_age: open.map(|open| open.age),
        waiting: open.is_some_and(|open| open.waiting),
        blocked_by: waits.get(&id).map(|holds| holds.iter().copied().collect()).unwrap_or_default(),
        role: text(row, "role")?,
        application_name: if broker { "leasehold".to_owned() } else { String::new() },
        client_address: host.rsplit_once(':').map(|(host, _)| host.to_owned()),
        statement: text(row, "statement")?,
        cut: column::<i64>(row, "cut")? != 0,
    })
}

/// Other people's text, whatever its bytes are.
fn text(row: &MySqlRow, name: &str) -> Result<String, EngineError> {
    let bytes: Option<Vec<u8>> = column(row, name)?;
    Ok(String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned())
}
