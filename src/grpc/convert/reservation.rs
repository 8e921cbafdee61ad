//! Reservations as they are asked for and shown.

use std::{
    collections::HashSet,
    time::{Duration, SystemTime},
};

use super::{
    enqueue::jobs_in,
    faults::Faults,
    time::{timestamp, within},
};
use crate::{
    model::{
        Failure, Invalid, Key, Limits, NewJob, ReservationId, ReservationLine, ReservationState, StockKey, TraceContext,
    },
    store::{
        NewReservation,
        engine::{ReservationRef, ReservationRow},
    },
    v1,
};

/// What checks of requests go by.
pub(in crate::grpc) struct Reserve<'a> {
    /// The bounds.
    pub(in crate::grpc) limits: &'a Limits,
    /// The trace context of the call, for jobs that carry none of their own.
    pub(in crate::grpc) trace: Option<&'a TraceContext>,
    /// The broker's clock, for the bound on due times alone.
    pub(in crate::grpc) now: SystemTime,
}

/// A commit, checked.
pub(in crate::grpc) struct Commit {
    /// Of which reservation.
    pub(in crate::grpc) reservation: ReservationId,
    /// Stored with it.
    pub(in crate::grpc) jobs: Vec<NewJob>,
}

/// A `Reserve`, checked.
pub(in crate::grpc) fn reserve_request(
    request: v1::ReserveRequest,
    by: &Reserve<'_>,
) -> Result<NewReservation, Failure> {
    let limits = &by.limits.stock;
    let mut faults = Faults::default();
    let reference = faults.keep(Key::parse("reference", &request.reference));
    let lines = lines(&request.lines, by.limits, &mut faults);
    let time_to_live = match &request.time_to_live {
        None => Some(limits.usual_time_to_live),
        Some(sent) => faults.keep(time_to_live(sent, by.limits)),
    };
    let (mut jobs, mut jobs_on_expiry) = (Vec::new(), Vec::new());
    if request.jobs.len() + request.jobs_on_expiry.len() > limits.jobs {
        faults.note(Invalid::new("jobs", format!("must hold at most {} with jobs_on_expiry", limits.jobs)));
    } else {
        for (n, job) in request.jobs_on_expiry.iter().enumerate() {
            on_expiry(job, n, &mut faults);
        }
        jobs = jobs_in("jobs", request.jobs, &mut faults, by.limits, by.trace, by.now);
        jobs_on_expiry = jobs_in("jobs_on_expiry", request.jobs_on_expiry, &mut faults, by.limits, by.trace, by.now);
    }
    let (reference, time_to_live) = faults.or(reference.zip(time_to_live))?.ok_or_else(gone_missing)?;
    Ok(NewReservation { reference, lines, time_to_live, jobs, jobs_on_expiry })
}

/// Nothing may keep an expiry from its commit, nor make its jobs due before it.
fn on_expiry(job: &v1::NewJob, n: usize, faults: &mut Faults) {
    if !job.idempotency_key.is_empty() {
        let rule = "must be unset: a job on expiry is stored once, with the expiry";
        faults.note(Invalid::new(format!("jobs_on_expiry[{n}].idempotency_key"), rule));
    }
    if matches!(job.start, Some(v1::new_job::Start::AvailableAt(_))) {
        let rule = "must be unset: use delay, which counts from the expiry";
        faults.note(Invalid::new(format!("jobs_on_expiry[{n}].available_at"), rule));
    }
}

fn lines(sent: &[v1::ReservationLine], limits: &Limits, faults: &mut Faults) -> Vec<ReservationLine> {
    let limits = &limits.stock;
    if !(1..=limits.lines).contains(&sent.len()) {
        faults.note(Invalid::new("lines", format!("must hold 1 to {} lines", limits.lines)));
        return Vec::new();
    }
    let mut seen = HashSet::new();
    let mut lines = Vec::with_capacity(sent.len());
    for (n, line) in sent.iter().enumerate() {
        let key = faults.keep(stock_key(&format!("lines[{n}].key"), line.key.as_ref()));
        if !(1..=limits.quantity).contains(&line.quantity) {
            faults.note(Invalid::new(format!("lines[{n}].quantity"), format!("must be 1 to {}", limits.quantity)));
        }
        let Some(key) = key else { continue };
        if !seen.insert(key.clone()) {
            faults.note(Invalid::new(format!("lines[{n}].key"), "must not come twice"));
        }
        lines.push(ReservationLine { key, quantity: line.quantity });
    }
    lines
}

