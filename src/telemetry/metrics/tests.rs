use std::{sync::Arc, time::Duration};

use prometheus::TextEncoder;

use super::*;
use crate::{
    model::{Comparison, NackAction, ReservationState},
    telemetry::names::INSTRUMENTS,
};

fn metrics() -> Metrics {
    Metrics::new(&[], 1).expect("an exporter")
}

fn text(metrics: &Metrics) -> String {
    TextEncoder::new().encode_to_string(&metrics.registry().gather()).expect("text")
}

fn has(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.contains(line), "'{line}' is missing in {text}");
    }
}

#[test]
fn hold_time_adds_up_by_caller() {
    let metrics = metrics();
    let caller = Caller::parse("checkout").expect("a fine name");
    for (act, hold) in [("enqueue", 250), ("ack", 500)] {
        metrics.lane_held(&caller, ("sqlite", act), 3, Duration::from_millis(2), Duration::from_millis(hold));
    }
    let of_pool = "conn_tag=\"checkout\",db_client_connection_pool_name=\"lanes\"";
    has(
        &text(&metrics),
        &[
            &format!("leasehold_db_connection_hold_time_seconds_total{{{of_pool}}} 0.75"),
            &format!("db_client_connection_wait_time_seconds_count{{{of_pool}}} 2"),
            "db_client_operation_duration_seconds_count{conn_tag=\"checkout\",db_query_summary=\"ack\",\
             db_system_name=\"sqlite\"} 1",
            "leasehold_batch_size_sum{db_query_summary=\"ack\"} 3",
        ],
    );
}

#[test]
fn readings_are_taken_when_somebody_asks() {
    let metrics = metrics();
    let waiting = ["first", "second", "third"].map(|name| (Caller::parse(name).expect("a fine name"), 2));
    let lanes = LanesReading { used: 2, idle: 5, max: 8, waiting: waiting.to_vec() };
    metrics.watch_lanes(move || lanes.clone());
    metrics.watch_streams(|| StreamsReading { streams: 4, credit: 40, outstanding: 9, unsent_bytes: 0 });
    metrics.watch_upkeep(|| vec![PassReading { pass: "reaper", steps: 7, failures: 1, rows: 30 }]);
    let queue = |name: &str, ready| QueueReading {
        queue: name.into(),
        jobs: vec![("ready", ready), ("dead", 0)],
        oldest_age: Duration::from_millis(1_500),
    };
    let queues: Arc<[QueueReading]> = [queue("orders", 12), queue("_other", 3)].into();
    metrics.watch_queues(move || queues.clone());
    has(
        &text(&metrics),
        &[
            "db_client_connection_state=\"used\"} 2",
            "db_client_connection_state=\"idle\"} 5",
            "db_client_connection_max{db_client_connection_pool_name=\"lanes\"} 8",
            "db_client_connection_pending_requests{conn_tag=\"first\",db_client_connection_pool_name=\"lanes\"} 2",
            "db_client_connection_pending_requests{conn_tag=\"other\",db_client_connection_pool_name=\"lanes\"} 4",
            "leasehold_streams 4",
            "leasehold_streams_credit 40",
            "leasehold_leases_outstanding 9",
            "leasehold_upkeep_steps_total{pass=\"reaper\"} 7",
            "leasehold_queue_jobs{queue=\"orders\",state=\"ready\"} 12",
            "leasehold_queue_oldest_age_seconds{queue=\"_other\"} 1.5",
        ],
    );
}

