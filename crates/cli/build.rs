//! Puts the functions that a controller manager calls beside each other in the program file.
//!
//! The kernel maps sixteen pages around each page of code that runs. Where one function in four is ever called, that is nearly the whole
//! file; in the order of `first-calls.txt` (`cargo xtask order`), it is that fourth. Where the linker cannot do it, or the names in that
//! file are those of other versions, the program is the same and takes more memory (`docs/adr/006-code-in-the-order-of-its-use.md`).

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

const ORDER: &str = "first-calls.txt";

fn main() {
    println!("cargo:rerun-if-changed={ORDER}");
    println!("cargo:rerun-if-changed=build.rs");
    let variable = |name: &str| std::env::var_os(name).unwrap_or_default();
    if variable("PROFILE") != "release" {
        return;
    }
    let order = Path::new(&variable("CARGO_MANIFEST_DIR")).join(ORDER);
    let args = [format!("-Wl,--symbol-ordering-file={}", order.display()), "-Wl,--no-warn-symbol-ordering".to_owned()];
    if links_with(&args, &variable) {
        args.iter().for_each(|arg| println!("cargo:rustc-link-arg-bins={arg}"));
    }
}

/// Whether a program can be linked with these arguments: LLVM's linker can, which is Rust's own on x86-64 Linux.
fn links_with(args: &[String], variable: &dyn Fn(&str) -> OsString) -> bool {
    let (rustc, linker) = (variable("RUSTC"), variable("RUSTC_LINKER"));
    let empty = Path::new(&variable("OUT_DIR")).join("empty.rs");
    if std::fs::write(&empty, "fn main() {}").is_err() {
        return false;
    }
    let mut rustc = Command::new(rustc);
    rustc.arg(&empty).args(["--crate-type", "bin", "--out-dir"]).arg(variable("OUT_DIR"));
    rustc.arg("--target").arg(variable("TARGET"));
    if !linker.is_empty() {
        let mut chosen = OsString::from("-Clinker=");
        chosen.push(linker);
        rustc.arg(chosen);
    }
    let flags = variable("CARGO_ENCODED_RUSTFLAGS");
    rustc.args(flags.to_string_lossy().split('\u{1f}').filter(|flag| !flag.is_empty()));
    rustc.args(args.iter().map(|arg| format!("-Clink-arg={arg}")));
    rustc.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}
