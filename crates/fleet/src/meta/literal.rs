//! Reads the literal behind `export const meta =`. Nothing but literals is understood, so that
//! reading a Graph never runs it.

use std::ops::Range;

use serde_json::{Map, Number, Value};

use crate::limits::META_DEPTH_MAX;
use crate::script::ScriptError;

/// What stands at the beginning of a Graph.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) value: Value,
    /// Where the word `export` stands.
    pub(super) export: Range<usize>,
    /// Where the literal begins.
    pub(super) start: usize,
    /// The members of the outermost object and where each begins.
    pub(super) members: Vec<(String, usize)>,
}

pub(super) fn read(source: &str) -> Result<Header, ScriptError> {
    let mut parser = Parser {
        source,
        at: 0,
        members: Vec::new(),
    };
    if source.starts_with('\u{feff}') {
        parser.at = '\u{feff}'.len_utf8();
    }
    if parser.rest().starts_with("#!") {
        parser.skip_line();
    }
    parser.skip_blank()?;
    let begin = parser.at;
    for word in ["export", "const", "meta", "="] {
        parser.skip_blank()?;
        if !parser.take_word(word) {
            let message = "a Graph begins with `export const meta = { name: '…', description: \
                           '…' }` as its first statement";
            return Err(ScriptError::at(source, begin, message));
        }
    }
    parser.skip_blank()?;
    let start = parser.at;
    let value = parser.value(0)?;
    parser.skip_spaces_and_comments_of_line()?;
    let ends = matches!(parser.peek(), None | Some(';' | '\n' | '\r'));
    if !ends {
        return Err(parser.not_pure());
    }
    let export = begin..begin + "export".len();
    Ok(Header {
        value,
        export,
        start,
        members: parser.members,
    })
}

