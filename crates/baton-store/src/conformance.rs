//! Conformance tests for stores.
//!
//! Each function checks one property. It creates its own tenants and threads, so any number of them can share a database, and
//! panics if the property does not hold. [`each_property!`](crate::each_property) lists them all, so that a store can have one
//! test per property; [`all`] runs them one after the other.
//!
//! ```
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! use baton_store::conformance;
//!
//! let store = baton_store::open("sqlite::memory:", std::path::Path::new(".")).await?;
//! conformance::accepting::the_same_request_is_done_once(&store).await;
//! # Ok::<(), baton_core::StoreError>(())
//! # }).unwrap();
//! ```

#![allow(clippy::unwrap_used, reason = "a property that does not hold is a panic")]

pub mod accepting;
pub mod appending;
pub mod approvals;
pub mod artifacts;
pub mod audit;
pub mod belongings;
pub mod budgets;
pub mod cancelling;
pub mod claiming;
pub mod created_agents;
pub mod embeddings;
pub mod feedback;
mod fixture;
pub mod handoffs;
pub mod history;
pub mod isolation;
pub mod keys;
pub mod learning;
pub mod lifecycle;
pub mod limiting;
pub mod notifications;
pub mod outputs;
pub mod push;
pub mod results;
pub mod runs;
pub mod skills;
pub mod starting;
pub mod sweeping;
pub mod system;
pub mod threads;
pub mod usage;
pub mod ways;
pub mod workflow_questions;

use std::sync::Arc;

use baton_core::Store;

