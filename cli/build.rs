//! Builds the runtime library, the auditing library and the simulator's plugin with a nested `cargo build`, so that the command carries them inside itself.
//!
//! A cdylib can't be an ordinary dependency, and `cargo install` copies one executable only. The nested build has its
//! own target directory (no waiting for the outer build's lock) and its own flags: the library lives in foreign
//! processes, so nothing of the outer build's flags, wrappers or target settings may reach it.

#[path = "build/versions.rs"]
mod versions;

use flate2::Compression;
use flate2::write::GzEncoder;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Variables that would change how the library is compiled, or where cargo puts it.
const STRIPPED: &[&str] = &[
    "CARGO_BUILD_RUSTFLAGS",
    "CARGO_BUILD_TARGET",
    "CARGO_BUILD_TARGET_DIR",
    "CARGO_TARGET_DIR",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "RUSTFLAGS",
];

fn main() {
    let variable = |name: &str| {
        std::env::var(name).unwrap_or_else(|_| panic!("cargo sets {name} for build scripts"))
    };
    let manifest_dir = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let workspace = manifest_dir
        .parent()
        .expect("the cli folder is in the workspace's folder");
    let rewriter = ["rewriter/src", "patterns"];
    for input in ["runtime", "simpmu", "Cargo.lock", "Cargo.toml"]
        .iter()
        .chain(&rewriter)
    {
        println!(
            "cargo::rerun-if-changed={}",
            workspace.join(input).display()
        );
    }
    let mut sources = DefaultHasher::new();
    for folder in rewriter {
        hash_files(&workspace.join(folder), &mut sources)
            .unwrap_or_else(|e| panic!("{folder}: {e}"));
    }
    println!(
        "cargo::rustc-env=OMPFUSE_REWRITER={:016x}",
        sources.finish()
    );
    let out = PathBuf::from(variable("OUT_DIR"));
    let built = (!only_lints()).then(|| {
        let target = variable("TARGET");
        build(&variable("CARGO"), workspace, &out.join("runtime"), &target)
    });
    for (name, library, is_the_programs) in [
        ("OMPFUSE_EMBEDDED_RUNTIME", "libompfuse_runtime.so", true),
        ("OMPFUSE_EMBEDDED_AUDIT", "libompfuse_audit.so", true),
        ("OMPFUSE_EMBEDDED_SIMPMU", "libompfuse_simpmu.so", false),
    ] {
        let path = out.join(library);
        let bytes = built.as_ref().map(|folder| {
            let from = folder.join(library);
            let bytes = std::fs::read(&from).unwrap_or_else(|e| panic!("{}: {e}", from.display()));
            match is_the_programs {
                true => bound(bytes, library),
                false => compressed(&bytes),
            }
        });
        std::fs::write(&path, bytes.unwrap_or_default())
            .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        println!("cargo::rustc-env={name}={}", path.display());
    }
}

/// A library that is loaded into programs, bound to their C library.
fn bound(mut library: Vec<u8>, name: &str) -> Vec<u8> {
    let marked = versions::mark(&mut library);
    assert!(
        marked.is_some_and(|n| n > 0),
        "{name} does not say which versions of the C library's functions it needs: link it with GNU ld or lld"
    );
    library
}

/// A library that few need, and that a run of hours waits for.
fn compressed(library: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(vec![], Compression::best());
    out.write_all(library)
        .and_then(|()| out.finish())
        .unwrap_or_else(|e| panic!("cannot compress: {e}"))
}

/// True below `cargo clippy`, whose results nobody runs: empty files do for the libraries, which are linted by themselves.
/// It has build scripts of its own, so no command ever carries these files.
fn only_lints() -> bool {
    println!("cargo::rerun-if-env-changed=RUSTC_WORKSPACE_WRAPPER");
    std::env::var_os("RUSTC_WORKSPACE_WRAPPER")
        .is_some_and(|wrapper| Path::new(&wrapper).ends_with("clippy-driver"))
}

/// Hashes every file below a folder: what patches programs, so that nothing is taken from a cache that other code made.
fn hash_files(folder: &Path, hasher: &mut DefaultHasher) -> std::io::Result<()> {
    let mut entries = std::fs::read_dir(folder)?
        .map(|e| Ok(e?.path()))
        .collect::<std::io::Result<Vec<_>>>()?;
    entries.sort();
    for path in entries {
        if path.is_dir() {
            hash_files(&path, hasher)?;
        } else {
            path.file_name().hash(hasher);
            std::fs::read(&path)?.hash(hasher);
        }
    }
    Ok(())
}

/// Runs the nested build and returns the folder of the libraries.
fn build(cargo: &str, workspace: &Path, target_dir: &Path, target: &str) -> PathBuf {
    let mut command = Command::new(cargo);
    command
        .args([
            "build",
            "--release",
            "--package",
            "ompfuse-runtime",
            "--package",
            "ompfuse-audit",
            "--package",
            "ompfuse-simpmu-plugin",
            "--locked",
            "--target",
            target,
        ])
        .arg("--manifest-path")
        .arg(workspace.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(target_dir)
        .current_dir(workspace)
        // Set, not removed: it overrides rustflags in configuration files. Profilers that follow frame pointers see who called.
        .env("CARGO_ENCODED_RUSTFLAGS", "-Cforce-frame-pointers=yes")
        .env("CARGO_PROFILE_RELEASE_PANIC", "unwind") // with abort, a C++ exception that passes a wrapper would end the program
        .env("CARGO_PROFILE_RELEASE_LTO", "fat")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1")
        .env("CARGO_PROFILE_RELEASE_DEBUG", "false")
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "3")
        .env("CARGO_PROFILE_RELEASE_STRIP", "debuginfo");
    for name in STRIPPED {
        command.env_remove(name);
    }
    let status = command
        .status()
        .unwrap_or_else(|e| panic!("cannot start {cargo}: {e}"));
    assert!(
        status.success(),
        "the libraries could not be built ({status}); its errors stand above"
    );
    target_dir.join(target).join("release")
}
