//! The script process: holds the script, a JavaScript engine and two pipes, and nothing else. It
//! has no environment, no open files, no network code, and does not outlive its parent.

mod confine;
mod slice;
mod vm;

pub(crate) use slice::{Allowance, Unlimited};
pub(crate) use vm::run as run_vm;

use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc;

use crate::frame::{FromScript, Start, ToScript, decode, encode, length};
use crate::limits::SCRIPT_THREAD_STACK_BYTES;
use slice::Slice;

/// What the hidden sub-command of the binary calls, before it starts a thread or opens anything:
/// every descriptor but the standard ones is closed. Returns when the engine closes the pipe;
/// otherwise the process ends itself after the script's last frame.
pub fn child_main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn serve() -> io::Result<()> {
    confine::before_start()?;
    let mut input = io::stdin().lock();
    let Some(ToScript::Start(start)) = read(&mut input)? else {
        return Err(io::Error::other("the first frame must start a script"));
    };
    confine::check_parent(start.parent)?;
    let slice = Arc::new(Slice::new());
    let (answers, inbox) = mpsc::channel();
    let thread_slice: Arc<dyn Allowance> = slice.clone();
    std::thread::Builder::new()
        .name("script".to_owned())
        .stack_size(SCRIPT_THREAD_STACK_BYTES)
        .spawn(move || run_script(*start, inbox, &thread_slice))?;
    // This thread only reads, so that a stop reaches a script that is busy.
    while let Some(frame) = read(&mut input)? {
        if matches!(frame, ToScript::Stop) {
            slice.stop();
        }
        if answers.send(frame).is_err() {
            break;
        }
    }
    Ok(())
}

/// Ends the whole process when the script is over: the engine's memory goes with it.
fn run_script(start: Start, inbox: mpsc::Receiver<ToScript>, slice: &Arc<dyn Allowance>) {
    let _at_end = EndProcess;
    let mut output = io::stdout().lock();
    let outcome = vm::run(start, &inbox, slice, |frame| write(&mut output, &frame));
    std::process::exit(i32::from(outcome.is_err()));
}

/// Ends the process even when the thread panics: nobody would answer the engine any more.
struct EndProcess;

impl Drop for EndProcess {
    fn drop(&mut self) {
        std::process::exit(1);
    }
}

fn read(input: &mut impl Read) -> io::Result<Option<ToScript>> {
    let mut prefix = [0; 4];
    match input.read_exact(&mut prefix) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let mut bytes = vec![0; length(prefix)?];
    input.read_exact(&mut bytes)?;
    decode(&bytes).map(Some)
}

fn write(output: &mut impl Write, frame: &FromScript) -> io::Result<()> {
    output.write_all(&encode(frame)?)?;
    output.flush()
}
