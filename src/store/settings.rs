//! Queues as operators see and change them: read from the database each time, since they want to know what is, not what was.

use super::{
    Call, Store,
    engine::{NewQueues, QueueRow},
    queues,
    statement::Statement,
};
use crate::model::{Caller, Failure, QueueName, QueueSettings, Reason};

/// Others may change the same queue at the same moment so often before a change gives up.
const TRIES: usize = 8;

impl Store {
    /// The queue as it is now; `None` where it does not exist.
    pub async fn queue_now(&self, call: &Call, name: &QueueName) -> Result<Option<QueueRow>, Failure> {
        let rows = self.inner.queues.read(self, call, vec![name.clone()], None).await?;
        Ok(rows.into_iter().next())
    }

    /// Those of `names` that exist, as they are now, for the broker's own use; the memory learns them.
    pub async fn queues_now(&self, names: Vec<QueueName>) -> Result<Vec<QueueRow>, Failure> {
        let call = self.own(Caller::broker("queues"));
        self.inner.queues.read(self, &call, names, None).await
    }

    /// Queues whose names begin with `prefix` and come after `after`, by name; `limit` at most.
    pub async fn list_queues(
        &self,
        call: &Call,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<QueueRow>, Failure> {
        let (caller, prefix, after) = (call.caller.clone(), prefix.to_owned(), after.to_owned());
        self.single(call, Statement::reading("list_queues"), move |session| {
            Box::pin(async move { session.list_queues(&caller, &prefix, &after, limit).await })
        })
        .await
    }

    /// The settings with which queues come into being here.
    pub fn default_settings(&self) -> &QueueSettings {
        &self.inner.options.new_queues.settings
    }

    /// Gives a queue what `change` makes of its settings, which may be asked several times where others change them too. One
    /// that does not exist comes into being with what `change` makes of the defaults, where `create` says so. Says what the
    /// queue is now, and whether it came into being.
    pub async fn change_queue(
        &self,
        call: &Call,
        name: &QueueName,
        create: bool,
        change: impl Fn(&QueueSettings) -> Result<QueueSettings, Failure> + Send + Sync,
    ) -> Result<(QueueRow, bool), Failure> {
        for _ in 0..TRIES {
            let Some(row) = self.queue_now(call, name).await? else {
                if !create {
                    return Err(unknown(name));
                }
                let new = NewQueues { settings: change(self.default_settings())?, ..self.inner.options.new_queues };
                let made = self.inner.queues.read(self, call, vec![name.clone()], Some(new.clone())).await?;
                match made.into_iter().next() {
                    Some(row) if row.version == 0 && row.settings == new.settings => return Ok((row, true)),
                    Some(_) => continue, // somebody else was quicker
                    None => return Err(queues::missing(name, Some(&new))),
                }
            };
            if row.closing {
                let message =
                    format!("queue '{name}' is being deleted; repeat DeleteQueue to finish that, then create it");
                return Err(Failure::not_applied(Reason::Disabled, message).about(name.as_str()));
            }
            let settings = change(&row.settings)?;
            if settings == row.settings {
                return Ok((row, false));
            }
            let (caller, id, version) = (call.caller.clone(), row.id, row.version);
            let changed = self
                .single(call, Statement::writing("change_queue"), move |session| {
                    Box::pin(async move { session.change_queue(&caller, id, version, &settings).await })
                })
                .await?;
            if let Some(row) = changed {
                self.inner.queues.remember(&row);
                return Ok((row, false));
            }
        }
        let message = format!("queue '{name}' was changed by others at the same moment, again and again; try again");
        Err(Failure::not_applied(Reason::Conflict, message).about(name.as_str()))
    }

    /// What an Enqueue says whose queues, or one of them, had been closed by the time that its statement ran.
    pub(super) async fn why_closed(&self, call: &Call, mut names: Vec<QueueName>) -> Failure {
        names.sort();
        names.dedup();
        if let Ok(rows) = self.inner.queues.read(self, call, names, None).await
            && let Some(closed) = rows.iter().find_map(queues::closed)
        {
            return closed;
        }
        let message = "a queue was switched off or deleted, and is on or can be created again; try again";
        Failure::not_applied(Reason::Conflict, message)
    }

    /// As OpenTelemetry's `db.system.name` has it.
    pub fn system(&self) -> &'static str {
        self.inner.lanes.engine.system()
    }

    /// Whether anybody but this process may write to the database.
    pub fn is_shared(&self) -> bool {
        self.inner.lanes.engine.is_shared()
    }

    /// Number of the newest migration that this binary knows.
    pub fn newest_schema(&self) -> i32 {
        self.inner.lanes.engine.migrations().last().map_or(0, |migration| migration.number)
    }

    /// The database's version as it says it, and the number of the newest migration that it has.
    pub async fn database_version(&self, call: &Call) -> Result<(String, i32), Failure> {
        let caller = call.caller.clone();
        self.single(call, Statement::reading("version"), move |session| {
            Box::pin(async move {
                let version = session.version(&caller).await?;
                let applied = session.migrations(&caller).await?;
                Ok((version, applied.last().map_or(0, |migration| migration.number)))
            })
        })
        .await
    }
}

/// There is no such queue.
fn unknown(name: &QueueName) -> Failure {
    Failure::not_applied(Reason::NotFound, format!("there is no queue '{name}'; ListQueues says which there are"))
        .about(name.as_str())
}
