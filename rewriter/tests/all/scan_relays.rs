//! Calls through registers and variables: led to probes where everything is known of the address, listed otherwise.

use crate::scan_support::{check, compile};
use ompfuse_format::site::Outcome;
use ompfuse_rewriter::model::{Action, Scan};

/// A program whose `main` is this code. `r12` to `r15`, `rbx` and 32 bytes of the stack are free.
fn program(code: &str, flags: &str) -> Option<(Vec<u8>, Scan)> {
    let source = format!(
        ".globl main
main: push %r12; push %r13; push %r14; push %r15; push %rbx; sub $48, %rsp
{code}
  xor %eax, %eax
out: add $48, %rsp; pop %rbx; pop %r15; pop %r14; pop %r13; pop %r12; ret
.size main, .-main
.type main, @function
other: ret
.size other, .-other
.type other, @function
.data
variable: .quad 0
.section .note.GNU-stack,\"\",@progbits
"
    );
    let program = compile(&source, &format!("gcc -fopenmp -Wl,--no-relax {flags}"))?;
    let scan = ompfuse_rewriter::scan(&program.bytes, "program").unwrap();
    check(&scan);
    Some((program.bytes, scan))
}

/// What the sites of a program say of themselves: nothing, or why they have no probe.
fn said(scan: &Scan) -> Vec<&str> {
    let said = |s: &ompfuse_rewriter::model::Site| match s.info.outcome {
        Outcome::Skipped => s.info.reason.as_deref().unwrap_or_default().to_owned(),
        _ => String::new(),
    };
    let all = scan.sites.iter().map(said);
    all.map(
        |text| match text.strip_prefix("called through a register or variable: ") {
            Some("the address may be used for more than calls") => "used",
            Some("no single instruction makes the address") => "unknown",
            Some("the address isn't always the same") => "differs",
            Some("several jumps lead through it") => "jumps",
            Some(_) => "else",
            None if text.is_empty() => "",
            None => "skipped",
        },
    )
    .collect()
}

const LOAD: &str = "mov GOMP_barrier@GOTPCREL(%rip), %rbx\n";

#[test]
fn addresses_that_are_only_called() {
    let cases = [
        ("call *%rbx; call *%rbx", 2),
        ("mov %rbx, %r14; call *%r14; call *%rbx", 2),
        (
            "mov %rbx, 24(%rsp); call *24(%rsp); mov 24(%rsp), %rax; call *%rax",
            2,
        ),
        // Arguments on the stack would lie below.
        (
            "mov %rbx, 24(%rsp); call other; call *24(%rsp); call other",
            1,
        ),
        ("mov %rbx, (%rsp); call other; call *(%rsp)", 1),
        ("1: call *%rbx; dec %r12d; jne 1b", 1),
        (
            "test %edi, %edi; je 1f; mov GOMP_barrier@GOTPCREL(%rip), %rbx; 1: call *%rbx",
            1,
        ),
        (
            "mov %rbx, 24(%rsp); call *%rbx; mov 24(%rsp), %rax; add $48, %rsp; pop %rbx; pop %r15; pop %r14; pop %r13; pop %r12; jmp *%rax",
            2,
        ),
        ("push %rbx; push %r12; call *8(%rsp); add $16, %rsp", 1),
    ];
    for (code, sites) in cases {
        let Some((_, scan)) = program(&format!("{LOAD}{code}"), "") else {
            return;
        };
        assert_eq!(said(&scan), vec![""; sites], "{code}");
        assert_eq!(scan.relays.len(), 1, "{code}");
        let loads = code.matches("GOTPCREL").count() + 1;
        assert_eq!(scan.relays[0].loads.len(), loads, "{code}");
    }
}

