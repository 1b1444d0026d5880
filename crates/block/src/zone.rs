//! The words of zoned drives: what a zone is like, why a request to one is refused, and what a device tells of its zones.

use crate::{Bytes, IoError};
use serde::{Deserialize, Serialize};

/// The state of a zone, with the number that NVMe has for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum ZoneState {
    /// Nothing is written.
    #[default]
    Empty = 0x1,
    /// Opened by a write.
    ImplicitlyOpen = 0x2,
    /// Opened by request.
    ExplicitlyOpen = 0x3,
    /// Written in part, and not open.
    Closed = 0x4,
    /// It takes no more writes until it is reset.
    ReadOnly = 0xd,
    /// Written to its capacity, or finished.
    Full = 0xe,
    /// It takes nothing.
    Offline = 0xf,
}

impl ZoneState {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 7] = [
        Self::Empty,
        Self::ImplicitlyOpen,
        Self::ExplicitlyOpen,
        Self::Closed,
        Self::ReadOnly,
        Self::Full,
        Self::Offline,
    ];

    /// Its name as users see it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::ImplicitlyOpen => "implicitly open",
            Self::ExplicitlyOpen => "explicitly open",
            Self::Closed => "closed",
            Self::ReadOnly => "read-only",
            Self::Full => "full",
            Self::Offline => "offline",
        }
    }

    /// Whether it is open.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::ImplicitlyOpen | Self::ExplicitlyOpen)
    }

    /// Whether it takes one of the drive's places for active zones.
    #[must_use]
    pub const fn is_active(self) -> bool {
        self.is_open() || matches!(self, Self::Closed)
    }
}

/// Writes [`ZoneRule`] with what each says.
macro_rules! rules {
    ($($(#[doc = $about:literal])+ $rule:ident = $name:literal, $says:literal;)+) => {
        /// A rule of zones that a request would break.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum ZoneRule { $($(#[doc = $about])+ $rule,)+ }

        impl ZoneRule {
            /// All of them.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$rule),+];

            /// Its name in reports.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$rule => $name,)+ }
            }

            /// What it says, for messages.
            #[must_use]
            pub const fn says(self) -> &'static str {
                match self { $(Self::$rule => $says,)+ }
            }
        }
    };
}

rules! {
    /// An offline zone takes nothing.
    Offline = "offline", "the zone is offline";
    /// A read-only zone takes no write.
    ReadOnly = "read-only", "the zone is read-only";
    /// A full zone takes no write.
    Full = "full", "the zone is full; reset it first";
    /// A write begins at the write pointer.
    NotAtPointer = "not-at-write-pointer", "a write begins at the zone's write pointer";
    /// A write ends within the zone's capacity.
    Boundary = "over-capacity", "a write ends within the capacity of its zone";
    /// An append, and the management of a zone, name its first sector.
    NotAtStart = "not-at-zone-start", "it names a zone by its first sector";
    /// So many zones may be active.
    TooManyActive = "too-many-active", "as many zones are active as may be; finish or reset one";
    /// So many zones may be open.
    TooManyOpen = "too-many-open", "as many zones are open as may be, none of them implicitly; close one";
    /// The state of the zone does not allow this.
    Transition = "invalid-transition", "the state of the zone does not allow it";
}

/// Why a request to a zone is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("zone {zone} refuses a request: {} (write pointer at sector {pointer})", .rule.says())]
pub struct ZoneError {
    /// The rule that it would break.
    pub rule: ZoneRule,
    /// The zone.
    pub zone: u32,
    /// The zone's write pointer; in messages the sector.
    pub pointer: u64,
}

/// How a device divides into zones. It stays the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zoning {
    /// Zones, which fill its addresses.
    pub zones: u32,
    /// Addresses of a zone.
    pub size: Bytes,
    /// The first so many of them can be written.
    pub capacity: Bytes,
    /// What writes begin and end at.
    pub grain: Bytes,
    /// Zones that may be open at once; 0 for any number.
    pub max_open: u32,
    /// Zones that may be open or closed at once; 0 for any number.
    pub max_active: u32,
}

impl Zoning {
    /// What can be written of all zones together.
    #[must_use]
    pub fn writable(&self) -> Bytes {
        Bytes(self.capacity.0 * u64::from(self.zones))
    }
}

/// A zone, at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Its state.
    pub state: ZoneState,
    /// What is written of it, from its start to its write pointer. It means nothing of a zone that takes no writes.
    pub written: Bytes,
}

/// A device with zones. Requests write and manage them ([`crate::RequestKind`]); this tells of them.
pub trait Zoned {
    /// How it divides into zones.
    fn zoning(&self) -> Zoning;

    /// A zone as the requests that the device has begun leave it.
    ///
    /// # Errors
    /// [`IoError::PowerOff`], and [`IoError::OutOfRange`] for a zone that there is not.
    fn zone(&self, number: u32) -> Result<Zone, IoError>;

    /// Takes a read-only zone, and what it holds, out of use for good: it is offline.
    ///
    /// # Errors
    /// [`IoError::Zone`] if the zone is in another state, and as [`Zoned::zone`].
    fn retire(&mut self, number: u32) -> Result<(), IoError>;

    /// Takes the zones that the device has made read-only or offline by itself since it was last asked, in the order in which it did.
    fn take_failed(&mut self) -> Vec<u32>;
}
