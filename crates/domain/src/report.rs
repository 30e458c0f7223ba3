//! What a desktop reports of a finished run, and how it is bounded: all or nothing.

use std::fmt;

use crate::limits::{ERROR_UTF16_MAX, RESULT_UTF16_MAX};
use crate::{Digest, ExecutionId, cut_utf16, utf16_len};

/// The status that a desktop reports for a run that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FinalStatus {
    /// The Graph returned a result.
    Completed,
    /// The Graph, the engine or the desktop failed.
    Failed,
    /// The run was stopped, or never began because consent was gone.
    Cancelled,
}

impl FinalStatus {
    /// Every final status a desktop can report.
    pub const ALL: [Self; 3] = [Self::Completed, Self::Failed, Self::Cancelled];

    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for FinalStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What is kept of a finished run beside its status.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Report {
    /// The result as the engine's own JSON text.
    pub result: Option<String>,
    /// The result was too long to travel; the whole of it stays on the desktop.
    pub result_truncated: bool,
    /// Why the run failed or was cancelled, at most [`ERROR_UTF16_MAX`] UTF-16 units.
    pub error: Option<String>,
    /// Tokens that the run used.
    pub total_tokens: Option<u64>,
    /// What the providers said the run cost, in US dollars.
    pub reported_cost: Option<f64>,
}

impl Report {
    /// A report that holds nothing but a reason, cut to its bound.
    pub fn of_error(error: &str) -> Self {
        Self {
            error: Some(bound_error(error)),
            ..Self::default()
        }
    }

    /// Whether the hub may store this report: the payload and the error lie within their bounds.
    pub fn is_within_bounds(&self, status: FinalStatus) -> bool {
        self.error
            .as_deref()
            .is_none_or(|error| utf16_len(error) <= ERROR_UTF16_MAX)
            && payload_utf16_len(self, status) <= RESULT_UTF16_MAX
    }