#[test]
fn addresses_that_something_else_may_see() {
    let cases = [
        ("cmp %rbx, %r12; call *%rbx", "used"),
        ("test %rbx, %rbx; je 1f; call *%rbx; 1:", "used"),
        ("mov %rbx, variable(%rip); call *%rbx", "used"),
        ("mov %rbx, (%r12); call *%rbx", "used"),
        ("mov %rbx, %rdi; call other; call *%rbx", "used"),
        (
            "mov %rbx, %rdi; call *%rbx; mov %rbx, %rdi; jmp other",
            "used",
        ),
        ("mov %rbx, (%rsp); call other; call *%rbx", "used"),
        (
            "push %rbx; call other; pop %r12; push %rbx; call other; pop %rax; call *%rbx",
            "",
        ),
        ("push %rbx; call other; add $8, %rsp; call *%rbx", "used"),
        ("lea 24(%rsp), %rdi; mov %rbx, 24(%rsp); call *%rbx", "used"),
        ("call *%rbx; mov %rbx, %rax; jmp out", "used"),
        ("movq %rbx, %xmm0; call *%rbx", "used"),
        ("cmove %rbx, %r12; call *%rbx", "used"),
        ("mov %rbx, 24(%rsp); mov 28(%rsp), %eax; call *%rbx", "used"),
        (
            "mov %rbx, 24(%rsp); movups 16(%rsp), %xmm0; call *%rbx",
            "used",
        ),
        ("lea 1(%rbx), %r12; call *%rbx", "used"),
        ("xchg %rbx, %r12; call *%rbx", "skipped"),
        ("add $8, %rbx; sub $8, %rbx; call *%rbx", "skipped"),
    ];
    for (code, expected) in cases {
        let Some((_, scan)) = program(&format!("{LOAD}{code}"), "") else {
            return;
        };
        let said = said(&scan);
        match expected {
            // Not known to be the runtime's at all: not listed, or without probe.
            "skipped" => assert!(said.iter().all(|s| !s.is_empty()), "{code}: {said:?}"),
            _ => assert_eq!(said, [expected], "{code}"),
        }
    }
}

#[test]
fn addresses_from_several_places() {
    let cases = [
        // A variable may hold anything.
        (
            "mov GOMP_barrier@GOTPCREL(%rip), %rbx; test %edi, %edi; je 1f; mov (%r12), %rbx; 1: call *%rbx",
            vec![],
        ),
        ("lea GOMP_barrier@PLT(%rip), %rbx; call *%rbx", vec![""]),
        (
            "lea GOMP_barrier@PLT(%rip), %rbx; call *%rbx; lea GOMP_taskwait@PLT(%rip), %rbx; call *%rbx",
            vec!["", ""],
        ),
        (
            "mov $0, %ebx; 1: mov GOMP_barrier@GOTPCREL(%rip), %r13; call *%r13; cmp %rbx, %r12; jne 1b",
            vec![""],
        ),
        (
            "jne GOMP_barrier@PLT; mov GOMP_barrier@GOTPCREL(%rip), %rax; call *%rax",
            vec!["skipped", ""],
        ),
        (
            "mov GOMP_barrier@GOTPCREL(%rip), %rax; mov %rax, 24(%rsp); mov 24(%rsp), %rcx; mov 24(%rsp), %rax; add $48, %rsp; pop %rbx; pop %r15; pop %r14; pop %r13; pop %r12; je 1f; jmp *%rax; 1: jmp *%rcx",
            vec!["jumps", "jumps"],
        ),
    ];
    for (code, expected) in cases {
        let Some((_, scan)) = program(code, "") else {
            return;
        };
        assert_eq!(said(&scan), expected, "{code}");
    }
}

#[test]
fn numbers_that_addresses_are_made_of() {
    let fixed = "movabs $GOMP_barrier, %rbx; call *%rbx; call *%rbx";
    let relative = "1: lea 1b(%rip), %r13; movabs $_GLOBAL_OFFSET_TABLE_-1b, %r11; add %r11, %r13
      movabs $GOMP_barrier@PLTOFF, %rax; mov %rax, 24(%rsp); add %r13, %rax; call *%rax
      mov 24(%rsp), %rax; lea (%rax,%r13), %rbx; call *%rbx";
    for (code, flags) in [
        (fixed, "-no-pie"),
        (relative, "-pie"),
        (relative, "-no-pie"),
    ] {
        let Some((_, scan)) = program(code, flags) else {
            return;
        };
        assert_eq!(said(&scan), ["", ""], "{flags} {code}");
        assert_eq!(scan.relays.len(), 1, "{flags}");
    }
    // Where the file may be loaded anywhere, a number alone is no address; added twice it isn't the same any more.
    let twice = "1: lea 1b(%rip), %r13; movabs $GOMP_taskwait@PLTOFF, %rax; movabs $_GLOBAL_OFFSET_TABLE_-1b, %r11
      add %r11, %r13; add %rax, %r13; call *%r13; add %rax, %r12";
    let Some((_, scan)) = program(twice, "-pie") else {
        return;
    };
    assert_eq!(said(&scan), ["unknown"]);
}

