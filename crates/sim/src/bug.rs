//! Faults that are planted in the simulator's ports, one an invariant, to show that each invariant
//! fires. They exist here only; nothing that is shipped knows them.

use std::fmt;

/// A planted fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bug {
    /// a: a start does not find the command of its idempotency key.
    KeyForgotten,
    /// b: a completion is not kept in the outbox.
    OutboxLost,
    /// c: a run begins without a look at the consent.
    ConsentIgnored,
    /// d: a completed run is failed later on.
    EndRewritten,
    /// e: a foreign command is told apart from an unknown one.
    ForeignTold,
    /// f: a completion counts under whatever execution it names.
    FenceIgnored,
    /// g: a claim takes over before the lease ends.
    LeaseIgnored,
    /// h: each submit of a chat is a new result.
    SubmitAppends,
    /// i: a start that the hub refused is taken for granted.
    RefusalIgnored,
    /// j: tasks expire an hour early.
    ExpiresEarly,
    /// k: a result is stored without its bound.
    ResultUnbounded,
    /// l: a desktop runs two commands in its one slot.
    SlotIgnored,
    /// m: ids come from outside of the seed.
    IdsFromOutside,
}

impl Bug {
    /// All of them, in the order of their invariants.
    pub const ALL: [Self; 13] = [
        Self::KeyForgotten,
        Self::OutboxLost,
        Self::ConsentIgnored,
        Self::EndRewritten,
        Self::ForeignTold,
        Self::FenceIgnored,
        Self::LeaseIgnored,
        Self::SubmitAppends,
        Self::RefusalIgnored,
        Self::ExpiresEarly,
        Self::ResultUnbounded,
        Self::SlotIgnored,
        Self::IdsFromOutside,
    ];

    /// The invariant that finds it, a letter from a to m.
    pub const fn invariant(self) -> char {
        match self {
            Self::KeyForgotten => 'a',
            Self::OutboxLost => 'b',
            Self::ConsentIgnored => 'c',
            Self::EndRewritten => 'd',
            Self::ForeignTold => 'e',
            Self::FenceIgnored => 'f',
            Self::LeaseIgnored => 'g',
            Self::SubmitAppends => 'h',
            Self::RefusalIgnored => 'i',
            Self::ExpiresEarly => 'j',
            Self::ResultUnbounded => 'k',
            Self::SlotIgnored => 'l',
            Self::IdsFromOutside => 'm',
        }
    }
}

impl fmt::Display for Bug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.invariant())
    }
}
