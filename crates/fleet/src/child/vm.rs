//! The JavaScript engine of one run: compiles the body, pumps its jobs, and passes calls out and
//! answers in.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::{Arc, mpsc};

use rquickjs::context::EvalOptions;
use rquickjs::promise::PromiseState;
use rquickjs::{
    CatchResultExt as _, CaughtError, Context, Ctx, Function, Object, Promise, Runtime, Value,
};

use super::slice::Allowance;
use crate::frame::{Act, Answer, End, FromScript, RunStart, Start, ToScript};
use crate::limits::{
    BATCH_BYTES_MAX, ERROR_UTF16_MAX, FAILURE_UTF16_MAX, LABEL_UTF16_MAX, LIST_ITEMS_MAX,
    LOG_UTF16_MAX, REPORT_MEMORY_BYTES, RETRIES_MAX, SCRIPT_MEMORY_BYTES, SCRIPT_STACK_BYTES,
    SLEEP_MS_MAX,
};
use crate::script::{FILE_NAME, WRAPPER_CLOSING, WRAPPER_OPENING};

const PRELUDE: &str = include_str!("prelude.js");

/// What the script did since the last frame.
#[derive(Debug, Default)]
struct Outbox {
    acts: Vec<Act>,
    bytes: usize,
    calls: usize,
}

/// Runs a script to its end. `send` takes one frame for each frame received.
pub(crate) fn run(
    start: Start,
    inbox: &mpsc::Receiver<ToScript>,
    slice: &Arc<dyn Allowance>,
    mut send: impl FnMut(FromScript) -> io::Result<()>,
) -> io::Result<()> {
    let runtime = Runtime::new().map_err(io::Error::other)?;
    runtime.set_memory_limit(SCRIPT_MEMORY_BYTES + REPORT_MEMORY_BYTES);
    runtime.set_max_stack_size(SCRIPT_STACK_BYTES);
    let handler = Arc::clone(slice);
    runtime.set_interrupt_handler(Some(Box::new(move || handler.is_over())));
    let context = Context::full(&runtime).map_err(io::Error::other)?;
    if !slice.begin() {
        return Err(io::Error::other("no processor time to begin with"));
    }
    context.with(|ctx| {
        let body = match compile(&ctx, &start.body) {
            Ok(body) => body,
            Err(end) => {
                return send(FromScript {
                    acts: Vec::new(),
                    end: Some(end),
                });
            }
        };
        let Some(run) = &start.run else {
            return send(FromScript {
                acts: Vec::new(),
                end: Some(End::Compiled),
            });
        };
        let mut vm = Vm::new(ctx.clone(), slice.as_ref(), run).map_err(io::Error::other)?;
        vm.call(&body);
        vm.serve(inbox, &mut send)
    })
}

/// Compiles the body to a function without running any of it.
fn compile<'js>(ctx: &Ctx<'js>, body: &str) -> Result<Function<'js>, End> {
    let source = format!("{WRAPPER_OPENING}{body}{WRAPPER_CLOSING}");
    let mut options = EvalOptions::default();
    options.filename = Some(FILE_NAME.to_owned());
    ctx.eval_with_options(source, options)
        .catch(ctx)
        .map_err(|error| match error {
            CaughtError::Exception(exception) => End::Syntax {
                message: exception
                    .message()
                    .unwrap_or_else(|| "syntax error".to_owned()),
                stack: exception.stack().unwrap_or_default(),
            },
            // The text closed the function early and what followed made something else of it.
            CaughtError::Error(_) | CaughtError::Value(_) => End::Syntax {
                message: "the script closes a bracket that it never opened".to_owned(),
                stack: String::new(),
            },
        })
}

struct Vm<'js, 'a> {
    ctx: Ctx<'js>,
    slice: &'a dyn Allowance,
    /// Memory that the script cannot use: given back to write down its result or its error. The
    /// limit itself cannot be moved while the engine is entered.
    ballast: Option<Value<'js>>,
    outbox: Rc<RefCell<Outbox>>,
    deliver: Function<'js>,
    encode: Function<'js>,
    describe: Function<'js>,
    /// The promise of the whole body.
    promise: Option<Promise<'js>>,
    /// Set when the body could not even be called.
    failed: Option<End>,
    /// Calls that were handed out and not answered.
    open: usize,
}

impl<'js, 'a> Vm<'js, 'a> {
    fn new(ctx: Ctx<'js>, slice: &'a dyn Allowance, run: &RunStart) -> rquickjs::Result<Self> {
        let ballast: Value<'js> = ctx.eval(format!("new ArrayBuffer({REPORT_MEMORY_BYTES})"))?;
        let outbox = Rc::new(RefCell::new(Outbox::default()));
        let taken = Rc::clone(&outbox);
        let emit = Function::new(ctx.clone(), move |kind: String, json: String| -> bool {
            let mut outbox = taken.borrow_mut();
            outbox.bytes += kind.len() + json.len();
            let fits = outbox.bytes <= BATCH_BYTES_MAX;
            if fits {
                outbox.calls += usize::from(kind == "call");
                outbox.acts.push(Act { kind, json });
            }
            fits
        })?;
        let mut options = EvalOptions::default();
        options.filename = Some("engine.js".to_owned());
        let prelude: Function<'js> = ctx.eval_with_options(PRELUDE, options)?;
        let settings = Object::new(ctx.clone())?;
        settings.set("arguments", run.arguments.as_str())?;
        settings.set("seed", run.seed.map(f64::from).to_vec())?;
        settings.set("nowMs", as_number(run.now_ms))?;
        let total = run
            .tokens
            .map(|tokens| i64::try_from(tokens).unwrap_or(i64::MAX));
        settings.set("tokens", total.map(as_number))?;
        settings.set("limits", limits(&ctx)?)?;
        let hooks: Object<'js> = prelude.call((emit, settings))?;
        Ok(Self {
            deliver: hooks.get("deliver")?,
            encode: hooks.get("encode")?,
            describe: hooks.get("describe")?,
            ctx,
            slice,
            ballast: Some(ballast),
            outbox,
            promise: None,
            failed: None,
            open: 0,
        })
    }

