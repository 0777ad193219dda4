//! Choices that a seed decides, whatever runs beside them.

/// A generator of choices (SplitMix64).
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    /// The choices of one place of a run: equal for an equal seed and path.
    pub(crate) fn new(seed: u64, path: &[u64]) -> Self {
        let mut dice = Self(seed);
        for part in path {
            dice = Self(dice.next() ^ part.wrapping_mul(0xa076_1d64_78bd_642f));
        }
        dice
    }

    /// As [`Dice::new`], of a place with a name.
    pub(crate) fn named(seed: u64, name: &str, path: &[u64]) -> Self {
        let name = name.bytes().fold(7_u64, |sum, byte| sum.wrapping_mul(31) ^ u64::from(byte));
        Self::new(seed ^ name, path)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `most`.
    pub(crate) fn below(&mut self, most: usize) -> usize {
        let most = u64::try_from(most).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next() % most).unwrap_or(0)
    }

    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// One of several by its weight.
    pub(crate) fn weigh<T: Copy>(&mut self, of: &[(usize, T)]) -> T {
        let mut place = self.below(of.iter().map(|(weight, _)| weight).sum());
        for (weight, one) in of {
            if place < *weight {
                return *one;
            }
            place -= weight;
        }
        of[0].1
    }

    pub(crate) fn shuffle<T>(&mut self, of: &mut [T]) {
        for index in (1..of.len()).rev() {
            of.swap(index, self.below(index + 1));
        }
    }
}
