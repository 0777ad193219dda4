//! Fuzz targets on stable Rust: a committed corpus, mutations of it, and the smallest input that
//! breaks a rule.
//!
//! A target is a test beside the code that it is about, named `fuzz_…`, which may call what is
//! private. Its corpus is a folder of `tests/fuzz/corpora`. `cargo test` checks every file of it and
//! some mutations, as many as `PROPTEST_CASES` says; with `RAMPART_FUZZ_SECONDS` set a target goes on
//! for so long (`make fuzz`). An input that breaks the rule is written into the corpus, to be committed
//! with what mends it.
//!
//! Coverage-guided engines want every package compiled once more with instrumentation; the targets
//! take bytes and panic, as such an engine expects.

#![expect(clippy::panic, clippy::unwrap_used, reason = "what a test cannot do must fail it")]

mod mutation;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use proptest::strategy::Strategy as _;
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};

use self::mutation::Mutation;

/// Most mutations of one input.
const MUTATIONS_MAX: usize = 8;
/// Inputs between two looks at the clock.
const BATCH: u32 = 2_000;
/// Most bytes of an input that a failure shows.
const SHOWN_BYTES_MAX: usize = 200;
/// Runs that make a found input smaller.
const SHRINKS_MAX: u32 = 4_000;

/// Checks that no input breaks a rule: `check` panics on one that does.
///
/// # Panics
/// With the smallest input found that breaks it, once that is written into the corpus; without a
/// corpus of this name.
pub fn fuzz(target: &str, check: impl Fn(&[u8])) {
    fuzz_with(target, &[], check);
}

/// The same, with inputs that a corpus cannot have because the test makes them.
///
/// # Panics
/// As [`fuzz`].
pub fn fuzz_with(target: &str, made: &[Vec<u8>], check: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpora").join(target);
    let corpus = corpus(&folder);
    for (path, input) in &corpus {
        println!("{target}: {}", path.display());
        check(input);
    }
    made.iter().for_each(|input| check(input));
    let corpus = corpus.into_iter().map(|(_, input)| input).chain(made.iter().cloned());
    let corpus: Vec<Vec<u8>> = corpus.collect();
    let mut inputs = corpus.len();
    let Some(time) = time() else {
        run(&folder, &corpus, Config::default().cases, &check);
        return;
    };
    let began = now();
    while began.elapsed() < time {
        run(&folder, &corpus, BATCH, &check);
        inputs += BATCH as usize;
    }
    println!("{target}: {inputs} inputs in {} s", time.as_secs());
}

/// Every file of a target's corpus, by name.
fn corpus(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let files =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} is empty", folder.display());
    paths.into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// Checks so many mutations of the corpus.
fn run(folder: &Path, corpus: &[Vec<u8>], cases: u32, check: &impl Fn(&[u8])) {
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: SHRINKS_MAX,
        ..Config::default()
    };
    let mutations =
        proptest::collection::vec(proptest::arbitrary::any::<Mutation>(), 1..=MUTATIONS_MAX);
    let inputs = (0..corpus.len(), mutations).prop_map(|(index, mutations)| {
        mutations.iter().fold(corpus[index].clone(), |input, mutation| mutation.of(input, corpus))
    });
    let found = TestRunner::new(config).run(&inputs, |input| {
        check(&input);
        Ok::<(), TestCaseError>(())
    });
    if let Err(TestError::Fail(reason, input)) = found {
        let path = folder.join(format!("found-{:016x}", fingerprint(&input)));
        fs::write(&path, &input).unwrap();
        let begin = &input[..input.len().min(SHOWN_BYTES_MAX)];
        panic!("{reason}\nin {}: {}", path.display(), begin.escape_ascii());
    }
    found.unwrap();
}

/// FNV-1a of an input, for the name of its file.
fn fingerprint(input: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    input.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[expect(clippy::disallowed_methods, reason = "a test has no configuration to read it from")]
fn time() -> Option<Duration> {
    let seconds = std::env::var("RAMPART_FUZZ_SECONDS").ok()?;
    Some(Duration::from_secs(seconds.parse().unwrap()))
}

#[expect(clippy::disallowed_methods, reason = "a run is measured, no decision of the service")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// The corpus of the self-test.
    const SEED: &[u8] = b"seed";

    #[test]
    fn a_broken_rule_is_found_and_its_input_kept() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpora/self-test");
        // Every run has mutations that make the seed longer.
        let found = catch_unwind(|| {
            fuzz("self-test", |input| assert!(input.len() <= SEED.len()));
        });
        let kept: Vec<_> = corpus(&folder).into_iter().filter(|(_, input)| input != SEED).collect();
        for (path, input) in &kept {
            fs::remove_file(path).unwrap();
            assert!(input.len() > SEED.len(), "{input:?}");
        }
        assert!(found.is_err() && kept.len() == 1, "{} kept", kept.len());
    }

    #[test]
    fn a_rule_that_holds_is_checked_with_the_corpus_and_its_mutations() {
        let (inputs, seeds) = (AtomicUsize::new(0), AtomicUsize::new(0));
        fuzz("caip19", |input| {
            inputs.fetch_add(1, Ordering::Relaxed);
            seeds.fetch_add(usize::from(input == b"eip155:1/slip44:60"), Ordering::Relaxed);
        });
        assert!(inputs.into_inner() > 100 && seeds.into_inner() > 0);
    }
}
