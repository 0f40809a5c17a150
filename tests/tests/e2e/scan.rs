//! `ompfuse scan` against objdump and against what the sources say.

mod stages;

use ompfuse_tests::fixture::{Build, Fixture};
use ompfuse_tests::scan::{Scan, Site};
use ompfuse_tests::{command, has, objdump, process, repository, some};
use std::path::Path;
use std::process::Command;

/// What is wrong with the scan of a build.
pub(crate) fn complaints(build: &Build, scan: &Scan) -> Vec<String> {
    let mut wrong = Vec::new();
    let kind = if build.is_executable() {
        "executable"
    } else {
        "pie"
    };
    if scan.binary.kind != kind {
        wrong.push(format!("kind is {}, not {kind}", scan.binary.kind));
    }
    if scan.binary.stripped != build.stripped {
        wrong.push(format!("stripped is {}", scan.binary.stripped));
    }
    let runtime = if build.compiler == "gcc" {
        "libgomp.so.1"
    } else {
        "libomp.so.5"
    };
    if !scan.binary.runtimes.iter().any(|r| r == runtime) {
        wrong.push(format!(
            "runtimes are {:?} without {runtime}",
            scan.binary.runtimes
        ));
    }

    let calls = objdump::calls(&build.path);
    if calls.direct.is_empty() {
        wrong.push("objdump finds no calls: the oracle is broken".to_owned());
    }
    for (address, symbol) in calls.direct.iter().chain(&calls.hoisted) {
        let listed = |s: &&Site| s.address == *address && s.entry.as_deref() == Some(symbol);
        if !scan.sites.iter().any(|s| listed(&s)) {
            wrong.push(format!(
                "the call of {symbol} at {address:#x} is not listed"
            ));
        }
    }
    for (at, site) in scan.sites.iter().enumerate() {
        let Site {
            address,
            construct,
            entry,
            outcome,
            reason,
            mechanism,
            ..
        } = site;
        if site.id as usize != at {
            wrong.push(format!("site {at} has id {}", site.id));
        }
        if let Some(entry) = entry {
            let known = calls.direct.get(address).or(calls.hoisted.get(address));
            let real = known.map_or(calls.indirect.contains(address), |s| s == entry);
            if !real {
                wrong.push(format!("objdump sees no call of {entry} at {address:#x}"));
            }
        }
        // What another site's probe tells may say which, a short jump where its room is; what has no probe has to say why.
        let reason = reason.as_deref().unwrap_or_default();
        let wordless = reason.is_empty();
        let plausible = match outcome.as_str() {
            "patchable" => wordless || mechanism == "implied" || reason.starts_with("short jump, "),
            "skipped" | "service" => !wordless,
            _ => false,
        };
        if !plausible {
            wrong.push(format!(
                "{construct} at {address:#x} is {outcome} with reason {reason:?}"
            ));
        }
    }

    if !build.stripped {
        let expected = build
            .fixture
            .expected_regions(build.compiler, &build.variant);
        wrong.extend(scan.regions(&expected, build.compiler).missing);
    }
    wrong
}

fn agrees_with_objdump_and_source(name: &str, compiler: &str) {
    let mut wrong = Vec::new();
    let mut with_symbols = None;
    for build in some(Fixture::open(name).builds(compiler)) {
        let scan = Scan::of(&build.path);
        wrong.extend(
            complaints(&build, &scan)
                .into_iter()
                .map(|w| format!("{build}: {w}")),
        );
        // Source lines need debug information, and names of variables symbols; all else has to be the same without them.
        let nameless = |s| Site {
            function: None,
            source: None,
            detail: None,
            ..s
        };
        let sites: Vec<_> = scan.sites.into_iter().map(nameless).collect();
        if !build.stripped {
            with_symbols = Some(sites);
        } else if with_symbols.take().is_some_and(|w| w != sites) {
            wrong.push(format!("{build}: other sites than with a symbol table"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} complaints:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

for_each_fixture!(super::agrees_with_objdump_and_source);

/// What no table knows is listed and counted, and what only has such a name is the program's.
#[test]
fn unknown_entry_points_are_told() {
    let folder = tempfile::tempdir().expect("there is room for a program");
    let at = |name: &str| folder.path().join(name);
    let write = |name: &str, text: &str| std::fs::write(at(name), text).expect("a file is written");
    write("later.c", "void GOMP_of_tomorrow(int n) { (void)n; }\n");
    write(
        "program.c",
        "void GOMP_of_tomorrow(int);\n\
         int omp_get_max_threads(void);\n\
         __attribute__((noinline)) int omp_helper(int n) { return n + 1; }\n\
         __attribute__((noinline)) int kmp_search(int n) { return n + 2; }\n\
         int main(void) {\n\
             GOMP_of_tomorrow(omp_helper(kmp_search(omp_get_max_threads())));\n\
             _Pragma(\"omp parallel\") GOMP_of_tomorrow(1);\n\
             return 0;\n\
         }\n",
    );
    let gcc = |args: &[&str]| {
        let mut command = std::process::Command::new("gcc");
        process::run(command.args(args).current_dir(folder.path())).ok("gcc");
    };
    gcc(&["-shared", "-fPIC", "-o", "liblater.so", "later.c"]);
    gcc(&["-fopenmp", "-o", "program", "program.c", "-L.", "-llater"]);
    let program = at("program");
    let json = command::json([
        Path::new("scan"),
        &program,
        Path::new("--format"),
        Path::new("json"),
    ]);
    let of = |entry: &str| -> Vec<(&str, &str, &str)> {
        let sites = json["sites"].as_array().expect("a list of sites").iter();
        sites
            .filter(|s| s["entry"] == entry)
            .map(|s| {
                let word = |key: &str| s[key].as_str().expect("a word");
                (word("construct"), word("outcome"), word("reason"))
            })
            .collect()
    };
    let unknown = (
        "service",
        "skipped",
        "unknown entry point of an OpenMP runtime",
    );
    assert_eq!(of("GOMP_of_tomorrow"), [unknown; 2]);
    let question = ("service", "service", "needs no probe: a question");
    assert_eq!(of("omp_get_max_threads"), [question]);
    assert!(of("omp_helper").is_empty() && of("kmp_search").is_empty());
    assert_eq!(json["totals"]["unknown"], 2);
    assert_eq!(json["totals"]["skipped"], 2);
    assert_eq!(json["totals"]["services"], 1);
    let text = command::ok([Path::new("scan"), &program]).text();
    assert!(
        text.ends_with("calls of unknown entry points of an OpenMP runtime: 2\n"),
        "{text}"
    );
}

/// In functions that clang made nothing is looked for that only gcc computes itself, whatever else they hold.
#[test]
fn numbers_of_clangs_functions_are_the_users() {
    let compiler = "clang-19";
    if !has(compiler) {
        return;
    }
    let folder = tempfile::tempdir().expect("there is room for a program");
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        let program = folder.path().join(format!("numbers{level}"));
        let mut compile = Command::new(compiler);
        compile.args([level, "-fopenmp", "-o"]).arg(&program);
        let source = repository().join("fixtures/behaviour/numbers.c");
        process::run(compile.arg(source)).ok("the compiler");
        let constructs = |site: &Site| site.construct.clone();
        let found: Vec<String> = Scan::of(&program).sites.iter().map(constructs).collect();
        assert!(found.contains(&"sections".to_owned()), "{level}: {found:?}");
        let wrong = found.iter().find(|c| *c == "loop" || c.contains("master"));
        assert_eq!(wrong, None, "{level}: {found:?}");
    }
}
