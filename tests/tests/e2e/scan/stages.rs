//! What a scan's stages hand to each other: it is the same every time, and it is what is done.

use ompfuse_tests::fixture::Fixture;
use ompfuse_tests::{command, process, some};
use serde_json::Value;
use std::path::Path;

/// What a stage hands to the next, as it is printed.
fn dump(program: &Path, stage: &str, threads: &str) -> Vec<u8> {
    let mut command = command::with_threads(2);
    command.env("RAYON_NUM_THREADS", threads).arg("scan");
    command.args(["--dump", stage]).arg(program);
    process::run(&mut command).ok("scan --dump").stdout
}

/// Writes what a plan adds or changes over the bytes of the original.
fn carry_out(plan: &Value, original: &[u8]) -> Vec<u8> {
    let mut bytes = original.to_vec();
    let len = plan["len"].as_u64().expect("a length");
    bytes.resize(usize::try_from(len).expect("a length"), 0);
    for list in ["edits", "appended"] {
        for chunk in plan[list].as_array().expect("a list") {
            let at = chunk["offset"].as_u64().expect("an offset");
            let digits = chunk["bytes"].as_str().expect("digits");
            for n in 0..digits.len() / 2 {
                let byte = u8::from_str_radix(&digits[2 * n..2 * n + 2], 16);
                let place = usize::try_from(at).expect("an offset") + n;
                bytes[place] = byte.expect("hexadecimal digits");
            }
        }
    }
    bytes
}

#[test]
fn stages_can_be_printed() {
    let folder = tempfile::tempdir().expect("there is room for a program");
    for build in some(Fixture::open("loops").builds("gcc")).take(2) {
        for stage in ["code", "sites", "plan"] {
            let once = dump(&build.path, stage, "1");
            assert_eq!(once, dump(&build.path, stage, "2"), "{build}: {stage}");
        }
        let read = |stage: &str| -> Value {
            let bytes = dump(&build.path, stage, "2");
            serde_json::from_slice(&bytes).expect("JSON")
        };
        // The plan is what `patch` writes.
        let out = folder.path().join("patched");
        let args = ["patch", "-o"].map(Path::new);
        command::ok(args.iter().copied().chain([out.as_path(), &build.path]));
        let original = std::fs::read(&build.path).expect("the program");
        let patched = std::fs::read(&out).expect("the patched program");
        let done = carry_out(&read("plan"), &original);
        assert!(done == patched, "{build}: another plan");
        // What gets a probe is in a block of a function.
        let address = |v: &Value| {
            let text = v.as_str().expect("an address").trim_start_matches("0x");
            u64::from_str_radix(text, 16).expect("an address")
        };
        let functions = read("code");
        let functions = functions.as_array().expect("functions");
        let blocks = functions.iter().flat_map(|f| f["blocks"].as_array());
        let blocks: Vec<_> = blocks
            .flatten()
            .map(|b| address(&b["start"])..address(&b["end"]))
            .collect();
        let sites = read("sites");
        let sites = sites["sites"].as_array().expect("sites");
        assert!(!sites.is_empty(), "{build}");
        for site in sites.iter().filter(|s| !s["action"].is_null()) {
            let at = address(&site["info"]["address"]);
            assert!(blocks.iter().any(|b| b.contains(&at)), "{build}: {at:#x}");
        }
    }
}
