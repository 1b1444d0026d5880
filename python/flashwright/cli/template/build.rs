//! Results and sweeps know a core by the digest of its sources, these among them.

fn main() -> std::io::Result<()> {
    flashwright_digest::tell()
}
