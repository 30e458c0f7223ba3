//! What the end of a script means for its run.

use callboard_agents::Schema;
use callboard_domain::{cut_utf16, mend_surrogates};
use serde::Deserialize;
use serde_json::Value;

use crate::frame::End;
use crate::limits::{ERROR_UTF16_MAX, RESULT_BYTES_MAX};
use crate::sandbox::cpu_limit;
use crate::scheduler::{Code, Fault, ScriptEnd};
use crate::script::{FILE_NAME, ScriptError, first_place};

/// Reads the end; a result is mended, bounded and checked.
pub(crate) fn read(end: End, source: &str, result_schema: Option<&Schema>) -> ScriptEnd {
    let fault = match end {
        End::Returned { json } => match check_result(&json, result_schema) {
            Ok(json) => return ScriptEnd::Returned(json),
            Err(fault) => fault,
        },
        End::Threw { json } => return threw(&json),
        End::Syntax { message, stack } => {
            let error = syntax_error(source, &message, &stack);
            Fault::new(Code::ScriptError, error.to_string())
        }
        End::CpuLimit { total } => cpu_limit(total),
        End::Stopped => Fault::new(Code::Cancelled, "the script was stopped"),
        End::Deadlock => Fault::new(
            Code::Deadlock,
            "the script waits for a promise that nothing will ever settle",
        ),
        End::OutOfMemory => out_of_memory(),
        End::Compiled => Fault::new(Code::SandboxLost, "the script was checked, not run"),
    };
    failed(fault.code.as_str(), &fault.message)
}

/// A syntax error in the user's own lines and columns.
pub(crate) fn syntax_error(source: &str, message: &str, stack: &str) -> ScriptError {
    let message = cut_utf16(message, ERROR_UTF16_MAX);
    match first_place(stack) {
        Some((line, column)) => ScriptError::at_line(source, line, column, message),
        None => ScriptError::whole(message),
    }
}

fn failed(code: &str, error: &str) -> ScriptEnd {
    ScriptEnd::Failed {
        code: code.to_owned(),
        error: cut_utf16(error, ERROR_UTF16_MAX).to_owned(),
    }
}

fn out_of_memory() -> Fault {
    Fault::new(
        Code::MemoryLimit,
        "the script used more memory than a Graph may",
    )
}

fn check_result(json: &str, schema: Option<&Schema>) -> Result<String, Fault> {
    let json = mend_surrogates(json).into_owned();
    if json.len() > RESULT_BYTES_MAX {
        let message = format!(
            "the result has {} bytes; {RESULT_BYTES_MAX} is the most",
            json.len()
        );
        return Err(Fault::new(Code::ResultNotJson, message));
    }
    let value: Value = serde_json::from_str(&json).map_err(|error| {
        let message = format!("the result cannot be written as JSON: {error}");
        Fault::new(Code::ResultNotJson, message)
    })?;
    if let Some(schema) = schema {
        schema.check(&value).map_err(|mistake| {
            let message = format!("the result does not match meta.result: {mistake}");
            Fault::new(Code::ResultMismatch, message)
        })?;
    }
    Ok(json)
}

/// What a script threw: `Name: message (graph.js:line:column)`.
fn threw(json: &str) -> ScriptEnd {
    #[derive(Deserialize)]
    struct Told {
        name: String,
        message: String,
        stack: String,
        code: Option<String>,
    }
    let json = mend_surrogates(json);
    let Ok(Told {
        name,
        message,
        stack,
        code,
    }) = serde_json::from_str(&json)
    else {
        return failed(
            Code::ScriptError.as_str(),
            "the script threw something unreadable",
        );
    };
    if name == "InternalError" && message == "out of memory" {
        let fault = out_of_memory();
        return failed(fault.code.as_str(), &fault.message);
    }
    if name == "Thrown" && message == "null" {
        let error = "the script threw null, which is also what the engine throws when not even \
                     an error fits into a script's memory any more";
        return failed(Code::ScriptError.as_str(), error);
    }
    let place = first_place(&stack).map_or(String::new(), |(line, column)| {
        format!(" ({FILE_NAME}:{line}:{column})")
    });
    let error = format!("{name}: {message}{place}");
    failed(
        code.as_deref().unwrap_or(Code::ScriptError.as_str()),
        &error,
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn returned(json: &str) -> ScriptEnd {
        read(
            End::Returned {
                json: json.to_owned(),
            },
            "",
            None,
        )
    }

    #[test]
    fn the_result_stays_the_engines_own_text_with_lone_halves_mended() {
        assert_eq!(
            returned("{\"n\":1,\"b\":2.50}"),
            ScriptEnd::Returned("{\"n\":1,\"b\":2.50}".to_owned())
        );
        assert_eq!(
            returned(r#""a\ud83d""#),
            ScriptEnd::Returned(r#""a\ufffd""#.to_owned())
        );
    }

    #[test]
    fn what_no_parser_reads_is_no_result() {
        for json in [
            "",
            "{",
            &"[".repeat(1_000),
            &format!("{}{}", "[".repeat(500), "]".repeat(500)),
        ] {
            let ScriptEnd::Failed { code, .. } = returned(json) else {
                panic!("{json} was accepted");
            };
            assert_eq!(code, "result_not_json");
        }
    }

    #[test]
    fn a_thrown_error_shows_name_message_and_place() {
        let json = json!({ "name": "TypeError", "message": "no", "code": null,
            "stack": "    at f (graph.js:3:7)\n" })
        .to_string();
        let end = read(End::Threw { json }, "", None);
        let error = "TypeError: no (graph.js:3:7)".to_owned();
        assert_eq!(
            end,
            ScriptEnd::Failed {
                code: "script_error".to_owned(),
                error
            }
        );
    }
}
