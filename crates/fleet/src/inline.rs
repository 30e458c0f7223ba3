//! A script whose engine runs on a thread of this process, one turn at a time: for a simulator, whose
//! scripts are its own. Whoever runs scripts of others needs [`crate::Fleet`], which gives each a
//! process without rights.

use std::io;
use std::sync::{Arc, mpsc};
use std::thread::{Builder, JoinHandle};

use callboard_domain::{Timestamp, mend_surrogates};

use crate::child::{Allowance, Unlimited, run_vm};
use crate::dispatch::read_call;
use crate::frame::{FromScript, RunStart, Start, ToScript};
use crate::limits::SCRIPT_THREAD_STACK_BYTES;
use crate::run::{answer, read_end};
use crate::scheduler::{Code, Delivery, Request, ScriptEnd};

/// One script. Dropping it ends it.
#[derive(Debug)]
pub struct InlineScript {
    frames: Option<mpsc::Sender<ToScript>>,
    said: mpsc::Receiver<FromScript>,
    thread: Option<JoinHandle<()>>,
    body: String,
}

/// What a script did before it waited or was over.
#[derive(Debug)]
pub struct Said {
    /// Calls, in their order.
    pub requests: Vec<Request>,
    /// Set when it is over.
    pub end: Option<ScriptEnd>,
}

impl InlineScript {
    /// Begins a script of which `body` is all: no `meta`, no `export`. `arguments` is JSON.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn begin(body: &str, arguments: &str, now: Timestamp) -> io::Result<Self> {
        let (frames, inbox) = mpsc::channel();
        let (outbox, said) = mpsc::channel();
        let start = Start {
            parent: 0,
            body: body.to_owned(),
            run: Some(RunStart {
                arguments: arguments.to_owned(),
                seed: [1, 2, 3, 4],
                now_ms: now.as_millis(),
                tokens: None,
            }),
        };
        let run = move || {
            let unlimited: Arc<dyn Allowance> = Arc::new(Unlimited);
            let send = |frame| outbox.send(frame).map_err(io::Error::other);
            // Whoever waits for a frame that does not come hears that the script is lost.
            drop(run_vm(start, &inbox, &unlimited, send));
        };
        let thread = Builder::new()
            .name("script".to_owned())
            .stack_size(SCRIPT_THREAD_STACK_BYTES)
            .spawn(run)?;
        Ok(Self {
            frames: Some(frames),
            said,
            thread: Some(thread),
            body: body.to_owned(),
        })
    }

    /// Waits until the script waits or is over. Once after the beginning, and once after each
    /// [`Self::deliver`].
    pub fn said(&mut self) -> Said {
        let Ok(frame) = self.said.recv() else {
            return lost("the script gave no answer");
        };
        let mut requests = Vec::new();
        for act in frame.acts.iter().filter(|act| act.kind == "call") {
            match read_call(&mend_surrogates(&act.json)) {
                Ok((request, _)) => requests.push(request),
                Err(_) => return lost("a call cannot be read"),
            }
        }
        let end = frame.end.map(|end| read_end(end, &self.body, None));
        Said { requests, end }
    }

    /// Hands answers over.
    pub fn deliver(&mut self, deliveries: Vec<Delivery>) {
        let answers = deliveries.into_iter().map(answer).collect();
        if let Some(frames) = &self.frames {
            // A script that is over does not listen; `said` tells.
            drop(frames.send(ToScript::Deliver { answers }));
        }
    }
}

fn lost(error: &str) -> Said {
    Said {
        requests: Vec::new(),
        end: Some(ScriptEnd::Failed {
            code: Code::SandboxLost.as_str().to_owned(),
            error: error.to_owned(),
        }),
    }
}

impl Drop for InlineScript {
    fn drop(&mut self) {
        self.frames.take();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_waits_for_its_call_and_ends_with_its_result() {
        let now = Timestamp::from_millis(1);
        let body = "const said = await agent('Hello'); return { said, n: args.n };";
        let mut script = InlineScript::begin(body, "{\"n\":2}", now).unwrap();
        let said = script.said();
        assert!(said.end.is_none());
        let [request] = &said.requests[..] else {
            panic!("{said:?}");
        };
        script.deliver(vec![Delivery {
            id: request.id,
            outcome: Ok("\"well\"".to_owned()),
            at: now,
            spent_tokens: 1,
        }]);
        let said = script.said();
        let expected = ScriptEnd::Returned("{\"said\":\"well\",\"n\":2}".to_owned());
        assert_eq!(said.end, Some(expected));
        assert!(script.said().end.is_some(), "it is over, and says so");
    }
}
