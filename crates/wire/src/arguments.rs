//! The arguments of a tool, declared once: the published schema and the reading both come from
//! the declaration.
//!
//! Reading is lenient where clients are sloppy (a whole number written `10.0` or `"10"`, null for
//! what is left out) and otherwise names the argument and what it may be.

use callboard_domain::{TextBound, TextUnit, utf16_len};
use serde_json::{Map, Value, json};

use crate::canonical_json;

/// One argument of a tool.
#[derive(Debug, Clone, Copy)]
pub struct Argument {
    /// Its name.
    pub name: &'static str,
    /// What it is for, in words for a model.
    pub description: &'static str,
    /// What it may be.
    pub kind: Kind,
    /// Whether a call without it is refused.
    pub required: bool,
}

/// What an argument may be.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// An id. Any text is read: a malformed id is answered like an unknown one.
    Id,
    /// A text within a bound.
    Text(TextBound),
    /// One of a few words.
    Word(&'static [&'static str]),
    /// A whole number within an inclusive range.
    Integer {
        /// Smallest permitted value.
        min: u64,
        /// Largest permitted value.
        max: u64,
    },
    /// A JSON object whose text has at most `utf16_max` UTF-16 units.
    Object {
        /// Longest permitted JSON text, in UTF-16 units.
        utf16_max: usize,
    },
}

/// Arguments that do not fit their declaration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    /// A required argument is missing.
    #[error("`{name}` is required: {expected}.")]
    Missing {
        /// The argument.
        name: &'static str,
        /// What it may be.
        expected: String,
    },
    /// An argument is of another type or out of its range.
    #[error("`{name}` must be {expected}.")]
    Invalid {
        /// The argument.
        name: &'static str,
        /// What it may be.
        expected: String,
    },
    /// The tool has no such argument.
    #[error("There is no argument `{name}`. {known}")]
    Unknown {
        /// The argument, cut to a readable length.
        name: String,
        /// The sentence that lists the tool's arguments.
        known: String,
    },
}

impl Kind {
    fn expected(self) -> String {
        match self {
            Self::Id => "an id, as text".to_owned(),
            Self::Text(TextBound { min: 0, max, .. }) => {
                format!("text of at most {max} characters")
            }
            Self::Text(TextBound { min, max, .. }) => format!("text of {min} to {max} characters"),
            Self::Word(words) => format!("one of {}", words.join(", ")),
            Self::Integer { min, max } => format!("a whole number from {min} to {max}"),
            Self::Object { utf16_max } => {
                format!("a JSON object of at most {utf16_max} characters")
            }
        }
    }

    fn schema(self, description: &str) -> Value {
        match self {
            Self::Id => json!({"type": "string", "description": description}),
            // `minLength` and `maxLength` count code points; a bound in another unit is said in
            // words and enforced here.
            Self::Text(TextBound {
                min,
                max,
                unit: TextUnit::CodePoint,
            }) => json!({
                "type": "string", "description": description, "minLength": min, "maxLength": max,
            }),
            Self::Text(TextBound {
                max,
                unit: TextUnit::Utf16,
                ..
            }) => json!({
                "type": "string",
                "description": format!("{description} At most {max} characters."),
            }),
            Self::Word(words) => json!({
                "type": "string", "description": description, "enum": words,
            }),
            Self::Integer { min, max } => json!({
                "type": "integer", "description": description, "minimum": min, "maximum": max,
            }),
            Self::Object { .. } => json!({
                "type": "object", "description": description, "additionalProperties": true,
            }),
        }
    }

    fn read(self, value: Value) -> Option<Given> {
        match (self, value) {
            (Self::Id, Value::String(text)) => Some(Given::Text(text)),
            (Self::Text(bound), Value::String(text)) => {
                bound.admits(&text).then_some(Given::Text(text))
            }
            (Self::Word(words), Value::String(word)) => {
                words.contains(&word.as_str()).then_some(Given::Text(word))
            }
            (Self::Integer { min, max }, value) => whole_number(&value)
                .filter(|number| (min..=max).contains(number))
                .map(Given::Integer),
            (Self::Object { utf16_max }, Value::Object(fields)) => {
                // As long as what `JSON.stringify` writes, where a whole number has no fraction.
                let text = canonical_json(&Value::Object(fields.clone()));
                (utf16_len(&text) <= utf16_max).then_some(Given::Object(fields))
            }
            (Self::Id | Self::Text(_) | Self::Word(_) | Self::Object { .. }, _) => None,
        }
    }
}

