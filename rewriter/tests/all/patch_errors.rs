//! What can't be patched is refused with a message that says what to do; nothing panics.

use crate::patch_support::{Lab, scan};
use ompfuse_format::site::Uncounted;
use ompfuse_rewriter::model::{Action, LinkVa, Scan, Target};
use ompfuse_rewriter::patch::patch;
use ompfuse_rewriter::plan::{PlanOptions, plan};
use ompfuse_rewriter::scan::{Known, ScanOptions, Wanted, Wish, scan_chosen};
use ompfuse_rewriter::verify::verify;
use ompfuse_rewriter::write::write;
use proptest::prelude::*;
use std::collections::BTreeSet;

const PROGRAM: &str = include_str!("patch_support/program.c");

fn input(command: &str, inline: bool) -> Option<(Vec<u8>, Scan)> {
    let lab = Lab::new();
    let file = lab.compile("lu.x", PROGRAM, command)?;
    Some((std::fs::read(&file).unwrap(), scan(&file, inline)))
}

fn message(bytes: &[u8], scan: &Scan, options: &PlanOptions) -> String {
    plan(bytes, scan, options).unwrap_err().to_string()
}

fn first_call(scan: &mut Scan) -> (LinkVa, &mut Action) {
    let site = &mut scan.sites[0];
    (LinkVa(site.info.address.0), site.action.as_mut().unwrap())
}

#[test]
fn messages_say_what_to_do() {
    let Some((bytes, scan)) = input("gcc -fopenmp -O2 -no-pie", true) else {
        return;
    };
    let dormant = PlanOptions {
        dormant: true,
        ..PlanOptions::default()
    };

    let mut copy = scan.clone();
    let (at, action) = first_call(&mut copy);
    if let Action::Call { target, .. } = action {
        *target = Target::Direct(LinkVa(0x1234));
    }
    assert_eq!(
        message(&bytes, &copy, &dormant),
        format!(
            "cannot patch site {at} in lu.x: the instruction there is not the call that was found; \
             exclude it with --skip {at}"
        )
    );

    let mut copy = scan.clone();
    let mut short = copy.windows[0].clone();
    short.len = 3;
    copy.windows[0] = short;
    let at = copy.sites[copy.windows[0].sites[0] as usize].info.address;
    assert_eq!(
        message(&bytes, &copy, &dormant),
        format!(
            "cannot patch call site {at} in lu.x: 3 bytes free, 5 needed; exclude it with --skip {at}"
        )
    );

    let mut copy = scan.clone();
    copy.windows.remove(0);
    assert!(
        message(&bytes, &copy, &dormant)
            .contains("it lies in no window; exclude it with --skip 0x")
    );

    let options = PlanOptions {
        selected: Some(BTreeSet::from([99_999])),
        ..dormant.clone()
    };
    let text = message(&bytes, &scan, &options);
    assert!(
        text.starts_with("cannot patch site 99999 in lu.x: there are only "),
        "{text}"
    );

    let options = PlanOptions {
        runtime_library: String::new(),
        ..PlanOptions::default()
    };
    let text = message(&bytes, &scan, &options);
    assert_eq!(
        text,
        "cannot add  to the libraries that lu.x loads: that is no file name; `ompfuse patch --dormant` adds none"
    );

    let text = message(b"#!/bin/sh\n", &scan, &dormant);
    assert_eq!(
        text,
        "cannot patch lu.x: it is not a 64-bit little-endian ELF file; give an x86-64 ELF program or shared library"
    );

    let plan = plan(&bytes, &scan, &dormant).unwrap();
    let text = write(&bytes[1..], &plan).unwrap_err().to_string();
    assert!(text.ends_with("scan and plan it again"), "{text}");
}

#[test]
fn static_programs_take_no_library() {
    let Some((bytes, scan)) = input("gcc -fopenmp -O2 -static", false) else {
        return;
    };
    let text = message(&bytes, &scan, &PlanOptions::default());
    assert!(
        text.ends_with("it is linked statically; `ompfuse patch --dormant` adds none"),
        "{text}"
    );
}

