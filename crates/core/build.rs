//! See `flashwright_digest`.

fn main() -> std::io::Result<()> {
    flashwright_digest::tell()
}
