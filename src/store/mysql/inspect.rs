//! Looking at jobs and at who works on them.
//!
//! A walk reads what decides which rows are asked for; those are then read whole. Between the two a job may move on, and is
//! left out where it is not what was asked for any more.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use async_trait::async_trait;
use sqlx::mysql::MySqlRow;

use super::{
    dead::{dead_places, passes},
    record::{queue_name, record, state},
    session::{MysqlSession, Statement, only},
    value::{column, count, list, moment, name, narrow, place},
};
use crate::{
    model::{Caller, Count, JobId, JobState, QueueName, StreamId, Timestamp, time::micros},
    store::{
        engine::{
            Attendance, Bounds, Circumstances, CountWalk, CountedDead, DeadPlace, DeadWalk, Inspecting, JobRecord,
            JobsWalk, Page, Rates, StreamRecord, StreamsWalk,
        },
        error::EngineError,
        hex::hex,
    },
};

#[async_trait]
impl Inspecting for MysqlSession {
    async fn find_jobs(
        &mut self,
        caller: &Caller,
        jobs: &[JobId],
        payloads: bool,
    ) -> Result<Vec<JobRecord>, EngineError> {
        let find = self.find_statement(caller, jobs, payloads)?;
        self.read_alone(find, caller).await?.iter().map(record).collect()
    }

    async fn list_jobs(&mut self, caller: &Caller, walk: &JobsWalk) -> Result<Page<JobRecord, JobId>, EngineError> {
        let rows = count(walk.bounds.rows);
        let look = match walk.states.as_slice() {
            [JobState::Dead] => self.statement(caller, include_str!("sql/walk_dead_by_id.sql")),
            [JobState::Acked] => self.statement(caller, include_str!("sql/walk_acked_by_id.sql")).bind(walk.queue.0),
            _ => self.statement(caller, include_str!("sql/walk_jobs.sql")),
        };
        let walked = self.read_alone(look.bind(walk.after.0).bind(rows), caller).await?;
        let key = walk.ordering_key.as_ref().map(|key| key.as_str().to_owned());
        let picked = pick(&walked, &walk.bounds, |row| {
            Ok(column::<i64>(row, "queue_id")? == i64::from(walk.queue.0)
                && walk.states.contains(&state(column(row, "state")?)?)
                && (key.is_none() || key == name(row, "ordering_key")?)
                && (walk.caller.is_none() || walk.caller == column::<Option<String>>(row, "caller")?))
        })?;
        let rows = self.read_picked(caller, &walked, &picked, &walk.states, walk.bounds.payloads).await?;
        let next = picked.stop.map(|at| column(&walked[at], "id").map(JobId)).transpose()?;
        Ok(Page { rows, next })
    }

    async fn list_dead(&mut self, caller: &Caller, walk: &DeadWalk) -> Result<Page<JobRecord, DeadPlace>, EngineError> {
        let look = self.walk_dead_down(caller, walk.queue, &walk.filter, walk.before, walk.bounds.rows);
        let walked = self.read_alone(look, caller).await?;
        let picked = pick(&walked, &walk.bounds, |row| passes(row, &walk.filter))?;
        let rows = self.read_picked(caller, &walked, &picked, &[JobState::Dead], walk.bounds.payloads).await?;
        let places = dead_places(&walked)?;
        Ok(Page { rows, next: picked.stop.map(|at| places[at]) })
    }

    async fn count_dead(&mut self, caller: &Caller, walk: &CountWalk) -> Result<CountedDead, EngineError> {
        let end = Timestamp(i64::MAX);
        let look = self.walk_dead_up(caller, walk.queue, &walk.filter, (walk.after, end), walk.rows);
        let walked = self.read_alone(look, caller).await?;
        let mut jobs = 0;
        for row in &walked {
            jobs += u64::from(passes(row, &walk.filter)?);
        }
        let next = if walked.len() >= walk.rows { dead_places(&walked)?.last().copied() } else { None };
        Ok(CountedDead { jobs, next })
    }

    async fn explain_job(
        &mut self,
        caller: &Caller,
        job: JobId,
        absent: Duration,
    ) -> Result<Option<Circumstances>, EngineError> {
        let now = self.begin(caller).await?;
        let found = self.circumstances(caller, job, absent, now).await;
        self.end(caller, found).await
    }

