//! What jobs cost: processor time of each process, and what the database wrote.

use std::time::{Duration, Instant};

use super::{
    database::{Database, Server},
    process,
};

/// Where costs can be read, or why they cannot.
#[derive(Debug, Clone)]
pub(super) struct Sources {
    broker: Result<u32, &'static str>,
    database: Result<Server, &'static str>,
    written: Result<(), &'static str>,
}

impl Sources {
    pub(super) async fn find(broker: Option<u32>, is_own: bool, database: Option<&mut Database>) -> Self {
        let broker = match broker {
            Some(pid) if process::processor_time(pid).is_ok() => Ok(pid),
            Some(_) => Err("there is no process of the number that --broker-pid says"),
            None => Err("which process it is was not said: --broker-pid, where it is on this machine"),
        };
        let nowhere = if is_own {
            "the embedded database is a part of the broker"
        } else {
            "which database it is was not said: --database-url"
        };
        let (database, written) = match database {
            None => (Err(nowhere), Err(nowhere)),
            Some(database) => {
                let written = database.written().await.map(drop);
                (database.server().await, written.ok_or("this database does not say how much it writes"))
            }
        };
        Self { broker, database, written }
    }

    /// What is not known, and why.
    pub(super) fn unknown(&self) -> Vec<String> {
        let told = [
            ("the broker's processor time", self.broker.as_ref().err()),
            ("the database's processor time", self.database.as_ref().err()),
            ("bytes that the database's log grew by", self.written.as_ref().err()),
        ];
        told.into_iter().filter_map(|(what, why)| Some(format!("{what} is not known: {}", why?))).collect()
    }
}

/// Reads costs.
pub(super) struct Meter<'a> {
    sources: Sources,
    database: Option<&'a mut Database>,
    before: Reading,
}

#[derive(Debug, Clone, Copy)]
struct Reading {
    at: Instant,
    client: Option<Duration>,
    broker: Option<Duration>,
    database: Option<Duration>,
    written: Option<u64>,
}

/// What was used between two readings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Costs {
    pub(super) elapsed: Duration,
    pub(super) client: Option<Duration>,
    pub(super) broker: Option<Duration>,
    pub(super) database: Option<Duration>,
    pub(super) written: Option<u64>,
}

impl<'a> Meter<'a> {
    pub(super) fn new(sources: Sources, database: Option<&'a mut Database>) -> Self {
        let before = Reading { at: Instant::now(), client: None, broker: None, database: None, written: None };
        Self { sources, database, before }
    }

    /// The database, where there is one to look at.
    pub(super) fn database(&mut self) -> Option<&mut Database> {
        self.database.as_deref_mut()
    }

    /// From now on.
    pub(super) async fn begin(&mut self) {
        self.before = self.read(None).await;
    }

    /// Until `end`, which has just been.
    pub(super) async fn costs(&mut self, end: Instant) -> Costs {
        let (before, now) = (self.before, self.read(Some(end)).await);
        let between = |before: Option<Duration>, now: Option<Duration>| Some(now?.saturating_sub(before?));
        Costs {
            elapsed: now.at.saturating_duration_since(before.at),
            client: between(before.client, now.client),
            broker: between(before.broker, now.broker),
            database: between(before.database, now.database),
            written: now.written.zip(before.written).map(|(now, before)| now.saturating_sub(before)),
        }
    }

    async fn read(&mut self, at: Option<Instant>) -> Reading {
        let client = process::processor_time(std::process::id()).ok();
        let broker = self.sources.broker.ok().and_then(|pid| process::processor_time(pid).ok());
        let database = match self.sources.database {
            Ok(Server::Family(pid)) => process::processor_time_of_family(pid).ok(),
            Ok(Server::Alone(pid)) => process::processor_time(pid).ok(),
            Err(_) => None,
        };
        let written = match &mut self.database {
            Some(database) if self.sources.written.is_ok() => database.written().await,
            _ => None,
        };
        // asked for last: what reading takes is not a part of what is measured
        Reading { at: at.unwrap_or_else(Instant::now), client, broker, database, written }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_not_known_is_said_with_what_would_make_it_known() {
        let sources = Sources::find(None, false, None).await;
        let unknown = sources.unknown();
        assert_eq!(unknown.len(), 3, "{unknown:?}");
        assert!(unknown[0].contains("--broker-pid") && unknown[1].contains("--database-url"), "{unknown:?}");
        let known = Sources::find(Some(std::process::id()), true, None).await;
        assert!(known.unknown().iter().all(|line| line.contains("embedded")), "{:?}", known.unknown());
    }
}
