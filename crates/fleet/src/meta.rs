//! `export const meta = {…}`: what a Graph says about itself, read without running it.

mod literal;

use std::ops::Range;

use callboard_agents::Schema;
use callboard_domain::limits::{DESCRIPTION_UTF16_MAX, NAME_UTF16_MAX};
use callboard_domain::utf16_len;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::limits::{AGENT_CALLS_HARD, MAX_CONCURRENCY_HARD, WALL_S_HARD};
use crate::script::ScriptError;
use literal::Header;

/// What a Graph says about itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Meta {
    /// Short name for lists.
    pub name: String,
    /// What it does, for people and for models that choose among Graphs.
    pub description: String,
    /// When to choose it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when_to_use: Option<String>,
    /// The phases it announces, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<Phase>,
    /// JSON Schema of its arguments; an object at the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Value>,
    /// JSON Schema of its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// The limits it sets itself.
    #[serde(default)]
    pub limits: Limits,
}

/// One announced phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phase {
    /// The title that `phase(title)` will use.
    pub title: String,
    /// What happens in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// Limits of a run. A Graph sets some in `meta.limits`, the owner others; the tighter one holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Token cap of the run. 0 lets no agent start; absent means no cap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Agent and tool calls at the same time, 1 to 64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<u32>,
    /// Agent calls of the run, at most 1,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<u32>,
    /// Longest run in seconds, at most a day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_s: Option<u64>,
}

impl Limits {
    /// The tighter of both limits, one by one.
    #[must_use]
    pub fn tightened_by(self, other: Self) -> Self {
        fn tighter<T: Ord>(left: Option<T>, right: Option<T>) -> Option<T> {
            match (left, right) {
                (Some(left), Some(right)) => Some(left.min(right)),
                (left, right) => left.or(right),
            }
        }
        Self {
            tokens: tighter(self.tokens, other.tokens),
            max_concurrency: tighter(self.max_concurrency, other.max_concurrency),
            agents: tighter(self.agents, other.agents),
            wall_s: tighter(self.wall_s, other.wall_s),
        }
    }
}

const KNOWN_KEYS: [&str; 7] = [
    "name",
    "description",
    "whenToUse",
    "phases",
    "args",
    "result",
    "limits",
];

/// Reads `meta` and where the word `export` stands.
pub(crate) fn read(source: &str) -> Result<(Meta, Range<usize>), ScriptError> {
    let header = literal::read(source)?;
    let export = header.export.clone();
    Ok((
        Checker {
            source,
            header: &header,
        }
        .check()?,
        export,
    ))
}

struct Checker<'a> {
    source: &'a str,
    header: &'a Header,
}