    fn call(&mut self, body: &Function<'js>) {
        match body.call::<_, Promise<'js>>(()).catch(&self.ctx) {
            Ok(promise) => self.promise = Some(promise),
            Err(error) => self.failed = Some(self.threw(error)),
        }
    }

    /// Pumps, answers with one frame, takes the next one, until the script is over.
    fn serve(
        &mut self,
        inbox: &mpsc::Receiver<ToScript>,
        send: &mut impl FnMut(FromScript) -> io::Result<()>,
    ) -> io::Result<()> {
        loop {
            let end = self.pump();
            let outbox = std::mem::take(&mut *self.outbox.borrow_mut());
            self.open += outbox.calls;
            let end = end.or_else(|| (self.open == 0).then_some(End::Deadlock));
            let over = end.is_some();
            send(FromScript {
                acts: outbox.acts,
                end,
            })?;
            if over {
                return Ok(());
            }
            let Ok(frame) = inbox.recv() else {
                return Ok(());
            };
            if !self.slice.begin() {
                let end = Some(End::CpuLimit { total: true });
                return send(FromScript {
                    acts: Vec::new(),
                    end,
                });
            }
            match frame {
                ToScript::Deliver { answers } => self.answer(&answers),
                ToScript::Stop => {}
                ToScript::Start(_) => return Err(io::Error::other("started twice")),
            }
        }
    }

    fn answer(&mut self, answers: &[Answer]) {
        for answer in answers {
            self.open = self.open.saturating_sub(1);
            let (now_ms, spent) = (as_number(answer.now_ms), answer.spent);
            let spent = as_number(i64::try_from(spent).unwrap_or(i64::MAX));
            let id = as_number(i64::try_from(answer.id).unwrap_or(i64::MAX));
            let call = (id, answer.ok, answer.json.as_str(), now_ms, spent);
            if let Err(error) = self.deliver.call::<_, ()>(call).catch(&self.ctx) {
                self.failed = Some(self.threw(error));
            }
        }
    }

    /// Runs jobs until the script waits, is over, or its slice is.
    fn pump(&mut self) -> Option<End> {
        loop {
            if let Some(end) = self.failed.take() {
                return Some(end);
            }
            if let Some(end) = self.interrupted() {
                return Some(end);
            }
            if let Some(promise) = self.promise.clone() {
                match promise.state() {
                    PromiseState::Pending => {}
                    PromiseState::Resolved | PromiseState::Rejected => {
                        return Some(self.settle(&promise));
                    }
                }
            }
            if !self.ctx.execute_pending_job() {
                return None;
            }
        }
    }

    /// Whether the slice ended, by the handler or between two jobs.
    fn interrupted(&self) -> Option<End> {
        if !self.slice.was_interrupted() && !self.slice.is_over() {
            return None;
        }
        if self.slice.is_stopping() {
            return Some(End::Stopped);
        }
        Some(End::CpuLimit {
            total: self.slice.total_is_over(),
        })
    }

    /// Writes down what the script returned or threw. A script that used all its memory gets a
    /// little more for that.
    fn settle(&mut self, promise: &Promise<'js>) -> End {
        self.ballast = None;
        let outcome = match promise.result::<Value<'js>>() {
            Some(outcome) => outcome.catch(&self.ctx),
            None => return End::Deadlock,
        };
        let written = match outcome {
            Ok(value) => self.encode.call::<_, String>((value,)).catch(&self.ctx),
            Err(error) => return self.threw(error),
        };
        match written {
            Ok(json) => End::Returned { json },
            Err(error) => self.threw(error),
        }
    }

    fn threw(&mut self, error: CaughtError<'js>) -> End {
        if let Some(end) = self.interrupted() {
            return end;
        }
        self.ballast = None;
        let value = match error {
            CaughtError::Exception(exception) => exception.into_value(),
            CaughtError::Value(value) => value,
            CaughtError::Error(_) => return End::OutOfMemory,
        };
        match self.describe.call::<_, String>((value,)) {
            Ok(json) => End::Threw { json },
            Err(_) => self.interrupted().unwrap_or(End::OutOfMemory),
        }
    }
}

/// The limits that the prelude keeps itself.
fn limits<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    let limits = Object::new(ctx.clone())?;
    for (name, limit) in [
        ("listItemsMax", LIST_ITEMS_MAX),
        ("retriesMax", RETRIES_MAX),
        (
            "sleepMsMax",
            usize::try_from(SLEEP_MS_MAX).unwrap_or(usize::MAX),
        ),
        ("logMax", LOG_UTF16_MAX),
        ("labelMax", LABEL_UTF16_MAX),
        ("failureMax", FAILURE_UTF16_MAX),
        ("errorMax", ERROR_UTF16_MAX),
    ] {
        limits.set(name, as_number(i64::try_from(limit).unwrap_or(i64::MAX)))?;
    }
    Ok(limits)
}

/// A JavaScript number. Times and token counts lie far below 2^53.
#[allow(clippy::cast_precision_loss, reason = "exact below 2^53")]
fn as_number(number: i64) -> f64 {
    number as f64
}
