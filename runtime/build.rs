//! The library stays in its process once it is there: threads, fork handlers and the modules' slots lead to it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