/// The key in `field`.
pub(super) fn stock_key(field: &str, sent: Option<&v1::StockKey>) -> Result<StockKey, Invalid> {
    match sent {
        Some(key) => StockKey::parse(field, &key.item, &key.location),
        None => Err(Invalid::new(field, "must be set")),
    }
}

fn time_to_live(sent: &prost_types::Duration, limits: &Limits) -> Result<Duration, Invalid> {
    within("time_to_live", sent, limits.stock.shortest_time_to_live, limits.stock.longest_time_to_live)
}

/// A `CommitReservation`, checked.
pub(in crate::grpc) fn commit_request(
    request: v1::CommitReservationRequest,
    by: &Reserve<'_>,
) -> Result<Commit, Failure> {
    let mut faults = Faults::default();
    let reservation = faults.keep(ReservationId::parse("reservation_id", &request.reservation_id));
    let most = by.limits.stock.jobs;
    let jobs = if request.jobs.len() > most {
        faults.note(Invalid::new("jobs", format!("must hold at most {most} jobs")));
        Vec::new()
    } else {
        jobs_in("jobs", request.jobs, &mut faults, by.limits, by.trace, by.now)
    };
    let reservation = faults.or(reservation)?.ok_or_else(gone_missing)?;
    Ok(Commit { reservation, jobs })
}

/// A `ReleaseReservation`, checked.
pub(in crate::grpc) fn release_request(request: &v1::ReleaseReservationRequest) -> Result<ReservationId, Failure> {
    Ok(ReservationId::parse("reservation_id", &request.reservation_id)?)
}

/// An `ExtendReservation`, checked.
pub(in crate::grpc) fn extend_request(
    request: &v1::ExtendReservationRequest,
    limits: &Limits,
) -> Result<(ReservationId, Duration), Failure> {
    let mut faults = Faults::default();
    let reservation = faults.keep(ReservationId::parse("reservation_id", &request.reservation_id));
    let time_to_live = faults.keep(match &request.time_to_live {
        Some(sent) => time_to_live(sent, limits),
        None => Err(Invalid::new("time_to_live", "must be set")),
    });
    faults.or(reservation.zip(time_to_live))?.ok_or_else(gone_missing)
}

/// A `GetReservation`, checked.
pub(in crate::grpc) fn find_request(request: &v1::GetReservationRequest) -> Result<ReservationRef, Failure> {
    use v1::get_reservation_request::By;
    Ok(match &request.by {
        Some(By::ReservationId(id)) => ReservationRef::Id(ReservationId::parse("reservation_id", id)?),
        Some(By::Reference(reference)) => ReservationRef::Reference(Key::parse("reference", reference)?),
        None => return Err(Invalid::new("by", "must be a reservation_id or a reference").into()),
    })
}

/// As the wire has it.
pub(in crate::grpc) fn reservation_shown(row: &ReservationRow) -> v1::Reservation {
    let state = match row.state {
        ReservationState::Held => v1::ReservationState::Held,
        ReservationState::Committed => v1::ReservationState::Committed,
        ReservationState::Released => v1::ReservationState::Released,
        ReservationState::Expired => v1::ReservationState::Expired,
    };
    let line =
        |line: &ReservationLine| v1::ReservationLine { key: Some(key_shown(&line.key)), quantity: line.quantity };
    v1::Reservation {
        reservation_id: row.id.to_string(),
        reference: row.reference.to_string(),
        state: state.into(),
        lines: row.lines.iter().map(line).collect(),
        created_at: Some(timestamp(row.created_at)),
        expires_at: Some(timestamp(row.expires_at)),
    }
}

/// As the wire has it.
pub(super) fn key_shown(key: &StockKey) -> v1::StockKey {
    v1::StockKey { item: key.item.to_string(), location: key.location.to_string() }
}

/// Where no fault was noted every value is there.
fn gone_missing() -> Failure {
    Failure::internal("a checked value went missing")
}

#[cfg(test)]
#[path = "reservation/tests.rs"]
mod tests;
