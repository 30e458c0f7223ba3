//! Random bytes, and the ids and secrets made of them.

use std::sync::{Arc, Mutex, PoisonError};

use callboard_domain::{Digest, GraphSessionId, Timestamp};

/// A source of random bytes. Cheap to clone; clones of a seeded source share its state.
#[derive(Debug, Clone)]
pub struct Entropy(Source);

#[derive(Debug, Clone)]
enum Source {
    System,
    Seeded(Arc<Mutex<Stream>>),
}

#[derive(Debug)]
struct Stream {
    seed: [u8; 32],
    block: u64,
}

impl Entropy {
    /// The operating system's generator.
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// A repeatable stream: the same `seed` and `name` give the same bytes on every machine. Use
    /// one name a component, so that a new draw in one does not shift the others.
    pub fn seeded(seed: u64, name: &str) -> Self {
        let seed = *Digest::of(&[&seed.to_be_bytes(), name.as_bytes()]).as_bytes();
        Self(Source::Seeded(Arc::new(Mutex::new(Stream {
            seed,
            block: 0,
        }))))
    }

    /// Fills `buffer` with random bytes.
    ///
    /// # Panics
    /// When the operating system has no randomness to give, which leaves nothing safe to do.
    #[allow(
        clippy::disallowed_methods,
        clippy::expect_used,
        reason = "randomness enters here, and a hub without it must stop, not guess"
    )]
    pub fn fill(&self, buffer: &mut [u8]) {
        match &self.0 {
            Source::System => {
                getrandom::fill(buffer).expect("the operating system gives random bytes");
            }
            Source::Seeded(stream) => {
                let mut stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
                for chunk in buffer.chunks_mut(32) {
                    let block = Digest::of(&[&stream.seed, &stream.block.to_be_bytes()]);
                    stream.block += 1;
                    chunk.copy_from_slice(&block.as_bytes()[..chunk.len()]);
                }
            }
        }
    }

    /// A number drawn evenly from `0..bound`; zero when `bound` is zero.
    pub fn below(&self, bound: u64) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        let scaled = u128::from(u64::from_be_bytes(bytes)) * u128::from(bound);
        u64::try_from(scaled >> 64).unwrap_or(0)
    }

    /// The 16 bytes of a time-ordered UUID (version 7): rows inserted together lie together in
    /// an index, and 74 random bits keep the id from being guessed.
    pub fn uuid_v7(&self, now: Timestamp) -> [u8; 16] {
        let mut bytes = self.uuid_bytes(7);
        let millis = u64::try_from(now.as_millis()).unwrap_or(0).to_be_bytes();
        bytes[..6].copy_from_slice(&millis[2..]);
        bytes
    }

    /// The 16 bytes of a random UUID (version 4).
    pub fn uuid_v4(&self) -> [u8; 16] {
        self.uuid_bytes(4)
    }

    /// A new Graph session id: 128 random bits.
    pub fn graph_session_id(&self) -> GraphSessionId {
        let mut bytes = [0; 16];
        self.fill(&mut bytes);
        GraphSessionId::from_bytes(bytes)
    }

    /// A secret with 256 random bits: `prefix` and 64 lowercase hex digits.
    pub fn secret(&self, prefix: &str) -> String {
        let mut bytes = [0; 32];
        self.fill(&mut bytes);
        let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
        digits.fold(prefix.to_owned(), |secret, digits| secret + &digits)
    }

    fn uuid_bytes(&self, version: u8) -> [u8; 16] {
        let mut bytes = [0; 16];
        self.fill(&mut bytes);
        bytes[6] = (bytes[6] & 0x0f) | (version << 4);
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        bytes
    }
}

#[cfg(test)]
mod tests {
    use callboard_domain::CommandId;

    use super::*;

    #[test]
    fn the_same_seed_and_name_give_the_same_bytes_and_another_name_others() {
        let draw = |seed, name| Entropy::seeded(seed, name).secret("");
        assert_eq!(draw(7, "ids"), draw(7, "ids"));
        assert_ne!(draw(7, "ids"), draw(7, "network"));
        assert_ne!(draw(7, "ids"), draw(8, "ids"));
    }

    #[test]
    fn time_ordered_ids_sort_by_time_and_carry_their_version() {
        let entropy = Entropy::system();
        let early = CommandId::from_bytes(entropy.uuid_v7(Timestamp::from_millis(1_000)));
        let late = CommandId::from_bytes(entropy.uuid_v7(Timestamp::from_millis(2_000)));
        assert!(early < late);
        assert_eq!(early.to_string().as_bytes()[14], b'7');
        assert_eq!(
            CommandId::from_bytes(entropy.uuid_v4())
                .to_string()
                .as_bytes()[14],
            b'4'
        );
    }

    #[test]
    fn a_bounded_draw_stays_below_its_bound_and_reaches_all_of_it() {
        let entropy = Entropy::seeded(1, "bound");
        let mut seen = [false; 5];
        for _ in 0..200 {
            seen[usize::try_from(entropy.below(5)).unwrap_or(9)] = true;
        }
        assert_eq!(seen, [true; 5]);
        assert_eq!(entropy.below(0), 0);
    }
}
