//! Postmark on a file system: many files created, read, appended to and deleted.

use super::application::{OnFiles, Program};
use super::settings::settings;
use super::value::{Length, Whole};
use super::{Describe, Fault};
use flashwright_block::{Bytes, Seed};
use flashwright_fs::{Misfit, PostmarkSettings};

settings! {
    /// Settings of `postmark`; defaults are the program's.
    pub struct PostmarkKeys {
        "files" files: Whole = "500", "Files created at the start; later there are at most twice as many.";
        "subdirectories" subdirectories: Whole = "0", "Directories that files are spread over; 0 for none.";
        "transactions" transactions: Whole = "500", "Transactions: each a read or an append, then a creation or a deletion.";
        "size" size: Option<Length> = "", "Size of every file; instead of size-low and size-high.";
        "size-low" low: Option<Length> = "", "Size of the smallest file; default 500B.";
        "size-high" high: Option<Length> = "", "Size of the largest file; default 10kB.";
        "read-block" read: Length = "512B", "Size of a read call.";
        "write-block" write: Length = "512B", "Size of a write call.";
        "bias-read" bias_read: Whole = "5", "Probability, in tenths, that a transaction reads rather than appends, 0 to 10.";
        "bias-create" bias_create: Whole = "5", "Probability, in tenths, that a transaction creates rather than deletes, 0 to 10.";
        "seed" seed: Option<Whole> = "", "Seed of the program's random numbers; default the seed of the run.";
    }
}

/// `postmark`.
pub type Postmark = OnFiles<PostmarkKeys>;

impl Describe for Postmark {
    const NAME: &'static str = "postmark";
    const SUMMARY: &'static str =
        "Postmark on a file system: files created, read, appended to and deleted, as by a mail server";
    const INTERACTIVE: bool = true;
}

impl PostmarkKeys {
    fn sizes(&self) -> (u64, u64) {
        match self.size {
            Some(size) => (size.0, size.0),
            None => (self.low.map_or(500, |low| low.0), self.high.map_or(10_000, |high| high.0)),
        }
    }
}

impl Program for PostmarkKeys {
    type Application = flashwright_fs::Postmark;

    fn check(&self, faults: &mut Vec<Fault>) {
        let (low, high) = self.sizes();
        if self.size.is_some() && (self.low.is_some() || self.high.is_some()) {
            faults.push(Fault::new(
                "size",
                "size with size-low or size-high",
                "either size, or size-low and size-high",
            ));
        }
        if low > high {
            faults.push(Fault::new("size-low", Bytes(low), format!("at most size-high, {}", Bytes(high))));
        }
        for (key, bias) in [("bias-read", self.bias_read), ("bias-create", self.bias_create)] {
            if bias.0 > 10 {
                faults.push(Fault::new(key, bias.0, "a probability in tenths, 0 to 10"));
            }
        }
        for (key, number) in [("files", self.files), ("subdirectories", self.subdirectories)] {
            if number.0 > 10_000_000 {
                faults.push(Fault::new(key, number.0, "at most 10000000"));
            }
        }
    }

    fn build(&self, seed: Seed, device_bytes: u64) -> Result<Self::Application, Misfit> {
        let number = |whole: Whole| u32::try_from(whole.0).unwrap_or(u32::MAX);
        let (size_low, size_high) = self.sizes();
        let settings = PostmarkSettings {
            files: number(self.files),
            subdirectories: number(self.subdirectories),
            transactions: number(self.transactions),
            size_low,
            size_high,
            read_block: self.read.0,
            write_block: self.write.0,
            bias_read: Some(number(self.bias_read)),
            bias_create: Some(number(self.bias_create)),
        };
        let program = flashwright_fs::Postmark::new(settings, self.seed.map_or(seed, |seed| Seed(seed.0)));
        program.check_room(device_bytes)?;
        Ok(program)
    }
}