#[test]
fn counters_tell_apart_how_leases_end() {
    let metrics = metrics();
    metrics.acked(3);
    metrics.nacked(NackAction::Retry, 2, 1);
    metrics.reaped(5, 1);
    metrics.leases_lost("ack", 4);
    metrics.claimed(Some(7));
    metrics.claimed(Some(0));
    metrics.claimed(None);
    metrics.delivered(7, 2);
    has(
        &text(&metrics),
        &[
            "leasehold_jobs_settled_total{action=\"ack\"} 3",
            "leasehold_jobs_settled_total{action=\"retry\"} 2",
            "leasehold_jobs_settled_total{action=\"reject\"} 0",
            "leasehold_leases_reaped_total 5",
            "leasehold_leases_lost_total{action=\"ack\"} 4",
            "leasehold_jobs_dead_total 2",
            "leasehold_claims_total{result=\"nothing\"} 1",
            "leasehold_claims_total{result=\"failure\"} 1",
            "leasehold_jobs_claimed_total 7",
            "leasehold_jobs_redelivered_total 2",
        ],
    );
}

#[test]
fn reservations_are_told_apart_by_what_they_came_to_and_how_they_ended() {
    let metrics = metrics();
    metrics.reserved(ReserveResult::Held);
    metrics.reserved(ReserveResult::Held);
    metrics.reserved(ReserveResult::SoldOut);
    metrics.reserve_goes_slow();
    metrics.reservation_ended(ReservationState::Committed, Duration::from_secs(90));
    metrics.reservation_swept(Duration::from_millis(700));
    metrics.pool_refilled(40, 960);
    metrics.shadowed(true, Comparison::Differs);
    metrics.watch_stock_switches(|| 3);
    has(
        &text(&metrics),
        &[
            "leasehold_stock_reserves_total{result=\"held\"} 2",
            "leasehold_stock_reserves_total{result=\"disabled\"} 0",
            "leasehold_stock_reserves_slow_total 1",
            "leasehold_stock_reservations_ended_total{end=\"committed\"} 1",
            "leasehold_stock_reservations_ended_total{end=\"expired\"} 1",
            "leasehold_stock_hold_length_seconds_bucket{end=\"committed\",le=\"120\"} 1",
            "leasehold_stock_hold_length_seconds_bucket{end=\"committed\",le=\"60\"} 0",
            "leasehold_stock_sweep_lag_seconds_bucket{le=\"0.5\"} 0",
            "leasehold_stock_sweep_lag_seconds_bucket{le=\"1\"} 1",
            "leasehold_stock_pool_depth_bucket{le=\"10\"} 0",
            "leasehold_stock_pool_refilled_total 960",
            "leasehold_stock_shadow_total{expected=\"held\",result=\"differs\"} 1",
            "leasehold_stock_shadow_total{expected=\"sold_out\",result=\"agrees\"} 0",
            "leasehold_stock_switches 3",
        ],
    );
}

#[test]
fn only_what_the_broker_must_answer_for_is_an_error_of_a_call() {
    let metrics = metrics();
    metrics.call_ended("Enqueue", "UNAVAILABLE", Duration::from_millis(1));
    metrics.call_ended("Enqueue", "INVALID_ARGUMENT", Duration::from_millis(1));
    let text = text(&metrics);
    has(&text, &["rpc_server_call_duration_seconds_count{error_type=\"UNAVAILABLE\",rpc_method=\"Enqueue\""]);
    assert!(!text.contains("error_type=\"INVALID_ARGUMENT\""), "{text}");
}

#[test]
fn every_caller_and_statement_has_a_series_beyond_the_sdks_own_bound() {
    let metrics = Metrics::new(&[], 300).expect("an exporter");
    let acts: Vec<&'static str> = INSTRUMENTS.iter().map(|instrument| instrument.name).take(15).collect();
    for n in 0..300 {
        let caller = Caller::parse(&format!("caller-{n}")).expect("a fine name");
        for act in &acts {
            metrics.lane_held(&caller, ("sqlite", act), 1, Duration::ZERO, Duration::from_millis(1));
        }
    }
    let text = text(&metrics);
    let series = text.lines().filter(|line| line.starts_with("db_client_operation_duration_seconds_count")).count();
    assert_eq!(series, 4_500);
    assert!(!text.contains("overflow"));
}
