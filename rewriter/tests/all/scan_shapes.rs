//! Constructs that gcc compiles without a call: loops, masters and singles, each with its end; and code that is none.

mod chunks;
mod compilers;
mod jump_tables;
mod labels;
mod moved;
mod ordinary;
use crate::scan_support::{HEADER, begins, compile, complete, ends, programs};
use ompfuse_format::Construct;
use ompfuse_format::abi::{NO_ARG, Probe};
use ompfuse_format::site::{Edge, Mechanism, Outcome};
use ompfuse_rewriter::model::{Action, ProbeSpec, Scan, Site};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Levels of optimisation, with other flags; where everything is tested nine, else four.
fn levels() -> Vec<&'static str> {
    let all = [
        "-O0",
        "-O1",
        "-Og",
        "-O2",
        "-Os",
        "-O2 -fno-plt",
        "-O3",
        "-O3 -fno-pie -no-pie -march=x86-64-v3",
        "-O2 -s",
    ];
    ompfuse_kit::few(&all, 4)
}

/// Loops in many types, directions and surroundings; one in each function.
fn loops(types: &[&str]) -> (String, usize) {
    let mut source = HEADER.to_owned();
    let mut count = 0;
    for t in types {
        for head in [
            format!("{t} i = 0; i < n; i++"),
            format!("{t} i = 1; i <= n; i += 3"),
            format!("{t} i = n; i > 0; i--"),
            format!("{t} i = lo; i < n; i += st"),
        ] {
            let body = "a[i & 1023] += g(i);";
            for form in [
                format!("#pragma omp parallel for\nfor ({head}) {{ {body} }}"),
                format!(
                    "#pragma omp parallel\n{{ pre();\n#pragma omp for\nfor ({head}) {{ {body} }}\npost(); }}"
                ),
                format!(
                    "#pragma omp parallel\n{{ pre();\n#pragma omp for nowait\nfor ({head}) {{ {body} }}\npost(); }}"
                ),
                format!("#pragma omp for\nfor ({head}) {{ {body} }}"),
                format!("#pragma omp for nowait\nfor ({head}) {{ {body} }}"),
                format!(
                    "double s = 0;\n#pragma omp parallel for reduction(+:s)\nfor ({head}) {{ {body} s += i; }}\nreturn s;"
                ),
                format!(
                    "{t} q = 0;\n#pragma omp parallel for lastprivate(q)\nfor ({head}) {{ {body} q = i; }}\nreturn q;"
                ),
            ] {
                writeln!(
                    source,
                    "double f{count}({t} n, {t} lo, {t} st) {{\n{form}\nreturn 0; }}"
                )
                .unwrap();
                count += 1;
            }
        }
    }
    source.push_str("int main(void) {}");
    (source, count)
}

#[test]
fn static_loops_have_begin_and_end() {
    let (source, count) = loops(&["int", "unsigned", "long", "unsigned long"]);
    let commands = levels()
        .into_iter()
        .map(|level| format!("gcc -fopenmp -fno-ipa-icf {level}"));
    for (command, program) in programs(&source, commands) {
        let scan = program.scan();
        assert_eq!(complete(&scan, Construct::Loop), count, "{command}");
        let lines = program.objdump();
        for site in begins(&scan, Construct::Loop) {
            let Some(Action::Inline(spec)) = &site.action else {
                panic!("{:?}", site.info)
            };
            assert_eq!(spec.probe, Probe::InlineLoopBegin);
            let line = lines.iter().find(|l| l.at == site.info.address.0).unwrap();
            let unsigned = line.text.starts_with("div");
            assert!(unsigned || line.text.starts_with("idiv"), "{}", line.text);
            assert_eq!(spec.unsigned, unsigned);
            assert!(spec.width == 4 || spec.width == 8);
            assert!(spec.args[0] < 16 || spec.args[0] == NO_ARG);
        }
        windows_are_sound(&scan, &lines, &command);
    }
}