    async fn list_streams(
        &mut self,
        caller: &Caller,
        walk: &StreamsWalk,
    ) -> Result<Page<StreamRecord, StreamId>, EngineError> {
        let look = self
            .statement(caller, include_str!("sql/list_streams.sql"))
            .bind(micros(walk.absent))
            .bind(walk.after.map_or(i64::MIN, StreamId::to_bits))
            .bind(count(walk.rows));
        let walked = self.read_alone(look, caller).await?;
        let bounds = Bounds { rows: walk.rows, found: walk.found, bytes: u64::MAX, payloads: false };
        let named = walk.queue.as_ref().map(|queue| format!(" {} ", queue.as_str()));
        let picked = pick(&walked, &bounds, |row| {
            let is_there = column::<Option<String>>(row, "replica")?.is_some();
            let queues: &str = column(row, "queues")?;
            Ok(is_there && named.as_ref().is_none_or(|named| queues.contains(named.as_str())))
        })?;
        let rows = picked.rows.iter().map(|&at| stream(&walked[at])).collect::<Result<_, _>>()?;
        let next = picked.stop.map(|at| column(&walked[at], "stream").map(StreamId::from_bits)).transpose()?;
        Ok(Page { rows, next })
    }

    async fn attendance(
        &mut self,
        caller: &Caller,
        queues: &[QueueName],
        absent: Duration,
    ) -> Result<Vec<Attendance>, EngineError> {
        let look = self.attendance_statement(caller, queues, absent)?;
        let rows = self.read_alone(look, caller).await?;
        attendances(&rows, queues.len())
    }
}

impl MysqlSession {
    fn find_statement(&mut self, caller: &Caller, jobs: &[JobId], payloads: bool) -> Result<Statement, EngineError> {
        let ids = list(&jobs.iter().map(|job| job.0).collect::<BTreeSet<i64>>())?;
        let mut find = self.statement(caller, include_str!("sql/find_jobs.sql"));
        for _ in 0..3 {
            find = find.bind(payloads).bind(ids.clone());
        }
        Ok(find)
    }

    fn attendance_statement(
        &mut self,
        caller: &Caller,
        queues: &[QueueName],
        absent: Duration,
    ) -> Result<Statement, EngineError> {
        let names: Vec<_> = queues.iter().enumerate().map(|(n, queue)| (n, hex(queue.as_str().as_bytes()))).collect();
        let look = self.statement(caller, include_str!("sql/attendance.sql"));
        Ok(look.bind(list(&names)?).bind(micros(absent)))
    }

    /// The rows that were picked, in the walk's order, of jobs that still are in one of the states.
    async fn read_picked(
        &mut self,
        caller: &Caller,
        walked: &[MySqlRow],
        picked: &Picked,
        states: &[JobState],
        payloads: bool,
    ) -> Result<Vec<JobRecord>, EngineError> {
        if picked.rows.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<JobId> =
            picked.rows.iter().map(|&at| column(&walked[at], "id").map(JobId)).collect::<Result<_, _>>()?;
        let found = self.find_jobs(caller, &ids, payloads).await?;
        let mut found: BTreeMap<JobId, JobRecord> =
            found.into_iter().filter(|job| states.contains(&job.state)).map(|job| (job.job, job)).collect();
        Ok(ids.iter().filter_map(|id| found.remove(id)).collect())
    }

    async fn circumstances(
        &mut self,
        caller: &Caller,
        job: JobId,
        absent: Duration,
        now: Timestamp,
    ) -> Result<Option<Circumstances>, EngineError> {
        let find = self.find_statement(caller, &[job], false)?;
        let rows = self.read(find).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let (job, position) = (record(row)?, column::<i64>(row, "position")?);
        let lives = !matches!(job.state, JobState::Dead | JobState::Acked);
        let held = lives && self.lock_jobs(caller, &BTreeSet::from([job.job.0])).await?.is_empty();

        let key = job.ordering_key.as_ref().filter(|_| job.state == JobState::Blocked);
        let key = key.map(|key| key.as_str().as_bytes().to_vec());
        let around = self
            .statement(caller, include_str!("sql/around_job.sql"))
            .bind(job.queue.0)
            .bind(job.queue.0)
            .bind(key.clone())
            .bind(job.queue.0)
            .bind(key)
            .bind(position);
        let around = only(self.read(around).await?)?;
        let ahead = self.count_ahead(caller, &job, now).await?;
        let queues: Vec<QueueName> = job.queue_name.iter().cloned().collect();
        let look = self.attendance_statement(caller, &queues, absent)?;
        let attendance = attendances(&self.read(look).await?, queues.len())?.pop().unwrap_or_default();
        let holder = match job.lease_stream {
            Some(stream_id) => {
                let find = self.statement(caller, include_str!("sql/find_stream.sql"));
                let rows = self.read(find.bind(stream_id.to_bits()).bind(micros(absent))).await?;
                rows.first().map(stream).transpose()?
            }
            None => None,
        };
        Ok(Some(Circumstances {
            now,
            held,
            head: column::<Option<i64>>(&around, "head")?.map(JobId),
            ahead_in_key: narrow(&around, "ahead_in_key")?,
            ahead,
            paused: column::<i64>(&around, "paused")? != 0,
            streams: attendance.streams,
            free_credit: attendance.free_credit,
            holder,
            job,
        }))
    }

