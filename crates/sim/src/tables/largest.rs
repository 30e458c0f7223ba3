//! The largest result that is not truncated.

use callboard_domain::{FinalStatus, Report, bound_report};

use super::bench::put;
use super::{Figures, Mode};

/// Characters of an execution id of ours, and of the published one: with an id of 14 characters the
/// published envelope has its 101.
const ID_CHARACTERS: (usize, usize) = (36, 14);
/// Bytes of one Japanese character in UTF-8.
const JAPANESE_BYTES: usize = 3;

#[allow(clippy::cast_precision_loss, reason = "a hundred thousand")]
pub(super) fn measure(_seed: u64, _mode: Mode, figures: &mut Figures) {
    let (ours, published) = ID_CHARACTERS;
    let largest = largest("x");
    let as_published = largest + ours - published;
    let japanese = (self::largest("\u{65e5}") + ours - published) * JAPANESE_BYTES;
    put(figures, "largest.uuid", largest as f64);
    put(figures, "largest.characters", as_published as f64);
    put(figures, "largest.japanese", japanese as f64);
}

/// The most characters of a text that fit, by bisection of the real rule.
fn largest(character: &str) -> usize {
    let fits = |characters: usize| {
        let report = Report {
            result: Some(format!("\"{}\"", character.repeat(characters))),
            total_tokens: Some(0),
            reported_cost: Some(0.0),
            ..Report::default()
        };
        !bound_report(report, FinalStatus::Completed).result_truncated
    };
    let (mut fitting, mut too_long) = (0, 200_000);
    while too_long - fitting > 1 {
        let middle = usize::midpoint(fitting, too_long);
        if fits(middle) {
            fitting = middle;
        } else {
            too_long = middle;
        }
    }
    fitting
}