#[test]
fn relocated_code_is_left_alone() {
    let lab = Lab::new();
    // Not position independent, yet a shared library: the dynamic linker writes into the code.
    let source = "void GOMP_barrier(void); void entry(void) { GOMP_barrier(); GOMP_barrier(); }";
    let command = "gcc -O0 -shared -fno-pic -mcmodel=large -Wl,-z,notext -lgomp";
    let Some(file) = lab.compile("lu.x", source, command) else {
        return;
    };
    let bytes = std::fs::read(&file).unwrap();
    let code = crate::patch_support::disassemble(&file);
    let load = code.iter().find(|i| i.text.starts_with("movabs")).unwrap();
    let mut scan = scan(&file, true);
    scan.windows
        .retain(|w| (w.start.0..w.start.0 + u64::from(w.len)).contains(&load.at));
    assert_eq!(scan.windows.len(), 1, "a window over the movabs");
    let selected = scan.windows[0].sites.iter().copied().collect();
    let options = PlanOptions {
        selected: Some(selected),
        dormant: true,
        ..PlanOptions::default()
    };
    let text = patch(&bytes, &scan, &options).unwrap_err().to_string();
    let at = scan.windows[0].start;
    assert_eq!(
        text,
        format!(
            "cannot patch site {at} in lu.x: the dynamic linker writes into its code; \
             exclude it with --skip {at}"
        )
    );
}

#[test]
fn damaged_input_never_panics() {
    let Some((bytes, scan)) = input("gcc -fopenmp -O2", true) else {
        return;
    };
    let options = PlanOptions::default();
    let patched = patch(&bytes, &scan, &options).unwrap().bytes;
    let header =
        |at: usize, file: &[u8]| u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) as usize;
    // Where a changed byte hurts most: headers, both tables, dynamic table, unwind information.
    let places = |file: &[u8]| -> Vec<usize> {
        let (segments, sections) = (header(32, file), header(40, file));
        let mut all: Vec<usize> = (16..64).chain(segments..segments + 16 * 56).collect();
        all.extend((sections..file.len()).take(40 * 64));
        all.extend(
            (0..16)
                .filter_map(|i| {
                    let entry = segments + 56 * i;
                    let at = header(entry + 8, file);
                    (at > 0x400 && at < file.len() - 600).then_some(at..at + 600)
                })
                .flatten(),
        );
        all
    };
    let (old_places, new_places) = (places(&bytes), places(&patched));
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(60));
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6);
    let check = |(changes, old): (Vec<(prop::sample::Index, u8)>, bool)| {
        let mut file = if old { bytes.clone() } else { patched.clone() };
        let places = if old { &old_places } else { &new_places };
        for (index, value) in changes {
            file[*index.get(places)] = value;
        }
        if old {
            if let Ok(plan) = plan(&file, &scan, &options) {
                let new = write(&file, &plan).unwrap();
                let _ = verify(&file, &new, Some(&plan));
            }
            let _ = verify(&file, &patched, None);
        } else {
            let _ = verify(&bytes, &file, None);
        }
        Ok(())
    };
    runner.run(&(changes, any::<bool>()), check).unwrap();
}

/// Every function.
struct All;

impl Wish for All {
    fn wanted(&self, _: &Known<'_>) -> Wanted {
        Wanted::ByName
    }
}

#[test]
fn a_function_whose_constants_have_no_place_is_left_out() {
    let lab = Lab::new();
    let Some(file) = lab.compile("lu.x", PROGRAM, "gcc -fopenmp -O2 -no-pie") else {
        return;
    };
    let bytes = std::fs::read(&file).unwrap();
    let choice = ScanOptions {
        count: Some((&All, 1)),
        ..ScanOptions::default()
    };
    let scan = scan_chosen(
        &bytes,
        "lu.x",
        Default::default(),
        choice,
        Default::default(),
    )
    .unwrap();
    let dormant = PlanOptions {
        dormant: true,
        ..PlanOptions::default()
    };
    let told = |scan: &Scan| {
        let patched = patch(&bytes, scan, &dormant).unwrap();
        patched.plan.description.unwrap().binary.counted.unwrap()
    };
    let whole = told(&scan);
    let counts = |start: u64, end: u64| {
        let mut all = scan.increments.iter();
        all.any(|i| (start..end).contains(&i.at))
    };
    let mut tried = 0;
    for pair in scan.windows.windows(2) {
        // The first one reaches into the second.
        let [start, next] = [pair[0].start.0, pair[1].start.0];
        let end = next + u64::from(pair[1].len);
        let is_plain = pair.iter().all(|w| w.sites.is_empty());
        if !is_plain || !counts(start, next) || !counts(next, end) {
            continue;
        }
        let mut damaged = scan.clone();
        let mut windows = damaged.windows.iter_mut();
        let first = windows.find(|w| w.start.0 == start).unwrap();
        first.len = (next + 1 - start) as u32;
        let left = told(&damaged);
        let new = |r: &&Uncounted| !whole.refused.contains(r);
        let refused: Vec<&Uncounted> = left.refused.iter().filter(new).collect();
        assert!(!refused.is_empty(), "{start:#x}");
        let all = left.functions.len() + refused.len();
        assert_eq!(all, whole.functions.len(), "{refused:?}");
        tried += 1;
    }
    assert!(tried > 3, "{tried}");
}
