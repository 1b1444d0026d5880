//! Which die gets the bus of its channel.

use super::queue::NEVER;
use serde::{Deserialize, Serialize};
use std::hint::select_unpredictable;

/// What a die wants of its bus.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Want {
    /// Since when, or [`NEVER`].
    pub ready: u64,
    /// Sequence number of the entry that wants it.
    pub head: u64,
    /// Operations or copies left of that entry.
    pub left: u32,
    /// The phase for which the bus is wanted.
    pub phase: u8,
}

impl Want {
    pub const NOTHING: Want = Want { ready: NEVER, head: NEVER, left: 0, phase: 0 };

    /// Orders wants by the time since when, ties by issue.
    #[inline(always)]
    fn key(&self) -> u128 {
        u128::from(self.ready) << 64 | u128::from(self.head)
    }
}

/// A bus, and what its dies want of it. On a cache line of its own: all are looked at for every event.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[repr(align(64))]
pub(super) struct Channel {
    pub free_at: u64,
    pub busy: u64,
    /// The next grant: time and die.
    pub grant_at: u64,
    pub grant_die: u32,
    /// When the next die after that one wants the bus.
    pub rival_at: u64,
}

impl Channel {
    pub const FREE: Channel = Channel { free_at: 0, busy: 0, grant_at: NEVER, grant_die: 0, rival_at: NEVER };

    /// Chooses the die that gets the bus next, of those from `first` on that want it: the one ready longest, ties to the
    /// earlier operation.
    #[inline(always)]
    pub fn choose(&mut self, first: u32, wants: &[Want]) {
        // Without a branch: which die is first is a coin toss.
        let (ready, chosen) = if let [one, other] = wants {
            let other_is = other.key() < one.key();
            self.rival_at = one.ready.max(other.ready);
            (one.ready.min(other.ready), u32::from(other_is))
        } else {
            // Without what is known of the rival, the compiler makes branches of these.
            let (mut ready, mut head, mut chosen, mut rival_at) = (NEVER, NEVER, 0, NEVER);
            for (at, want) in (0u32..).zip(wants) {
                let better = want.key() < (u128::from(ready) << 64 | u128::from(head));
                rival_at = rival_at.min(want.ready.max(ready));
                ready = select_unpredictable(better, want.ready, ready);
                head = select_unpredictable(better, want.head, head);
                chosen = select_unpredictable(better, at, chosen);
            }
            self.rival_at = rival_at;
            (ready, chosen)
        };
        self.grant_at = ready.max(self.free_at);
        self.grant_die = first + chosen;
    }

    /// As [`Channel::choose`], but of the dies that are ready when the bus is free, those that want it for a `preferred`
    /// phase come first; one bit per phase.
    #[inline(never)]
    pub fn choose_preferred(&mut self, first: u32, wants: &[Want], preferred: u16) {
        self.choose(first, wants);
        let waiting = wants.iter().enumerate().filter(|(_, want)| want.ready <= self.grant_at && want.ready != NEVER);
        let Some((chosen, _)) =
            waiting.min_by_key(|(_, want)| (preferred >> want.phase & 1 == 0, want.ready, want.head))
        else {
            return;
        };
        self.grant_die = first + u32::try_from(chosen).expect("dies are counted in 32 bits");
        let rivals = wants.iter().enumerate().filter(|(at, _)| *at != chosen);
        self.rival_at = rivals.map(|(_, want)| want.ready).min().unwrap_or(NEVER);
    }
}