/// Position-independent code of the large model: a slot's distance from the table is a number, the table's address is known.
const TABLE: &str = "1: lea 1b(%rip), %r13; movabs $_GLOBAL_OFFSET_TABLE_-1b, %r11; add %r11, %r13
  movabs $GOMP_barrier@GOT, %rbx\n";

#[test]
fn distances_in_tables() {
    let cases = [
        ("call *(%r13,%rbx)", 1, 1),
        ("call *(%rbx,%r13)", 1, 1),
        ("mov (%r13,%rbx), %r14; call *%r14; call *%r14", 2, 1),
        // With the larger forms of operands.
        (
            "mov %r13, %rbp; call *(%rbp,%rbx); mov %rbx, %r12; call *(%r13,%r12)",
            2,
            2,
        ),
        (
            "call *(%r13,%rbx); mov (%r13,%rbx), %rbx; 1: call *%rbx; dec %r12d; jne 1b",
            2,
            2,
        ),
        (
            "mov %rbx, 24(%rsp); mov 24(%rsp), %rax; call *(%r13,%rax)",
            1,
            1,
        ),
        (
            "mov (%r13,%rbx), %r14; mov %r14, 24(%rsp); call *24(%rsp)",
            1,
            1,
        ),
        (
            "call *(%r13,%rbx); mov (%r13,%rbx), %rax; add $48, %rsp; pop %rbx; pop %r15; pop %r14; pop %r13; pop %r12; jmp *%rax",
            2,
            2,
        ),
        (
            "call *(%r13,%rbx); mov %r13, %rdx; mov %rbx, %rax; add $48, %rsp; pop %rbx; pop %r15; pop %r14; pop %r13; pop %r12; jmp *(%rdx,%rax)",
            2,
            2,
        ),
    ];
    for (code, sites, reads) in cases {
        for flags in ["-pie", "-no-pie"] {
            // rbp is the caller's; main saves it nowhere else.
            let code = match code.contains("jmp") {
                true => format!("{TABLE}{code}"),
                false => format!("push %rbp; {TABLE}{code}; pop %rbp"),
            };
            let Some((bytes, scan)) = program(&code, flags) else {
                return;
            };
            assert_eq!(said(&scan), vec![""; sites], "{code}");
            let [relay] = &scan.relays[..] else {
                panic!("{code}: {:?}", scan.relays);
            };
            assert_eq!((relay.loads.len(), relay.reads.len()), (1, reads), "{code}");
            let options = ompfuse_rewriter::plan::PlanOptions::default();
            let patched = ompfuse_rewriter::patch::patch(&bytes, &scan, &options).unwrap();
            let changed = patched.plan.edits.iter().filter(|e| e.what == "load");
            assert_eq!(changed.count(), 1 + reads, "{code}");
        }
    }
}

#[test]
fn distances_that_something_else_may_see() {
    let cases = [
        // The number itself, or another entry of the table by it.
        ("mov %rbx, variable(%rip); call *(%r13,%rbx)", "used"),
        ("cmp %rbx, %r12; call *(%r13,%rbx)", "used"),
        (
            "lea 8(%r13), %r14; mov (%r14,%rbx), %rax; call *(%r13,%rbx)",
            "used",
        ),
        ("mov 8(%r13,%rbx), %rax; call *(%r13,%rbx)", "used"),
        ("mov (%r13,%rbx), %eax; call *(%r13,%rbx)", "used"),
        ("add (%r13,%rbx), %rax; call *(%r13,%rbx)", "used"),
        ("mov (%r12,%rbx), %rax; call *(%r13,%rbx)", "used"),
        ("mov %rbx, %rdi; call other; call *(%r13,%rbx)", "used"),
        // What was read.
        (
            "mov (%r13,%rbx), %rax; mov %rax, variable(%rip); call *%rax",
            "used",
        ),
        ("mov (%r13,%rbx), %rax; test %rax, %rax; call *%rax", "used"),
        // The number is the distance of other things too.
        ("add %r13, %rbx; call *(%rbx)", "unknown"),
        (
            "mov %rbx, %r14; add %r13, %r14; mov (%r14), %rax; call *(%r13,%rbx)",
            "used",
        ),
    ];
    for (code, expected) in cases {
        let Some((_, scan)) = program(&format!("{TABLE}{code}"), "-pie") else {
            return;
        };
        assert!(scan.relays.is_empty(), "{code}");
        let said = said(&scan);
        // A call whose address isn't followed that far isn't listed at all.
        assert!(said.iter().all(|s| *s == expected), "{code}: {said:?}");
    }
    // Two distances, one of which reaches the table elsewhere.
    let code = format!(
        "{TABLE} test %edi, %edi; je 1f; movabs $GOMP_taskwait@GOT, %rbx; 1: mov (%r13,%rbx), %rax; call *%rax; mov GOMP_taskwait@GOTPCREL(%rip), %rcx"
    );
    let Some((_, scan)) = program(&code, "-pie") else {
        return;
    };
    assert!(scan.relays.is_empty(), "{:?}", scan.sites);
}

