//! Addresses inside the drive. Each is its own type, so that a page can't be mistaken for a block.

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// The number as an index into a table kept by this id.
            #[inline(always)]
            #[must_use]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id! {
    /// Logical page number: what the host addresses.
    Lpn
}
id! {
    /// Physical page number: a page of the flash.
    Ppn
}
id! {
    /// A block, counted over the whole drive, plane by plane.
    BlockId
}
id! {
    /// A plane, counted over the whole drive, die by die.
    PlaneId
}
id! {
    /// A die, counted over the whole drive, channel by channel.
    DieId
}
