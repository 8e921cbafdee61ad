//! What every engine must do, run on each: the cases are written once, against sessions, and named after what they prove.
//!
//! An engine joins by its fixture (see [`database`]) and one line at the end of this file.

mod administration;
pub(crate) mod bench;
mod budgets;
mod cancel;
mod claim;
pub(crate) mod database;
mod elsewhere;
mod enqueue;
mod extend;
mod give_back;
mod idempotency;
mod inspect;
mod look;
pub(crate) mod mariadb;
mod model;
mod nack;
mod observe;
mod ordering;
pub(crate) mod postgres;
mod presence;
mod prune;
mod purge;
mod queues;
mod reap;
mod redrive;
pub(crate) mod reservations;
mod reserved_jobs;
mod row_locks;
mod settle;
pub(crate) mod sqlite;
pub(crate) mod stocks;

/// Makes the cases of one theme tests of one engine, each on a database of its own.
macro_rules! theme {
    ($engine:ident, $theme:ident: $($case:ident)*) => {
        mod $theme {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    let db = crate::contract::$engine::open().await;
                    crate::contract::$theme::$case(&db).await;
                    db.close().await;
                }
            )*
        }
    };
}

/// All cases, on one engine; those about rows that somebody's transaction holds, where the engine has such.
macro_rules! contract {
    ($module:ident: $engine:ident, row locks) => {
        mod $module {
            contract!(cases $engine);
            theme!($engine, row_locks:
                a_held_job_is_passed_by_a_claim
                a_held_job_is_busy_for_ack_and_the_others_are_acked
                a_held_job_is_busy_for_nack_and_extend_and_nothing_changes
                a_held_job_is_passed_by_reaper_and_give_back
                a_claim_locks_only_what_it_takes
                a_held_job_is_busy_to_whoever_cancels_or_runs_it
                a_held_dead_job_is_passed_by_a_redrive
                a_job_that_somebody_holds_is_shown_as_such
            );
        }
    };
    ($module:ident: $engine:ident) => {
        mod $module {
            contract!(cases $engine);
        }
    };
    (cases $engine:ident) => {
        theme!($engine, enqueue:
            ids_rise_in_the_order_of_the_batch
            everything_comes_back_byte_for_byte
            what_was_left_out_stays_absent
            an_empty_batch_stores_nothing
            a_thousand_jobs_of_two_queues_fit_one_batch
            a_batch_that_the_database_refuses_is_stored_not_at_all
            the_start_decides_when_a_job_is_ready
            ids_past_two_to_the_31_and_to_the_53_are_exact
        );
        theme!($engine, idempotency:
            the_same_key_and_content_is_one_job
            other_content_under_a_key_is_refused_and_nothing_is_stored
            a_key_three_times_in_one_batch_is_one_job
            other_content_within_one_batch_is_refused
            a_refused_batch_leaves_no_key_behind
            a_key_is_known_whatever_became_of_its_job
            an_expired_key_is_free_again
            start_and_trace_context_are_not_compared
            keys_are_compared_byte_for_byte_and_by_queue
            each_duplicate_is_written_to_its_key
            a_duplicate_does_not_prolong_its_key
            a_job_with_a_key_that_waits_for_its_retry_stops_nobody
            many_sessions_with_one_key_make_one_job
        );
        theme!($engine, ordering:
            jobs_of_a_key_are_leased_one_at_a_time_in_order
            of_a_batch_only_the_first_of_a_key_is_ready
            a_head_that_waits_for_its_retry_holds_its_key
            a_released_head_is_still_the_head
            a_dead_head_frees_its_key
            a_scheduled_head_holds_its_key
            a_freed_job_that_is_due_later_waits_for_its_time
            keys_of_other_queues_and_other_bytes_are_other_keys
            a_thousand_blocked_jobs_stop_nobody_else
            priority_plays_no_part_inside_a_key
            acks_of_many_keys_in_one_batch_free_each_of_them
            a_drained_key_begins_anew
            each_producers_order_holds_among_several
            no_key_ever_has_two_live_leases
        );
        theme!($engine, claim:
            higher_priorities_come_first
            within_a_priority_what_was_ready_first_comes_first
            a_claim_takes_no_more_than_its_slots
            claims_of_several_queues_take_each_its_own
            each_job_has_the_lease_and_duration_of_one_slot
            a_claim_stops_at_its_slots_in_the_middle_of_a_level
            scheduled_jobs_are_not_claimed_early
            nothing_at_or_before_a_floor_is_walked
            queues_are_claimed_apart
            concurrent_claims_never_share_a_job
            priority_holds_across_retry_release_and_recovery
        );
        theme!($engine, settle:
            an_acked_job_is_gone_and_says_so_again
            a_lease_acked_twice_in_one_batch_ends_once
            an_expired_lease_that_nobody_took_still_counts
            a_reaped_lease_is_lost
            a_stale_lease_decides_nothing
            one_bad_lease_never_fails_the_others
            a_lease_of_another_job_decides_nothing
            a_dead_jobs_lease_is_lost
            an_unknown_job_is_gone
            overlapping_batches_in_any_order_do_not_fail
            many_acks_of_one_lease_end_it_once
        );
        theme!($engine, nack:
            a_retry_waits_for_its_delay
            a_retry_without_a_delay_waits_for_the_queues_back_off
            back_off_of_huge_attempt_numbers_stays_within_its_cap
            a_release_is_not_counted
            a_rejected_job_is_dead_at_once
            after_exactly_max_attempts_a_job_is_dead
            a_dead_job_keeps_everything_and_the_last_error
            a_repeated_nack_is_lost
            the_last_error_comes_with_the_next_lease
            lease_numbers_grow_through_everything
            nacks_of_every_kind_share_a_batch
            attempts_end_by_nack_and_expiry_alike
        );
        theme!($engine, extend:
            an_extended_lease_ends_that_long_from_now
            without_a_duration_it_is_what_the_lease_was_granted_for
            a_lease_is_never_shortened
            a_lease_may_come_twice_in_a_batch
            only_leases_that_hold_are_extended
            a_request_to_cancel_is_shown
            a_look_at_leases_says_which_hold
        );
        theme!($engine, give_back:
            what_was_never_sent_is_ready_again_and_not_counted
            a_lease_that_no_longer_holds_is_passed_over
            unseen_grants_are_undone_by_their_leases
            a_head_that_was_given_back_still_holds_its_key
        );
        theme!($engine, reap:
            an_expired_lease_makes_its_job_ready_again
            a_lease_that_lasts_is_left_alone
            the_last_attempt_that_expires_makes_the_job_dead
            a_pass_takes_the_longest_expired_up_to_its_limit
            a_floor_leaves_out_what_ended_before_it
            two_reapers_take_each_lease_once
            reaper_and_ack_never_both_win
        );
        theme!($engine, prune:
            dead_jobs_go_when_their_time_is_over
            idempotency_keys_go_when_their_time_is_over
            a_full_pass_says_where_the_next_begins
        );
        theme!($engine, administration:
            of_two_changes_at_once_one_is_told_to_look_again
            a_queue_that_is_not_there_or_being_deleted_is_not_changed
            queues_are_listed_by_name_from_a_place_on
            a_disabled_queue_takes_no_job_and_gives_what_it_has
            a_queue_that_is_gone_or_being_deleted_takes_no_job
            counts_tell_the_states_apart
            the_oldest_ready_job_is_found_whatever_its_level
            an_empty_queue_has_no_oldest_job
            counts_are_exact_to_ten_thousand_and_say_so_beyond
            an_acked_job_is_kept_where_its_queue_keeps_them
            acked_jobs_go_when_their_time_is_over
            the_database_says_its_version
        );
        theme!($engine, purge:
            a_purge_takes_the_oldest_first_in_bounded_steps
            each_state_is_purged_apart
            a_purged_head_frees_its_key_and_a_purged_follower_does_not
            a_purge_leaves_what_was_enqueued_later
            what_a_purge_would_take_is_counted_first
            a_queue_goes_when_nothing_of_it_is_left
            a_queue_created_anew_is_another_one
            jobs_past_their_time_to_live_die
            a_pass_over_old_jobs_takes_no_more_than_its_limit
        );
        theme!($engine, inspect:
            a_job_is_shown_as_it_is_in_each_state
            an_acked_job_is_found_where_its_queue_keeps_it
            a_list_is_of_one_queue_by_id_and_state
            pages_meet_each_job_once_whatever_their_bounds
            dead_jobs_are_listed_the_last_ones_first
            what_is_around_a_job_is_seen_at_once
        );
        theme!($engine, cancel:
            a_job_that_is_not_leased_is_gone_at_once
            a_dead_job_is_no_job_to_cancel
            a_leased_job_is_told_and_goes_on_until_its_lease_ends
            whatever_else_ends_its_lease_removes_it
            the_last_attempt_of_a_cancelled_job_leaves_no_dead_one
            a_cancelled_head_lets_its_key_go_on
            cancelled_in_the_middle_of_a_key_changes_nobodys_turn
            a_lease_given_back_by_key_lets_it_go_on
            a_request_reaches_the_replica_that_has_the_lease_once
            cancel_and_everything_else_never_both_win
            a_scheduled_job_runs_when_it_is_told_to
            a_blocked_job_is_due_and_waits_for_its_key_alone
        );
        theme!($engine, redrive:
            a_job_lives_again_as_it_was_enqueued
            an_old_lease_decides_nothing_after_a_redrive
            what_is_not_dead_is_passed_over
            a_redriven_job_joins_at_the_end_of_its_key
            steps_take_those_that_died_first_and_go_on_where_they_ended
            a_job_that_dies_again_is_not_met_again
            a_filter_picks_and_a_walk_without_a_find_still_goes_on
            a_queue_that_is_being_deleted_gets_no_job_back
            redrives_and_the_pruner_share_the_dead_without_a_loss
        );
        theme!($engine, presence:
            a_stream_is_shown_as_its_replica_wrote_it_down
            streams_are_found_by_whole_names_of_queues
            pages_of_streams_meet_each_once
            what_is_said_anew_replaces_what_was_said
            sums_are_over_all_replicas_and_zero_where_nobody_is
            replicas_that_were_not_heard_of_are_ignored_and_then_taken_out
            a_replica_that_leaves_takes_everything_along
            many_replicas_report_at_once
        );
        theme!($engine, look:
            the_first_waiting_job_of_each_level_is_seen
            a_look_begins_at_its_floors
            leased_and_blocked_jobs_are_not_seen
        );
        theme!($engine, observe:
            a_look_at_the_sessions_sees_at_least_itself
            a_look_reads_no_more_sessions_than_asked_for
            a_session_that_went_is_seen_no_more
            a_look_at_the_horizon_is_answered_and_leaves_itself_out
        );
        theme!($engine, model:
            random_acts_are_answered_as_a_plain_model_says
        );
        theme!($engine, queues:
            a_queue_comes_into_being_when_asked_to
            settings_are_kept_as_given
            names_that_differ_in_one_byte_are_different_queues
            finding_a_queue_uses_up_no_number
            many_sessions_create_one_queue_once
            queues_past_their_bound_do_not_come_into_being
            a_backlog_counts_live_jobs_of_every_state
            a_failed_act_is_an_error_and_never_an_empty_answer
            the_schema_is_complete_after_its_migrations
            a_session_answers
        );
        theme!($engine, budgets:
            a_budget_is_kept_as_given_and_replaced_whole
            a_removed_budget_is_gone_and_removing_it_again_says_so
            past_their_bound_only_callers_that_have_a_budget_get_another
        );
        theme!($engine, stocks:
            adjustments_are_made_together_or_not_at_all
            an_adjustment_is_made_once
            on_hand_never_falls_below_what_is_held
            more_units_than_there_may_be_are_refused
            stocks_of_an_item_are_listed_by_location
            the_ledger_says_what_happened_in_its_order
            a_comparison_says_every_difference
            pools_are_filled_from_what_is_free_beside_them
            switches_are_kept_by_prefix
        );
        theme!($engine, reserved_jobs:
            nothing_keeps_an_expiry_from_its_end
            jobs_come_with_what_they_belong_to_and_once
            a_job_that_cannot_be_stored_keeps_the_rest_from_happening
        );
        theme!($engine, reservations:
            a_cart_is_held_whole_or_not_at_all
            a_reference_is_one_reservation_whatever_became_of_it
            quantities_larger_than_a_pool_are_held
            what_was_given_back_can_be_held_to_the_last_unit
            stock_that_never_was_is_sold_out
            a_reservation_has_one_end
            a_commit_past_its_time_counts_while_nobody_took_the_units
            units_held_past_their_time_go_to_who_needs_them
            an_extension_moves_the_expiry_and_never_back
            a_sweep_ends_the_longest_overdue_and_says_how_late
            ended_reservations_go_and_their_ledger_stays
            a_cart_of_a_hundred_lines_is_one_act
        );
    };
}

