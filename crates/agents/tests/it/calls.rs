//! Retries, repairs, time and cancel of one agent call, with a scripted provider on paused time.

use std::time::Duration;

use callboard_agents::{
    AgentErrorCode, AgentRequest, Agents, BoxFuture, Budget, ProviderErrorKind, ScriptedProvider,
    ScriptedReply, Usage,
};
use callboard_ambient::{Clock, Entropy};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

fn agents(provider: &ScriptedProvider) -> Agents {
    Agents::with_provider(
        "scripted",
        provider.clone(),
        Clock::system(),
        Entropy::seeded(1, "jitter"),
    )
}

#[allow(
    clippy::disallowed_methods,
    reason = "the runtime's paused clock, not real time"
)]
fn paused_now() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

fn ask(prompt: &str, schema: Option<Value>) -> AgentRequest {
    AgentRequest {
        prompt: prompt.to_owned(),
        schema,
        ..AgentRequest::default()
    }
}

fn ok_schema() -> Option<Value> {
    Some(json!({
        "type": "object", "required": ["ok", "note"], "additionalProperties": false,
        "properties": { "ok": { "type": "boolean" }, "note": { "type": "string" } },
    }))
}

#[tokio::test(start_paused = true)]
async fn a_wrong_answer_is_repaired_and_every_try_counts() {
    let provider = ScriptedProvider::from_list([
        ScriptedReply::text(r#"{"ok":"true","note":"n"}"#, 10),
        ScriptedReply::text(
            "Sure!\n```json\n{\"ok\":true,\"note\":\"use ```x```\"}\n```",
            20,
        ),
    ]);
    let answer = agents(&provider)
        .run(ask("p", ok_schema()), CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(
        answer.value,
        Some(json!({ "ok": true, "note": "use ```x```" }))
    );
    assert_eq!(
        answer.usage,
        Usage {
            input_tokens: 0,
            output_tokens: 30,
            estimated: false
        }
    );
    let repair = &provider.prompts()[1];
    assert!(
        repair.contains("/ok") && repair.contains("not of type"),
        "{repair}"
    );
}

#[tokio::test(start_paused = true)]
async fn answers_that_never_match_fail_after_three_tries_with_a_short_quote() {
    let truncated = format!("{{\"ok\":true,\"note\":\"{}", "\u{d55c}".repeat(1_000));
    for wrong in [
        r#"{"ok":true,"note":"a"} {"ok":false,"note":"b"}"#,
        r#"[{"ok":true,"note":"a"}]"#,
        "",
        "{\"ok\":true,\"note\":\"raw\nnewline\"}",
        truncated.as_str(),
    ] {
        let provider = ScriptedProvider::by_rule({
            let wrong = wrong.to_owned();
            move |_, _| ScriptedReply::text(wrong.clone(), 7)
        });
        let error = agents(&provider)
            .run(ask("p", ok_schema()), CancellationToken::new())
            .await
            .unwrap_err();
        assert_eq!(
            (error.code, error.usage.total()),
            (AgentErrorCode::SchemaMismatch, 21)
        );
        assert!(error.message.chars().count() < 600, "{}", error.message);
    }
}

#[tokio::test(start_paused = true)]
async fn a_bad_schema_is_refused_before_anything_is_sent() {
    let provider = ScriptedProvider::echo();
    let schema = Some(json!({ "type": "object", "$ref": "https://example.org/x" }));
    let error = agents(&provider)
        .run(ask("p", schema), CancellationToken::new())
        .await
        .unwrap_err();
    assert_eq!(error.code, AgentErrorCode::BadRequest);
    assert!(provider.prompts().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_is_asked_three_times_and_no_more() {
    let unavailable = ProviderErrorKind::Unavailable {
        retry_after_ms: None,
    };
    let provider =
        ScriptedProvider::by_rule(move |_, _| ScriptedReply::failure(unavailable, "busy", 2));
    let error = agents(&provider)
        .run(ask("p", None), CancellationToken::new())
        .await
        .unwrap_err();
    assert_eq!(
        (error.code, error.usage.total()),
        (AgentErrorCode::AgentFailed, 6)
    );
    assert_eq!(provider.prompts().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn repeated_rate_limits_and_quota_are_provider_limits() {
    for (kind, calls) in [
        (
            ProviderErrorKind::RateLimited {
                retry_after_ms: Some(20),
            },
            3,
        ),
        (
            ProviderErrorKind::RateLimited {
                retry_after_ms: Some(7_200_000),
            },
            1,
        ),
        (ProviderErrorKind::Limit, 1),
    ] {
        let provider = ScriptedProvider::by_rule(move |_, _| ScriptedReply::failure(kind, "no", 0));
        let (clock, hands) = Clock::manual(callboard_domain::Timestamp::from_millis(0));
        let agents =
            Agents::with_provider("p", provider.clone(), clock, Entropy::seeded(1, "jitter"));
        let run = agents.run(ask("p", None), CancellationToken::new());
        let tick = async {
            loop {
                tokio::time::sleep(Duration::from_millis(1)).await;
                hands.advance_ms(1);
            }
        };
        let error =
            tokio::select! { outcome = run => outcome.unwrap_err(), () = tick => unreachable!() };
        assert_eq!(
            (error.code, error.usage.total()),
            (AgentErrorCode::ProviderLimit, 0)
        );
        assert_eq!(provider.prompts().len(), calls);
    }
}

#[tokio::test(start_paused = true)]
async fn eight_agents_that_were_told_to_wait_do_not_come_back_together() {
    let kind = ProviderErrorKind::RateLimited {
        retry_after_ms: Some(2_000),
    };
    let begin = paused_now();
    let times = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let provider = ScriptedProvider::by_rule({
        let times = times.clone();
        move |_, earlier| {
            times
                .lock()
                .unwrap()
                .push(paused_now().duration_since(begin));
            if earlier < 8 {
                return ScriptedReply::failure(kind, "slow down", 0);
            }
            ScriptedReply::text("fine", 1)
        }
    });
    let agents = agents(&provider);
    let runs = (0..8).map(|n| {
        let agents = agents.clone();
        tokio::spawn(async move {
            agents
                .run(ask(&format!("{n}"), None), CancellationToken::new())
                .await
        })
    });
    for run in runs.collect::<Vec<_>>() {
        assert_eq!(run.await.unwrap().unwrap().text, "fine");
    }
    let retries: Vec<Duration> = times.lock().unwrap()[8..].to_vec();
    assert!(
        retries.iter().all(|time| *time >= Duration::from_secs(2)),
        "{retries:?}"
    );
    let distinct: std::collections::BTreeSet<_> = retries.iter().collect();
    assert!(distinct.len() >= 6, "{retries:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_a_call_at_once_whether_it_waits_or_runs() {
    let kind = ProviderErrorKind::RateLimited {
        retry_after_ms: Some(50_000),
    };
    for reply in [
        ScriptedReply::text("late", 1).after_ms(600_000),
        ScriptedReply::failure(kind, "slow down", 0),
    ] {
        let provider = ScriptedProvider::by_rule(move |_, _| reply.clone());
        let cancel = CancellationToken::new();
        let agents = agents(&provider);
        let run = agents.run(ask("a prompt", None), cancel.clone());
        let stop = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            cancel.cancel();
        };
        let begin = paused_now();
        let (outcome, ()) = tokio::join!(run, stop);
        assert_eq!(outcome.unwrap_err().code, AgentErrorCode::Cancelled);
        assert_eq!(paused_now().duration_since(begin), Duration::from_secs(1));
        assert_eq!(provider.running(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_times_out_and_what_was_sent_counts() {
    let provider =
        ScriptedProvider::by_rule(|_, _| ScriptedReply::text("late", 1).after_ms(600_000));
    let request = AgentRequest {
        timeout_ms: Some(5_000),
        ..ask("12345678", None)
    };
    let error = agents(&provider)
        .run(request, CancellationToken::new())
        .await
        .unwrap_err();
    assert_eq!(error.code, AgentErrorCode::AgentTimeout);
    assert_eq!(error.message, "no answer within 5000 ms");
    assert_eq!(
        error.usage,
        Usage {
            input_tokens: 2,
            output_tokens: 0,
            estimated: true
        }
    );
}

#[tokio::test]
async fn without_a_provider_the_reason_says_what_to_configure() {
    let error = Agents::none()
        .run(ask("p", None), CancellationToken::new())
        .await
        .unwrap_err();
    assert_eq!(error.code, AgentErrorCode::AgentFailed);
    assert!(error.message.contains("[providers.NAME]"));
}

#[test]
fn a_reservation_covers_the_prompt_and_the_longest_answer() {
    let request = AgentRequest {
        max_tokens: Some(100),
        ..ask("12345678", None)
    };
    assert_eq!(Agents::estimate_tokens(&request), 102);
    assert_eq!(Agents::estimate_tokens(&ask("", None)), 4_096);
}

/// Allows a number of further tries and remembers what it was asked.
struct Further {
    allowed: usize,
    asked: std::sync::Mutex<Vec<(u64, u64)>>,
}

impl Budget for Further {
    fn another_try(&self, used: u64, reserve: u64) -> BoxFuture<'_, Result<(), String>> {
        let mut asked = self.asked.lock().unwrap();
        asked.push((used, reserve));
        let answer = if asked.len() > self.allowed {
            Err("the cap is reached".to_owned())
        } else {
            Ok(())
        };
        Box::pin(std::future::ready(answer))
    }
}

#[tokio::test(start_paused = true)]
async fn no_repair_and_no_retry_starts_without_the_budgets_consent() {
    let busy = ProviderErrorKind::Unavailable {
        retry_after_ms: None,
    };
    for reply in [
        ScriptedReply::text("no object", 500),
        ScriptedReply::failure(busy, "busy", 500),
    ] {
        for allowed in 0..2 {
            let provider = ScriptedProvider::by_rule({
                let reply = reply.clone();
                move |_, _| reply.clone()
            });
            let budget = Further {
                allowed,
                asked: std::sync::Mutex::default(),
            };
            let request = AgentRequest {
                max_tokens: Some(400),
                ..ask("p", ok_schema())
            };
            let error = agents(&provider)
                .run_within(&budget, request, CancellationToken::new())
                .await
                .unwrap_err();
            assert_eq!(error.code, AgentErrorCode::BudgetExceeded, "{error}");
            assert_eq!(error.message, "the cap is reached");
            assert_eq!(provider.prompts().len(), allowed + 1);
            let tries = u64::try_from(allowed + 1).unwrap();
            assert_eq!(error.usage.total(), 500 * tries);
            let asked = budget.asked.lock().unwrap();
            assert_eq!(asked.last().unwrap().0, 500 * tries);
            assert!(asked.iter().all(|(_, reserve)| *reserve > 400), "{asked:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_its_turn_waits_on_when_another_429_moves_it() {
    let times = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let begin = paused_now();
    let provider = ScriptedProvider::by_rule({
        let times = times.clone();
        move |request, earlier| {
            let prompt = request.messages[0].text.clone();
            times
                .lock()
                .unwrap()
                .push((prompt, paused_now().duration_since(begin)));
            let limited = |seconds: u64| ProviderErrorKind::RateLimited {
                retry_after_ms: Some(seconds * 1_000),
            };
            match earlier {
                // The second one is under way already when the first is told to wait.
                0 => ScriptedReply::failure(limited(10), "slow down", 0).after_ms(100),
                1 => ScriptedReply::failure(limited(30), "slower", 0).after_ms(1_000),
                _ => ScriptedReply::text("fine", 1),
            }
        }
    });
    let agents = agents(&provider);
    let run = |prompt: &str, after_ms: u64| {
        let (agents, request) = (agents.clone(), ask(prompt, None));
        async move {
            tokio::time::sleep(Duration::from_millis(after_ms)).await;
            agents.run(request, CancellationToken::new()).await
        }
    };
    let (one, two, late) = tokio::join!(run("one", 0), run("two", 0), run("late", 500));
    for end in [one, two, late] {
        assert_eq!(end.unwrap().text, "fine");
    }
    let times = times.lock().unwrap();
    let late = times.iter().find(|(prompt, _)| prompt == "late").unwrap();
    assert!(late.1 >= Duration::from_secs(30), "{times:?}");
}
