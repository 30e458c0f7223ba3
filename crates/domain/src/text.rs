//! Text whose length is counted the way the published system counts it.

use std::borrow::Cow;

/// What one "character" of a limit is (mission.md, "Character").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextUnit {
    /// A UTF-16 code unit: what JavaScript's `length` counts.
    Utf16,
    /// A Unicode code point: what JSON Schema's `maxLength` counts.
    CodePoint,
}

/// An inclusive range of lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextBound {
    /// Shortest permitted length, in `unit`.
    pub min: usize,
    /// Longest permitted length, in `unit`.
    pub max: usize,
    /// What is counted.
    pub unit: TextUnit,
}

impl TextBound {
    /// Whether the length of `text` lies in the range.
    pub fn admits(&self, text: &str) -> bool {
        let length = match self.unit {
            TextUnit::Utf16 => utf16_len(text),
            TextUnit::CodePoint => text.chars().count(),
        };
        (self.min..=self.max).contains(&length)
    }
}

/// Whether `character` has no place within one line: a control character, or an end of a line or
/// paragraph.
pub fn ends_line(character: char) -> bool {
    character.is_control() || matches!(character, '\u{2028}' | '\u{2029}')
}

/// Whether `character` can change what people see of the text around it: one that ends a line, or
/// turns the direction of writing.
pub fn is_deceptive(character: char) -> bool {
    ends_line(character) || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether people see nothing of `text`: white space, and characters that have no shape.
pub fn is_blank(text: &str) -> bool {
    let shapeless = |character| {
        matches!(
            character,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'
                | '\u{1160}'
                | '\u{17b4}'
                | '\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{2800}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{e0000}'..='\u{e0fff}'
        )
    };
    text.chars().all(|character| {
        character.is_whitespace() || character.is_control() || shapeless(character)
    })
}

/// Length of `text` in UTF-16 code units.
pub fn utf16_len(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// The longest prefix of `text` that has at most `units_max` UTF-16 code units. A character that
/// would be split is left out, so the prefix may be one unit shorter.
pub fn cut_utf16(text: &str, units_max: usize) -> &str {
    let mut units = 0;
    for (offset, character) in text.char_indices() {
        units += character.len_utf16();
        if units > units_max {
            return &text[..offset];
        }
    }
    text
}

/// Replaces each lone half of a surrogate pair in a JSON text by U+FFFD, written as an escape of
/// the same length. Two valid escaped halves stay as they are.
///
/// JavaScript's `JSON.stringify` writes a lone half as an escape that strict parsers refuse.
pub fn mend_surrogates(json: &str) -> Cow<'_, str> {
    let bytes = json.as_bytes();
    let mut mended = String::new();
    let mut copied_to = 0;
    let mut at = 0;
    while let Some(offset) = bytes
        .get(at..)
        .and_then(|rest| rest.iter().position(|b| *b == b'\\'))
    {
        let escape = at + offset;
        at = match surrogate(bytes, escape) {
            Some(Half::High) if surrogate(bytes, escape + 6) == Some(Half::Low) => escape + 12,
            Some(Half::High | Half::Low) => {
                mended.push_str(&json[copied_to..escape]);
                mended.push_str("\\ufffd");
                copied_to = escape + 6;
                copied_to
            }
            None => escape + 2,
        };
    }
    if copied_to == 0 {
        return Cow::Borrowed(json);
    }
    mended.push_str(&json[copied_to..]);
    Cow::Owned(mended)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Half {
    High,
    Low,
}

/// Which half of a pair the escape that starts at `at` stands for, if it is one.
fn surrogate(bytes: &[u8], at: usize) -> Option<Half> {
    let escape = bytes.get(at..at + 6)?;
    if escape[0] != b'\\' || escape[1] != b'u' || !escape[2].eq_ignore_ascii_case(&b'd') {
        return None;
    }
    if !escape[4..].iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    match escape[3].to_ascii_lowercase() {
        b'8' | b'9' | b'a' | b'b' => Some(Half::High),
        b'c'..=b'f' => Some(Half::Low),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_cut_never_splits_a_character() {
        let text = format!("{}\u{1F600}b", "a".repeat(1_999));
        assert_eq!(cut_utf16(&text, 2_000), "a".repeat(1_999));
        assert_eq!(
            cut_utf16(&"\u{d55c}".repeat(5_000), 2_000),
            "\u{d55c}".repeat(2_000)
        );
        assert_eq!(cut_utf16("abc", 3), "abc");
        assert_eq!(cut_utf16("abc", 0), "");
    }

    #[test]
    fn code_points_and_utf16_units_differ_outside_the_basic_plane() {
        let emoji = "\u{1F600}";
        let one = |unit| TextBound {
            min: 1,
            max: 1,
            unit,
        };
        assert!(one(TextUnit::CodePoint).admits(emoji));
        assert!(!one(TextUnit::Utf16).admits(emoji));
    }

    #[test]
    fn text_without_a_shape_is_blank_and_joined_emoji_are_not() {
        for blank in [
            "",
            " \t\n",
            "\u{200b}",
            "\u{feff} \u{2060}",
            "\u{3164}",
            "\u{2800}\u{e0020}",
        ] {
            assert!(is_blank(blank), "{blank:?}");
        }
        for seen in [
            "a",
            "\u{200b}a",
            "\u{1F469}\u{200d}\u{1F4BB}",
            "\u{d55c}",
            ".",
        ] {
            assert!(!is_blank(seen), "{seen:?}");
        }
    }

    #[test]
    fn lone_halves_become_the_replacement_character_and_pairs_stay() {
        for (json, expected) in [
            (r#""\ud83d""#, r#""\ufffd""#),
            (r#""a\uD83D b""#, r#""a\ufffd b""#),
            (r#""\ude00\ud83d""#, r#""\ufffd\ufffd""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
            (r#""\\ud83d""#, r#""\\ud83d""#),
            (r#""\\\ud83d""#, r#""\\\ufffd""#),
            (r#"{"k":[1,"\n"]}"#, r#"{"k":[1,"\n"]}"#),
            ("\"\\", "\"\\"),
        ] {
            assert_eq!(mend_surrogates(json), expected, "{json}");
        }
    }

    proptest! {
        #[test]
        fn a_cut_is_a_prefix_within_the_bound_and_no_longer_one_exists(
            text in "\\PC{0,60}", max in 0usize..80,
        ) {
            let cut = cut_utf16(&text, max);
            prop_assert!(text.starts_with(cut));
            prop_assert!(utf16_len(cut) <= max);
            if let Some(next) = text[cut.len()..].chars().next() {
                prop_assert!(utf16_len(cut) + next.len_utf16() > max);
            }
        }

        #[test]
        fn mending_keeps_the_length_and_is_stable(
            parts in proptest::collection::vec(
                prop_oneof!["\\\\ud8[0-9a-f]{2}", "\\\\udc[0-9a-f]{2}", "[a-z\\\\\\\\]{0,3}"], 0..12),
        ) {
            let json = parts.concat();
            let once = mend_surrogates(&json).into_owned();
            prop_assert_eq!(once.len(), json.len());
            prop_assert_eq!(mend_surrogates(&once).into_owned(), once);
        }
    }
}
