//! Source lines of sites, with what is inlined there, and names; addr2line (binutils) is the oracle for lines.

mod separate;

use ompfuse_tests::{command, compile, each, process, repository, tools};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Commands that compile C++.
const COMPILERS: [&str; 5] = [
    "g++-11 -O2 -g -fopenmp",
    "g++-12 -O1 -g -fopenmp",
    "g++-12 -O3 -g -fopenmp -gz=zlib",
    "g++-12 -O2 -gdwarf-4 -fopenmp",
    "clang++-19 -O2 -g -fopenmp",
];

/// The sites as `scan --format json` has them.
pub(super) fn sites(path: &Path, options: &[&str]) -> Vec<Value> {
    let mut args = vec!["scan", "--format", "json"];
    args.extend(options);
    args.push(path.to_str().expect("a path of letters"));
    let answer = command::json(args);
    answer["sites"].as_array().expect("a list").clone()
}

/// `file:line` of a source.
pub(super) fn line(source: &Value) -> Option<(String, u64)> {
    let file = source["file"].as_str()?;
    Some((file.to_owned(), source["line"].as_u64()?))
}

/// What addr2line says of addresses: their lines, the innermost inlined function's first; nothing of what it doesn't know.
pub(super) fn addr2line(path: &Path, addresses: &[String]) -> BTreeMap<String, Vec<(String, u64)>> {
    let mut command = Command::new("addr2line");
    command.args(["-i", "-a", "-e"]).arg(path).args(addresses);
    let said = process::run(&mut command).ok("addr2line").text();
    let mut out = BTreeMap::new();
    let mut at = String::new();
    for text in said.lines() {
        if let Some(digits) = text.strip_prefix("0x") {
            at = format!("0x{}", digits.trim_start_matches('0'));
            continue;
        }
        let text = text.split(" (discriminator").next().unwrap_or(text);
        let (file, line) = text.rsplit_once(':').expect("FILE:LINE");
        let known: &mut Vec<(String, u64)> = out.entry(at.clone()).or_default();
        known.extend(line.parse().ok().map(|line| (file.to_owned(), line)));
    }
    out
}

/// The test's program, in a folder of its own.
fn program(compiler: &&str) -> Option<(TempDir, PathBuf)> {
    let folder = tempfile::tempdir().expect("there is room");
    let source = repository().join("tests/sources/inlined.cc");
    let out = folder.path().join("inlined");
    compile::files(&[&source], &out, compiler).then_some((folder, out))
}

/// Lines of the source with this mark and name.
fn marked(mark: &str) -> BTreeMap<String, BTreeSet<u64>> {
    let source = repository().join("tests/sources/inlined.cc");
    let text = std::fs::read_to_string(source).expect("the source is there");
    let mut out: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        if let Some((_, name)) = line.split_once(&format!("// {mark} ")) {
            out.entry(name.trim().to_owned())
                .or_default()
                .insert(number);
        }
    }
    assert!(!out.is_empty(), "no mark {mark}");
    out
}

/// Sites that begin loops and parallel regions.
fn begins(sites: &[Value]) -> Vec<&Value> {
    let is_begin = |s: &&Value| {
        let named = ["parallel", "loop"].contains(&s["construct"].as_str().unwrap_or_default());
        named && s["region"] == s["id"]
    };
    sites.iter().filter(is_begin).collect()
}

#[test]
fn constructs_are_at_lines_of_the_users() {
    for (compiler, (_folder, program)) in each(COMPILERS, program) {
        let marks = marked("MARK");
        let sites = sites(&program, &[]);
        let begins = begins(&sites);
        // Four functions, one of them twice.
        assert_eq!(begins.len(), 10, "{compiler}: {begins:?}");
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        for site in &begins {
            let (file, line) = line(&site["source"]).expect("it has a line");
            assert!(file.ends_with("inlined.cc"), "{compiler}: {site}");
            let of = marks.iter().find(|(_, lines)| lines.contains(&line));
            let (name, _) = of.unwrap_or_else(|| panic!("{compiler}: {site}"));
            *seen.entry(name).or_default() += 1;
        }
        let wanted = [("cool", 2), ("heat", 2), ("scale", 4), ("spread", 2)];
        assert_eq!(seen, BTreeMap::from(wanted), "{compiler}");
    }
}

