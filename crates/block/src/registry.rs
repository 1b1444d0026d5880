//! Registries of everything pluggable, with one line per entry.

/// An entry as `flashwright policies` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The configuration key that chooses it.
    pub key: &'static str,
    /// Its name, the value of that key.
    pub name: &'static str,
    /// One-line description, with its source.
    pub about: &'static str,
}

/// Generates, from a list of `module::Policy`, the modules, the enum of names that users write, the enum of
/// implementations, and the catalogue. The policy's file defines `NAME`, `ABOUT`, `Settings` and `new`.
///
/// With `foreign` the enum of implementations has one more variant, which has no name.
///
/// Hooks run once per page, so they are dispatched by `match`, which the optimiser can inline; a boxed trait object
/// costs a seventh more on the whole write path.
#[macro_export]
#[doc(hidden)]
macro_rules! policies {
    (
        key: $key:literal, trait: $trait:ident, names: $names:ident, settings: $settings:ident, running: $running:ident,
        context: $context:ty $(, foreign: $foreign:ty)?;
        $($module:ident :: $policy:ident),+ $(,)?
    ) => {
        $(mod $module; pub use $module::$policy;)+

        #[doc = concat!("The names that `", $key, "` takes.")]
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
        )]
        #[serde(rename_all = "kebab-case")]
        #[allow(missing_docs)]
        pub enum $names { $($policy),+ }

        #[doc = concat!("The settings of each `", $key, "`, in a table named after it.")]
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(default, rename_all = "kebab-case")]
        #[allow(missing_docs)]
        pub struct $settings {
            $(#[serde(skip_serializing_if = "crate::registry::is_empty")]
            pub $module: <$policy as $trait>::Settings,)+
        }

        #[doc = concat!("The `", $key, "` at work.")]
        #[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
        #[allow(missing_docs)]
        pub enum $running {
            $($policy($policy),)+
            $(
                /// A foreign policy, which is on no list: passed in when the drive is built, and not saved.
                #[serde(skip)]
                Foreign($foreign),
            )?
        }

        impl $names {
            /// All of them, in the order of the list.
            pub const ALL: &[$names] = &[$($names::$policy),+];

            /// The catalogue entry.
            #[must_use]
            pub fn listed(self) -> $crate::registry::Listed {
                match self {
                    $($names::$policy => $crate::registry::Listed { key: $key, name: $policy::NAME, about: $policy::ABOUT },)+
                }
            }

            /// Builds the policy.
            #[must_use]
            pub fn build(self, settings: &$settings, context: $context) -> $running {
                match self {
                    $($names::$policy => $running::$policy($policy::new(&settings.$module, context)),)+
                }
            }
        }
    };
}

/// What the settings of a policy can do: be told apart, described, read and written.
pub trait PolicySettings:
    Clone
    + std::fmt::Debug
    + Default
    + PartialEq
    + serde::Serialize
    + serde::de::DeserializeOwned
    + schemars::JsonSchema
    + 'static
{
}

impl<T> PolicySettings for T where
    T: Clone
        + std::fmt::Debug
        + Default
        + PartialEq
        + serde::Serialize
        + serde::de::DeserializeOwned
        + schemars::JsonSchema
        + 'static
{
}

/// The settings type of a policy without settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoSettings {}

/// Whether settings are empty, so that they need not be written out.
#[must_use]
pub fn is_empty<T: 'static>(_: &T) -> bool {
    std::any::TypeId::of::<T>() == std::any::TypeId::of::<NoSettings>()
}

/// Gives a JSON schema to a setting with its own text syntax; `x-takes` describes the accepted values in words.
#[macro_export]
#[doc(hidden)]
macro_rules! text_schema {
    ($type:ty, $schema:tt) => {
        impl schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!($schema)
            }
        }
    };
}

pub use policies;
pub use text_schema;
