//! Passes the compiler version to the program: counts of instructions are valid only for that compiler.

fn main() {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = std::process::Command::new(rustc).arg("--version").output();
    let version = output.map_or_else(|_| String::new(), |output| String::from_utf8_lossy(&output.stdout).into_owned());
    println!("cargo:rustc-env=FLASHWRIGHT_RUSTC={}", version.trim());
    println!("cargo:rerun-if-changed=build.rs");
}
