//! Work that moves between functions that count their instructions and others: counts alone would tell of a change that isn't one.

use super::{is_allowed, source};
use ompfuse_tests::process::Output;
use ompfuse_tests::{command, compile, table};
use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The program with its work in its own code, and in a library's; `None` without the compiler.
struct Moved {
    folder: TempDir,
}

impl Moved {
    fn build(compiler: &str) -> Option<Moved> {
        let moved = Moved {
            folder: tempfile::tempdir().expect("there is room"),
        };
        let here = moved.folder.path().to_str().expect("text");
        let library = moved.folder.path().join("libelsewhere.so");
        let how = format!("{compiler} -O1 -g -shared -fPIC");
        if !compile::files(&[source("elsewhere.c")], &library, &how) {
            return None;
        }
        let how = format!(
            "{compiler} -O1 -g -fopenmp -L{here} -Wl,-rpath,{here} -Wl,--no-as-needed -lelsewhere"
        );
        let is_built = |name: &str, define: &str| {
            let out = moved.folder.path().join(name);
            compile::files(&[source("moved.c")], &out, &(how.clone() + define))
        };
        (is_built("here", "") && is_built("elsewhere", " -DELSEWHERE")).then_some(moved)
    }

    /// Records a program; `n`: how much it has to do. What was said, and where.
    fn record(&self, name: &str, n: &str, options: &[&str]) -> (Output, PathBuf) {
        let out = self.folder.path().join(format!("{name}-{n}.run"));
        let options = [&["--count", "--events", "none"], options].concat();
        let program = self.folder.path().join(name);
        let said = table::record(&program, &[n], 1, &out, &options).ok(name);
        (said, out)
    }
}

/// A comparison's exit status and outcome of a condition.
fn judged(a: &Path, b: &Path, condition: &str) -> (i32, Value) {
    let words = [
        "diff".as_ref(),
        a.as_os_str(),
        b.as_os_str(),
        "--fail-on".as_ref(),
        condition.as_ref(),
        "--format=json".as_ref(),
    ];
    let output = command::run::<&OsStr>(words);
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON was asked for");
    (output.status, json)
}

#[track_caller]
fn is(judged: &(i32, Value), status: i32, verdict: &str) {
    let (is, json) = judged;
    let gate = &json["gates"][0];
    assert_eq!(
        (*is, gate["verdict"]["is"].as_str()),
        (status, Some(verdict)),
        "{gate:#}"
    );
}

/// Iterations of a call: enough for dozens of samples.
const N: &str = "4000";
const TWICE: &str = "8000";

#[test]
fn a_gate_on_instructions_is_undecided_where_work_moves() {
    if !is_allowed() {
        return;
    }
    for compiler in ["gcc", "clang-19"] {
        let Some(moved) = Moved::build(compiler) else {
            continue;
        };
        let (said, here) = moved.record("here", N, &[]);
        assert!(!said.errors().contains("isn't counted"), "{said:?}");
        let (said, elsewhere) = moved.record("elsewhere", N, &[]);
        let named = "elsewhere (libelsewhere.so)";
        let is_told =
            |text: &str| text.contains("in code that isn't counted") && text.contains(named);
        assert!(is_told(&said.errors()), "{said:?}");
        let report = command::ok(["report".as_ref(), elsewhere.as_os_str()]).text();
        assert!(is_told(&report), "{report}");

        // Away from code that counts, and into it.
        for (a, b) in [(&here, &elsewhere), (&elsewhere, &here)] {
            for condition in [
                "instructions>5%",
                "instructions<-5%",
                "region(\"moved.c\").instructions/unit>5%",
            ] {
                let judged = judged(a, b, condition);
                is(&judged, 0, "undecided");
                let doubt = &judged.1["gates"][0]["verdict"]["doubts"][0]["uncounted"];
                let work = &doubt["work"];
                let [all, uncounted] = ["work", "uncounted"].map(|k| work[k].as_u64());
                assert!(all > Some(20) && uncounted > all.map(|n| n / 2), "{doubt}");
                let told = judged.1["gates"][0]["told"].as_str().expect("a sentence");
                assert!(told.contains(named), "{told}");
            }
            let text = command::ok(["diff".as_ref(), a.as_os_str(), b.as_os_str()]).text();
            // Nor is it told as what the region executes.
            for told in ["more instructions", "fewer instructions"] {
                assert!(!text.contains(told), "{text}");
            }
            assert!(is_told(&text), "{text}");
        }
        // A baseline tells the same.
        let file = moved.folder.path().join("baseline.json.gz");
        let words = [
            "baseline".as_ref(),
            elsewhere.as_os_str(),
            "-o".as_ref(),
            file.as_os_str(),
        ];
        command::ok::<&OsStr>(words);
        is(&judged(&file, &here, "instructions>5%"), 0, "undecided");
    }
}

#[test]
fn a_program_that_is_wholly_counted_stays_decided() {
    let Some(moved) = Moved::build("gcc").filter(|_| is_allowed()) else {
        return;
    };
    let (_, one) = moved.record("here", N, &[]);
    let (said, two) = moved.record("here", TWICE, &[]);
    assert!(!said.errors().contains("isn't counted"), "{said:?}");
    is(&judged(&one, &two, "instructions>5%"), 3, "holds");
    is(&judged(&two, &one, "instructions>5%"), 0, "passes");
    let report = command::report(&two);
    let work = &report["sampled"]["uncounted"];
    let [all, uncounted] = ["work", "uncounted"].map(|k| work[k].as_u64().expect("a number"));
    assert!(all > 20 && uncounted as f64 <= 0.05 * all as f64, "{work}");
}

#[test]
fn a_short_program_is_decided_by_its_counts() {
    let Some(moved) = Moved::build("gcc") else {
        return;
    };
    let (said, one) = moved.record("here", "1", &[]);
    assert!(!said.errors().contains("isn't counted"), "{said:?}");
    let (_, none) = moved.record("elsewhere", N, &["--sampling", "off"]);
    is(&judged(&one, &none, "instructions>5%"), 0, "passes");
    let report = command::report(&none);
    assert!(report["sampled"].is_null(), "{}", report["sampled"]);
}