/// Variables of one and two bytes: bounds that are compared in parts of registers, and kept on the stack as such.
#[test]
fn loops_of_narrow_variables() {
    let types = ["short", "unsigned short", "signed char", "unsigned char"];
    let (mut source, count) = loops(&types);
    let main = source.rfind("int main").unwrap();
    source.truncate(main);
    for (i, t) in types.iter().enumerate() {
        for (j, head) in [
            format!("{t} i = 0; i < n; i++"),
            format!("{t} i = 1; i <= n; i += 3"),
        ]
        .iter()
        .enumerate()
        {
            writeln!(
                source,
                "void c{i}{j}({t} n) {{
#pragma omp parallel for schedule(static, 3)
for ({head}) {{ a[i & 1023] += g(i); }} }}"
            )
            .unwrap();
        }
    }
    source.push_str("int main(void) {}");
    let commands = levels()
        .into_iter()
        .map(|level| format!("gcc -fopenmp -fno-ipa-icf {level}"));
    for (command, program) in programs(&source, commands) {
        let scan = program.scan();
        let chunked = begins(&scan, Construct::Loop)
            .into_iter()
            .filter(|s| s.info.detail.as_deref() == Some("static, chunk"))
            .inspect(|s| {
                assert_eq!(
                    s.info.outcome,
                    Outcome::Patchable,
                    "{command}: {:?}",
                    s.info
                )
            })
            .count();
        assert_eq!(chunked, 2 * types.len(), "{command}");
        // Chunks tell their ends themselves.
        let whole = complete(&scan, Construct::Loop);
        assert_eq!(whole, count, "{command}");
        windows_are_sound(&scan, &program.objdump(), &command);
    }
}

/// Windows begin and end at instructions, and nothing branches into them.
fn windows_are_sound(scan: &Scan, lines: &[crate::scan_support::Line], command: &str) {
    let starts: BTreeSet<u64> = lines.iter().map(|l| l.at).collect();
    let targets: BTreeSet<u64> = lines
        .iter()
        .filter_map(crate::scan_support::Line::target)
        .collect();
    for window in &scan.windows {
        let (from, to) = (window.start.0, window.start.0 + u64::from(window.len));
        assert!(
            starts.contains(&from) && starts.contains(&to),
            "{command}: {window:?}"
        );
        assert_eq!(
            targets.range(from + 1..to).next(),
            None,
            "{command}: {window:?}"
        );
        let mut inside: Vec<_> = lines
            .iter()
            .filter(|l| (from..to).contains(&l.at))
            .collect();
        let last = inside.pop().unwrap();
        assert!(
            inside.iter().all(|l| !l.text.contains("call")),
            "{command}: {}",
            last.text
        );
        for &site in &window.sites {
            assert!(starts.contains(&scan.sites[site as usize].info.address.0));
        }
    }
}

#[test]
fn masters_and_singles_have_begin_and_end() {
    let mut source = HEADER.to_owned();
    let (mut masters, mut singles) = (0, 0);
    for body in [
        "a[0] = 1;",
        "pre();",
        "for (int i = 0; i < n; i++) a[i] += 1;",
    ] {
        for after in ["", "post();", "a[3] += 2;", "\n#pragma omp barrier\n"] {
            for before in ["", "pre();"] {
                for (construct, master) in [
                    ("#pragma omp master\n", true),
                    ("#pragma omp masked filter(2)\n", true),
                    ("if (omp_get_thread_num() == 1)", true),
                    ("#pragma omp single\n", false),
                    ("#pragma omp single nowait\n", false),
                ] {
                    writeln!(
                        source,
                        "void f{}(int n) {{\n#pragma omp parallel\n{{ {before}\n{construct} {{ {body} }}\n{after} }} }}",
                        masters + singles
                    )
                    .unwrap();
                    if master {
                        masters += 1;
                    } else {
                        singles += 1;
                    }
                }
            }
        }
    }
    source.push_str("int main(void) {}");
    let commands = levels()
        .into_iter()
        .map(|level| format!("gcc -fopenmp -fno-ipa-icf -fno-partial-inlining {level}"));
    for (command, program) in programs(&source, commands) {
        let scan = program.scan();
        // The smallest code has no room for a jump at some ends.
        let crowded = begins(&scan, Construct::Master)
            .iter()
            .filter(|b| {
                b.info
                    .reason
                    .as_deref()
                    .is_some_and(|r| r.contains("bytes free"))
            })
            .count();
        assert!(
            crowded == 0 || (crowded < 4 && command.ends_with("-Os")),
            "{command}"
        );
        assert_eq!(
            complete(&scan, Construct::Master) + crowded,
            masters,
            "{command}"
        );
        assert_eq!(complete(&scan, Construct::Single), singles, "{command}");
        assert_eq!(complete(&scan, Construct::Loop), 0, "{command}");
        for site in begins(&scan, Construct::Master) {
            if site.action.is_none() {
                continue;
            }
            let (Some(Action::Call { probe, .. }) | Some(Action::Inline(probe))) = &site.action
            else {
                panic!("{:?}", site.info)
            };
            assert!((0..=2).contains(&probe.param), "{command}");
            assert_eq!(site.info.detail.as_deref(), Some("or equivalent"));
        }
        windows_are_sound(&scan, &program.objdump(), &command);
    }
}

