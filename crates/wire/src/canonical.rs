//! One text for each JSON value, whatever order and number style it was written in.

use serde_json::{Number, Value};

/// Integers up to this magnitude are exact in JavaScript, so `1` and `1.0` are the same there.
const EXACT_INTEGER_MAX: f64 = 9_007_199_254_740_992.0;

/// Writes `value` with sorted keys and whole numbers without a fraction, so that requests of
/// equal meaning have equal text.
pub fn canonical_json(value: &Value) -> String {
    let mut text = String::new();
    write_value(value, &mut text);
    text
}

fn write_value(value: &Value, text: &mut String) {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => text.push_str(&value.to_string()),
        Value::Number(number) => write_number(number, text),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_value(item, text);
            }
            text.push(']');
        }
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_unstable_by(|a, b| a.0.cmp(b.0));
            text.push('{');
            for (index, (name, field)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write_value(field, text);
            }
            text.push('}');
        }
    }
}

fn write_number(number: &Number, text: &mut String) {
    let whole = number
        .as_f64()
        .filter(|_| number.is_f64())
        .filter(|float| float.fract() == 0.0 && float.abs() <= EXACT_INTEGER_MAX);
    match whole {
        // Adding zero turns -0 into 0.
        Some(float) => text.push_str(&format!("{:.0}", float + 0.0)),
        None => text.push_str(&number.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(json: &str) -> String {
        canonical_json(&serde_json::from_str(json).expect("valid JSON"))
    }

    #[test]
    fn key_order_and_number_style_do_not_matter() {
        assert_eq!(canonical(r#"{"b":2,"a":1.0}"#), r#"{"a":1,"b":2}"#);
        assert_eq!(
            canonical(r#"{"a":[{"d":-0.0,"c":1e2}]}"#),
            r#"{"a":[{"c":100,"d":0}]}"#
        );
        assert_eq!(canonical("[1.5, 1e300, \"\\u00e9\"]"), "[1.5,1e+300,\"é\"]");
    }

    #[test]
    fn order_of_items_and_type_do_matter() {
        assert_ne!(canonical("[1,2]"), canonical("[2,1]"));
        assert_ne!(canonical("1"), canonical("\"1\""));
        assert_ne!(canonical(r#"{"a":null}"#), canonical("{}"));
    }
}