/// A whole number, however it was written: `10`, `10.0`, `1e1` or `"10"`.
fn whole_number(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64().or_else(|| {
            let float = number.as_f64()?;
            let whole = float >= 0.0 && float.fract() == 0.0 && float < 9e15;
            whole.then(|| format!("{float:.0}").parse().ok()).flatten()
        }),
        Value::String(digits) => digits.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The published input schema: a root object, one type a property, nothing unknown allowed.
pub fn input_schema(arguments: &[Argument]) -> Map<String, Value> {
    let properties: Map<String, Value> = arguments
        .iter()
        .map(|argument| {
            (
                argument.name.to_owned(),
                argument.kind.schema(argument.description),
            )
        })
        .collect();
    let required: Vec<_> = arguments
        .iter()
        .filter(|argument| argument.required)
        .map(|argument| argument.name)
        .collect();
    let mut schema = Map::new();
    schema.insert("type".into(), "object".into());
    schema.insert("properties".into(), properties.into());
    if !required.is_empty() {
        schema.insert("required".into(), required.into());
    }
    schema.insert("additionalProperties".into(), false.into());
    schema
}

/// Arguments that fit their declaration.
#[derive(Debug, Clone, Default)]
pub struct Values(Vec<(&'static str, Given)>);

#[derive(Debug, Clone)]
enum Given {
    Text(String),
    Integer(u64),
    Object(Map<String, Value>),
}

/// Reads what a client sent against the declaration.
///
/// # Errors
/// [`ArgumentError`] for the first argument that is missing, does not fit or is not declared.
pub fn read(
    declared: &'static [Argument],
    mut given: Map<String, Value>,
) -> Result<Values, ArgumentError> {
    let mut values = Values::default();
    for argument in declared {
        match given.shift_remove(argument.name).unwrap_or(Value::Null) {
            Value::Null if argument.required => {
                let expected = argument.kind.expected();
                return Err(ArgumentError::Missing {
                    name: argument.name,
                    expected,
                });
            }
            Value::Null => {}
            value @ (Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_)) => {
                let read = argument
                    .kind
                    .read(value)
                    .ok_or_else(|| ArgumentError::Invalid {
                        name: argument.name,
                        expected: argument.kind.expected(),
                    })?;
                values.0.push((argument.name, read));
            }
        }
    }
    match given.keys().next() {
        None => Ok(values),
        Some(name) => Err(unknown(name, declared)),
    }
}

fn unknown(name: &str, declared: &[Argument]) -> ArgumentError {
    let name = callboard_domain::cut_utf16(name, 64).to_owned();
    let names: Vec<_> = declared
        .iter()
        .map(|argument| format!("`{}`", argument.name))
        .collect();
    let known = match names.as_slice() {
        [] => "This tool takes none.".to_owned(),
        names => format!("This tool takes {}.", names.join(", ")),
    };
    ArgumentError::Unknown { name, known }
}

impl Values {
    fn find(&self, name: &str) -> Option<&Given> {
        self.0
            .iter()
            .find(|(given, _)| *given == name)
            .map(|(_, value)| value)
    }

    /// The text of an argument that was given; empty for one that was left out.
    pub fn text(&self, name: &str) -> &str {
        self.given_text(name).unwrap_or_default()
    }

    /// The text of an argument, if it was given.
    pub fn given_text(&self, name: &str) -> Option<&str> {
        match self.find(name) {
            Some(Given::Text(text)) => Some(text),
            Some(Given::Integer(_) | Given::Object(_)) | None => None,
        }
    }

    /// The number of an argument, if it was given.
    pub fn integer(&self, name: &str) -> Option<u64> {
        match self.find(name) {
            Some(Given::Integer(number)) => Some(*number),
            Some(Given::Text(_) | Given::Object(_)) | None => None,
        }
    }

    /// The object of an argument; an empty one when it was left out.
    pub fn object(&self, name: &str) -> Map<String, Value> {
        match self.find(name) {
            Some(Given::Object(fields)) => fields.clone(),
            Some(Given::Text(_) | Given::Integer(_)) | None => Map::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DECLARED: &[Argument] = &[
        Argument {
            name: "id",
            description: "An id.",
            kind: Kind::Id,
            required: true,
        },
        Argument {
            name: "limit",
            description: "How many.",
            kind: Kind::Integer { min: 1, max: 50 },
            required: false,
        },
        Argument {
            name: "key",
            description: "A key.",
            kind: Kind::Text(TextBound {
                min: 8,
                max: 128,
                unit: TextUnit::CodePoint,
            }),
            required: false,
        },
    ];

    fn given(json: Value) -> Result<Values, ArgumentError> {
        let Value::Object(fields) = json else {
            panic!("an object")
        };
        read(DECLARED, fields)
    }

    #[test]
    fn whole_numbers_are_read_however_they_are_written() {
        for written in ["10", "10.0", "1e1", "\"10\""] {
            let limit: Value = serde_json::from_str(written).expect("JSON");
            let values = given(json!({"id": "x", "limit": limit})).expect(written);
            assert_eq!(values.integer("limit"), Some(10), "{written}");
        }
        assert_eq!(
            given(json!({"id": "x", "limit": null})).map(|v| v.integer("limit")),
            Ok(None)
        );
    }

    #[test]
    fn anything_else_names_the_argument_and_its_range() {
        for wrong in [
            json!(10.5),
            json!("ten"),
            json!(0),
            json!(51),
            json!(-1),
            json!(true),
        ] {
            let error = given(json!({"id": "x", "limit": wrong})).expect_err("refused");
            assert_eq!(
                error.to_string(),
                "`limit` must be a whole number from 1 to 50."
            );
        }
        let error = given(json!({"limit": 1})).expect_err("refused").to_string();
        assert_eq!(error, "`id` is required: an id, as text.");
        let error = given(json!({"id": "x", "limt": 1}))
            .expect_err("refused")
            .to_string();
        assert_eq!(
            error,
            "There is no argument `limt`. This tool takes `id`, `limit`, `key`."
        );
    }

    #[test]
    fn a_key_is_counted_in_code_points() {
        for (key, fits) in [
            ("k".repeat(7), false),
            ("k".repeat(8), true),
            ("\u{d55c}".repeat(128), true),
            ("k".repeat(129), false),
        ] {
            assert_eq!(
                given(json!({"id": "x", "key": key})).is_ok(),
                fits,
                "{}",
                key.len()
            );
        }
    }
}