/// Calls a macro with the paths of all properties, relative to [`conformance`](crate::conformance).
#[macro_export]
macro_rules! each_property {
    ($each:ident) => {
        $each! {
            approvals::a_list_can_be_of_one_thread,
            approvals::a_remembered_decision_is_revoked,
            workflow_questions::a_message_answers_a_question_of_a_workflow_once,
            workflow_questions::an_append_settles_a_question_of_a_workflow,
            workflow_questions::the_end_of_a_handoff_closes_its_question,
            workflow_questions::a_waiting_run_refers_to_its_requests,
            notifications::a_new_approval_is_due_until_it_is_delivered,
            notifications::a_notification_is_taken_by_one_process_at_a_time,
            notifications::only_open_approvals_are_notified,
            push::a_status_is_due_until_it_is_delivered,
            push::a_delivery_is_made_by_one_process_at_a_time,
            push::configurations_belong_to_their_task,
            threads::a1_a2_a_thread_begins_with_its_first_message,
            threads::a10_a_thread_shows_where_it_stands,
            threads::last_numbers_of_many_threads_are_read_at_once,
            threads::a11_only_its_user_finds_a_thread,
            threads::those_that_were_used_last_come_first,
            threads::a_title_is_one_line,
            threads::threads_are_found_by_a_part_of_their_title,
            threads::a_renamed_title_survives_later_messages,
            threads::a_thread_counts_its_queued_runs,
            threads::a_deleted_thread_leaves_nothing,
            lifecycle::h9_costs_outlive_their_thread,
            lifecycle::h9_an_expired_thread_is_deleted_unless_something_is_open,
            lifecycle::h9_events_of_old_runs_are_removed,
            lifecycle::h9_an_erased_user_leaves_only_costs,
            lifecycle::a15_bytes_of_files_are_stored_bytes,
            lifecycle::one_process_has_a_duty,
            threads::whoever_works_on_a_deleted_thread_notices,
            history::a12_recent_messages_are_the_last_in_order,
            history::a13_a6_messages_of_every_agent_are_in_one_conversation,
            history::a14_history_can_be_read_back_to_its_beginning,
            history::events_are_numbered_without_gaps,
            history::every_character_survives,
            isolation::a8_a9_h9_foreign_ids_are_like_unknown_ones,
            isolation::a17_lists_hold_nothing_of_another_tenant,
            isolation::the_same_ids_in_two_tenants_are_two_things,
            accepting::runs_of_a_thread_wait_for_each_other,
            accepting::a_busy_thread_refuses_when_asked_to,
            accepting::an_interrupting_message_cancels_the_run_at_work,
            accepting::the_same_request_is_done_once,
            accepting::the_same_request_at_the_same_time_is_done_once,
            accepting::an_idempotency_key_is_free_again_when_its_time_is_over,
            limiting::as_many_runs_are_open_as_may_be,
            limiting::runs_of_one_user_are_limited,
            limiting::a_run_that_has_ended_makes_room,
            limiting::a_repeated_request_needs_no_room,
            limiting::what_is_refused_leaves_no_trace,
            accepting::fifty_messages_at_once_are_all_kept,
            accepting::a_job_that_fails_after_writing_takes_no_other_with_it,
            runs::the_newest_runs_come_first,
            runs::runs_are_found_by_what_they_are,
            runs::usage_is_the_sum_of_the_ledger,
            runs::numbers_from_a_wire_may_be_as_large_as_they_like,
            runs::f9_f15_sessions_form_a_tree,
            runs::sessions_are_listed_run_by_run,
            usage::sums_are_made_by_agent_user_model_and_day,
            usage::sums_are_of_one_user_and_of_a_stretch_of_time,
            usage::an_unknown_price_makes_a_sum_unknown,
            usage::sums_may_be_larger_than_any_number_that_is_kept,
            budgets::a_call_is_reserved_and_then_charged_in_every_account,
            budgets::calls_in_progress_make_others_wait_and_spent_budgets_refuse,
            budgets::many_reservations_at_once_never_exceed_a_budget,
            budgets::an_append_charges_once_and_an_end_releases_the_rest,
            budgets::the_call_that_a_process_died_in_is_charged,
            budgets::expired_reservations_do_not_count,
            budgets::a_warning_is_given_once_per_period,
            budgets::a_recount_agrees_with_the_ledger,
            budgets::each_period_counts_for_itself,
            cancelling::a_queued_run_ends_at_once,
            cancelling::a_run_at_work_is_asked_to_end,
            cancelling::a_run_whose_process_is_gone_ends_at_once,
            cancelling::the_call_that_a_process_died_in_is_paid_for,
            cancelling::a_waiting_run_ends_at_once,
            cancelling::a_run_that_has_ended_stays_as_it_is,
            claiming::one_of_many_claimants_wins,
            claiming::runs_are_claimed_in_order_one_at_a_time,
            claiming::a_run_is_taken_over_with_all_it_did,
            claiming::a_beat_extends_the_lease_of_every_claim,
            claiming::whoever_lost_a_thread_cannot_write,
            claiming::a_waiting_run_is_not_claimed,
            starting::a_run_begins_in_the_write_that_accepts_it,
            starting::a_start_in_a_busy_thread_only_queues,
            starting::a_start_after_a_handoff_writes_no_append,
            starting::a_start_knows_what_was_said_before,
            starting::a_repeated_start_begins_one_run,
            starting::the_end_of_a_run_claims_the_next,
            starting::an_abandoned_run_is_taken_over,
            appending::a_repeated_append_is_written_once,
            appending::the_last_append_can_be_repeated_too,
            appending::appends_come_in_order,
            appending::a_finished_step_is_never_replaced,
            appending::changes_of_one_append_are_made_in_order,
            appending::a_run_ends_with_its_last_append,
            appending::many_threads_at_once_keep_their_numbers,
            handoffs::c_4_durations_of_completed_handoffs_are_read,
            handoffs::c_8_c_12_one_handoff_at_a_time,
            handoffs::c_12_of_many_that_begin_at_once_one_is_opened,
            handoffs::c_10_an_open_handoff_is_found_by_its_thread,
            handoffs::c_35_open_handoffs_of_many_threads_are_read_at_once,
            handoffs::c_8_a_handoff_can_begin_active,
            handoffs::c_8_an_agent_takes_only_so_many,
            handoffs::c_21_those_whose_time_is_over_are_found,
            handoffs::d_3_a_claim_knows_the_last_handoff_and_a_run_gets_its_agent,
            handoffs::c_11_a_handoff_needs_its_conversation,
            handoffs::c_6_states_follow_each_other_only_along_their_ways,
            handoffs::c_7_a_change_needs_the_version_it_was_made_on,
            handoffs::the_holder_follows_the_handoff,
            handoffs::all_handoffs_of_a_thread_are_listed_oldest_first,
            handoffs::c_16_what_was_left_can_be_resumed,
            approvals::an_approval_is_stored_once_with_its_append,
            approvals::a_decision_is_made_once_and_in_time,
            approvals::a_decision_makes_a_waiting_run_claimable,
            approvals::an_early_decision_is_not_lost,
            approvals::a_run_that_parks_after_its_decision_is_claimed_again,
            approvals::decisions_race_with_parking,
            approvals::an_overdue_approval_makes_its_run_claimable,
            approvals::approving_races_with_expiry,
            approvals::stopping_a_waiting_run_queues_its_closing_turn,
            approvals::a_stop_before_parking_queues_the_run,
            approvals::aborting_a_waiting_run_closes_its_approvals,
            approvals::a_message_answers_the_only_question,
            approvals::the_newest_remembered_decision_counts,
            approvals::decisions_are_in_the_trail,
            approvals::the_oldest_approvals_come_first,
            approvals::approvals_are_listed_in_either_order,
            approvals::a_user_sees_the_approvals_of_that_users_threads,
            artifacts::files_come_back_as_they_were,
            artifacts::a_thread_may_begin_with_a_file,
            artifacts::d8_files_of_a_run_come_with_its_append,
            outputs::spooled_output_is_read_in_slices,
            outputs::spooled_output_is_found_from_its_run_only,
            outputs::spooled_output_is_written_with_its_append_or_not_at_all,
            outputs::spooled_output_is_deleted_with_its_thread,
            outputs::spooled_output_is_swept_once_its_run_has_ended,
            outputs::spooled_bytes_are_counted_per_tenant,
            embeddings::embeddings_are_replaced_listed_and_deleted,
            embeddings::a8_embeddings_belong_to_their_tenant,
            skills::a_draft_becomes_a_skill_once,
            skills::of_many_that_save_a_name_at_once_one_succeeds,
            skills::a_skill_outlives_its_thread_and_a_draft_does_not,
            skills::a8_skills_and_drafts_belong_to_their_tenant,
            skills::skills_and_drafts_are_limited_in_number,
            skills::a_skill_is_audited_with_its_effect,
            created_agents::k2_draft_becomes_an_agent_once,
            created_agents::k2_agent_is_changed_only_from_the_text_that_was_seen,
            created_agents::k2_of_many_that_save_an_agent_at_once_one_succeeds,
            created_agents::k2_agent_outlives_its_thread_and_a_draft_does_not,
            created_agents::k2_created_agents_and_drafts_belong_to_their_tenant,
            created_agents::k2_created_agents_and_drafts_are_limited_in_number,
            created_agents::k2_created_agent_is_audited_with_its_effect,
            learning::outcomes_are_counted,
            learning::ratings_correct_what_was_counted,
            learning::ratings_correct_the_share_of_a_hop,
            learning::hops_settled_apart_count_once,
            learning::ratings_take_back_only_what_was_added,
            learning::a_repeated_request_was_not_served,
            learning::newest_evidence_counts_most,
            learning::one_user_has_a_bounded_weight,
            learning::deleting_threads_adds_no_weight,
            learning::requested_handoffs_are_not_learnt_from,
            learning::late_ratings_correct_nothing,
            ways::a_hop_counts_once,
            ways::the_most_frequent_way_comes_first,
            ways::settled_hops_stay_in_the_sums,
            ways::ended_handoff_is_one_hop,
            feedback::a_later_rating_replaces_an_earlier_one,
            feedback::a_rating_counts_for_the_ways_of_its_run,
            feedback::a_rating_counts_for_ways_that_are_taken_later,
            feedback::ratings_at_the_same_time_are_counted_once_each,
            feedback::ratings_of_one_user_are_read_for_a_stretch_of_messages,
            feedback::a_message_is_found_with_its_thread,
            keys::a_key_is_found_by_its_hash_until_it_is_revoked,
            results::a_result_is_found_while_its_time_lasts,
            audit::every_entry_is_chained,
            audit::a_seal_covers_what_was_written,
            audit::a7_entries_are_found_by_what_they_are_about,
            audit::the_trail_is_listed_in_either_order,
            audit::a_cursor_of_the_trail_stays_right_in_its_own_order_only,
            audit::a15_what_the_store_does_is_in_the_trail,
            audit::an_audited_write_has_its_entry,
            sweeping::c_27_partial_state_goes_when_its_time_is_over,
            sweeping::what_has_outlived_its_time_goes,
            system::tenants_are_known_once_they_have_written,
            system::threads_without_a_worker_are_due,
            system::the_claims_of_a_process_that_is_gone_can_be_released,
            system::a_store_counts_what_it_writes,
            system::a_closed_store_answers_that_it_is_closed,
        }
    };
}

/// Runs all properties one after the other, each on a new store from `make`.
pub async fn all(make: impl AsyncFn() -> Arc<dyn Store>) {
    macro_rules! try_each {
        ($($module:ident :: $property:ident),* $(,)?) => {
            // Boxed: all of them would be part of one future.
            $(Box::pin($module::$property(&*make().await)).await;)*
        };
    }
    each_property!(try_each);
}
