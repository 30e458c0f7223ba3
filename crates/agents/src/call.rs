//! One agent call while it runs: tries, waits, repairs, and what they cost.

use std::future::Future;
use std::pin::Pin;
use std::sync::PoisonError;
use std::time::Duration;

use callboard_domain::cut_utf16;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::agents::{Provider, Shared};
use crate::retry::{Next, next_try};
use crate::{
    AgentAnswer, AgentError, AgentErrorCode, AgentRequest, Budget, DEFAULT_MAX_TOKENS, Message,
    ModelReply, ModelRequest, ProviderError, ProviderErrorKind, Role, Schema, StopReason, Usage,
    estimate_text_tokens, parse_answer,
};

/// Most answers that one call may take to match its schema. The budget is asked before each, and
/// research/engine.md §3.2 allows at most 5 repairs; three tries keep the overshoot small.
const SCHEMA_TRIES_MAX: u32 = 3;
/// Longest part of a wrong answer that an error quotes, in UTF-16 units (case B41).
const QUOTE_UTF16_MAX: usize = 200;

/// One agent call while it runs.
pub(crate) struct Call<'a> {
    provider: &'a Provider,
    shared: &'a Shared,
    budget: &'a dyn Budget,
    cancel: &'a CancellationToken,
    /// A try was sent: the next one is not covered by what the call reserved.
    tried: bool,
    usage: Usage,
    cost: Option<f64>,
    timeout_ms: u64,
    deadline: Pin<Box<tokio::time::Sleep>>,
}

/// Why waiting for something ended early.
enum Stopped {
    Cancelled,
    TimedOut,
}

impl<'a> Call<'a> {
    pub(crate) fn new(
        provider: &'a Provider,
        shared: &'a Shared,
        budget: &'a dyn Budget,
        cancel: &'a CancellationToken,
        timeout_ms: u64,
    ) -> Self {
        Self {
            provider,
            shared,
            budget,
            cancel,
            tried: false,
            usage: Usage::default(),
            cost: None,
            timeout_ms,
            deadline: Box::pin(tokio::time::sleep(Duration::from_millis(timeout_ms))),
        }
    }

