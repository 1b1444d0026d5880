//! How long a target of fuzzing goes on, and how many inputs it had.

use std::io::Write as _;
use std::time::{Duration, Instant};

/// Rounds of a target: as many as usual and always the same; or new ones for `FLASHWRIGHT_FUZZ_SECONDS`; or until it has had
/// `FLASHWRIGHT_FUZZ_INPUTS` inputs, which are the same each time too. Each round has its own seed.
///
/// At the end it says on standard error how many inputs there were, if anybody has asked for a number or a time.
///
/// ```
/// let mut rounds = flashwright_testing::Rounds::new("an example", 3);
/// let mut seeds = Vec::new();
/// while let Some(seed) = rounds.next_seed() {
///     seeds.push(seed);
///     rounds.count(10); // inputs that were made with the seed
/// }
/// assert_eq!(seeds.len(), 3);
/// ```
#[derive(Debug)]
pub struct Rounds {
    name: &'static str,
    usual: u64,
    done: u64,
    inputs: u64,
    began: Instant,
    time: Option<Duration>,
    inputs_wanted: Option<u64>,
    first_seed: u64,
}

impl Rounds {
    /// Of a target that has `usual` rounds where nobody asks for more.
    ///
    /// # Panics
    /// If a variable of the environment is no number.
    #[must_use]
    pub fn new(name: &'static str, usual: u64) -> Self {
        let number = |name: &str| {
            let text = std::env::var(name).ok()?;
            Some(text.parse::<u64>().unwrap_or_else(|error| panic!("{name}: found {text:?}: {error}")))
        };
        let time = number("FLASHWRIGHT_FUZZ_SECONDS").map(Duration::from_secs);
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |now| now.as_nanos());
        let first_seed = if time.is_some() { u64::try_from(now & u128::from(u64::MAX)).unwrap_or_default() } else { 0 };
        let inputs_wanted = number("FLASHWRIGHT_FUZZ_INPUTS");
        Self { name, usual, done: 0, inputs: 0, began: Instant::now(), time, inputs_wanted, first_seed }
    }

    /// The seed of the next round; none if there is no further one.
    pub fn next_seed(&mut self) -> Option<u64> {
        let goes_on = match (self.time, self.inputs_wanted) {
            (Some(time), _) => self.began.elapsed() < time,
            (None, Some(wanted)) => self.inputs < wanted,
            (None, None) => self.done < self.usual,
        };
        goes_on.then(|| {
            self.done += 1;
            self.first_seed.wrapping_add(self.done)
        })
    }

    /// Counts inputs of the round.
    pub fn count(&mut self, inputs: u64) {
        self.inputs += inputs;
    }
}

impl Drop for Rounds {
    fn drop(&mut self) {
        if self.time.is_some() || self.inputs_wanted.is_some() {
            let Self { name, inputs, began, .. } = self;
            let _ = writeln!(std::io::stderr(), "{name}: {inputs} inputs in {:.0} s", began.elapsed().as_secs_f64());
        }
    }
}
