//! Patched programs, without the runtime library, behave as the originals.

use crate::patch_support::{Lab, assert_same, scan, tool};
use ompfuse_kit::has;
use ompfuse_rewriter::layout::HeaderTactic;
use ompfuse_rewriter::patch::{Patched, patch};
use ompfuse_rewriter::plan::PlanOptions;
use ompfuse_rewriter::verify::verify;
use std::path::Path;

const PROGRAM: &str = include_str!("patch_support/program.c");
const CLANG: &str = "clang-19 -fopenmp -L/usr/lib/llvm-19/lib -Wl,-rpath,/usr/lib/llvm-19/lib";

fn dormant() -> PlanOptions {
    PlanOptions {
        dormant: true,
        ..PlanOptions::default()
    }
}

fn patch_file(file: &Path, inline: bool, options: &PlanOptions) -> Patched {
    let bytes = std::fs::read(file).unwrap();
    let patched = patch(&bytes, scan(file, inline), options).unwrap();
    let again = patch(&bytes, scan(file, inline), options).unwrap();
    assert!(
        patched.bytes == again.bytes,
        "the same input gives the same bytes"
    );
    assert_eq!(
        verify(&bytes, &patched.bytes, None).unwrap(),
        patched.report
    );
    patched
}

/// Patches everything in sight, runs it, and has binutils read it.
fn check_source(source: &str, command: &str, inline: bool) -> Option<Patched> {
    println!("{command} {inline}");
    let lab = Lab::new();
    let original = lab.compile("program", source, command)?;
    let patched = patch_file(&original, inline, &dormant());
    let out = lab.write("patched", &patched.bytes);
    assert_same(&original, &out);
    let segments = tool("readelf", &["-lW"], &out);
    assert!(segments.contains("LOAD"), "{segments}");
    tool("readelf", &["-aW"], &out);
    assert!(tool("objdump", &["-d"], &out).contains("section .ompfuse.text"));
    Some(patched)
}

fn check(command: &str) {
    for inline in [false, true] {
        check_source(PROGRAM, command, inline);
    }
}

#[test]
fn gcc_programs() {
    for flags in ompfuse_kit::few(
        &[
            "-O2",
            "-O2 -no-pie",
            "-O0",
            "-O2 -s",
            "-O3 -g -static",
            "-O2 -static-pie",
        ],
        3,
    ) {
        check(&format!("gcc -fopenmp {flags}"));
    }
}

#[test]
fn gcc_programs_without_plt() {
    for flags in [
        "-O2 -fno-plt",
        "-O2 -fno-plt -no-pie",
        "-O3 -fno-plt -Wl,-z,now -s",
    ] {
        check(&format!("gcc -fopenmp {flags}"));
    }
}

#[test]
fn clang_programs() {
    for flags in ompfuse_kit::few(
        &["-O2", "-O2 -no-pie", "-O0 -g", "-O2 -fno-plt", "-O2 -s"],
        3,
    ) {
        check(&format!("{CLANG} {flags}"));
    }
}

#[test]
fn header_table_moves_where_there_is_no_slack() {
    for flags in ["", "-no-pie", "-Wl,-z,max-page-size=0x200000"] {
        let command = format!("gcc -fopenmp -O2 -Wl,-z,noseparate-code -Wl,-z,norelro {flags}");
        if let Some(patched) = check_source(PROGRAM, &command, true) {
            assert_eq!(patched.plan.tactic, HeaderTactic::Congruent);
        }
    }
    if let Some(patched) = check_source(PROGRAM, "gcc -fopenmp -O2", true) {
        assert_eq!(patched.plan.tactic, HeaderTactic::Slack);
    }
}

#[test]
fn other_linkers() {
    for (linker, name) in [("ld.gold", "gold"), ("ld.lld", "lld")] {
        if has(linker) {
            check(&format!("gcc -fopenmp -O2 -fuse-ld={name}"));
            check(&format!("gcc -fopenmp -O2 -no-pie -fuse-ld={name}"));
        }
    }
}

#[test]
fn gigabytes_of_zeros() {
    let source = PROGRAM
        .replace("int main(", "char big[1 << 30];\nint main(")
        .replace(
            "return 7;",
            "big[omp_get_max_threads() << 20] = 3; return big[5] + big[4 << 20];",
        );
    assert_ne!(source, PROGRAM);
    for flags in ["", "-no-pie", "-Wl,-z,noseparate-code -Wl,-z,norelro"] {
        let Some(patched) = check_source(&source, &format!("gcc -fopenmp -O2 {flags}"), false)
        else {
            return;
        };
        let holes: u64 = patched.plan.holes().iter().map(|h| h.end - h.start).sum();
        assert!(
            patched.bytes.len() as u64 - holes < 200_000,
            "{:?}",
            patched.plan.holes()
        );
        for hole in patched.plan.holes() {
            let hole = &patched.bytes[hole.start as usize..hole.end as usize];
            assert!(hole.chunks(4096).all(|c| c == &[0; 4096][..c.len()]));
        }
    }
}

/// Arrays that reach beyond the range of a branch.
fn huge() -> String {
    let source = PROGRAM.replace("int main(", "static char big[3ull << 30];\nint main(");
    source.replace(
        "return 7;",
        "big[(size_t)singles << 29] = 3; return big[5] + big[1u << 31];",
    )
}

