//! Static loops whose chunks gcc deals itself, of few iterations: their comparisons are merged, or look like others.

use super::scan_support::{HEADER, Program, begins, compile};
use super::{LEVELS, windows_are_sound};
use ompfuse_format::Construct;
use ompfuse_format::site::{Edge, Outcome};
use std::fmt::Write;

/// The program as both versions of gcc make it at every level, each with the command that made it.
fn by_gcc(source: &str, flags: &str) -> impl Iterator<Item = (String, Program)> {
    let levels = ["gcc-11", "gcc-12"].into_iter();
    let commands = levels.flat_map(|c| LEVELS.map(|l| (c, l)));
    commands.filter_map(move |(compiler, level)| {
        let command = format!("{compiler} -fopenmp {flags} {level}");
        let program = compile(source, &command)?;
        Some((command, program))
    })
}

/// Of a single iteration gcc compares a chunk's start with 0 instead of 1.
#[test]
fn chunks_of_a_single_iteration() {
    let mut source = HEADER.to_owned();
    let mut count = 0;
    for t in ["int", "long", "short"] {
        for head in ["i = 0; i < 1; i++", "i = 3; i < 5; i += 2"] {
            for chunk in [1, 3] {
                writeln!(
                    source,
                    "void f{count}(void) {{
#pragma omp for schedule(static, {chunk})
for ({t} {head}) {{ a[i & 1023] += g(i); }}
if (omp_get_thread_num() == 0) post(); }}"
                )
                .unwrap();
                count += 1;
            }
        }
    }
    source.push_str("int main(void) {}");
    for (command, program) in by_gcc(&source, "-fno-ipa-icf") {
        let scan = program.scan();
        let loops = begins(&scan, Construct::Loop);
        assert_eq!(loops.len(), count, "{command}");
        for site in &loops {
            assert_eq!(
                site.info.detail.as_deref(),
                Some("static, chunk"),
                "{command}"
            );
            let known = site.info.outcome == Outcome::Patchable || site.info.reason.is_some();
            assert!(known, "{command}: {:?}", site.info);
        }
        let masters = begins(&scan, Construct::Master).len();
        assert!(masters <= count, "{command}: {masters}");
        windows_are_sound(&scan, &program.objdump(), &command);
    }
}

/// The same of variables without sign: a start is asked to be 0, as the thread's number is for a `master`.
#[test]
fn chunks_of_a_single_iteration_without_sign() {
    // A master before it may be asked for by the same question.
    let mut source = format!(
        "{HEADER}
void with_master(void) {{
#pragma omp master
a[1] += g(2);
#pragma omp for schedule(static, 3) nowait
for (unsigned i = 4; i < 5; i++) a[i & 1023] += g(i);
post(); }}
"
    );
    let mut count = 0;
    for t in ["unsigned", "unsigned long"] {
        for head in ["i = 0; i < 1; i++", "i = 3; i < 5; i += 2"] {
            for chunk in [1, 2, 3, 4] {
                for (wait, behind) in [("", ""), ("nowait", "post();")] {
                    writeln!(
                        source,
                        "void f{count}(void) {{
#pragma omp for schedule(static, {chunk}) {wait}
for ({t} {head}) {{ a[i & 1023] += g(i); }}
{behind} }}"
                    )
                    .unwrap();
                    count += 1;
                }
            }
        }
    }
    source.push_str("int main(void) {}");
    for (command, program) in by_gcc(&source, "-fno-ipa-icf") {
        let scan = program.scan();
        let loops = begins(&scan, Construct::Loop);
        assert_eq!(loops.len(), count + 1, "{command}");
        for site in &loops {
            let info = &site.info;
            assert_eq!(info.detail.as_deref(), Some("static, chunk"), "{command}");
            // Of the last one, and of what shares code with others, something may be unclear.
            let Some(reason) = &info.reason else { continue };
            let named = &**reason == "its first chunk begins without a comparison"
                || reason.contains("in common with another function")
                || reason.starts_with("short jump");
            assert!(named, "{command}: {info:?}");
        }
        let masters = begins(&scan, Construct::Master).len();
        assert_eq!(masters, 1, "{command}");
        windows_are_sound(&scan, &program.objdump(), &command);
    }
}

/// Loops of few iterations in a row: who has a chunk of one has one of the other, so gcc asks once. Each is listed, and
/// none takes the comparison of another for its own.
#[test]
fn chunks_that_are_compared_elsewhere() {
    let source = format!(
        "{HEADER}
void f(void) {{
#pragma omp for schedule(static, 1)
for (int i = 0; i < 5; i++) a[i] += g(i);
#pragma omp for schedule(static, 1)
for (int i = 0; i < 5; i++) b[i] += g(i);
}}
int main(void) {{}}"
    );
    for (command, program) in by_gcc(&source, "") {
        let scan = program.scan();
        let loops = begins(&scan, Construct::Loop);
        assert_eq!(loops.len(), 2, "{command}");
        for site in &loops {
            let known = site.info.outcome == Outcome::Patchable || site.info.reason.is_some();
            assert!(known, "{command}: {:?}", site.info);
        }
        let barriers = scan
            .sites
            .iter()
            .filter(|s| s.info.entry.as_deref() == Some("GOMP_barrier"));
        let first_barrier = barriers.map(|s| s.info.address.0).min();
        let parts = scan
            .sites
            .iter()
            .filter(|s| s.info.region == loops[0].info.id);
        for site in parts.filter(|s| s.info.edge == Edge::Next) {
            assert!(
                Some(site.info.address.0) < first_barrier,
                "{command}: {:?}",
                site.info
            );
        }
    }
}
