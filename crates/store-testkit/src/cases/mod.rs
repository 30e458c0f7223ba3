//! What each operation means, a case a fact.

mod isolation;
mod runs;
mod sharing;
mod sweeping;
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
        sweeping {
            nothing_due_moves_nothing,
            what_nobody_started_expires,
            a_silent_desktop_loses_its_running_commands,
            a_sign_of_life_puts_that_off,
            a_small_sweep_takes_the_longest_due_and_says_that_there_is_more,
        }
        isolation {
            the_command_of_another_connection_is_an_unknown_one,
            the_command_of_another_desktop_is_an_unknown_one,
            the_workspace_of_another_owner_is_an_unknown_one,
            a_revoked_connection_is_an_unknown_one,
        }
    );
}