#[test]
fn arrays_beyond_the_reach_of_branches() {
    for flags in [
        "-mcmodel=medium",
        "-mcmodel=large",
        "-mcmodel=medium -s -Wl,-z,now",
    ] {
        let command = format!("gcc -fopenmp -O2 -no-pie {flags}");
        let Some(patched) = check_source(&huge(), &command, true) else {
            return;
        };
        assert_eq!(patched.plan.tactic, HeaderTactic::Below);
        assert!(patched.bytes.len() < 1 << 20);
    }
    let lab = Lab::new();
    let Some(original) = lab.compile("program", &huge(), "gcc -fopenmp -O2 -mcmodel=medium") else {
        return;
    };
    let bytes = std::fs::read(&original).unwrap();
    let error = patch(&bytes, scan(&original, false), &dormant())
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("cannot patch site 0x1"), "{error}");
    assert!(
        error.contains("is more than 2 GiB away from the code that is added"),
        "{error}"
    );
}

#[test]
fn exceptions_pass_through() {
    let source = include_str!("patch_support/exceptions.cc");
    for flags in ompfuse_kit::few(
        &[
            "-O0",
            "-O2",
            "-O2 -fno-plt -no-pie",
            "-O3 -s -static-libstdc++ -static-libgcc",
        ],
        3,
    ) {
        for inline in [false, true] {
            check_source(source, &format!("g++ -fopenmp {flags}"), inline);
        }
    }
}

#[test]
fn without_section_headers() {
    let lab = Lab::new();
    let Some(original) = lab.compile("program", PROGRAM, "gcc -fopenmp -O2") else {
        return;
    };
    let scan = scan(&original, true);
    let mut bytes = std::fs::read(&original).unwrap();
    bytes[40..48].fill(0);
    bytes[60..64].fill(0);
    let bare = lab.write("bare", &bytes);
    let patched = patch(&bytes, &scan, &dormant()).unwrap();
    assert_eq!(patched.bytes[40..48], [0; 8]);
    assert_same(&bare, &lab.write("patched", &patched.bytes));
}

#[test]
fn gdb_starts_it() {
    let lab = Lab::new();
    if !has("gdb") {
        return;
    }
    let Some(original) = lab.compile("program", PROGRAM, "gcc -fopenmp -O1 -g") else {
        return;
    };
    let patched = patch_file(&original, false, &dormant());
    let out = lab.write("patched", &patched.bytes);
    let commands = [
        "-nx",
        "-batch",
        "-ex",
        "break sum_of",
        "-ex",
        "run",
        "-ex",
        "bt",
    ];
    let text = tool("gdb", &commands, &out);
    assert!(
        text.contains("#0  sum_of") && text.contains("#1  main") || text.contains("in main"),
        "{text}"
    );
}

#[test]
fn nothing_selected_changes_nothing() {
    let lab = Lab::new();
    let Some(original) = lab.compile("program", PROGRAM, "gcc -fopenmp -O2") else {
        return;
    };
    let bytes = std::fs::read(&original).unwrap();
    let options = PlanOptions {
        selected: Some(Default::default()),
        ..PlanOptions::default()
    };
    let patched = patch(&bytes, scan(&original, true), &options).unwrap();
    assert!(patched.plan.is_empty() && patched.bytes == bytes);
}

#[test]
fn a_selection_is_patched_alone() {
    let lab = Lab::new();
    let Some(original) = lab.compile("program", PROGRAM, "gcc -fopenmp -O2") else {
        return;
    };
    let bytes = std::fs::read(&original).unwrap();
    let scan = scan(&original, true);
    let selected: std::collections::BTreeSet<u32> = (0..scan.sites.len() as u32)
        .filter(|id| id % 3 == 1)
        .collect();
    let options = PlanOptions {
        selected: Some(selected.clone()),
        ..dormant()
    };
    let patched = patch(&bytes, &scan, &options).unwrap();
    assert_eq!(patched.plan.patched(), selected);
    assert_same(&original, &lab.write("patched", &patched.bytes));
}

/// What calls by pushing an address must not say that it goes together with shadow stacks; everything else may.
#[test]
fn displaced_calls_and_shadow_stacks() {
    let command = "gcc -fopenmp -O0 -fcf-protection=full -Wl,-z,ibt,-z,shstk";
    for inline in [false, true] {
        let lab = Lab::new();
        let Some(original) = lab.compile("program", PROGRAM, command) else {
            return;
        };
        let marks = |file: &Path| {
            let notes = tool("readelf", &["-nW"], file);
            let line = notes.lines().find(|l| l.contains("x86 feature:"));
            let marks = line.map(|l| (l.contains("IBT"), l.contains("SHSTK")));
            marks.unwrap_or_else(|| panic!("{notes}"))
        };
        assert_eq!(marks(&original), (true, true));
        let patched = patch_file(&original, inline, &dormant());
        let out = lab.write("patched", &patched.bytes);
        assert_same(&original, &out);
        assert_eq!(marks(&out), (true, !inline));
        let edits = patched.plan.edits.iter();
        let mut edits = edits.filter(|e| e.what == "shadow-stack mark");
        let old = std::fs::read(&original).unwrap();
        if let Some(edit) = edits.next() {
            let mut marked = patched.bytes.clone();
            let at = edit.offset as usize;
            marked[at] = old[at];
            let error = verify(&old, &marked, None).unwrap_err().to_string();
            assert!(error.contains("shadow stacks"), "{error}");
            marked[at] = 0;
            assert!(verify(&old, &marked, None).is_err());
        }
        assert_eq!(edits.next(), None);
    }
}
