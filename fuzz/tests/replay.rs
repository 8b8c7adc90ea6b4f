//! Every fuzz target on its seeds, and on inputs that are made of them: the same ones each time, so
//! that an ordinary test run finds what a change has broken. `.ci/fuzz` looks for what is new.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Inputs made for each target.
const MADE: usize = 150;

/// Pieces of a larger input are made from no more of it, as by libFuzzer.
const LONGEST: usize = 70_000;

/// One test, as targets watch the memory that the process takes.
#[test]
fn every_target_survives_its_seeds_and_what_is_made_of_them() {
    for name in tamis_fuzz::names() {
        let target = tamis_fuzz::target(&name).expect("a name of a target");
        let seeds = seeds(&name);
        assert!(!seeds.is_empty(), "{name} has no seeds");
        let mut random = Random(1);
        let made = (0..MADE).map(|_| random.input(&seeds));
        for input in seeds.iter().cloned().chain(made.collect::<Vec<_>>()) {
            if catch_unwind(AssertUnwindSafe(|| target(&input))).is_err() {
                let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{name}"));
                fs::write(&kept, &input).unwrap();
                panic!("fuzz target {name} failed on {}", kept.display());
            }
        }
    }
}

/// Those of the target, or else the golden files.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let own = here.join("seeds").join(target);
    let golden = here.join("../crates/tamis/tests/golden");
    let folder = if own.is_dir() { own } else { golden };
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    let mut files: Vec<PathBuf> = files.filter(|path| path.is_file()).collect();
    // Folders have no order of their own.
    files.sort();
    files.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    /// A number below `end`, or 0.
    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// A seed with one to four changes.
    fn input(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut input = seeds[self.below(seeds.len())].clone();
        input.truncate(LONGEST);
        for _ in 0..=self.below(4) {
            let other = &seeds[self.below(seeds.len())];
            self.change(&mut input, other);
        }
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, other: &[u8]) {
        // Half of the changes are where headers are, which decide the most.
        let near = [input.len(), input.len().min(160)][self.below(2)];
        let at = self.below(near);
        match self.below(6) {
            0 | 1 if !input.is_empty() => input[at] ^= 1 << self.below(8),
            2 => input.truncate(at),
            3 => {
                let end = other.len().min(LONGEST);
                let from = self.below(end);
                let len = self.below(end - from + 1);
                input.truncate(at);
                input.extend_from_slice(&other[from..from + len]);
            }
            4 => {
                // A number of a header, or a length that a text has.
                let numbers = [0, 1, 0x7F, 0x80, u64::MAX, 1 << 32, u64::MAX >> 1, 1 << 63];
                let number = numbers[self.below(numbers.len())].to_le_bytes();
                let len = [1, 2, 4, 8][self.below(4)].min(input.len() - at);
                input[at..at + len].copy_from_slice(&number[..len]);
            }
            _ => input.insert(at, self.next() as u8),
        }
    }
}
