//! One conformance suite for every store; never shipped.
