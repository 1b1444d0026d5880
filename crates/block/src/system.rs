//! What the system says of an error.

use std::fmt::Display;

/// The words of a system error, without its number, as they stand within a message.
///
/// ```
/// # use flashwright_block::system_says;
/// let missing = std::fs::read("no such folder/file").unwrap_err();
/// assert!(missing.to_string().ends_with(" (os error 2)"));
/// assert_eq!(system_says(&missing), "no such file or directory");
/// ```
#[must_use]
pub fn system_says(error: &impl Display) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}