#[test]
fn calls_keep_their_instructions() {
    let code = format!("{LOAD} call *%rbx; call *%rbx");
    let Some((bytes, scan)) = program(&code, "") else {
        return;
    };
    let options = ompfuse_rewriter::plan::PlanOptions::default();
    let patched = ompfuse_rewriter::patch::patch(&bytes, &scan, &options).unwrap();
    let changed: Vec<&str> = patched.plan.edits.iter().map(|e| e.what).collect();
    assert_eq!(changed.iter().filter(|w| **w == "load").count(), 1);
    assert!(!changed.contains(&"call site") && !changed.contains(&"window"));
    assert_eq!(patched.plan.patched().len(), 2);
    // One of two: the other is handed on.
    let one = ompfuse_rewriter::plan::PlanOptions {
        selected: Some([scan.sites[1].info.id].into()),
        ..options
    };
    let patched = ompfuse_rewriter::patch::patch(&bytes, &scan, &one).unwrap();
    assert_eq!(patched.plan.patched().len(), 1);
    assert!(scan.sites.iter().all(|s| matches!(
        s.action,
        Some(Action::Call {
            relayed: true,
            len: 2,
            ..
        })
    )));
}

/// Code that goes on to what a register holds, and to what was pushed, as gcc makes it.
const THUNKS: &str = "
jmp out
.pushsection .text.thunks, \"ax\"
.type thunk, @function
thunk: call 2f; 1: pause; lfence; jmp 1b; 2: mov %rbx, (%rsp); ret
.size thunk, .-thunk
.type fenced, @function
fenced: lfence; jmp *%rbx
.size fenced, .-fenced
.type pushed, @function
pushed: call 2f; 1: pause; lfence; jmp 1b; 2: lea 8(%rsp), %rsp; ret
.size pushed, .-pushed
.popsection
";

#[test]
fn calls_by_way_of_thunks() {
    const BACK: &str = "add $48, %rsp; pop %rax; pop %r15; pop %r14; pop %r13; pop %r12";
    let cases = [
        (format!("{LOAD} call thunk; call thunk"), vec![""; 2]),
        (format!("{LOAD} call fenced"), vec![""]),
        // Beside an ordinary call.
        (format!("{LOAD} call thunk; call *%rbx"), vec![""; 2]),
        (format!("{LOAD} cmp %rbx, %r12; call thunk"), vec!["used"]),
        (format!("{LOAD} call thunk; {BACK}; jmp thunk"), vec![""; 2]),
        (
            format!("{LOAD} {BACK}; call 2f; 1: pause; lfence; jmp 1b; 2: mov %rbx, (%rsp); ret"),
            vec![""],
        ),
        // What else the register may hold.
        (
            format!("{LOAD} test %edi, %edi; je 1f; mov (%r12), %rbx; 1: call thunk"),
            vec![],
        ),
        // What lies in memory is pushed.
        (
            "jmp 2f; 1: push GOMP_barrier@GOTPCREL(%rip); jmp pushed; 2: call 1b".to_owned(),
            vec![""],
        ),
        (
            "jmp 2f; 1: push GOMP_barrier@GOTPCREL(%rip); call 4f; 3: pause; lfence; jmp 3b; 4: lea 8(%rsp), %rsp; ret; 2: call 1b"
                .to_owned(),
            vec![""],
        ),
        (
            format!("{BACK}; push GOMP_barrier@GOTPCREL(%rip); jmp pushed"),
            vec!["unknown"],
        ),
    ];
    for (code, expected) in cases {
        for flags in ["", "-no-pie"] {
            let Some((_, scan)) = program(&format!("{code}\n{THUNKS}"), flags) else {
                return;
            };
            assert_eq!(said(&scan), expected, "{code}");
        }
    }
}
