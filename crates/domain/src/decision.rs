//! What a pure machine answers to an event it accepts.

/// The outcome of an accepted event. A refused one is an `Err(Refusal)` beside it.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision<S> {
    /// The event changed something: store this value.
    Moved(S),
    /// The same request as before: give the first answer again. A replay is a success.
    Replayed,
    /// Nothing to do, and that is fine.
    Unchanged,
}

impl<S> Decision<S> {
    /// The value to store, if the event changed something.
    pub fn moved(self) -> Option<S> {
        match self {
            Self::Moved(next) => Some(next),
            Self::Replayed | Self::Unchanged => None,
        }
    }
}

/// Decides on what time alone made of `stored`: `settled`, or `stored` itself where that is `None`.
/// What was settled is stored even when the event then changes nothing; a replay stores nothing.
pub(crate) fn decide_on_settled<S: Clone, R>(
    stored: &S,
    settled: Option<S>,
    decide: impl FnOnce(&S) -> Result<Decision<S>, R>,
) -> Result<Decision<S>, R> {
    let Some(settled) = settled else {
        return decide(stored);
    };
    Ok(match decide(&settled)? {
        Decision::Moved(next) => Decision::Moved(next),
        Decision::Replayed => Decision::Replayed,
        Decision::Unchanged => Decision::Moved(settled),
    })
}
