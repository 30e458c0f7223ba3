//! Finds the one JSON object in a model's answer by parsing, never by cutting text.

use serde_json::Value;

/// Why no object could be read from an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// The answer holds no JSON.
    #[error("the answer holds no JSON object")]
    Nothing,
    /// The answer holds several JSON values.
    #[error("the answer holds more than one JSON value")]
    Several,
    /// JSON begins but is cut off or malformed.
    #[error("the JSON in the answer is cut off or malformed")]
    Malformed,
}

/// Reads the one JSON value of a model's answer: bare, in a fence, or with prose around it.
/// Arrays are read as what they are, never unwrapped.
///
/// # Errors
/// Every variant of [`AnswerError`]; the caller decides whether to ask again.
pub fn parse_answer(text: &str) -> Result<Value, AnswerError> {
    if let Ok(value) = serde_json::from_str::<Value>(text)
        && (value.is_object() || value.is_array())
    {
        return Ok(value);
    }
    let mut found = None;
    let mut at = 0;
    while let Some(offset) = text.get(at..).and_then(|rest| rest.find(['{', '['])) {
        let start = at + offset;
        let rest = &text[start..];
        if !begins_json(rest) {
            at = start + 1;
            continue;
        }
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => {
                at = start + values.byte_offset();
                if found.replace(value).is_some() {
                    return Err(AnswerError::Several);
                }
            }
            // An object inside the broken one must not be taken for the answer.
            Some(Err(_)) | None => return Err(AnswerError::Malformed),
        }
    }
    found.ok_or(AnswerError::Nothing)
}

/// Whether a bracket opens JSON rather than prose such as `{name}` or `[1]`.
fn begins_json(text: &str) -> bool {
    let mut characters = text.chars();
    let opening = characters.next();
    let next = characters.find(|character| !character.is_whitespace());
    match opening {
        Some('{') => matches!(next, Some('"' | '}') | None),
        Some('[') => matches!(next, Some('{' | '[' | '"')),
        Some(_) | None => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fences_and_prose_around_one_object_do_not_matter() {
        let object = json!({ "ok": true, "note": "n" });
        for text in [
            r#"{"ok":true,"note":"n"}"#,
            "```json\n{\"ok\":true,\"note\":\"n\"}\n```",
            "Here it is:\n```\n{\"ok\":true,\"note\":\"n\"}\n```\nDone.",
            r#"{"ok":true,"note":"n"} Hope this helps"#,
            r#"As in [1] with {braces}: {"ok":true,"note":"n"}"#,
        ] {
            assert_eq!(parse_answer(text), Ok(object.clone()), "{text}");
        }
    }

    #[test]
    fn backticks_inside_a_string_are_kept() {
        let text = "```json\n{\"ok\":true,\"note\":\"use ```x```\"}\n```";
        assert_eq!(parse_answer(text).unwrap()["note"], "use ```x```");
    }

    #[test]
    fn what_is_not_one_whole_object_is_an_error_never_a_guess() {
        for (text, error) in [
            ("", AnswerError::Nothing),
            ("null", AnswerError::Nothing),
            ("I cannot do that.", AnswerError::Nothing),
            (r#"{"ok":true} {"ok":false}"#, AnswerError::Several),
            (r#"{"ok":true,"note":"cut o"#, AnswerError::Malformed),
            (r#"{"a":{"ok":true},"note":"cut o"#, AnswerError::Malformed),
            (
                "{\"ok\":true,\"note\":\"raw\nnewline\"}",
                AnswerError::Malformed,
            ),
            ("{", AnswerError::Malformed),
        ] {
            assert_eq!(parse_answer(text), Err(error), "{text}");
        }
        assert_eq!(
            parse_answer(r#"[{"ok":true}]"#),
            Ok(json!([{ "ok": true }]))
        );
    }
}