#[test]
fn frames_are_what_addr2line_tells() {
    if !tools::has("addr2line") {
        return;
    }
    for (compiler, (_folder, program)) in each(COMPILERS, program) {
        // Calls: what a static loop of gcc's is told by stands elsewhere than the site.
        let all = sites(&program, &[]);
        let calls: Vec<&Value> = all.iter().filter(|s| s["entry"].is_string()).collect();
        let address = |s: &&Value| s["address"].as_str().expect("a text").to_owned();
        let addresses: Vec<String> = calls.iter().map(address).collect();
        let told = addr2line(&program, &addresses);
        let mut inlined = 0;
        for site in &calls {
            let told = &told[&address(site)];
            let frames: Vec<(String, u64)> = match site["frames"].as_array() {
                Some(frames) => frames.iter().filter_map(|f| line(&f["source"])).collect(),
                None => continue,
            };
            assert_eq!(&frames, told, "{compiler}: {site}");
            inlined += 1;
        }
        // gcc's and clang's parallel calls are in functions that are inlined.
        assert!(inlined >= 3, "{compiler}: {inlined} of {}", calls.len());
    }
}

/// Lines of the begins that a dry run would patch.
fn selected(program: &Path, pattern: &str) -> Vec<String> {
    let mut command = Command::new(command::path());
    command.args([
        "patch",
        "--dry-run",
        "--format",
        "json",
        "--select",
        pattern,
    ]);
    let said = process::run(
        command
            .arg(program)
            .arg("-o")
            .arg(program.with_extension("out")),
    );
    if said.status != 0 {
        return Vec::new();
    }
    let answer: Value = serde_json::from_str(&said.text()).expect("JSON");
    let sites = answer["sites"].as_array().expect("a list");
    let patched = |s: &&Value| s["outcome"] == "patched" && s["region"] == s["id"];
    let name = |s: &Value| s["function"].as_str().unwrap_or_default().to_owned();
    sites.iter().filter(patched).map(name).collect()
}

#[test]
fn any_line_and_name_of_the_frames_selects() {
    for (compiler, (_folder, program)) in each(COMPILERS, program) {
        let is_cool = |names: &[String]| names.iter().any(|n| n.contains("cool"));
        let call = *marked("CALL")["cool"].first().expect("a line");
        let loops = marked("MARK")["cool"].iter().nth(1).copied();
        let loops = loops.expect("the loop has a line behind the pragma");
        for pattern in ["cool", &format!("inlined.cc:{loops}")] {
            let chosen = selected(&program, pattern);
            assert!(is_cool(&chosen), "{compiler} {pattern}: {chosen:?}");
            assert!(
                !chosen.iter().any(|n| n.contains("heat")),
                "{compiler} {pattern}"
            );
        }
        // The line of the call, in `main`, that was inlined there.
        let chosen = selected(&program, &format!("inlined.cc:{call}"));
        assert_eq!(chosen, ["main"], "{compiler}");
        // Template arguments.
        for (pattern, count) in [
            ("scale<long>*", 2),
            ("scale<unsigned long>", 2),
            ("scale<>", 4),
            ("scale<int>", 0),
        ] {
            let chosen = selected(&program, pattern);
            assert_eq!(chosen.len(), count, "{compiler} {pattern}: {chosen:?}");
        }
    }
}

#[test]
fn names_are_whole_and_beside_the_linkage_names() {
    let compilers = ["g++-12 -O2 -g -fopenmp", "clang++-19 -O2 -g -fopenmp"];
    for (compiler, (folder, program)) in each(compilers, program) {
        let out = folder.path().join("out");
        let (out, program) = (text(&out), text(&program));
        command::ok(["record", "--events", "none", "-o", out, "--", program]);
        let report = command::report(out);
        let mut names: BTreeSet<(String, String)> = BTreeSet::new();
        for region in report["regions"].as_array().expect("a list") {
            let text = |name: &str| region[name].as_str().unwrap_or_default().to_owned();
            names.insert((text("function"), text("function_demangled")));
            let file = region["source"]["file"].as_str().unwrap_or_default();
            assert!(!file.contains("/usr/"), "{compiler}: {region}");
        }
        let has = |of: &str| {
            let is = |(raw, name): &(String, String)| raw.starts_with("_Z5scale") && name == of;
            names.iter().any(is)
        };
        assert!(
            has("scale<long>") && has("scale<unsigned long>"),
            "{compiler}: {names:?}"
        );
        let csv = command::ok(["export", "--to", "csv", out]).text();
        let header = csv.lines().next().expect("a header");
        assert!(header.contains("function,function_demangled,"), "{header}");
        let parts = [",scale<long>._omp_fn.0,", ",scale<long>.omp_outlined,"];
        assert!(parts.iter().any(|p| csv.contains(p)), "{compiler}");
    }
}

/// A path as text.
fn text(path: &Path) -> &str {
    path.to_str().expect("a path of letters")
}
