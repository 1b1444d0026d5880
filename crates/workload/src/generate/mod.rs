//! Request generators.
