//! The database's sessions and its horizon, as the wire has them.

use std::time::Duration;

use super::time::{duration, timestamp};
use crate::{
    connections::{CallerTotals, Horizon, HorizonHolder, SessionView, View, attribution::Attribution},
    store::engine::{HolderKind, SessionKind, SessionState, TableRow},
    v1,
};

/// A look at the sessions.
pub(in crate::grpc) fn database_sessions(view: &View, totals_only: bool) -> v1::ListDatabaseSessionsResponse {
    let samples = u32::try_from(view.samples).unwrap_or(u32::MAX);
    let sessions = if totals_only { &[] } else { view.sessions.as_slice() };
    v1::ListDatabaseSessionsResponse {
        callers: view.callers.iter().map(caller).collect(),
        sessions: sessions.iter().map(session).collect(),
        sampled_at: Some(timestamp(view.at)),
        samples,
        interval: Some(duration(view.covered.checked_div(samples).unwrap_or(Duration::ZERO))),
        connections: view.connections,
        max_connections: view.max_connections,
        blind_spots: view.blind_spots.clone(),
        elsewhere: view.elsewhere,
        covered: Some(duration(view.covered)),
    }
}

/// A look at the horizon.
pub(in crate::grpc) fn vacuum_horizon(horizon: &Horizon) -> v1::GetVacuumHorizonResponse {
    v1::GetVacuumHorizonResponse {
        holders: horizon.holders.iter().map(holder).collect(),
        tables: horizon.tables.iter().map(table).collect(),
        blind_spots: horizon.blind_spots.clone(),
    }
}

fn caller(totals: &CallerTotals) -> v1::DatabaseCaller {
    v1::DatabaseCaller {
        caller: totals.holder.name.to_string(),
        attribution: attribution(totals.attribution).into(),
        sessions: totals.sessions,
        active: totals.active,
        idle_in_transaction: totals.idle_in_transaction,
        waiting_on_lock: totals.waiting_on_lock,
        held: Some(duration(totals.estimate.held)),
        held_error: Some(duration(totals.estimate.error)),
        leasehold: totals.holder.broker,
        hidden: totals.hidden,
    }
}

fn session(session: &SessionView) -> v1::DatabaseSession {
    let state = match session.state {
        SessionState::Active => v1::SessionState::Active,
        SessionState::Idle => v1::SessionState::Idle,
        SessionState::IdleInTransaction => v1::SessionState::IdleInTransaction,
        SessionState::Hidden => v1::SessionState::Hidden,
    };
    let kind = match session.kind {
        SessionKind::Client => v1::SessionKind::Client,
        SessionKind::ParallelWorker => v1::SessionKind::ParallelWorker,
        SessionKind::Replication => v1::SessionKind::Replication,
        SessionKind::Maintenance => v1::SessionKind::Maintenance,
        SessionKind::Background => v1::SessionKind::Background,
    };
    v1::DatabaseSession {
        session_id: session.id,
        caller: session.caller.to_string(),
        attribution: attribution(session.attribution).into(),
        state: state.into(),
        in_state: Some(duration(session.in_state)),
        transaction_age: session.transaction_age.map(duration),
        waiting_on_lock: session.waiting,
        blocked_by: session.blocked_by.clone(),
        role: session.role.clone(),
        application_name: session.application_name.clone(),
        client_address: session.client_address.clone().unwrap_or_default(),
        leasehold: session.broker,
        kind: kind.into(),
        leader: session.leader.unwrap_or(0),
    }
}

fn holder(holder: &HorizonHolder) -> v1::HorizonHolder {
    let kind = match holder.kind {
        HolderKind::Session => v1::HorizonHolderKind::Session,
        HolderKind::PreparedTransaction => v1::HorizonHolderKind::PreparedTransaction,
        HolderKind::ReplicationSlot => v1::HorizonHolderKind::ReplicationSlot,
        HolderKind::Standby => v1::HorizonHolderKind::Standby,
    };
    v1::HorizonHolder {
        kind: kind.into(),
        name: holder.name.clone(),
        transactions: signed(holder.transactions),
        age: holder.age.map(duration),
        caller: holder.caller.to_string(),
        application_name: holder.application_name.clone(),
        advice: holder.advice.clone(),
        catalogs_only: holder.catalogs_only,
    }
}

fn table(row: &TableRow) -> v1::TableHealth {
    v1::TableHealth {
        table: row.table.clone(),
        live_rows: signed(row.live_rows),
        dead_rows: signed(row.dead_rows),
        last_vacuum_at: row.last_vacuum.map(timestamp),
        bytes: signed(row.bytes),
    }
}

fn attribution(attribution: Attribution) -> v1::Attribution {
    match attribution {
        Attribution::ConnTag => v1::Attribution::ConnTag,
        Attribution::Sqlcommenter => v1::Attribution::Sqlcommenter,
        Attribution::ApplicationName => v1::Attribution::ApplicationName,
        Attribution::Nothing => v1::Attribution::None,
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