    /// Ready jobs of its queue that go before a ready job, up to one more than the bound.
    async fn count_ahead(&mut self, caller: &Caller, job: &JobRecord, now: Timestamp) -> Result<u64, EngineError> {
        let Some(ready_at) = job.ready_at.filter(|_| job.state == JobState::Ready) else { return Ok(0) };
        let most = Count::BOUND + 1;
        let own = super::record::tier(job.priority);
        let mut ahead = 0;
        for tier in 0..=own {
            if ahead >= most {
                break;
            }
            let (until, before) = if tier == own { (ready_at, job.job.0) } else { (now, i64::MAX) };
            let look = self
                .statement(caller, include_str!("sql/count_ahead.sql"))
                .bind(job.queue.0)
                .bind(tier)
                .bind(until.0)
                .bind(until.0)
                .bind(before)
                .bind(i64::try_from(most - ahead).unwrap_or(i64::MAX));
            ahead += narrow::<u64>(&only(self.read(look).await?)?, "jobs")?;
        }
        Ok(ahead)
    }
}

/// Which rows of a walk are brought, and behind which one the next walk begins.
struct Picked {
    rows: Vec<usize>,
    stop: Option<usize>,
}

fn pick(
    walked: &[MySqlRow],
    bounds: &Bounds,
    fits: impl Fn(&MySqlRow) -> Result<bool, EngineError>,
) -> Result<Picked, EngineError> {
    let mut picked = Picked { rows: Vec::new(), stop: None };
    let mut bytes = 0_u64;
    for (at, row) in walked.iter().enumerate() {
        if !fits(row)? {
            continue;
        }
        if picked.rows.len() >= bounds.found || bytes > bounds.bytes {
            picked.stop = picked.rows.last().copied();
            return Ok(picked);
        }
        picked.rows.push(at);
        if bounds.bytes < u64::MAX {
            let payload = if bounds.payloads { narrow(row, "payload_bytes")? } else { 0 };
            bytes = bytes.saturating_add(payload).saturating_add(narrow(row, "text_bytes")?);
        }
    }
    if walked.len() >= bounds.rows {
        picked.stop = walked.len().checked_sub(1);
    }
    Ok(picked)
}

fn attendances(rows: &[MySqlRow], asked: usize) -> Result<Vec<Attendance>, EngineError> {
    let mut found = vec![Attendance::default(); asked];
    for row in rows {
        found[place(row, asked)?] = Attendance {
            streams: narrow(row, "streams")?,
            free_credit: narrow(row, "free_credit")?,
            rates: Rates {
                enqueued: column(row, "enqueued")?,
                leased: column(row, "leased")?,
                acked: column(row, "acked")?,
                retried: column(row, "retried")?,
                expired: column(row, "expired")?,
                dead: column(row, "dead")?,
            },
        };
    }
    Ok(found)
}

fn stream(row: &MySqlRow) -> Result<StreamRecord, EngineError> {
    let queues: &str = column(row, "queues")?;
    let oldest: Option<i64> = column(row, "oldest_age")?;
    Ok(StreamRecord {
        stream: StreamId::from_bits(column(row, "stream")?),
        replica: column(row, "replica")?,
        consumer: column(row, "consumer")?,
        peer: column(row, "peer")?,
        caller: column(row, "stream_caller")?,
        queues: queues.split_whitespace().map(queue_name).collect::<Result<_, _>>()?,
        max_in_flight: column(row, "max_in_flight")?,
        in_flight: column(row, "in_flight")?,
        oldest_lease: oldest.map(|age| Duration::from_micros(u64::try_from(age).unwrap_or_default())),
        opened_at: moment(row, "opened_at")?,
        seen_at: moment(row, "seen_at")?,
    })
}
