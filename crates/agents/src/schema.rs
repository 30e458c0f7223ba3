//! JSON Schemas that come from scripts: bounded, local, and checked before they are used.

use std::fmt;

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;

/// Largest schema, in bytes of its JSON (our choice; real ones are a few kilobytes).
pub const SCHEMA_BYTES_MAX: usize = 64 * 1024;
/// Deepest nesting of a schema (our choice; compiling is recursive).
const SCHEMA_DEPTH_MAX: usize = 64;
/// Largest compiled pattern, in bytes. Patterns run on the linear engine only.
const PATTERN_BYTES_MAX: usize = 1024 * 1024;
/// Most mistakes that one message names.
const MISTAKES_NAMED_MAX: usize = 3;
/// Longest part of an instance that a message quotes, in UTF-16 units.
const QUOTE_UTF16_MAX: usize = 200;

/// A compiled schema whose root is an object.
pub struct Schema {
    validator: Validator,
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Schema")
    }
}

/// Why a schema is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// It is longer than [`SCHEMA_BYTES_MAX`].
    #[error("the schema has {0} bytes of JSON; {max} is the most", max = SCHEMA_BYTES_MAX)]
    TooLarge(usize),
    /// It is nested too deeply.
    #[error("the schema is nested deeper than {max} levels", max = SCHEMA_DEPTH_MAX)]
    TooDeep,
    /// A reference leaves the schema.
    #[error("the schema refers to `{0}`: only references inside the schema (`#…`) work")]
    ForeignReference(String),
    /// The root does not ask for an object.
    #[error("the schema must describe an object: add `type: \"object\"` at its root")]
    NotAnObject,
    /// It is no valid draft 2020-12 schema.
    #[error("the schema is not valid: {0}")]
    Invalid(String),
}

impl Schema {
    /// Compiles a schema that must describe an object: arguments and answers of agents.
    ///
    /// # Errors
    /// Every variant of [`SchemaError`].
    pub fn object(schema: &Value) -> Result<Self, SchemaError> {
        if schema.get("type").and_then(Value::as_str) != Some("object") {
            return Err(SchemaError::NotAnObject);
        }
        Self::any(schema)
    }

    /// Compiles a schema for any JSON value: results of Graphs.
    ///
    /// # Errors
    /// [`SchemaError`] except [`SchemaError::NotAnObject`].
    pub fn any(schema: &Value) -> Result<Self, SchemaError> {
        let bytes = schema.to_string().len();
        if bytes > SCHEMA_BYTES_MAX {
            return Err(SchemaError::TooLarge(bytes));
        }
        inspect(schema, 0)?;
        let validator = jsonschema::options()
            .with_draft(Draft::Draft202012)
            .with_pattern_options(
                PatternOptions::regex()
                    .size_limit(PATTERN_BYTES_MAX)
                    .dfa_size_limit(PATTERN_BYTES_MAX),
            )
            .build(schema)
            .map_err(|error| SchemaError::Invalid(quote(&error.to_string())))?;
        Ok(Self { validator })
    }

    /// Checks a value.
    ///
    /// # Errors
    /// One line that names the first mistakes and where they are, fit for a model to act on.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        let mistakes: Vec<String> = self
            .validator
            .iter_errors(value)
            .take(MISTAKES_NAMED_MAX)
            .map(|error| {
                let place = error.instance_path().to_string();
                let place = if place.is_empty() {
                    "/".to_owned()
                } else {
                    place
                };
                format!("{place}: {}", quote(&error.to_string()))
            })
            .collect();
        if mistakes.is_empty() {
            return Ok(());
        }
        Err(mistakes.join("; "))
    }
}

fn quote(text: &str) -> String {
    let cut = callboard_domain::cut_utf16(text, QUOTE_UTF16_MAX);
    if cut.len() == text.len() {
        return text.to_owned();
    }
    format!("{cut}…")
}

/// Walks the schema once: depth, and references that would leave it.
fn inspect(schema: &Value, depth: usize) -> Result<(), SchemaError> {
    if depth > SCHEMA_DEPTH_MAX {
        return Err(SchemaError::TooDeep);
    }
    match schema {
        Value::Object(members) => {
            for (name, member) in members {
                let reference = matches!(name.as_str(), "$ref" | "$dynamicRef");
                if let (true, Value::String(target)) = (reference, member)
                    && !target.starts_with('#')
                {
                    return Err(SchemaError::ForeignReference(quote(target)));
                }
                inspect(member, depth + 1)?;
            }
            Ok(())
        }
        Value::Array(items) => items.iter().try_for_each(|item| inspect(item, depth + 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn mistakes_are_named_with_their_place() {
        let schema = Schema::object(&json!({
            "type": "object",
            "properties": { "folder": { "type": "string" } },
            "required": ["folder"],
        }))
        .unwrap();
        assert_eq!(schema.check(&json!({ "folder": "~/notes" })), Ok(()));
        let mistake = schema.check(&json!({ "folder": 1 })).unwrap_err();
        assert!(
            mistake.starts_with("/folder: 1 is not of type"),
            "{mistake}"
        );
        let mistake = schema.check(&json!({})).unwrap_err();
        assert!(
            mistake.contains("\"folder\" is a required property"),
            "{mistake}"
        );
    }

    #[test]
    fn only_local_references_work() {
        let local = json!({ "type": "object", "$ref": "#/$defs/a", "$defs": { "a": {} } });
        assert!(Schema::object(&local).is_ok());
        for target in [
            "https://example.org/s.json",
            "file:///etc/passwd",
            "other.json",
        ] {
            let foreign = json!({ "type": "object", "properties": { "a": { "$ref": target } } });
            assert!(matches!(
                Schema::object(&foreign),
                Err(SchemaError::ForeignReference(_))
            ));
        }
    }

    #[test]
    fn hostile_schemas_are_refused_or_harmless() {
        assert_eq!(
            Schema::object(&json!({})).unwrap_err(),
            SchemaError::NotAnObject
        );
        let invalid = json!({ "type": "object", "required": 3 });
        assert!(matches!(
            Schema::object(&invalid),
            Err(SchemaError::Invalid(_))
        ));
        let long = json!({ "type": "object", "description": "x".repeat(SCHEMA_BYTES_MAX) });
        assert!(matches!(
            Schema::object(&long),
            Err(SchemaError::TooLarge(_))
        ));
        let mut deep = json!({});
        for _ in 0..100 {
            deep = json!({ "not": deep });
        }
        assert_eq!(Schema::any(&deep).unwrap_err(), SchemaError::TooDeep);
        let backtracking = Schema::any(&json!({ "pattern": "^(a+)+$" })).unwrap();
        assert!(
            backtracking
                .check(&json!(format!("{}b", "a".repeat(40))))
                .is_err()
        );
        let endless = Schema::any(&json!({ "$ref": "#" })).unwrap();
        assert_eq!(endless.check(&json!(1)), Ok(()));
    }
}