contract!(on_sqlite: sqlite);
contract!(on_postgres: postgres, row locks);
contract!(on_mariadb: mariadb, row locks);

/// One case or two of each theme: what differs is the text of statements alone.
mod on_postgres_in_another_schema {
    theme!(elsewhere, enqueue: everything_comes_back_byte_for_byte);
    theme!(elsewhere, idempotency: many_sessions_with_one_key_make_one_job);
    theme!(elsewhere, ordering: acks_of_many_keys_in_one_batch_free_each_of_them);
    theme!(elsewhere, claim: priority_holds_across_retry_release_and_recovery);
    theme!(elsewhere, settle: one_bad_lease_never_fails_the_others);
    theme!(elsewhere, nack: nacks_of_every_kind_share_a_batch attempts_end_by_nack_and_expiry_alike);
    theme!(elsewhere, extend: a_look_at_leases_says_which_hold);
    theme!(elsewhere, give_back: unseen_grants_are_undone_by_their_leases);
    theme!(elsewhere, prune: dead_jobs_go_when_their_time_is_over idempotency_keys_go_when_their_time_is_over);
    theme!(elsewhere, look: a_look_begins_at_its_floors);
    theme!(elsewhere, model: random_acts_are_answered_as_a_plain_model_says);
    theme!(elsewhere, queues: a_queue_comes_into_being_when_asked_to the_schema_is_complete_after_its_migrations);
}
