//! Lost requests, lost answers, proxies, refusals, wrong tokens, a hub that is away.

use callboard_desktop::control::DeliveryState;
use callboard_desktop::{Activity, RunStatus};
use callboard_domain::Refusal;
use callboard_domain::graph_run::Status;

use crate::here::{ECHO, FOREVER, Here, block_on};
use crate::hub::{Fault, HOME, Hub};

crate::suite![
    a_lost_sync_answer_is_handed_out_again_and_runs_once,
    a_lost_start_answer_is_asked_for_again_under_the_same_id,
    a_lost_completion_is_sent_again_and_accepted_as_a_replay,
    a_proxys_page_is_no_refusal_and_no_success,
    a_refused_completion_is_parked_with_the_reason_and_blocks_nobody,
    a_wrong_token_is_stated_and_the_desktop_goes_on,
    a_second_data_folder_is_stated_with_what_to_do,
    a_hub_that_comes_back_gets_what_waits,
    one_worker_id_names_the_folder_for_ever,
];

fn a_lost_sync_answer_is_handed_out_again_and_runs_once() {
    block_on(async {
        let here = Here::sharing(&[("echo", ECHO)]).await;
        here.hub
            .fault("sync", &[Fault::LoseAnswer, Fault::LoseAnswer]);
        let id = here.hub.queue(HOME, "echo", "{}");
        here.hub.reaches(id, Status::Completed).await;
        assert_eq!(here.hub.with(|inner| inner.executions[&id].len()), 1);
        assert_eq!(here.run_list().await.len(), 1);
        here.stop().await;
    });
}

fn a_lost_start_answer_is_asked_for_again_under_the_same_id() {
    block_on(async {
        let here = Here::sharing(&[("echo", ECHO)]).await;
        here.hub.fault(
            "start",
            &[
                Fault::LoseAnswer,
                Fault::LoseRequest,
                Fault::Answer(502, ""),
            ],
        );
        let id = here.hub.queue(HOME, "echo", "{}");
        here.hub.reaches(id, Status::Completed).await;
        assert_eq!(here.hub.calls("start"), 4);
        assert_eq!(here.hub.with(|inner| inner.executions[&id].len()), 1);
        here.stop().await;
    });
}

fn a_lost_completion_is_sent_again_and_accepted_as_a_replay() {
    block_on(async {
        let mut here = Here::sharing(&[("echo", ECHO)]).await;
        here.hub
            .fault("complete", &[Fault::LoseRequest, Fault::LoseAnswer]);
        let id = here.hub.queue(HOME, "echo", "{}");
        here.hub.reaches(id, Status::Completed).await;
        here.event(|event| matches!(event, Activity::Delivered { .. }).then_some(()))
            .await;
        assert_eq!(here.hub.calls("complete"), 3);
        let status = here.status().await;
        assert_eq!((status.outbox_waiting, status.outbox_parked), (0, 0));
        here.stop().await;
    });
}

fn a_proxys_page_is_no_refusal_and_no_success() {
    block_on(async {
        let here = Here::sharing(&[("echo", ECHO)]).await;
        let pages = [
            Fault::Answer(404, "<html>not here</html>"),
            Fault::Answer(200, "<html>please sign in</html>"),
            Fault::Answer(413, "{\"code\":\"report_too_long\"}"),
            Fault::Answer(302, ""),
        ];
        here.hub.fault("complete", &pages);
        let id = here.hub.queue(HOME, "echo", "{}");
        here.hub.reaches(id, Status::Completed).await;
        assert_eq!(here.status().await.outbox_parked, 0);
        here.stop().await;
    });
}

