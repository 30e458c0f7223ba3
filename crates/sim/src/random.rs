//! Repeatable randomness: one seed, split into named streams, so that a new draw in one of them does
//! not shift the others.

use callboard_domain::{Digest, ExecutionId};
use callboard_relay::Draw;

/// One stream: xoshiro256++ (Blackman and Vigna, 2019), the same on every machine.
#[derive(Debug, Clone)]
pub(crate) struct Random([u64; 4]);

impl Random {
    /// The stream `name` of `seed`.
    pub(crate) fn stream(seed: u64, name: &str) -> Self {
        let digest = Digest::of(&[&seed.to_be_bytes(), name.as_bytes()]);
        let mut words = [0; 4];
        for (word, bytes) in words.iter_mut().zip(digest.as_bytes().chunks_exact(8)) {
            *word = bytes
                .iter()
                .fold(0, |word, byte| word << 8 | u64::from(*byte));
        }
        Self(words)
    }

    /// 64 random bits.
    pub(crate) fn next(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.0;
        let drawn = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        drawn
    }

    /// A number drawn evenly from `0..bound`; zero when `bound` is zero.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        let scaled = u128::from(self.next()) * u128::from(bound);
        u64::try_from(scaled >> 64).unwrap_or(0)
    }

    /// An index into something of this length; zero for an empty one.
    pub(crate) fn index(&mut self, length: usize) -> usize {
        let length = u64::try_from(length).unwrap_or(u64::MAX);
        usize::try_from(self.below(length)).unwrap_or(0)
    }

    /// True in `percent` of 100 draws. Certain cases draw nothing.
    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        percent > 0 && (percent >= 100 || self.below(100) < percent)
    }

    /// A number from 0 to below 1.
    #[allow(
        clippy::cast_precision_loss,
        reason = "the 53 bits that a double holds exactly"
    )]
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number of the standard normal distribution, by Box and Muller. The functions are `libm`'s:
    /// those of two platforms differ in their last bits.
    pub(crate) fn normal(&mut self) -> f64 {
        let (radius, angle) = (self.unit().max(f64::MIN_POSITIVE), self.unit());
        libm::sqrt(-2.0 * libm::log(radius)) * libm::cos(std::f64::consts::TAU * angle)
    }
}

impl Draw for Random {
    fn execution_id(&mut self) -> ExecutionId {
        let mut bytes = [0; 16];
        let (high, low) = bytes.split_at_mut(8);
        high.copy_from_slice(&self.next().to_be_bytes());
        low.copy_from_slice(&self.next().to_be_bytes());
        ExecutionId::from_bytes(bytes)
    }

    fn below(&mut self, bound: u64) -> u64 {
        Self::below(self, bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_repeatable_and_its_own() {
        let draw = |seed, name| Random::stream(seed, name).next();
        assert_eq!(draw(1, "network"), draw(1, "network"));
        assert_ne!(draw(1, "network"), draw(1, "people"));
        assert_ne!(draw(1, "network"), draw(2, "network"));
    }

    #[test]
    fn the_normal_distribution_has_its_mean_and_deviation() {
        let mut random = Random::stream(7, "normal");
        let drawn: Vec<f64> = (0..20_000).map(|_| random.normal()).collect();
        let mean = drawn.iter().sum::<f64>() / 20_000.0;
        let variance = drawn.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / 20_000.0;
        assert!(mean.abs() < 0.03, "{mean}");
        assert!((variance - 1.0).abs() < 0.05, "{variance}");
    }
}