    /// The digest that tells a repeated completion from a different one.
    pub fn digest(&self, execution_id: Option<ExecutionId>, status: FinalStatus) -> Digest {
        let execution = execution_id.map(|id| *id.as_bytes());
        let tokens = self.total_tokens.map(u64::to_be_bytes);
        let cost = self.reported_cost.map(|cost| cost.to_bits().to_be_bytes());
        let optional = |text: Option<&[u8]>| {
            [
                [u8::from(text.is_some())].as_slice(),
                text.unwrap_or_default(),
            ]
            .concat()
        };
        Digest::of(&[
            status.as_str().as_bytes(),
            &optional(execution.as_ref().map(<[u8; 16]>::as_slice)),
            &optional(self.result.as_deref().map(str::as_bytes)),
            &[u8::from(self.result_truncated)],
            &optional(self.error.as_deref().map(str::as_bytes)),
            &optional(tokens.as_ref().map(<[u8; 8]>::as_slice)),
            &optional(cost.as_ref().map(<[u8; 8]>::as_slice)),
        ])
    }
}

/// Cuts an error to [`ERROR_UTF16_MAX`] UTF-16 units without splitting a character.
pub fn bound_error(error: &str) -> String {
    cut_utf16(error, ERROR_UTF16_MAX).to_owned()
}

/// Applies the published rule to a report that is about to travel: the payload
/// `{execution_id, status, result, total_tokens, reported_cost}` when its JSON has at most
/// [`RESULT_UTF16_MAX`] UTF-16 units, otherwise `{execution_id, status, result_truncated: true}`.
pub fn bound_report(report: Report, status: FinalStatus) -> Report {
    let error = report.error.as_deref().map(bound_error);
    if payload_utf16_len(&report, status) <= RESULT_UTF16_MAX {
        return Report { error, ..report };
    }
    Report {
        error,
        result_truncated: true,
        ..Report::default()
    }
}

/// Every execution id is written as a hyphenated UUID.
const EXECUTION_ID_CHARS: usize = 36;

/// Length of the published payload in UTF-16 units, without building it.
fn payload_utf16_len(report: &Report, status: FinalStatus) -> usize {
    let Some(result) = report.result.as_deref() else {
        return 0;
    };
    let tokens = report
        .total_tokens
        .map_or_else(|| "null".to_owned(), |n| n.to_string());
    let cost = report
        .reported_cost
        .map_or_else(|| "null".to_owned(), |n| n.to_string());
    let envelope = format!(
        r#"{{"execution_id":"","status":"{status}","result":,"total_tokens":{tokens},"reported_cost":{cost}}}"#
    );
    envelope.len() + EXECUTION_ID_CHARS + utf16_len(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: ExecutionId = ExecutionId::from_bytes([7; 16]);

    fn payload(result: &str) -> String {
        format!(
            r#"{{"execution_id":"{ID}","status":"completed","result":{result},"total_tokens":0,"reported_cost":0}}"#
        )
    }

    fn report(result: String) -> Report {
        Report {
            result: Some(result),
            total_tokens: Some(0),
            reported_cost: Some(0.0),
            ..Report::default()
        }
    }

    #[test]
    fn the_limit_counts_utf16_units_of_the_whole_payload_for_every_script() {
        let room = RESULT_UTF16_MAX - utf16_len(&payload(r#""""#));
        for (unit, units) in [
            ("a", 1),
            ("\u{65e5}", 1),
            ("\u{1F600}", 2),
            ("\\\"", 2),
            ("\\n", 2),
        ] {
            let fitting = format!("\"{}\"", unit.repeat(room / units));
            assert!(utf16_len(&payload(&fitting)) <= RESULT_UTF16_MAX);
            let kept = bound_report(report(fitting.clone()), FinalStatus::Completed);
            assert_eq!(kept, report(fitting), "{unit}");
            assert!(kept.is_within_bounds(FinalStatus::Completed));

            let long = format!("\"{}\"", unit.repeat(room / units + 1));
            assert!(!report(long.clone()).is_within_bounds(FinalStatus::Completed));
            let cut = bound_report(report(long), FinalStatus::Completed);
            assert_eq!(
                cut,
                Report {
                    result_truncated: true,
                    ..Report::default()
                },
                "{unit}"
            );
        }
    }

    #[test]
    fn the_published_largest_text_fits_and_one_character_more_does_not() {
        // 99,899 characters were published for an envelope of 101: two quotes and 99 of fields.
        for unit in ["a", "\u{65e5}"] {
            let text = |count: usize| format!("\"{}\"", unit.repeat(count));
            let envelope = utf16_len(&payload(""));
            let count = 99_899 + 99 - envelope;
            assert_eq!(utf16_len(&payload(&text(count))), 100_000);
            assert!(report(text(count)).is_within_bounds(FinalStatus::Completed));
            assert!(!report(text(count + 1)).is_within_bounds(FinalStatus::Completed));
        }
    }

    #[test]
    fn every_field_changes_the_digest() {
        let base = report("1".into());
        let status = FinalStatus::Completed;
        let digest = base.digest(Some(ID), status);
        let others = [
            Report {
                result: Some("1.0".into()),
                ..base.clone()
            },
            Report {
                result: None,
                ..base.clone()
            },
            Report {
                result: Some(String::new()),
                ..base.clone()
            },
            Report {
                result_truncated: true,
                ..base.clone()
            },
            Report {
                error: Some(String::new()),
                ..base.clone()
            },
            Report {
                total_tokens: None,
                ..base.clone()
            },
            Report {
                reported_cost: None,
                ..base.clone()
            },
        ];
        for other in others {
            assert_ne!(other.digest(Some(ID), status), digest, "{other:?}");
        }
        assert_ne!(base.digest(None, status), digest);
        assert_ne!(base.digest(Some(ID), FinalStatus::Failed), digest);
    }
}
