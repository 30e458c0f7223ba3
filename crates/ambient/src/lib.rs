//! The only source of time, ids and randomness.
//!
//! Everything else receives a [`Clock`] or an [`Entropy`], or plain values taken from them, so
//! that a test or a simulation decides what time it is and which ids appear.

mod clock;
mod entropy;

pub use clock::{Clock, ManualClock};
pub use entropy::Entropy;
