//! The bus of a channel, and who wants it.

use flashwright_config::BusOrder;
use serde::{Deserialize, Serialize};

/// What a command wants the bus for.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Wish {
    pub since: u64,
    pub sequence: u64,
    pub id: u32,
    /// Whether it sends a command alone, without data.
    pub is_command: bool,
    pub held: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Bus {
    /// Until when it is held.
    pub free_at: u64,
    /// Whether an event comes at that time: the holder's, or one for those that wait.
    pub wakes: bool,
    pub busy: u64,
    pub wishes: Vec<Wish>,
}

impl Bus {
    pub const FREE: Self = Self { free_at: 0, wakes: false, busy: 0, wishes: Vec::new() };

    /// Takes the wish that is granted: the one that has waited longest, ties to the earlier operation, unless `order`
    /// prefers commands or data.
    #[inline(always)]
    pub fn take(&mut self, order: BusOrder) -> Option<Wish> {
        let later = |wish: &Wish| match order {
            BusOrder::FirstCome => false,
            BusOrder::CommandsFirst => !wish.is_command,
            BusOrder::DataFirst => wish.is_command,
        };
        let at = (0..self.wishes.len()).min_by_key(|at| {
            let wish = &self.wishes[*at];
            (later(wish), wish.since, wish.sequence)
        })?;
        Some(self.wishes.swap_remove(at))
    }
}
