//! What engine and script process say to each other: length-prefixed JSON on standard input and
//! output. The script process is not trusted; every frame from it is bounded and checked.

use std::io;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::limits::FRAME_BYTES_MAX;

/// From the engine to the script process.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "frame", rename_all = "snake_case")]
pub(crate) enum ToScript {
    /// The first frame: compile, and run unless only checking.
    Start(Box<Start>),
    /// Answers, in the order the script sees them.
    Deliver { answers: Vec<Answer> },
    /// The run is being stopped: interrupt after a last slice.
    Stop,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Start {
    /// The engine's process: a script process whose parent is another one ends at once.
    pub(crate) parent: u32,
    /// The body, with the word `export` blanked.
    pub(crate) body: String,
    /// `None` checks the syntax only.
    pub(crate) run: Option<RunStart>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RunStart {
    /// The arguments as JSON text.
    pub(crate) arguments: String,
    /// State of the script's random numbers.
    pub(crate) seed: [u32; 4],
    /// The run's clock, in milliseconds since the epoch.
    pub(crate) now_ms: i64,
    /// The token cap.
    pub(crate) tokens: Option<u64>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub(crate) id: u64,
    pub(crate) ok: bool,
    /// JSON text: the value, or `{code, message, fatal, retryable}`.
    pub(crate) json: String,
    pub(crate) now_ms: i64,
    pub(crate) spent: u64,
}

/// From the script process to the engine: exactly one for each frame it got, when the script
/// waits or is over.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct FromScript {
    /// What the script did since, in order.
    pub(crate) acts: Vec<Act>,
    /// Set when the script is over.
    pub(crate) end: Option<End>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Act {
    /// `call`, `phase`, `log` or `swallow`.
    pub(crate) kind: String,
    /// JSON text; lone halves of surrogate pairs may stand in it as escapes.
    pub(crate) json: String,
}

/// How a script ended, in the script process's words.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub(crate) enum End {
    /// The syntax is right; nothing was run.
    Compiled,
    /// It does not compile.
    Syntax { message: String, stack: String },
    /// It returned.
    Returned { json: String },
    /// It threw: JSON text `{name, message, stack, code}`.
    Threw { json: String },
    /// Its slice, or its total, of processor time is over.
    CpuLimit { total: bool },
    /// It was stopped because of [`ToScript::Stop`].
    Stopped,
    /// It waits, and nothing is open.
    Deadlock,
    /// Not even the error could be written down.
    OutOfMemory,
}

/// One frame with its length before it.
pub(crate) fn encode<T: Serialize>(frame: &T) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, frame)?;
    let length = bytes.len() - 4;
    let prefix = u32::try_from(length)
        .ok()
        .filter(|_| length <= FRAME_BYTES_MAX);
    let Some(prefix) = prefix else {
        return Err(io::Error::other("a frame is too long"));
    };
    bytes[..4].copy_from_slice(&prefix.to_be_bytes());
    Ok(bytes)
}

/// The length that a prefix announces.
pub(crate) fn length(prefix: [u8; 4]) -> io::Result<usize> {
    usize::try_from(u32::from_be_bytes(prefix))
        .ok()
        .filter(|length| *length <= FRAME_BYTES_MAX)
        .ok_or_else(|| io::Error::other("a frame is too long"))
}

pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> io::Result<T> {
    Ok(serde_json::from_slice(bytes)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_reads_back_and_an_endless_one_is_refused_by_its_prefix() {
        let bytes = encode(&ToScript::Deliver {
            answers: Vec::new(),
        })
        .unwrap();
        let prefix = [bytes[0], bytes[1], bytes[2], bytes[3]];
        assert_eq!(length(prefix).unwrap(), bytes.len() - 4);
        assert!(matches!(
            decode(&bytes[4..]).unwrap(),
            ToScript::Deliver { .. }
        ));
        assert!(length([0xff; 4]).is_err());
        assert!(decode::<ToScript>(b"{\"frame\":\"other\"}").is_err());
    }
}