impl Checker<'_> {
    fn check(&self) -> Result<Meta, ScriptError> {
        let Value::Object(members) = &self.header.value else {
            return Err(self.error("", "meta must be an object: `{ name, description, … }`"));
        };
        if let Some(key) = members
            .keys()
            .find(|key| !KNOWN_KEYS.contains(&key.as_str()))
        {
            let known = KNOWN_KEYS.join(", ");
            return Err(self.error(key, format!("meta has no key `{key}`; it knows {known}")));
        }
        self.text("name", NAME_UTF16_MAX)?;
        self.text("description", DESCRIPTION_UTF16_MAX)?;
        let meta: Meta = serde_json::from_value(self.header.value.clone()).map_err(|error| {
            let key = self.wrong_key(members);
            self.error(key, format!("meta is wrong: {error}"))
        })?;
        if let Some(schema) = &meta.args {
            Schema::object(schema)
                .map_err(|error| self.error("args", format!("meta.args: {error}")))?;
        }
        if let Some(schema) = &meta.result {
            Schema::any(schema)
                .map_err(|error| self.error("result", format!("meta.result: {error}")))?;
        }
        self.range(
            "max_concurrency",
            meta.limits.max_concurrency,
            MAX_CONCURRENCY_HARD,
        )?;
        self.range("agents", meta.limits.agents, AGENT_CALLS_HARD)?;
        self.range("wall_s", meta.limits.wall_s, WALL_S_HARD)?;
        Ok(meta)
    }

    /// A required text that is not empty.
    fn text(&self, key: &str, utf16_max: usize) -> Result<(), ScriptError> {
        match self.header.value.get(key) {
            None => Err(self.error("", format!("meta has no `{key}`: every Graph needs one"))),
            Some(Value::String(text)) if text.trim().is_empty() => {
                Err(self.error(key, format!("meta.{key} is empty")))
            }
            Some(Value::String(text)) if utf16_len(text) > utf16_max => {
                let message = format!("meta.{key} is longer than {utf16_max} characters");
                Err(self.error(key, message))
            }
            Some(Value::String(_)) => Ok(()),
            Some(_) => Err(self.error(key, format!("meta.{key} must be a string"))),
        }
    }

    fn range<T: PartialOrd + From<u8> + std::fmt::Display>(
        &self,
        name: &str,
        value: Option<T>,
        max: T,
    ) -> Result<(), ScriptError> {
        match value {
            Some(value) if value < T::from(1) || value > max => {
                let message = format!("meta.limits.{name} must lie between 1 and {max}");
                Err(self.error("limits", message))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The first member that does not read on its own, so that the error points at it.
    fn wrong_key<'a>(&self, members: &'a serde_json::Map<String, Value>) -> &'a str {
        let reads = |key: &str, value: &Value| {
            let mut probe = serde_json::json!({ "name": "n", "description": "d" });
            probe[key] = value.clone();
            serde_json::from_value::<Meta>(probe).is_ok()
        };
        members
            .iter()
            .find(|(key, value)| !reads(key, value))
            .map_or("", |(key, _)| key.as_str())
    }

    /// An error at a member of `meta`, or at its beginning when the key is empty or missing.
    fn error(&self, key: &str, message: impl Into<String>) -> ScriptError {
        let offset = self
            .header
            .members
            .iter()
            .find(|(name, _)| name == key)
            .map_or(self.header.start, |(_, offset)| *offset);
        ScriptError::at(self.source, offset, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_meta_is_read_without_running_anything() {
        let source = "// @ts-check\n/* a\n comment */\nexport const meta = {\n  name: 'n', \
                      'description': \"d\" + ' e', whenToUse: `w`,\n  phases: [{ title: 'one', \
                      detail: 'x' }],\n  args: { type: 'object' }, limits: { tokens: 50_000, \
                      max_concurrency: 4 },\n};\nreturn 1\n";
        let (meta, export) = read(source).unwrap();
        assert_eq!(&source[export], "export");
        assert_eq!(meta.description, "d e");
        assert_eq!(meta.limits.tokens, Some(50_000));
        assert_eq!(meta.phases[0].detail.as_deref(), Some("x"));
    }

    #[test]
    fn what_is_missing_or_wrong_is_named_with_its_place() {
        let place = |source: &str| {
            let error = read(source).unwrap_err();
            (error.line, error.column, error.message)
        };
        let (line, column, message) = place("return 1");
        assert_eq!((line, column), (1, 1));
        assert!(message.contains("export const meta"), "{message}");
        let (line, column, message) = place("\nexport const meta = { name: 'n' }");
        assert_eq!((line, column), (2, 21));
        assert!(message.contains("no `description`"), "{message}");
        let base = "export const meta = { name: 'n', description: 'd',\n  ";
        for (rest, column, words) in [
            ("arg: {} }", 3, "no key `arg`"),
            (
                "args: { type: 'array' } }",
                3,
                "meta.args: the schema must describe an object",
            ),
            ("limits: { max_concurrency: 65 } }", 3, "between 1 and 64"),
            ("limits: { token: 1 } }", 3, "unknown field `token`"),
            ("phases: [1] }", 3, "meta is wrong"),
            ("whenToUse: x }", 14, "pure literal"),
            ("whenToUse: f() }", 14, "pure literal"),
            ("whenToUse: `${1}` }", 15, "pure literal"),
            ("...other }", 3, "pure literal"),
            ("[name]: 1 }", 3, "pure literal"),
        ] {
            let (line, found, message) = place(&format!("{base}{rest}"));
            assert_eq!((line, found), (2, column), "{rest}: {message}");
            assert!(message.contains(words), "{rest}: {message}");
        }
    }

    #[test]
    fn the_tighter_limit_holds_and_zero_is_a_limit() {
        let own = Limits {
            tokens: Some(100),
            agents: Some(5),
            ..Limits::default()
        };
        let owner = Limits {
            tokens: Some(0),
            wall_s: Some(9),
            ..Limits::default()
        };
        let both = own.tightened_by(owner);
        assert_eq!(
            both,
            Limits {
                tokens: Some(0),
                agents: Some(5),
                wall_s: Some(9),
                max_concurrency: None
            }
        );
    }
}
