//! What the list of managers needs of the common registry.

pub(crate) use flashwright_ftl::is_empty;