    pub(crate) async fn run(
        mut self,
        request: AgentRequest,
        schema: Option<Schema>,
    ) -> Result<AgentAnswer, AgentError> {
        let max_tokens = request.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS);
        let prompt = match &request.schema {
            Some(schema) => with_instructions(&request.prompt, schema),
            None => request.prompt,
        };
        let mut model_request = ModelRequest {
            messages: vec![Message {
                role: Role::User,
                text: prompt,
            }],
            model: request.model,
            effort: request.effort,
            schema: request.schema,
            max_tokens,
        };
        let mut tries = 0;
        loop {
            tries += 1;
            let reply = self.reply(&model_request).await?;
            let Some(schema) = &schema else {
                return Ok(self.answer(reply.text, None));
            };
            let mistake = match read(&reply, schema) {
                Ok(value) => return Ok(self.answer(reply.text, Some(value))),
                Err(mistake) => mistake,
            };
            if tries == SCHEMA_TRIES_MAX {
                let quoted = cut_utf16(&reply.text, QUOTE_UTF16_MAX);
                let message = format!(
                    "no answer of {SCHEMA_TRIES_MAX} matched the schema ({mistake}); \
                     the last one begins: {quoted}"
                );
                return Err(self.error(AgentErrorCode::SchemaMismatch, message));
            }
            ask_again(&mut model_request, reply.text, &mistake);
        }
    }

    /// One answer of the model, through all transport retries.
    async fn reply(&mut self, request: &ModelRequest) -> Result<ModelReply, AgentError> {
        let mut failed_tries = 0;
        loop {
            self.wait_for_turn().await?;
            self.ask_budget(request).await?;
            let provider = self.provider;
            let cancel = self.cancel;
            let outcome = match self.guarded(provider.model.complete(request, cancel)).await {
                Ok(outcome) => outcome,
                Err(stopped) => {
                    // The server may have read the prompt by now; what it wrote is unknown.
                    self.charge(Some(estimate_input(request)), "");
                    return Err(self.stopped(&stopped));
                }
            };
            let error = match outcome {
                Ok(reply) => return self.accept(request, reply),
                Err(error) => error,
            };
            failed_tries += 1;
            if let Some(usage) = error.usage {
                self.usage = self.usage.plus(usage);
            }
            let jitter = |bound| self.shared.entropy.below(bound);
            match next_try(error.kind, failed_tries, jitter) {
                Next::After(wait_ms) => self.back_off(&error, wait_ms).await?,
                Next::Stop => return Err(self.give_up(&error)),
            }
        }
    }

    fn accept(
        &mut self,
        request: &ModelRequest,
        reply: ModelReply,
    ) -> Result<ModelReply, AgentError> {
        match reply.usage {
            Some(usage) => self.usage = self.usage.plus(usage),
            None => self.charge(Some(estimate_input(request)), &reply.text),
        }
        if let Some(cost) = reply.cost {
            self.cost = Some(self.cost.unwrap_or(0.0) + cost);
        }
        match reply.stop {
            StopReason::Refused => {
                let message = "the model declined to answer".to_owned();
                Err(self.error(AgentErrorCode::AgentRefused, message))
            }
            StopReason::Finished | StopReason::MaxTokens => Ok(reply),
        }
    }

    /// Waits until nobody's 429 keeps this provider closed, also when a later 429 moves that time
    /// while this call waits. Each waiter adds its own jitter.
    async fn wait_for_turn(&mut self) -> Result<(), AgentError> {
        let mut waited_until = None;
        loop {
            let until = *self
                .provider
                .not_before
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let wait_ms = until.map_or(0, |until| until.millis_since(self.shared.clock.now()));
            if wait_ms == 0 || until <= waited_until {
                return Ok(());
            }
            waited_until = until;
            let spread_ms = self.shared.entropy.below((wait_ms / 4).max(1));
            self.pause(wait_ms + spread_ms).await?;
        }
    }

    /// Every try but the first needs the budget's consent.
    async fn ask_budget(&mut self, request: &ModelRequest) -> Result<(), AgentError> {
        if !std::mem::replace(&mut self.tried, true) {
            return Ok(());
        }
        let reserve = estimate_input(request).saturating_add(u64::from(request.max_tokens));
        let budget = self.budget;
        let asked = budget.another_try(self.usage.total(), reserve);
        match self.guarded(asked).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(reason)) => Err(self.error(AgentErrorCode::BudgetExceeded, reason)),
            Err(stopped) => Err(self.stopped(&stopped)),
        }
    }

    async fn back_off(&mut self, error: &ProviderError, wait_ms: u64) -> Result<(), AgentError> {
        let asked_ms = match error.kind {
            ProviderErrorKind::RateLimited { retry_after_ms } => retry_after_ms,
            ProviderErrorKind::Unavailable { .. }
            | ProviderErrorKind::Unreachable
            | ProviderErrorKind::TimedOut
            | ProviderErrorKind::Limit
            | ProviderErrorKind::Rejected => None,
        };
        if let Some(asked_ms) = asked_ms {
            let until = self.shared.clock.now().plus_ms(asked_ms);
            let mut closed = self
                .provider
                .not_before
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            *closed = Some(closed.map_or(until, |earlier| earlier.max(until)));
        }
        tracing::debug!(wait_ms, kind = ?error.kind, "model call failed, trying again");
        self.pause(wait_ms).await
    }

    async fn pause(&mut self, wait_ms: u64) -> Result<(), AgentError> {
        let wait = tokio::time::sleep(Duration::from_millis(wait_ms));
        self.guarded(wait)
            .await
            .map_err(|stopped| self.stopped(&stopped))
    }

    /// Waits for `work`, the cancel or the deadline, whichever comes first.
    async fn guarded<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Stopped> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(Stopped::Cancelled),
            done = work => Ok(done),
            () = &mut self.deadline => Err(Stopped::TimedOut),
        }
    }

    fn charge(&mut self, input_tokens: Option<u64>, text: &str) {
        self.usage = self.usage.plus(Usage {
            input_tokens: input_tokens.unwrap_or(0),
            output_tokens: estimate_text_tokens(text),
            estimated: true,
        });
    }

    fn answer(&self, text: String, value: Option<Value>) -> AgentAnswer {
        AgentAnswer {
            text,
            value,
            usage: self.usage,
            cost: self.cost,
        }
    }

    fn error(&self, code: AgentErrorCode, message: String) -> AgentError {
        AgentError {
            code,
            message,
            usage: self.usage,
        }
    }

    fn stopped(&self, stopped: &Stopped) -> AgentError {
        match stopped {
            Stopped::Cancelled => self.error(
                AgentErrorCode::Cancelled,
                "the call was cancelled".to_owned(),
            ),
            Stopped::TimedOut => self.error(
                AgentErrorCode::AgentTimeout,
                format!("no answer within {} ms", self.timeout_ms),
            ),
        }
    }

    fn give_up(&self, error: &ProviderError) -> AgentError {
        let code = match error.kind {
            ProviderErrorKind::RateLimited { .. } | ProviderErrorKind::Limit => {
                AgentErrorCode::ProviderLimit
            }
            ProviderErrorKind::TimedOut => AgentErrorCode::AgentTimeout,
            ProviderErrorKind::Unavailable { .. }
            | ProviderErrorKind::Unreachable
            | ProviderErrorKind::Rejected => AgentErrorCode::AgentFailed,
        };
        let asked = match error.kind {
            ProviderErrorKind::RateLimited { retry_after_ms }
            | ProviderErrorKind::Unavailable { retry_after_ms } => retry_after_ms,
            ProviderErrorKind::Unreachable
            | ProviderErrorKind::TimedOut
            | ProviderErrorKind::Limit
            | ProviderErrorKind::Rejected => None,
        };
        let message = match asked {
            Some(wait_ms) => {
                format!(
                    "{} (asked to wait {} s)",
                    error.message,
                    wait_ms.div_ceil(1_000)
                )
            }
            None => error.message.clone(),
        };
        self.error(code, message)
    }
}

fn estimate_input(request: &ModelRequest) -> u64 {
    request
        .messages
        .iter()
        .map(|message| estimate_text_tokens(&message.text))
        .sum()
}

/// Servers that cannot constrain their output still read the schema.
fn with_instructions(prompt: &str, schema: &Value) -> String {
    format!(
        "{prompt}\n\nAnswer with one JSON object and nothing else. It must match this JSON \
         Schema:\n{schema}"
    )
}

/// Reads and checks the object in an answer; the mistake is written for the model.
fn read(reply: &ModelReply, schema: &Schema) -> Result<Value, String> {
    let value = parse_answer(&reply.text).map_err(|error| match reply.stop {
        StopReason::MaxTokens => format!("{error}, because it reached the token limit"),
        StopReason::Finished | StopReason::Refused => error.to_string(),
    })?;
    schema.check(&value)?;
    Ok(value)
}

fn ask_again(request: &mut ModelRequest, answer: String, mistake: &str) {
    request.messages.push(Message {
        role: Role::Assistant,
        text: answer,
    });
    request.messages.push(Message {
        role: Role::User,
        text: format!(
            "That answer cannot be used: {mistake}. Answer again with one JSON object that \
             matches the schema, and nothing else."
        ),
    });
}
