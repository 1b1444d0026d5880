//! The vectors of a function (PCI Local Bus 3.0, section 6.8.2): their table, and those that wait.
//!
//! A virtual machine monitor keeps the table itself and ties vectors to descriptors, so what a host writes into the table here is
//! kept and changes nothing. A vector that is raised while it is tied to nothing, or masked, is pending, and signalled later.

use super::{Errno, Host};
use crate::subsystem::IO_QUEUES_MAX;
use crate::wire::{put, u32_at};
use std::collections::BTreeSet;

/// Vectors: one for each queue.
pub const VECTORS: u16 = IO_QUEUES_MAX + 1;
/// Bytes of an entry of the table: an address, a message, and whether it is masked.
const ENTRY_BYTES: usize = 16;

/// The state of the vectors.
#[derive(Debug)]
pub(crate) struct Msix {
    table: Vec<u8>,
    pending: BTreeSet<u16>,
    masked: BTreeSet<u16>,
}

/// Flags of [`super::command::DEVICE_SET_IRQS`].
mod irq {
    /// No data; booleans; descriptors.
    pub const NONE: u32 = 1;
    pub const BOOLS: u32 = 1 << 1;
    pub const DESCRIPTORS: u32 = 1 << 2;
    pub const MASK: u32 = 1 << 3;
    pub const UNMASK: u32 = 1 << 4;
    pub const TRIGGER: u32 = 1 << 5;
}

impl Default for Msix {
    fn default() -> Self {
        let mut table = vec![0; ENTRY_BYTES * usize::from(VECTORS)];
        table.chunks_exact_mut(ENTRY_BYTES).for_each(|entry| entry[12] = 1); // masked
        Self { table, pending: BTreeSet::new(), masked: BTreeSet::new() }
    }
}

impl Msix {
    /// The function is reset: what was pending is forgotten.
    pub fn reset(&mut self) {
        self.pending.clear();
    }

    /// Raises a vector.
    pub fn raise(&mut self, host: &impl Host, vector: u16) {
        if self.masked.contains(&vector) || !host.signal(vector) {
            self.pending.insert(vector);
        }
    }

    /// Signals vectors that could not be signalled when they were raised.
    fn catch_up(&mut self, host: &impl Host) {
        let masked = &self.masked;
        self.pending.retain(|vector| masked.contains(vector) || !host.signal(*vector));
    }

    /// A byte of the table.
    pub fn table(&self, at: usize) -> u8 {
        self.table.get(at).copied().unwrap_or(0)
    }

    /// Keeps what a host writes into the table.
    pub fn set_table(&mut self, at: usize, bytes: &[u8]) {
        if at + bytes.len() <= self.table.len() {
            put(&mut self.table, at, bytes);
        }
    }

    /// A byte of the pending bits.
    pub fn pending(&self, at: usize) -> u8 {
        (0..8).fold(0, |byte, bit| byte | u8::from(self.is_pending(8 * at + bit)) << bit)
    }

    fn is_pending(&self, vector: usize) -> bool {
        u16::try_from(vector).is_ok_and(|vector| self.pending.contains(&vector))
    }

    /// What [`super::command::DEVICE_SET_IRQS`] does to vectors: its fields, and what follows them.
    ///
    /// # Errors
    /// [`Errno::INVALID`] for vectors that there are not, or data that do not fit.
    pub fn set(&mut self, host: &mut impl Host, body: &[u8], data: &[u8]) -> Result<(), Errno> {
        let (flags, first, count) = (u32_at(body, 4), u32_at(body, 12), u32_at(body, 16));
        let end = first.checked_add(count).filter(|end| *end <= u32::from(VECTORS)).ok_or(Errno::INVALID)?;
        let [first, count, end] = [first, count, end].map(|each| u16::try_from(each).unwrap_or(VECTORS));
        let (kind, action) = (flags & 0x7, flags & !0x7);
        let chosen: Vec<u16> = match kind {
            irq::NONE => (first..end).collect(),
            irq::BOOLS if data.len() < usize::from(count) => return Err(Errno::INVALID),
            irq::BOOLS => (first..end).zip(data).filter(|(_, is_chosen)| **is_chosen != 0).map(|(at, _)| at).collect(),
            irq::DESCRIPTORS if action == irq::TRIGGER => {
                host.tie(first, count)?;
                self.catch_up(host);
                return Ok(());
            }
            _ => return Err(Errno::INVALID),
        };
        match action {
            irq::TRIGGER if kind == irq::NONE && count == 0 => host.tie(0, VECTORS)?,
            irq::TRIGGER => chosen.into_iter().for_each(|vector| self.raise(host, vector)),
            irq::MASK => self.masked.extend(chosen),
            irq::UNMASK => {
                chosen.iter().for_each(|vector| _ = self.masked.remove(vector));
                self.catch_up(host);
            }
            _ => return Err(Errno::INVALID),
        }
        Ok(())
    }
}
