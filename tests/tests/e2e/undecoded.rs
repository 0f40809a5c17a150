//! Functions with instructions that the decoder doesn't know: nothing of them is silently left out, or changed.
//! LLVM's objdump, which knows these instructions, is the oracle.

use ompfuse_tests::{command, compile, each, objdump, process, repository, tools};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// Functions with an instruction of APX (prefix REX2, or the fourth map of EVEX), and all calls of the runtime, with their functions.
fn disassembled(path: &Path) -> (BTreeSet<String>, BTreeMap<u64, String>) {
    let mut command = Command::new("llvm-objdump-19");
    command.args(["-d", "--mattr=+egpr,+push2pop2,+ppx,+ndd,+ccmp,+nf,+cf"]);
    let text = process::run(command.arg(path)).ok("llvm-objdump-19").text();
    let (mut unknown, mut calls) = (BTreeSet::new(), BTreeMap::new());
    let mut function = String::new();
    for line in text.lines() {
        if let Some((_, name)) = line.trim_end_matches(":").split_once(" <")
            && line.ends_with(">:")
        {
            function = name.trim_end_matches('>').to_owned();
            continue;
        }
        let Some((address, rest)) = line.trim_start().split_once(": ") else {
            continue;
        };
        if rest.starts_with("d5 ") {
            unknown.insert(function.clone());
        }
        let Some((_, symbol)) = rest.split_once('<').filter(|_| rest.contains("\tcallq\t")) else {
            continue;
        };
        if objdump::is_runtime(symbol) {
            let address = u64::from_str_radix(address, 16).expect("an address");
            calls.insert(address, function.clone());
        }
    }
    (unknown, calls)
}

#[test]
fn every_call_is_listed_with_its_reason() {
    if !tools::has("llvm-objdump-19") {
        return;
    }
    let compilers = [
        "clang-19 -O3 -g -fopenmp -mapxf",
        "clang-19 -O2 -fopenmp -mapxf -no-pie",
        "clang-19 -O3 -fopenmp -mapxf -mavx512f -mavx512vl",
    ];
    let program = |compiler: &&str| {
        let folder = tempfile::tempdir().expect("there is room");
        let source = repository().join("tests/sources/extended.c");
        let out = folder.path().join("extended");
        compile::files(&[&source], &out, compiler).then_some((folder, out))
    };
    for (compiler, (folder, program)) in each(compilers, program) {
        let (unknown, calls) = disassembled(&program);
        assert!(!unknown.is_empty() && !calls.is_empty(), "{compiler}");
        let path = program.to_str().expect("letters");
        let scan = command::json(["scan", "--format", "json", path]);
        let sites = scan["sites"].as_array().expect("a list");
        let address = |s: &Value| {
            let text = s["address"].as_str().expect("a text");
            u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("hexadecimal")
        };
        let listed: BTreeMap<u64, &Value> = sites.iter().map(|s| (address(s), s)).collect();
        let mut left_alone = 0;
        for (at, function) in &calls {
            let site = listed.get(at);
            let site = site.unwrap_or_else(|| panic!("{compiler}: {at:#x} in {function}"));
            assert!(site["entry"].is_string(), "{compiler}: {site}");
            if unknown.contains(function) {
                let reason = site["reason"].as_str().unwrap_or_default();
                assert!(
                    reason.starts_with("the instruction at 0x"),
                    "{compiler}: {site}"
                );
                assert!(reason.contains(" is unknown"), "{compiler}: {site}");
                left_alone += 1;
            }
        }
        assert!(left_alone > 0, "{compiler}");
        // The bytes of these functions stay.
        let out = folder.path().join("out");
        let new = out.to_str().expect("letters");
        let answer = command::json(["patch", "--format", "json", "--dormant", path, "-o", new]);
        let patched = answer["totals"]["patched"].as_u64().expect("a number");
        let calls_elsewhere = calls.values().filter(|f| !unknown.contains(*f)).count();
        assert!(patched as usize <= calls_elsewhere, "{compiler}: {patched}");
        let (_, after) = disassembled(&out);
        for (at, function) in calls.iter().filter(|(_, f)| unknown.contains(*f)) {
            assert_eq!(after.get(at), Some(function), "{compiler}: {at:#x}");
        }
    }
}