/// One function's sites, in short.
fn outline(scan: &Scan, function: &str) -> Vec<(Construct, Edge, Mechanism)> {
    scan.sites
        .iter()
        .filter(|s| {
            s.info
                .function
                .as_deref()
                .is_some_and(|f| f.starts_with(function))
        })
        .filter(|s| s.info.construct != Construct::Service)
        .map(|s| (s.info.construct, s.info.edge, s.info.mechanism))
        .collect()
}

#[test]
fn constructs_in_a_row_end_before_the_next_begins() {
    let source = format!(
        "{HEADER} void row(int n, long m) {{
#pragma omp parallel
  {{
#pragma omp for nowait
    for (long i = 0; i < m; i++) a[i & 1023] += i;
#pragma omp master
    a[0] = 3;
#pragma omp for
    for (int i = 10; i < n; i += 3) a[i & 1023] += i * 2;
#pragma omp single nowait
    a[1] = 5;
  }}
}}
int main(void) {{}}"
    );
    let levels = ["-O0", "-O1", "-O2", "-O3"].map(|level| format!("gcc -fopenmp {level}"));
    for (level, program) in programs(&source, levels) {
        let scan = program.scan();
        let sites = outline(&scan, "row._omp_fn");
        let constructs: Vec<_> = sites.iter().map(|s| (s.0, s.1)).collect();
        use Construct::{ImplicitBarrier, Loop, Master, Single};
        use Edge::{Begin, Encloses, End};
        assert_eq!(
            constructs,
            [
                (Loop, Begin),
                (Loop, End),
                (Master, Begin),
                (Master, End),
                (Loop, Begin),
                (Loop, End),
                (ImplicitBarrier, Encloses),
                (Single, Begin),
                (Single, End),
            ],
            "{level}"
        );
        assert_eq!(sites[5].2, Mechanism::Implied, "{level}");
    }
}

#[test]
fn loops_that_share_their_bounds() {
    let source = format!(
        "{HEADER} void f(int n) {{
#pragma omp parallel
  {{
#pragma omp for
    for (int i = 0; i < n; i++) a[i] *= 2;
#pragma omp for
    for (int i = 0; i < n; i++) b[i] += a[n - 1 - i];
  }}
}}
int main(void) {{}}"
    );
    let levels = ["-O1", "-O2", "-O3"].map(|level| format!("gcc -fopenmp {level}"));
    for (level, program) in programs(&source, levels) {
        let scan = program.scan();
        let found = begins(&scan, Construct::Loop);
        assert!(found.len() >= 2, "{level}: the second loop is not listed");
        assert_eq!(found[0].info.outcome, Outcome::Patchable, "{level}");
        let end = ends(&scan, found[0]);
        assert_eq!(end.len(), 1, "{level}");
        assert_eq!(end[0].info.mechanism, Mechanism::Implied, "{level}");
        assert!(
            end[0].info.address < found[1].info.address,
            "{level}: the first loop ends behind the second's begin"
        );
    }
}

fn spec(site: &Site) -> Option<&ProbeSpec> {
    match &site.action {
        Some(Action::Inline(spec)) => Some(spec),
        _ => None,
    }
}

#[test]
fn unoptimised_loops_divide_twice_and_begin_once() {
    let source = format!(
        "{HEADER} int main(int n, char **v) {{
#pragma omp parallel for
  for (int i = 0; i < n; i++) a[i & 1023] = i;
}}"
    );
    let program = compile(&source, "gcc -fopenmp -O0").unwrap();
    let scan = program.scan();
    let found = begins(&scan, Construct::Loop);
    assert_eq!(found.len(), 1);
    let divisions: Vec<u64> = program
        .objdump()
        .iter()
        .filter(|l| l.text.starts_with("idiv"))
        .map(|l| l.at)
        .collect();
    assert_eq!(divisions.len(), 2);
    assert_eq!(found[0].info.address.0, divisions[0]);
    assert_eq!(
        spec(found[0]).map(|s| (s.width, s.unsigned)),
        Some((4, false))
    );
}

#[test]
fn source_lines_of_inlined_constructs() {
    let source = "double a[100];
int omp_get_thread_num(void);
int main(int n, char **v) {
#pragma omp parallel
  {
#pragma omp for nowait
    for (int i = 0; i < n; i++) a[i] = i;
#pragma omp master
    a[0] = 1;
  }
}";
    let program = compile(source, "gcc -fopenmp -O1 -g").unwrap();
    let scan = program.scan();
    let line = |c| {
        begins(&scan, c)[0]
            .info
            .source
            .as_ref()
            .map(|s| s.line)
            .unwrap()
    };
    assert!((6..=7).contains(&line(Construct::Loop)));
    assert!((8..=9).contains(&line(Construct::Master)));
}