struct Parser<'a> {
    source: &'a str,
    at: usize,
    members: Vec<(String, usize)>,
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        &self.source[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.at += character.len_utf8();
        Some(character)
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    /// Takes a word, or a sign, that ends where it should.
    fn take_word(&mut self, word: &str) -> bool {
        let Some(behind) = self.rest().strip_prefix(word) else {
            return false;
        };
        if word != "=" && behind.chars().next().is_some_and(is_name_part) {
            return false;
        }
        self.at += word.len();
        true
    }

    fn error(&self, message: impl Into<String>) -> ScriptError {
        ScriptError::at(self.source, self.at, message)
    }

    fn not_pure(&self) -> ScriptError {
        let found = match self.peek() {
            None => "the end of the script".to_owned(),
            Some(character) if is_name_part(character) => {
                let name: String = self
                    .rest()
                    .chars()
                    .take_while(|c| is_name_part(*c))
                    .collect();
                format!("`{}`", callboard_domain::cut_utf16(&name, 40))
            }
            Some(character) => format!("`{character}`"),
        };
        self.error(format!(
            "meta must be a pure literal (strings, numbers, true, false, null, arrays, objects): \
             found {found}"
        ))
    }

    fn skip_line(&mut self) {
        let length = self.rest().find('\n').unwrap_or(self.rest().len());
        self.at += length;
    }

    fn skip_block_comment(&mut self) -> Result<(), ScriptError> {
        match self.rest().find("*/") {
            Some(length) => {
                self.at += length + 2;
                Ok(())
            }
            None => Err(self.error("this comment never ends")),
        }
    }

    /// Skips white space and comments.
    fn skip_blank(&mut self) -> Result<(), ScriptError> {
        loop {
            if self.rest().starts_with("//") {
                self.skip_line();
            } else if self.rest().starts_with("/*") {
                self.skip_block_comment()?;
            } else if self
                .peek()
                .is_some_and(|c| c.is_whitespace() || c == '\u{feff}')
            {
                self.next();
            } else {
                return Ok(());
            }
        }
    }

    /// The same, but stays on its line.
    fn skip_spaces_and_comments_of_line(&mut self) -> Result<(), ScriptError> {
        loop {
            if self.rest().starts_with("//") {
                self.skip_line();
            } else if self.rest().starts_with("/*") {
                self.skip_block_comment()?;
            } else if self
                .peek()
                .is_some_and(|c| c.is_whitespace() && c != '\n' && c != '\r')
            {
                self.next();
            } else {
                return Ok(());
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, ScriptError> {
        if depth > META_DEPTH_MAX {
            return Err(self.error(format!(
                "meta is nested deeper than {META_DEPTH_MAX} levels"
            )));
        }
        match self.peek() {
            Some('{') => self.object(depth),
            Some('[') => self.array(depth),
            Some('"' | '\'' | '`') => self.text().map(Value::String),
            Some('-' | '.' | '0'..='9') => self.number(),
            Some(_) | None => {
                for (word, value) in [
                    ("true", Value::Bool(true)),
                    ("false", Value::Bool(false)),
                    ("null", Value::Null),
                ] {
                    if self.take_word(word) {
                        return Ok(value);
                    }
                }
                Err(self.not_pure())
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, ScriptError> {
        self.next();
        let mut members = Map::new();
        loop {
            self.skip_blank()?;
            if self.take('}') {
                return Ok(Value::Object(members));
            }
            let place = self.at;
            let key = self.key()?;
            if key == "__proto__" {
                self.at = place;
                return Err(self.not_pure());
            }
            self.skip_blank()?;
            if !self.take(':') {
                return Err(self.not_pure());
            }
            self.skip_blank()?;
            let value = self.value(depth + 1)?;
            if depth == 0 {
                self.members.push((key.clone(), place));
            }
            members.insert(key, value);
            self.skip_blank()?;
            if !self.take(',') && self.peek() != Some('}') {
                return Err(self.not_pure());
            }
        }
    }

    fn key(&mut self) -> Result<String, ScriptError> {
        match self.peek() {
            Some('"' | '\'') => self.text(),
            Some('0'..='9') => Ok(self.number()?.to_string()),
            Some(character) if is_name_part(character) => {
                let name: String = self
                    .rest()
                    .chars()
                    .take_while(|c| is_name_part(*c))
                    .collect();
                self.at += name.len();
                Ok(name)
            }
            Some(_) | None => Err(self.not_pure()),
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, ScriptError> {
        self.next();
        let mut items = Vec::new();
        loop {
            self.skip_blank()?;
            if self.take(']') {
                return Ok(Value::Array(items));
            }
            items.push(self.value(depth + 1)?);
            self.skip_blank()?;
            if !self.take(',') && self.peek() != Some(']') {
                return Err(self.not_pure());
            }
        }
    }

    /// One string, or several joined by `+`.
    fn text(&mut self) -> Result<String, ScriptError> {
        let mut text = self.one_text()?;
        loop {
            let end = self.at;
            self.skip_blank()?;
            if !self.take('+') {
                self.at = end;
                return Ok(text);
            }
            self.skip_blank()?;
            match self.peek() {
                Some('"' | '\'' | '`') => text.push_str(&self.one_text()?),
                Some(_) | None => return Err(self.not_pure()),
            }
        }
    }

    fn one_text(&mut self) -> Result<String, ScriptError> {
        let place = self.at;
        let quote = self.next();
        let mut units: Vec<u16> = Vec::new();
        loop {
            if quote == Some('`') && self.rest().starts_with("${") {
                return Err(self.not_pure());
            }
            match self.next() {
                character if character == quote && character.is_some() => {
                    return Ok(String::from_utf16_lossy(&units));
                }
                Some('\\') => self.escape(&mut units)?,
                Some('\n' | '\r') if quote != Some('`') => break,
                Some(character) => {
                    units.extend(character.encode_utf16(&mut [0; 2]).iter());
                }
                None => break,
            }
        }
        self.at = place;
        Err(self.error("this string never ends"))
    }

    fn escape(&mut self, units: &mut Vec<u16>) -> Result<(), ScriptError> {
        let simple = match self.next() {
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('v') => '\u{b}',
            Some('0') if !self.peek().is_some_and(|c| c.is_ascii_digit()) => '\0',
            Some('\n') => return Ok(()),
            Some('\r') => {
                self.take('\n');
                return Ok(());
            }
            Some('x') => return self.hex(2, units),
            Some('u') if self.take('{') => {
                let digits: String = self.rest().chars().take_while(|c| *c != '}').collect();
                let code = u32::from_str_radix(&digits, 16)
                    .ok()
                    .and_then(char::from_u32);
                let Some(character) = code else {
                    return Err(self.error("this escape is no character"));
                };
                self.at += digits.len() + 1;
                character
            }
            Some('u') => return self.hex(4, units),
            Some('1'..='9' | '0') | None => return Err(self.error("this escape is no character")),
            Some(character) => character,
        };
        units.extend(simple.encode_utf16(&mut [0; 2]).iter());
        Ok(())
    }

    fn hex(&mut self, digits: usize, units: &mut Vec<u16>) -> Result<(), ScriptError> {
        let unit = self
            .rest()
            .get(..digits)
            .filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|text| u16::from_str_radix(text, 16).ok());
        let Some(unit) = unit else {
            return Err(self.error("this escape is no character"));
        };
        self.at += digits;
        units.push(unit);
        Ok(())
    }

    fn number(&mut self) -> Result<Value, ScriptError> {
        let place = self.at;
        let negative = self.take('-');
        let mut digits: String = self
            .rest()
            .chars()
            .scan(' ', |previous, character| {
                let sign = matches!(character, '+' | '-') && matches!(*previous, 'e' | 'E');
                *previous = character;
                (is_name_part(character) || character == '.' || sign).then_some(character)
            })
            .collect();
        self.at += digits.len();
        digits.retain(|character| character != '_');
        let number = match digits.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok().map(Number::from),
            None => decimal(&digits),
        };
        let number = number.and_then(|number| {
            if negative {
                negated(&number)
            } else {
                Some(number)
            }
        });
        number.map(Value::Number).ok_or_else(|| {
            self.at = place;
            self.error("this is no number that meta can hold")
        })
    }
}

fn decimal(digits: &str) -> Option<Number> {
    if let Ok(whole) = digits.parse::<u64>() {
        return Some(Number::from(whole));
    }
    let begins = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let number = if begins {
        digits.parse::<f64>().ok()?
    } else {
        return None;
    };
    Number::from_f64(number)
}

fn negated(number: &Number) -> Option<Number> {
    match number.as_u64() {
        Some(whole) => i64::try_from(whole).ok().map(|whole| Number::from(-whole)),
        None => Number::from_f64(-number.as_f64()?),
    }
}

fn is_name_part(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '$')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn value(literal: &str) -> Result<Value, ScriptError> {
        read(&format!("export const meta = {literal}")).map(|header| header.value)
    }

    #[test]
    fn literals_mean_what_they_mean_in_the_language() {
        for (literal, expected) in [
            ("{}", json!({})),
            (
                "{ a: 1, 'b': -2, \"c\": 1_000, d: 0x10, e: .5, f: 1e3, 7: true, }",
                json!({ "a": 1, "b": -2, "c": 1000, "d": 16, "e": 0.5, "f": 1000.0, "7": true }),
            ),
            ("[1, [null, false], ]", json!([1, [null, false]])),
            (
                r#"'a\n\t\'\x41\u0042\u{1F600}\ud83d\ude00\
b'"#,
                json!("a\n\t'AB\u{1F600}\u{1F600}b"),
            ),
            (r"'\ud83d'", json!("\u{fffd}")),
            ("`two\nlines`", json!("two\nlines")),
            ("'a' + /* b */ 'c'; // d", json!("ac")),
            (
                "{ \u{d55c}: '\u{d55c}' }\nreturn 1",
                json!({ "\u{d55c}": "\u{d55c}" }),
            ),
        ] {
            assert_eq!(value(literal).unwrap(), expected, "{literal}");
        }
    }

    #[test]
    fn everything_else_is_refused_and_never_loops_or_panics() {
        for literal in [
            "",
            "{",
            "[",
            "'",
            "'\\",
            "'\\u{",
            "'\\u12",
            "'\\x'",
            "{a",
            "{a:",
            "{a:1",
            "{a 1}",
            "{a}",
            "{a(){}}",
            "{get a(){}}",
            "{__proto__: 1}",
            "1 + 1",
            "x",
            "1n",
            "NaN",
            "--1",
            "'a' + 1",
            "{a: 1} satisfies Meta",
            "/* ",
            "'\n'",
            "1..2",
            "0x",
            "99999999999999999999e999",
        ] {
            assert!(value(literal).is_err(), "{literal}");
        }
        assert!(value(&"[".repeat(100_000)).is_err());
    }
}
