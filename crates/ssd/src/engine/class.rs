//! Classes of operations.

use flashwright_ftl::{CAUSES, Cause, FlashOp, OP_KINDS, OpKind};
use serde::{Deserialize, Serialize};

/// On whose behalf an operation runs. The order of a die may prefer one class to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum OpClass {
    /// A read that answers a host request, of a page or of a spare area.
    #[default]
    HostRead = 0,
    /// A program of host data, or of its padding.
    HostWrite = 1,
    /// A read or program of the mapping table that a host request waits for.
    Mapping = 2,
    /// A read, program or erase of cleaning or of a merge, including those of the mapping table.
    Cleaning = 3,
    /// A read, program or erase of wear levelling.
    WearLevelling = 4,
}

impl OpClass {
    /// All classes, by number.
    pub const ALL: [Self; 5] = [Self::HostRead, Self::HostWrite, Self::Mapping, Self::Cleaning, Self::WearLevelling];

    /// The class of an operation, by its kind and cause:
    ///
    /// | cause | read, spare-area read | program | erase |
    /// | --- | --- | --- | --- |
    /// | `Host` | `HostRead` | `HostWrite` | `Cleaning` |
    /// | `Padding` | `HostWrite` | `HostWrite` | `Cleaning` |
    /// | `Translation` | `Mapping` | `Mapping` | `Cleaning` |
    /// | `Gc`, `Merge`, `GcTranslation` | `Cleaning` | `Cleaning` | `Cleaning` |
    /// | `Wear` | `WearLevelling` | `WearLevelling` | `WearLevelling` |
    ///
    /// Every erase makes room, so it counts as cleaning whatever caused it, except in wear levelling. The read of a partial
    /// page before the host overwrites it counts as `HostRead`, since its cause is `Host`.
    ///
    /// ```
    /// # use flashwright_ftl::{Cause, FlashOp, OpKind};
    /// # use flashwright_nand::Ppn;
    /// # use flashwright_ssd::engine::OpClass;
    /// let op = FlashOp { ppn: Ppn(0), kind: OpKind::Read, cause: Cause::Host, after: 0, copies: 0 };
    /// assert_eq!(OpClass::of(&op), OpClass::HostRead);
    /// assert_eq!(OpClass::of(&FlashOp { cause: Cause::Merge, ..op }), OpClass::Cleaning);
    /// ```
    #[inline(always)]
    #[must_use]
    pub fn of(op: &FlashOp) -> Self {
        CLASSES[op.cause as usize][op.kind as usize]
    }

    const fn of_pair(cause: Cause, kind: OpKind) -> Self {
        match (cause, kind) {
            (Cause::Wear, _) => Self::WearLevelling,
            (Cause::Gc | Cause::Merge | Cause::GcTranslation, _) | (_, OpKind::Erase) => Self::Cleaning,
            (Cause::Host, OpKind::Read | OpKind::OobRead) => Self::HostRead,
            (Cause::Host | Cause::Padding, _) => Self::HostWrite,
            (Cause::Translation, _) => Self::Mapping,
        }
    }
}

/// By [`Cause`] and [`OpKind`]. A table, because branches on the cause are unpredictable.
const CLASSES: [[OpClass; OP_KINDS]; CAUSES] = {
    let causes =
        [Cause::Host, Cause::Gc, Cause::Merge, Cause::Padding, Cause::Translation, Cause::GcTranslation, Cause::Wear];
    let kinds = [OpKind::Read, OpKind::Program, OpKind::Erase, OpKind::OobRead];
    let mut classes = [[OpClass::HostRead; OP_KINDS]; CAUSES];
    let mut at = 0;
    while at < CAUSES * OP_KINDS {
        let (cause, kind) = (causes[at / OP_KINDS], kinds[at % OP_KINDS]);
        classes[cause as usize][kind as usize] = OpClass::of_pair(cause, kind);
        at += 1;
    }
    classes
};

#[cfg(test)]
mod tests {
    use super::*;
    use flashwright_nand::Ppn;

    #[test]
    fn the_class_of_each_cause_and_kind_is_that_of_the_table() {
        use OpClass::{Cleaning, HostRead, HostWrite, Mapping, WearLevelling};
        let kinds = [OpKind::Read, OpKind::OobRead, OpKind::Program, OpKind::Erase];
        for (cause, expected) in [
            (Cause::Host, [HostRead, HostRead, HostWrite, Cleaning]),
            (Cause::Padding, [HostWrite, HostWrite, HostWrite, Cleaning]),
            (Cause::Translation, [Mapping, Mapping, Mapping, Cleaning]),
            (Cause::Gc, [Cleaning; 4]),
            (Cause::Merge, [Cleaning; 4]),
            (Cause::GcTranslation, [Cleaning; 4]),
            (Cause::Wear, [WearLevelling; 4]),
        ] {
            let found = kinds.map(|kind| OpClass::of(&FlashOp { ppn: Ppn(0), kind, cause, after: 0, copies: 0 }));
            assert_eq!(found, expected, "{cause:?}");
        }
    }
}
