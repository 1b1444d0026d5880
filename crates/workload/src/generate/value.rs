//! The kinds of values that keys take, each with its text form.

use flashwright_block::{Bytes, Nanos, SECTOR_BYTES, read_share};

/// A value that a key can take. Parsing the text of [`Value::text`] gives the same value.
pub(crate) trait Value: Sized + PartialEq {
    /// The allowed values, for messages and help.
    fn allowed() -> String;
    /// The value that `text` names, or none if it is not allowed.
    fn read(text: &str) -> Option<Self>;
    /// The canonical text; empty if the value is absent.
    fn text(&self) -> String;
    /// The names to choose from, if the value is a choice.
    fn names() -> &'static [&'static str] {
        &[]
    }
}

impl<T: Value> Value for Option<T> {
    fn allowed() -> String {
        T::allowed()
    }
    fn read(text: &str) -> Option<Self> {
        if text.is_empty() { Some(None) } else { T::read(text).map(Some) }
    }
    fn text(&self) -> String {
        self.as_ref().map_or_else(String::new, T::text)
    }
    fn names() -> &'static [&'static str] {
        T::names()
    }
}

/// A share, 0 to 1, no unit. Written as a decimal or in percent (`30%`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share(pub f64);

impl Value for Share {
    fn allowed() -> String {
        "a share from 0 to 1, such as 0.7 or 70%".into()
    }
    fn read(text: &str) -> Option<Self> {
        let share = read_share(text)?;
        (0.0..=1.0).contains(&share).then_some(Share(share + 0.0)) // + 0.0 turns -0 into 0
    }
    fn text(&self) -> String {
        self.0.to_string()
    }
}

/// An exponent of a law of popularity, no unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exponent(pub f64);

impl Value for Exponent {
    fn allowed() -> String {
        "an exponent from 0 (uniform) to 100, such as 0.99".into()
    }
    fn read(text: &str) -> Option<Self> {
        let exponent = text.parse::<f64>().ok()?;
        (0.0..=100.0).contains(&exponent).then_some(Exponent(exponent + 0.0))
    }
    fn text(&self) -> String {
        self.0.to_string()
    }
}

/// Requests per second, above 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate(pub f64);

impl Value for Rate {
    fn allowed() -> String {
        "requests per second, 1e-6 to 1e12, such as 5000".into()
    }
    fn read(text: &str) -> Option<Self> {
        let rate = text.parse::<f64>().ok()?;
        (1e-6..=1e12).contains(&rate).then_some(Rate(rate))
    }
    fn text(&self) -> String {
        self.0.to_string()
    }
}

/// A whole number from 1 up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count(pub u32);

impl Value for Count {
    fn allowed() -> String {
        "a whole number from 1 up, such as 32".into()
    }
    fn read(text: &str) -> Option<Self> {
        text.parse().ok().filter(|count| *count >= 1).map(Count)
    }
    fn text(&self) -> String {
        self.0.to_string()
    }
}

/// A whole number from 0 up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole(pub u64);

impl Value for Whole {
    fn allowed() -> String {
        "a whole number from 0 up, such as 3000".into()
    }
    fn read(text: &str) -> Option<Self> {
        text.parse().ok().filter(|number| *number <= u64::from(u32::MAX)).map(Whole)
    }
    fn text(&self) -> String {
        self.0.to_string()
    }
}

/// Bytes of a file or of a call, not bound to sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length(pub u64);

impl Value for Length {
    fn allowed() -> String {
        "a size from 1 B up to 1 TiB, such as 500, 8M or 8MiB".into()
    }
    fn read(text: &str) -> Option<Self> {
        let size: Bytes = text.parse().ok()?;
        (1..=1 << 40).contains(&size.0).then_some(Length(size.0))
    }
    fn text(&self) -> String {
        Bytes(self.0).to_string().replace(' ', "")
    }
}

/// Times.
impl Value for Nanos {
    fn allowed() -> String {
        "a time with its unit, such as 5s or 2us".into()
    }
    fn read(text: &str) -> Option<Self> {
        // Two hundred years: sums with other times stay within 64 bits.
        text.parse().ok().filter(|time: &Nanos| time.0 < u64::MAX / 4)
    }
    fn text(&self) -> String {
        self.to_string().replace(' ', "")
    }
}

/// Sizes are whole sectors: 512 B up to 1 TiB less one sector, so that a count of sectors fits 31 bits.
impl Value for Bytes {
    fn allowed() -> String {
        "a multiple of 512 B from 512 B up to 1 TiB, such as 4KiB, 4k or 4096".into()
    }
    fn read(text: &str) -> Option<Self> {
        let size: Bytes = text.parse().ok()?;
        (size.0 > 0 && size.0.is_multiple_of(SECTOR_BYTES) && size.0 <= 1 << 40).then_some(size)
    }
    fn text(&self) -> String {
        self.to_string().replace(' ', "")
    }
}

/// Makes an enum of the named choices of a key; names after the first are further spellings.
macro_rules! choice {
    ($(#[$meta:meta])* pub enum $type:ident { $($(#[$variant_meta:meta])* $variant:ident = $name:literal $(| $alias:literal)*,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $type { $($(#[$variant_meta])* $variant),* }

        impl $crate::generate::value::Value for $type {
            fn allowed() -> String {
                format!("one of {}", <Self as $crate::generate::value::Value>::names().join(", "))
            }
            fn read(text: &str) -> Option<Self> {
                match text {
                    $($name $(| $alias)* => Some(Self::$variant),)*
                    _ => None,
                }
            }
            fn text(&self) -> String {
                match self { $(Self::$variant => $name,)* }.to_owned()
            }
            fn names() -> &'static [&'static str] {
                &[$($name),*]
            }
        }
    };
}
pub(crate) use choice;

choice! {
    /// Where the popular part of the space lies.
    pub enum Placement {
        /// Spread over the space by a seeded random permutation.
        Scattered = "scattered",
        /// At the front of the space, most popular first.
        Identity = "identity",
    }
}

choice! {
    /// The streams that requests name for placement.
    pub enum Streams {
        /// None.
        None = "none",
        /// The class of the place or of the writer, from 1.
        Class = "class",
    }
}

choice! {
    /// How an open loop spaces its arrivals.
    pub enum ArrivalKind {
        /// Exponential gaps.
        Poisson = "poisson",
        /// Equal gaps.
        Fixed = "fixed",
    }
}

choice! {
    /// Yes or no.
    pub enum YesNo {
        /// Yes.
        Yes = "yes" | "true",
        /// No.
        No = "no" | "false",
    }
}
