//! Damaged files in every form: scanning, patching, verifying and making again end with a result or an error, and what
//! is written is what `verify` accepts. `PROPTEST_CASES=20000 cargo test --release -p ompfuse-rewriter --test all hostile::`
//! tries longer.

use crate::patch_support::Lab;
use ompfuse_progress::Progress;
use ompfuse_rewriter::patch::patch;
use ompfuse_rewriter::plan::PlanOptions;
use ompfuse_rewriter::reproduce::reproduce;
use ompfuse_rewriter::verify::verify;
use ompfuse_rewriter::{scan, self_description};
use proptest::prelude::*;
use std::sync::LazyLock;

const PROGRAM: &str = include_str!("patch_support/program.c");

/// Originals and their patched copies.
static SEEDS: LazyLock<Vec<(Vec<u8>, Vec<u8>)>> = LazyLock::new(|| {
    let commands = [
        "gcc -fopenmp -O2 -gz -Wl,-z,pack-relative-relocs",
        "gcc -fopenmp -O1 -s -no-pie -fno-plt -Wl,--hash-style=sysv,-z,noseparate-code,-z,norelro",
        "gcc -fopenmp -O2 -shared -fPIC -fcf-protection=full -Wl,-z,ibtplt",
    ];
    let case = |command: &&str| {
        let lab = Lab::new();
        let old = std::fs::read(lab.compile("program", PROGRAM, command)?).unwrap();
        let found = scan(&old, "program").unwrap();
        let new = patch(&old, &found, &PlanOptions::default()).unwrap().bytes;
        Some((old, new))
    };
    commands.iter().filter_map(case).collect()
});

/// A changed word: where, as a part of the file's length, and what.
fn edits() -> impl Strategy<Value = Vec<(prop::sample::Index, u64, usize)>> {
    let value = prop_oneof![
        any::<u64>(),
        Just(0),
        Just(u64::MAX),
        Just(1 << 63),
        0u64..0x8000,
        Just(0x40_0000)
    ];
    let width = prop_oneof![Just(1usize), Just(2), Just(4), Just(8)];
    prop::collection::vec((any::<prop::sample::Index>(), value, width), 1..6)
}

fn edited(bytes: &[u8], edits: &[(prop::sample::Index, u64, usize)], limit: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let limit = limit.min(bytes.len() - 8);
    for (at, value, width) in edits {
        let at = at.index(limit) / width * width;
        bytes[at..at + width].copy_from_slice(&value.to_le_bytes()[..*width]);
    }
    bytes
}

fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok();
    ProptestConfig {
        cases: cases.and_then(|c| c.parse().ok()).unwrap_or(80),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    /// Headers, tables and code of the original.
    #[test]
    fn originals(seed in 0usize..3, edits in edits(), limit in prop_oneof![Just(0x400), Just(0x1000), Just(usize::MAX)]) {
        let Some((old, _)) = SEEDS.get(seed) else { return Ok(()) };
        let bytes = edited(old, &edits, limit);
        if let Ok(found) = scan(&bytes, "damaged")
            && let Ok(patched) = patch(&bytes, &found, &PlanOptions::default())
            && !patched.plan.is_empty()
        {
            verify(&bytes, &patched.bytes, None).unwrap();
            let description = self_description(&patched.bytes, "damaged").unwrap().unwrap();
            let library = PlanOptions::default().runtime_library;
            prop_assert!(reproduce(&bytes, &patched.bytes, &description, &library, Progress::default()).unwrap());
        }
    }

    /// The same of the patched file, for those who read it.
    #[test]
    fn patched_files(seed in 0usize..3, edits in edits(), from_end in any::<bool>()) {
        let Some((old, new)) = SEEDS.get(seed) else { return Ok(()) };
        let limit = if from_end { usize::MAX } else { 0x400 };
        let bytes = edited(new, &edits, limit);
        let accepted = verify(old, &bytes, None).is_ok();
        if let Ok(Some(description)) = self_description(&bytes, "damaged") {
            let library = PlanOptions::default().runtime_library;
            let same = reproduce(old, &bytes, &description, &library, Progress::default());
            if matches!(same, Ok(true)) && bytes != *new {
                // Only the path of the original may be another.
                prop_assert!(accepted);
            }
        }
        let _ = scan(&bytes, "damaged");
    }

    /// A plan of one file is not carried out on another.
    #[test]
    fn scans_of_other_files(seed in 0usize..3, edits in edits()) {
        let Some((old, _)) = SEEDS.get(seed) else { return Ok(()) };
        let found = scan(old, "program").unwrap();
        let bytes = edited(old, &edits, usize::MAX);
        if let Ok(patched) = patch(&bytes, &found, &PlanOptions::default()) {
            verify(&bytes, &patched.bytes, None).unwrap();
        }
    }
}

/// Very many indirect jumps: looking at each of them must not take a time that grows with all of them. It took minutes, and now
/// takes a second or two.
#[test]
fn many_indirect_jumps() {
    use std::fmt::Write;
    // Jumps through a table whose address is loaded far away; through tables with very many entries; and to what memory holds.
    let far = "movslq (%rbx,%rax,4),%rdx; add %rbx,%rdx; jmp *%rdx";
    let large = "lea table(%rip),%rbx; movslq (%rbx,%rax,4),%rdx; add %rbx,%rdx; jmp *%rdx";
    let memory = "lea main(%rip),%rcx; mov 16(%rsp),%rbx; jmp *(%rbx,%rax,8)";
    for (jump, entries) in [(far, 8), (large, 4000), (memory, 8)] {
        let many = if ompfuse_kit::is_whole() { 8000 } else { 3000 };
        let mut code = String::from(
            ".globl main; .type main,@function\nmain: push %rbx; call omp_get_num_threads; lea table(%rip),%rbx; test %eax,%eax\n",
        );
        for i in 0..many {
            writeln!(code, "je L{i}; {jump}; L{i}: nop").unwrap();
        }
        code.push_str("pop %rbx; xor %eax,%eax; ret; .size main,.-main\n");
        code.push_str(".section .rodata; .balign 8; table:\n");
        for i in 0..entries {
            writeln!(code, ".long L{}-table", i % many).unwrap();
        }
        code.push_str(".long 0x7fffffff; .section .note.GNU-stack,\"\",@progbits\n");
        let lab = Lab::new();
        let assembled = lab.compile("jumps", &code, "gcc -fopenmp -x assembler");
        let Some(path) = assembled else { return };
        let bytes = std::fs::read(path).unwrap();
        let begin = std::time::Instant::now();
        scan(&bytes, "jumps").unwrap();
        let taken = begin.elapsed().as_secs_f64();
        assert!(taken < 40.0, "{jump}: {taken} s");
    }
}
