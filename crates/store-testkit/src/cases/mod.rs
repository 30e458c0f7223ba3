//! What each operation means, a case a fact.

mod artifacts;
mod chats;
mod claims;
mod console;
mod inbox;
mod isolation;
mod revocation;
mod runs;
mod sharing;
mod sweeping;
mod tasks;
mod workspace;

use callboard_store::Store;

use crate::block_on;
use crate::world::World;

/// Plays the named cases, each in a fresh world.
macro_rules! play {
    ($factory:ident: $($module:ident { $($case:ident),* $(,)? })*) => {$($(
        eprintln!("case {}::{}", stringify!($module), stringify!($case));
        block_on($module::$case(World::new($factory())));
    )*)*};
}

pub(crate) fn all<S: Store>(factory: &impl Fn() -> S) {
    of_runs(factory);
    of_chats(factory);
}

fn of_runs<S: Store>(factory: &impl Fn() -> S) {
    play!(factory:
        workspace {
            the_owner_is_made_once,
            a_project_name_is_taken_for_its_owner_alone,
            a_desktop_name_is_taken_for_its_owner_alone,
            rows_come_oldest_first,
            a_token_finds_its_desktop_and_no_other,
            a_desktop_is_bound_to_the_first_folder_until_it_is_freed,
            a_sign_of_life_never_moves_backwards,
            a_token_finds_its_connection_with_the_projects_in_their_order,
            a_connection_is_added_only_to_projects_of_its_owner,
            a_revoked_connection_is_gone_and_leaves_its_name,
            revoking_ends_what_waits_and_asks_what_runs_to_stop,
            what_is_not_there_cannot_be_revoked,
        }
        sharing {
            nothing_is_shared_until_a_sync,
            a_sync_replaces_the_list,
            the_stored_list_again_changes_nothing,
            sessions_come_by_name_up_to_the_limit,
            each_desktop_keeps_its_own_list,
            a_sync_hands_out_what_waits_in_that_project_oldest_first,
            a_full_hand_out_leaves_the_rest_for_later,
            a_running_command_is_named_for_as_long_as_it_should_stop,
            an_expired_command_is_not_handed_out,
        }
        runs {
            a_queued_run_is_read_back_whole,
            a_run_goes_to_the_first_project_and_there_to_the_smallest_desktop,
            a_session_that_is_not_shared_is_not_found,
            the_same_key_is_the_same_command_for_ever,
            the_same_key_for_another_request_is_refused,
            keys_belong_to_their_connection,
            a_start_is_granted_to_one_execution,
            a_queued_command_is_cancelled_at_once_and_never_starts,
            a_running_command_keeps_running_until_it_reports,
            a_completion_is_stored_once,
            a_completion_needs_the_granted_execution,
            a_command_that_never_began_can_only_end_cancelled,
            a_report_out_of_bounds_changes_nothing,
            texts_come_back_to_the_letter,
            progress_is_merged_and_kept,
            progress_of_a_command_that_does_not_run_is_dropped,
            a_read_settles_without_storing,
            time_never_runs_backwards_on_a_run,
        }
        console {
            the_owner_sees_all_commands_latest_first_in_pages,
            a_list_leaves_out_what_is_long_and_one_command_is_whole,
            a_list_of_one_status_and_the_counts_agree,
            the_owner_cancels_whatever_an_agent_started,
            the_command_of_another_owner_is_an_unknown_one,
            the_owner_sees_an_expired_command_before_a_sweep_stores_it,
            a_sign_in_counts_until_it_ends_or_its_time_is_over,
            a_new_password_ends_every_sign_in,
        }
        sweeping {
            nothing_due_moves_nothing,
            what_nobody_started_expires,
            a_silent_desktop_loses_its_running_commands,
            a_sign_of_life_puts_that_off,
            a_small_sweep_takes_the_longest_due_and_says_that_there_is_more,
            tasks_that_are_not_due_stay,
            lapsed_claims_wait_again_and_old_tasks_expire,
            a_claim_swept_too_late_expires_at_once,
            a_small_sweep_takes_the_longest_due_tasks_too,
        }
        isolation {
            the_command_of_another_connection_is_an_unknown_one,
            the_command_of_another_desktop_is_an_unknown_one,
            the_workspace_of_another_owner_is_an_unknown_one,
            a_revoked_connection_is_an_unknown_one,
        }
    );
}

fn of_chats<S: Store>(factory: &impl Fn() -> S) {
    play!(factory:
        chats {
            a_link_is_read_back_whole,
            the_same_key_is_the_same_link,
            the_key_of_a_link_is_refused_for_another_request,
            keys_of_links_belong_to_their_connection,
            the_key_of_a_revoked_link_finds_nothing,
            a_project_that_was_not_added_takes_no_link,
            links_come_oldest_first_and_only_to_their_owner,
            a_connection_takes_a_thousand_links,
            a_foreign_a_revoked_and_an_unknown_chat_are_one,
        }
        tasks {
            an_assigned_task_is_read_back_whole,
            texts_of_tasks_come_back_to_the_letter,
            the_same_key_is_the_same_task_for_ever,
            the_key_of_a_task_is_refused_for_another_assignment,
            a_candidate_is_a_live_link_of_the_owner,
            candidates_of_two_projects_are_refused,
            a_chat_takes_a_thousand_open_tasks,
            tasks_come_latest_first_up_to_the_limit,
            the_task_of_another_owner_is_an_unknown_one,
            a_cancelled_task_is_over_at_once,
            cancelling_what_is_over_changes_nothing,
            a_task_expires_after_a_day_to_the_millisecond,
        }
        claims {
            a_claim_is_answered_whole_and_kept_until_its_lease_ends,
            a_claim_is_refused_with_its_reason,
            a_sole_candidate_holds_its_claim_until_the_task_expires,
            a_lease_never_outlasts_the_task,
            a_lapsed_claim_is_taken_over_and_its_late_submit_is_stale,
            a_lapsed_claim_that_nobody_took_over_is_to_be_claimed_again,
            time_never_runs_backwards_on_a_task,
            a_result_is_stored_once_and_replayed_for_ever,
            a_submit_is_refused_in_the_published_order,
        }
        inbox {
            an_inbox_begins_empty_and_shows_only_what_is_for_its_chat,
            own_claims_come_first_then_what_waits_then_what_is_over_lately,
            an_inbox_is_short,
        }
        artifacts {
            a_file_is_read_back_whole,
            bytes_come_back_as_they_were,
            the_same_file_again_is_a_replay_whatever_became_of_the_task,
            other_content_under_the_same_id_is_refused,
            the_same_id_under_a_new_claim_is_a_new_file,
            an_upload_is_refused_in_the_order_of_a_submit,
            a_claim_takes_twenty_files,
            a_task_takes_a_hundred_files_over_all_its_claims,
            a_file_is_its_owners_and_its_connections,
            a_revoked_connection_reads_no_file,
        }
        revocation {
            a_revoked_link_leaves_its_open_tasks,
            a_task_over_by_then_is_not_cancelled,
            a_claim_lapsed_by_then_waits_again,
            a_revoked_connection_takes_all_its_links_along,
            a_task_that_is_over_keeps_the_names_of_its_chats,
        }
    );
}
