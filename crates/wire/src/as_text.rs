//! `#[serde(with = "as_text")]` for domain values that are written as their `Display` text.

use std::fmt::Display;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

/// Writes the value's text.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// Reads the value from its text.
///
/// # Errors
/// A text that is not such a value, or no text at all.
pub fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: FromStr<Err: Display>,
    D: Deserializer<'de>,
{
    let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
    text.parse().map_err(D::Error::custom)
}

/// The same for a value that may be left out; use it with `default` and
/// `skip_serializing_if = "Option::is_none"`.
pub mod option {
    use super::{Deserialize, Deserializer, Display, FromStr, Serializer};
    use serde::de::Error as _;

    /// Writes the value's text, or null.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<T: Display, S: Serializer>(
        value: &Option<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => serializer.collect_str(value),
            None => serializer.serialize_none(),
        }
    }

    /// Reads the value from its text; null is no value.
    ///
    /// # Errors
    /// A text that is not such a value.
    pub fn deserialize<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| text.parse().map_err(D::Error::custom))
            .transpose()
    }
}
