//! Which submission queue the drive takes its next command from: a file and a line of the list each.
//!
//! Requests name their queue ([`Request::queue`]) and its class ([`Request::priority`]). Commands of one queue are taken in order.

#[cfg(test)]
mod tests;

use crate::registry::{PolicySettings, policies};
use crate::{Arbiter, Request, Waiting};

/// An arbiter that users choose by name.
pub trait QueueArbiter: Arbiter + Sized {
    /// The name that users choose it by.
    const NAME: &'static str;
    /// One-line description, with its source.
    const ABOUT: &'static str;
    /// Its settings.
    type Settings: PolicySettings;

    /// Builds it, with nothing waiting.
    fn new(settings: &Self::Settings, context: ()) -> Self;
}

macro_rules! arbiters {
    ($($module:ident :: $arbiter:ident),+ $(,)?) => {
        policies! {
            key: "controller.queues.arbiter", trait: QueueArbiter, names: ArbiterName, settings: ArbiterSettings,
            running: AnyArbiter, context: ();
            $($module::$arbiter),+
        }

        impl Arbiter for AnyArbiter {
            #[inline(always)]
            fn push(&mut self, waiting: Waiting) {
                match self { $(Self::$arbiter(arbiter) => arbiter.push(waiting),)+ }
            }
            #[inline(always)]
            fn pick(&mut self, may_go: impl Fn(&Request) -> bool) -> Option<Waiting> {
                match self { $(Self::$arbiter(arbiter) => arbiter.pick(may_go),)+ }
            }
            fn len(&self) -> usize {
                match self { $(Self::$arbiter(arbiter) => arbiter.len(),)+ }
            }
        }
    };
}

arbiters! {
    fifo::Fifo,
    round_robin::RoundRobin,
    weighted::Weighted,
}
