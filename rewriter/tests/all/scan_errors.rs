//! Files that can't be scanned: one line each that says what is wrong and what to do.

use crate::scan_support::compile;
use ompfuse_format::abi::{ABI_VERSION, NoteDesc};
use ompfuse_format::site::{BinaryInfo, SelfDescription};
use ompfuse_rewriter::{ScanError, scan, self_description};

const OPENMP: &str = "int main(void) {
#pragma omp parallel
  {
#pragma omp barrier
  }
}";

fn message(bytes: &[u8]) -> String {
    let message = scan(bytes, "dir/file").unwrap_err().to_string();
    assert!(message.contains("dir/file: "), "{message}");
    assert!(
        !message.ends_with('.') && !message.contains('\n'),
        "{message}"
    );
    message
}

#[test]
fn other_kinds_of_files() {
    assert!(message(b"#!/bin/sh\n").contains("not an ELF file"));
    assert!(message(b"").contains("not an ELF file"));
    let program = compile(OPENMP, "gcc -fopenmp").unwrap();
    let with = |at: usize, value: &[u8]| {
        let mut bytes = program.bytes.clone();
        bytes[at..at + value.len()].copy_from_slice(value);
        message(&bytes)
    };
    assert!(with(4, &[1]).contains("a 32-bit ELF file"));
    assert!(with(5, &[2]).contains("a big-endian ELF file"));
    assert!(with(18, &[183, 0]).contains("made for aarch64"));
    assert!(with(18, &[3, 0]).contains("made for i386"));
    assert!(with(16, &[4, 0]).contains("a core file"));
    assert!(with(16, &[9, 0]).contains("neither a program nor"));
    assert!(with(54, &[1, 0]).contains("malformed"));
    let object = compile(OPENMP, "gcc -fopenmp -c").unwrap();
    assert!(message(&object.bytes).contains("an object file; link it"));
}

#[test]
fn programs_without_a_way_in() {
    let plain = compile("int main(void) { return 0; }", "gcc").unwrap();
    assert!(message(&plain.bytes).contains("no OpenMP in it"));
    let linked = compile(OPENMP, "gcc -fopenmp -static").unwrap();
    assert!(message(&linked.bytes).contains("a static executable"));
    let runtime = std::process::Command::new("gcc")
        .arg("-print-file-name=libgomp.so.1")
        .output()
        .unwrap();
    let path = String::from_utf8(runtime.stdout).unwrap();
    let bytes = std::fs::read(path.trim()).unwrap();
    assert!(message(&bytes).contains("an OpenMP runtime library itself"));
}

#[test]
fn truncated_files() {
    let program = compile(OPENMP, "gcc -fopenmp").unwrap();
    for len in [5, 20, 63, 64, 200, 0x1000, program.bytes.len() - 1] {
        let message = message(&program.bytes[..len]);
        assert!(message.contains("truncated"), "{len}: {message}");
    }
}

/// A note section, filled in after linking: an ELF file with it looks as if ompfuse had written it.
const NOTE: &str = r#"
__attribute__((section(".note.ompfuse"), used, aligned(4)))
const struct { unsigned n, d, t; char name[8]; char desc[32]; } note =
  { 8, 32, 1, "ompfuse", "0123456789abcdef0123456789abcde" };
"#;

#[test]
fn patched_files_are_told_and_describe_themselves() {
    let program = compile(&format!("{NOTE}{OPENMP}"), "gcc -fopenmp").unwrap();
    let mut bytes = program.bytes.clone();
    assert!(matches!(
        scan(&bytes, "f"),
        Err(ScanError::AlreadyPatched { .. })
    ));
    assert!(message(&bytes).contains("already patched"));
    assert!(
        self_description(&bytes, "x")
            .unwrap_err()
            .to_string()
            .contains("damaged or was stripped")
    );

    let description = SelfDescription {
        version: "0.1.0".into(),
        binary: BinaryInfo {
            path: "f".into(),
            build_id: None,
            kind: "pie".into(),
            stripped: false,
            runtimes: vec![],
            debug_files: None,
            loops_of: Vec::new(),
            settings: Default::default(),
            counted: None,
        },
        original_sha256: "00".into(),
        sites: vec![],
    };
    let mut json = Vec::new();
    description.write_json(&mut json).unwrap();
    let note = NoteDesc {
        abi_version: ABI_VERSION,
        reserved: 0,
        header_va: 0,
        description_offset: bytes.len() as u64,
        description_len: json.len() as u64,
    };
    let mark = b"0123456789abcdef0123456789abcde\0";
    let at = bytes.windows(32).position(|w| w == mark).unwrap();
    bytes[at..at + 32].copy_from_slice(&note.to_bytes());
    bytes.extend(json);
    assert_eq!(self_description(&bytes, "x").unwrap(), Some(description));

    let plain = compile(OPENMP, "gcc -fopenmp").unwrap();
    assert_eq!(self_description(&plain.bytes, "x").unwrap(), None);
    assert!(self_description(b"no", "x").is_err());
}
