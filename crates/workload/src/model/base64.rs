//! Bytes as text: base64 (RFC 4648, section 4) in lines.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// Characters of a line.
const LINE: usize = 100;

/// The text of `bytes`, each line with its end.
pub(super) fn written(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 3 / 2);
    for (at, three) in bytes.chunks(3).enumerate() {
        if at > 0 && at.is_multiple_of(LINE / 4) {
            out.push('\n');
        }
        let word = three.iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for digit in 0..4 {
            let value = (word >> (18 - 6 * digit)) as usize % 64;
            out.push(if digit <= three.len() { char::from(DIGITS[value]) } else { '=' });
        }
    }
    out.push('\n');
    out
}

/// The bytes of a text; none if it is no such text.
pub(super) fn read(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let padded = digits.iter().rev().take_while(|digit| **digit == b'=').count();
    if !digits.len().is_multiple_of(4) || padded > 2 {
        return None;
    }
    let mut values = [None; 256];
    (0u32..).zip(DIGITS).for_each(|(value, digit)| values[usize::from(*digit)] = Some(value));
    let mut out = Vec::with_capacity(digits.len() / 4 * 3);
    let data = &digits[..digits.len() - padded];
    for four in data.chunks(4) {
        let word = four.iter().try_fold(0u32, |word, digit| Some(word << 6 | values[usize::from(*digit)]?))?;
        let word = word << (6 * (4 - four.len()));
        out.extend_from_slice(&word.to_be_bytes()[1..four.len()]);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 4648, section 10.
    #[test]
    fn texts_are_those_of_the_standard() {
        for (bytes, text) in [("f", "Zg==\n"), ("fo", "Zm8=\n"), ("foo", "Zm9v\n"), ("foobar", "Zm9vYmFy\n")] {
            assert_eq!(written(bytes.as_bytes()), text);
            assert_eq!(read(text).as_deref(), Some(bytes.as_bytes()));
        }
        let long: Vec<u8> = (0..=255).collect();
        assert_eq!(read(&written(&long)), Some(long));
        for wrong in ["Zg=", "Z===", "Zm9?", "Zg==Zg=="] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
