//! A provider that answers from a list or a rule: for tests, the demo and the simulator.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::{
    BoxFuture, ModelProvider, ModelReply, ModelRequest, ProviderError, ProviderErrorKind, Usage,
};

/// One scripted answer.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptedReply {
    /// How long the model thinks, in milliseconds.
    pub delay_ms: u64,
    /// What comes then.
    pub outcome: Result<ModelReply, ProviderError>,
}

impl ScriptedReply {
    /// Text that used `tokens` tokens, all counted as output, without delay.
    pub fn text(text: impl Into<String>, tokens: u64) -> Self {
        let usage = Usage {
            input_tokens: 0,
            output_tokens: tokens,
            estimated: false,
        };
        Self {
            delay_ms: 0,
            outcome: Ok(ModelReply {
                text: text.into(),
                stop: crate::StopReason::Finished,
                usage: Some(usage),
                cost: None,
            }),
        }
    }

    /// A failure that used `tokens` tokens.
    pub fn failure(kind: ProviderErrorKind, message: impl Into<String>, tokens: u64) -> Self {
        let usage = Usage {
            input_tokens: 0,
            output_tokens: tokens,
            estimated: false,
        };
        Self {
            delay_ms: 0,
            outcome: Err(ProviderError {
                kind,
                message: message.into(),
                usage: Some(usage),
            }),
        }
    }

    /// The same after a delay, in milliseconds.
    #[must_use]
    pub fn after_ms(self, delay_ms: u64) -> Self {
        Self { delay_ms, ..self }
    }
}

type Rule = dyn Fn(&ModelRequest, u64) -> ScriptedReply + Send + Sync;

/// Deterministic answers. Clones share their list and their counters.
#[derive(Clone)]
pub struct ScriptedProvider {
    inner: Arc<Inner>,
}

struct Inner {
    rule: Box<Rule>,
    prompts: Mutex<Vec<String>>,
    running: AtomicU64,
    running_max: AtomicU64,
}

impl ScriptedProvider {
    /// Answers by a rule that gets the request and the number of earlier calls.
    pub fn by_rule(
        rule: impl Fn(&ModelRequest, u64) -> ScriptedReply + Send + Sync + 'static,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                rule: Box::new(rule),
                prompts: Mutex::new(Vec::new()),
                running: AtomicU64::new(0),
                running_max: AtomicU64::new(0),
            }),
        }
    }

    /// Answers from a list, in order; a call beyond its end is rejected.
    pub fn from_list(replies: impl IntoIterator<Item = ScriptedReply>) -> Self {
        let replies: Mutex<VecDeque<_>> = Mutex::new(replies.into_iter().collect());
        Self::by_rule(move |_, _| {
            let next = replies
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .pop_front();
            next.unwrap_or_else(|| {
                let message = "the scripted provider has no answer left";
                ScriptedReply::failure(ProviderErrorKind::Rejected, message, 0)
            })
        })
    }

    /// Answers every prompt with `answer: ` and the prompt, for the demo.
    pub fn echo() -> Self {
        Self::by_rule(|request, _| {
            let prompt = request
                .messages
                .last()
                .map_or("", |message| message.text.as_str());
            let text = format!("answer: {}", callboard_domain::cut_utf16(prompt, 200));
            let tokens = crate::estimate_text_tokens(prompt) + crate::estimate_text_tokens(&text);
            ScriptedReply::text(text, tokens)
        })
    }

    /// The last message of every call so far, in order of arrival.
    pub fn prompts(&self) -> Vec<String> {
        self.inner
            .prompts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The most calls that ran at the same time.
    pub fn running_max(&self) -> u64 {
        self.inner.running_max.load(Ordering::SeqCst)
    }

    /// Calls that run now.
    pub fn running(&self) -> u64 {
        self.inner.running.load(Ordering::SeqCst)
    }
}

impl fmt::Debug for ScriptedProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedProvider")
            .field("calls", &self.prompts().len())
            .finish()
    }
}

/// Counts a call as running until it is dropped, however it ends.
struct Running<'a>(&'a Inner);

impl<'a> Running<'a> {
    fn start(inner: &'a Inner) -> Self {
        let running = inner.running.fetch_add(1, Ordering::SeqCst) + 1;
        inner.running_max.fetch_max(running, Ordering::SeqCst);
        Self(inner)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl ModelProvider for ScriptedProvider {
    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        _cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<ModelReply, ProviderError>> {
        Box::pin(async move {
            let _running = Running::start(&self.inner);
            let earlier = {
                let mut prompts = self
                    .inner
                    .prompts
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                let prompt = request.messages.last().map(|message| message.text.clone());
                prompts.push(prompt.unwrap_or_default());
                u64::try_from(prompts.len() - 1).unwrap_or(u64::MAX)
            };
            let reply = (self.inner.rule)(request, earlier);
            if reply.delay_ms > 0 {
                tokio::time::sleep(Duration::from_millis(reply.delay_ms)).await;
            }
            reply.outcome
        })
    }
}
