//! `#[serde(deserialize_with = "present")]` for a raw JSON value where null is a value, not "left out".

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Reads the value that is there, null included. Use it with `default`.
pub(crate) fn present<'de, D>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error>
where
    D: Deserializer<'de>,
{
    Box::<RawValue>::deserialize(deserializer).map(Some)
}
