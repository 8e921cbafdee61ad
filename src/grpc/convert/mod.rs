//! Wire values become model values and back: the only place that knows both.
//!
//! Everything that a client sends is checked here, before anything runs. All faults of a request are found together, up to
//! [`faults::Faults::AT_MOST`], each with the path of its field.

mod callers;
mod consumers;
mod dead;
mod enqueue;
mod faults;
mod frame;
mod jobs;
mod lease;
mod limits;
mod nack;
mod observed;
mod page;
mod queues;
mod reservation;
mod scaling;
mod settings;
mod settle;
mod shadow;
mod stock;
mod time;
mod tokens;

pub(super) use self::{
    callers::{Beside, BudgetChange, budget_shown, new_budget, snapshot, window},
    consumers::{consumer, consumers_page, next_consumers},
    dead::{Redrive, dead_page, next_dead, redrive_spec},
    enqueue::{enqueued, new_jobs},
    frame::frame,
    jobs::{cancelled, job, job_id, job_ids, jobs_page, next_jobs, wait},
    lease::{Origin, stream_spec},
    limits::broker_limits,
    nack::nack_items,
    observed::{database_sessions, vacuum_horizon},
    queues::{count, next_queues, purge_spec, queue_counts, queues_page},
    reservation::{
        Reserve, commit_request, extend_request, find_request, release_request, reservation_shown, reserve_request,
    },
    scaling::{metric_specs, metric_values, scaled_object, scaling},
    settings::{queue, queue_update},
    settle::{acked, extend_duration, extended, nacked},
    shadow::{shadow_expected, shadow_shown, with_shadow},
    stock::{
        SwitchChange, adjust_request, entry_shown, ledger_page, next_entries, next_stocks, short_shown, stock_shown,
        stocks_page, switch_request, switch_shown, verified_shown, verify_request,
    },
    tokens::Tokens,
};

/// Whether `text` is at most `max` bytes of printable ASCII.
fn is_printable(text: &str, max: usize) -> bool {
    text.len() <= max && text.bytes().all(|b| (0x20..=0x7e).contains(&b))
}