fn a_refused_completion_is_parked_with_the_reason_and_blocks_nobody() {
    block_on(async {
        let mut here = Here::sharing(&[("echo", ECHO)]).await;
        here.hub
            .fault("complete", &[Fault::Refuse(Refusal::CompletionDiffers)]);
        let parked = here.hub.queue(HOME, "echo", "{}");
        let told = here.event(|event| match event {
            Activity::Parked { command_id, reason } => Some((command_id.clone(), reason.clone())),
            _ => None,
        });
        let reason = Refusal::CompletionDiffers.public_text().to_owned();
        assert_eq!(told.await, (parked.to_string(), reason.clone()));
        let good = here.hub.queue(HOME, "echo", "{}");
        here.hub.reaches(good, Status::Completed).await;
        let (folder, hub) = here.stop().await;

        let here = Here::start_in(folder, hub, |_| {}).await;
        let another = here.hub.queue(HOME, "echo", "{}");
        here.hub.reaches(another, Status::Completed).await;
        let run = here.run(parked).await;
        assert_eq!(
            run.summary.status,
            RunStatus::Completed,
            "the history has the result"
        );
        let delivery = run.summary.delivery.unwrap();
        assert_eq!(
            (delivery.state, delivery.reason),
            (DeliveryState::Parked, Some(reason))
        );
        assert_eq!(here.hub.calls("complete"), 3, "it is not sent again");
        here.stop().await;
    });
}

fn a_wrong_token_is_stated_and_the_desktop_goes_on() {
    block_on(async {
        let mut here =
            Here::start(Hub::start().await, |config| config.token = "wrong".into()).await;
        let state = here.event(|event| match event {
            Activity::Hub {
                reachable: false,
                state,
            } => Some(state.clone()),
            _ => None,
        });
        assert_eq!(
            state.await,
            "the hub does not accept the device token: The device token is missing, unknown or \
             revoked."
        );
        assert!(!here.status().await.hub.reachable);
        let before = here.hub.calls("desktop");
        here.hub
            .until("it asks again", |inner| {
                (inner.calls["desktop"] > before).then_some(())
            })
            .await;
        here.stop().await;
    });
}

fn a_second_data_folder_is_stated_with_what_to_do() {
    block_on(async {
        let hub = Hub::start().await;
        hub.with(|inner| inner.everything = Some(Fault::Refuse(Refusal::DesktopInUse)));
        let mut here = Here::start(hub, |_| {}).await;
        let state = here.event(|event| match event {
            Activity::Hub {
                reachable: false,
                state,
            } => Some(state.clone()),
            _ => None,
        });
        assert_eq!(state.await, Refusal::DesktopInUse.public_text());
        here.hub.with(|inner| inner.everything = None);
        here.event(|event| match event {
            Activity::Hub {
                reachable: true, ..
            } => Some(()),
            _ => None,
        })
        .await;
        here.stop().await;
    });
}

fn a_hub_that_comes_back_gets_what_waits() {
    block_on(async {
        let mut here = Here::sharing(&[("short", "await sleep(300); return 7;")]).await;
        let id = here.hub.queue(HOME, "short", "{}");
        here.hub.reaches(id, Status::Running).await;
        here.hub
            .with(|inner| inner.everything = Some(Fault::Answer(503, "")));
        here.event(|event| matches!(event, Activity::Ended { .. }).then_some(()))
            .await;
        let run = here.run(id).await;
        assert_eq!(run.summary.delivery.unwrap().state, DeliveryState::Waiting);
        let tried = here.hub.calls("complete");
        here.hub
            .until("it is tried again", |inner| {
                (inner.calls.get("complete").copied().unwrap_or(0) > tried + 1).then_some(())
            })
            .await;
        here.hub.with(|inner| inner.everything = None);
        here.hub.reaches(id, Status::Completed).await;
        here.stop().await;
    });
}

fn one_worker_id_names_the_folder_for_ever() {
    block_on(async {
        let here = Here::sharing(&[("forever", FOREVER)]).await;
        let (folder, hub) = here.stop().await;
        let here = Here::start_in(folder, hub, |_| {}).await;
        here.knows_projects().await;
        let id = here.status().await.worker_id;
        assert_eq!(here.hub.with(|inner| inner.workers.clone()), [id].into());
        here.stop().await;
    });
}
