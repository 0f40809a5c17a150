//! Files as other tools leave them: `patchelf` puts tables into several segments, each of which begins where the one before ends, and
//! BOLT leaves the code behind that it has moved. `tests/edited.sh` does it with the tools themselves.

use ompfuse_tests::scan::Scan;
use ompfuse_tests::{compile, process, table};
use std::path::Path;
use std::process::Command;

const HEADER: usize = 56;

fn word(bytes: &[u8], at: usize, len: usize) -> u64 {
    let raw = &bytes[at..at + len];
    raw.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b))
}

/// Offset and length of a section, as `readelf` has it.
fn section(file: &Path, name: &str) -> (u64, u64) {
    let listed = process::run(Command::new("readelf").args(["-SW"]).arg(file)).text();
    let line = listed.lines().find(|l| l.contains(&format!(" {name} ")));
    let words: Vec<&str> = line.expect("it has one").split_whitespace().collect();
    let at = words.iter().position(|w| *w == name).expect("its name");
    let number = |n: usize| u64::from_str_radix(words[at + n], 16).expect("a number");
    (number(3), number(4))
}

/// Divides the segment of the dynamic strings at a page in their midst; a note's header makes room for the second one's. The first one is
/// `shorter` than it could be, which leaves its last page as it is.
fn divide(bytes: &mut [u8], (offset, len): (u64, u64), shorter: u64) {
    let page = (offset + 1).next_multiple_of(0x1000);
    assert!(
        page < offset + len,
        "no page begins in {offset:#x} + {len:#x}"
    );
    let (first, count) = (word(bytes, 32, 8) as usize, word(bytes, 56, 2) as usize);
    let at = |n: usize| first + HEADER * n;
    let field = |bytes: &[u8], n: usize, field: usize| word(bytes, at(n) + field, 8);
    let is = |bytes: &[u8], n: usize, kind: u64| word(bytes, at(n), 4) == kind;
    let holds = |n: &usize| {
        let begin = field(bytes, *n, 8);
        is(bytes, *n, 1) && begin <= offset && offset < begin + field(bytes, *n, 32)
    };
    let load = (0..count).find(holds).expect("it is loaded");
    let note = (load + 1..count)
        .find(|&n| is(bytes, n, 4))
        .expect("it has a note");
    bytes.copy_within(at(load)..at(note), at(load + 1));
    let kept = page - field(bytes, load, 8);
    for (n, add, len) in [
        (load, 0, kept - shorter),
        (load + 1, kept, field(bytes, load, 32) - kept),
    ] {
        for at_field in [8, 16, 24] {
            let moved = field(bytes, n, at_field) + add;
            bytes[at(n) + at_field..][..8].copy_from_slice(&moved.to_le_bytes());
        }
        for at_field in [32, 40] {
            bytes[at(n) + at_field..][..8].copy_from_slice(&len.to_le_bytes());
        }
    }
}

#[test]
fn strings_in_two_segments() {
    let filler: String = (0..80)
        .map(|n| format!("int a_function_with_a_long_name_that_fills_the_strings_{n}(int x) {{ return x + {n}; }}\n"))
        .collect();
    let main = r#"
#include <stdio.h>
int main(void) {
  int s = 0;
#pragma omp parallel for schedule(dynamic) reduction(+ : s)
  for (int i = 0; i < 100; i++) s += i;
  printf("%d\n", s);
  return 0;
}
"#;
    let source = filler + main;
    for (flags, shorter) in [("-no-pie", 0), ("-pie -fPIE", 16)] {
        let Some(program) = compile(&source, &format!("gcc -O1 -g -fopenmp -rdynamic {flags}"))
        else {
            return;
        };
        let mut bytes = std::fs::read(&program.path).expect("it was compiled");
        divide(&mut bytes, section(&program.path, ".dynstr"), shorter);
        std::fs::write(&program.path, bytes).expect("it is ours");
        let original = process::run(&mut Command::new(&program.path));
        assert_eq!(original.ok("the divided program").text(), "4950\n");
        let out = program.folder.path().join("out");
        let recorded = table::record(&program.path, &[], 2, &out, &table::ONE_EVENT);
        assert_eq!(recorded.ok(flags).text(), "4950\n");
        assert_eq!(table::export(&out).len(), 100, "{flags}");
    }
}

/// BOLT puts its segment's header behind that of `patchelf`, in front of those of lower addresses.
#[test]
fn segments_in_another_order() {
    let source = r#"
#include <stdio.h>
int main(void) {
  int s = 0;
#pragma omp parallel for schedule(dynamic) reduction(+ : s)
  for (int i = 0; i < 100; i++) s += i;
  printf("%d\n", s);
  return 0;
}
"#;
    let Some(program) = compile(source, "gcc -O1 -no-pie -fopenmp") else {
        return;
    };
    let mut bytes = std::fs::read(&program.path).expect("it was compiled");
    let (first, count) = (word(&bytes, 32, 8) as usize, word(&bytes, 56, 2) as usize);
    let headers = (0..count).map(|n| first + HEADER * n);
    let loads: Vec<usize> = headers.filter(|&at| word(&bytes, at, 4) == 1).collect();
    let [_, second, third, ..] = loads[..] else {
        panic!("it has {} loads", loads.len());
    };
    for n in 0..HEADER {
        bytes.swap(second + n, third + n);
    }
    std::fs::write(&program.path, bytes).expect("it is ours");
    let original = process::run(&mut Command::new(&program.path));
    assert_eq!(original.ok("the edited program").text(), "4950\n");
    let out = program.folder.path().join("out");
    let recorded = table::record(&program.path, &[], 2, &out, &table::ONE_EVENT);
    assert_eq!(recorded.ok("recording").text(), "4950\n");
    assert_eq!(table::export(&out).len(), 100);
}

/// Code of the section that BOLT leaves is dead where it has no symbol: BOLT gives that to the copy which it has made.
#[test]
fn code_that_bolt_left() {
    let source = r#"
int sum;
__attribute__((noinline)) void left(int k) {
#pragma omp critical
  sum += k;
}
int main(void) {
#pragma omp parallel for
  for (int i = 0; i < 10; i++) left(i);
  return sum != 45;
}
"#;
    let Some(program) = compile(source, "gcc -O2 -fopenmp") else {
        return;
    };
    let rename = [
        "--rename-section",
        ".text=.bolt.org.text",
        "--strip-symbol",
        "left",
    ];
    process::run(Command::new("objcopy").args(rename).arg(&program.path)).ok("objcopy");
    let scan = Scan::of(&program.path);
    for site in scan.sites.iter().filter(|s| s.outcome == "patchable") {
        let is_told = site
            .reason
            .as_deref()
            .is_some_and(|r| r.contains("BOLT has moved"));
        assert_eq!(is_told, site.construct == "critical", "{site:?}");
    }
    let out = program.folder.path().join("out");
    table::record(&program.path, &[], 2, &out, &table::ONE_EVENT).ok("the edited program");
}
