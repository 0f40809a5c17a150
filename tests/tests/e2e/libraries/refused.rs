//! A library that can't be patched: the program runs as ever, and the first sentence says what is not recorded.

use ompfuse_tests::{command, process, table};
use std::path::Path;
use std::process::Command;

const LIBRARY: &str = r#"
long total(int n) {
    long sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < n; i++) {
        volatile int y = 0;
        for (int k = 0; k < 1000; k++) y += k;
        sum += y;
    }
    return sum;
}
"#;

const CALLER: &str = r#"
#include <stdio.h>
long total(int);
int main(void) {
    long sum = 0;
#ifdef OWN
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < 1000; i++) sum += i;
#endif
    printf("%ld %ld\n", total(2000), sum);
}
"#;

/// Cuts off what only linkers and tools read.
fn damage(library: &Path) {
    let mut bytes = std::fs::read(library).expect("a library");
    let behind = bytes.len() as u64 + 4096;
    bytes[40..48].copy_from_slice(&behind.to_le_bytes());
    std::fs::write(library, bytes).expect("room for a library");
}

#[test]
fn a_library_that_is_not_recorded_is_the_first_that_is_told() {
    let folder = tempfile::tempdir().expect("there is room for a program");
    let compile = |name: &str, text: &str, how: &str| {
        ompfuse_tests::compile::text(folder.path(), name, text, &format!("gcc -O1 -g {how}"))
    };
    let library = compile("libtotal.so", LIBRARY, "-fopenmp -shared -fPIC");
    let Some(library) = library else {
        return;
    };
    let here = folder.path().to_str().expect("text");
    let link = format!("-L{here} -Wl,-rpath,{here} -Wl,--no-as-needed -ltotal");
    let plain = compile("plain", CALLER, &link).expect("gcc is there");
    let own = compile("own", CALLER, &format!("-fopenmp -DOWN {link}")).expect("gcc is there");
    damage(&library);
    for (program, status) in [(&plain, 1), (&own, 0)] {
        let mut alone = Command::new(program);
        let alone = process::run(process::clean(&mut alone, 1)).ok("alone");
        let out = program.with_extension("out");
        let recorded = table::record(program, &[], 1, &out, &["--events", "none"]);
        assert_eq!(recorded.text(), alone.text());
        assert_eq!(recorded.status, status, "{recorded:?}");
        let run = table::runs(&out).pop().expect("a run");
        let text = command::ok(["report".as_ref(), run.as_os_str()]).text();
        let first = text.lines().next().unwrap_or_default();
        assert!(
            first.starts_with("What libtotal.so does is not recorded: cannot read"),
            "{text}"
        );
        assert!(!text.contains("No loss of"), "{text}");
        let report = command::report(&run);
        let missing = report["shortcomings"].as_array().expect("a list").iter();
        let missing = missing.filter(|s| s["problem"] == "not-patched");
        assert_eq!(missing.count(), 1, "{}", report["shortcomings"]);
        let kept = folder.path().join("kept.ompb");
        let baseline = [
            "baseline".as_ref(),
            run.as_os_str(),
            "-o".as_ref(),
            kept.as_os_str(),
        ];
        let refused = command::run(baseline);
        assert_eq!(refused.status, 1, "{refused:?}");
        let gate = ["--fail-on".as_ref(), "time>5%".as_ref()];
        let sides = ["diff".as_ref(), run.as_os_str(), run.as_os_str()];
        let judged = command::run(sides.into_iter().chain(gate));
        assert_ne!(judged.status, 0, "{judged:?}");
    }
}
