//! Random settings at random regions: programs do what they did without.

use ompfuse_tests::fixture::{self, Build, Fixture};
use ompfuse_tests::scan::{Scan, Site};
use ompfuse_tests::{command, few, process, some};
use std::path::Path;
use std::process::Command;

/// Whether a value can be set at a site, by the names of runtimes' functions; a value.
fn settable(site: &Site, draw: &mut u64) -> Option<String> {
    let entry = site.entry.as_deref()?;
    *draw = draw
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    let number = (*draw >> 33) % 40 + 1;
    let schedule = site.detail.as_deref().unwrap_or("");
    let deals = schedule == "dynamic" || schedule == "guided";
    let is_loop = entry.contains("_start")
        || entry.starts_with("__kmpc_dispatch_init")
        || entry.starts_with("GOMP_parallel_loop");
    match entry {
        _ if (*draw >> 20).is_multiple_of(4) => None,
        "GOMP_taskloop" | "GOMP_taskloop_ull" | "__kmpc_taskloop" => {
            Some(format!("grainsize={number}"))
        }
        _ if site.construct == "loop" && site.edge == "begin" && deals && is_loop => {
            let schedules = ["", "schedule=dynamic, ", "schedule=guided, "];
            let is_kmpc = entry.starts_with("__kmpc");
            let schedule = schedules[if is_kmpc { (*draw >> 40) % 3 } else { 0 } as usize];
            Some(format!("{schedule}chunk={number}"))
        }
        _ if entry.starts_with("GOMP_parallel_loop") && deals => Some(format!("chunk={number}")),
        _ => None,
    }
}

/// What a program prints, but for the number of a taskloop's tasks, and how it ends.
fn run(program: &Path, threads: usize) -> (i32, Vec<String>) {
    let mut command = Command::new(program);
    let output = process::run(process::clean(&mut command, threads));
    let (status, text, _) = output.outcome();
    let lines = text.lines().filter(|line| !line.starts_with("tasks "));
    (status, lines.map(str::to_owned).collect())
}

/// Fixtures count what they execute. Settings that chance chooses change nothing of it. Returns how many were set.
pub(crate) fn check(build: &Build, scan: &Scan, mut draw: u64) -> usize {
    let folder = tempfile::tempdir().expect("there is room for a copy");
    let tuned = folder.path().join("tuned");
    let sites = scan.sites.iter();
    let sets = sites.filter_map(|site| Some((site, settable(site, &mut draw)?)));
    let mut sets: Vec<String> = sets
        .map(|(site, value)| format!("--set={:#x}: {value}", site.address))
        .collect();
    let patched = |sets: &[String]| {
        let mut patch = command::with_threads(2);
        patch.args(["patch", "--dormant", "-o"]).arg(&tuned);
        process::run(patch.arg(&build.path).args(sets))
    };
    let is_task = |site: &Site| site.entry.as_deref() == Some("GOMP_task");
    if scan.sites.iter().any(is_task) {
        let cutoff = format!("--set=task: cutoff={}", (draw >> 33) % 20 + 1);
        // Functions may copy the data of all tasks there are.
        let alone = patched(std::slice::from_ref(&cutoff));
        let is_refused = alone.errors().contains("cannot set cutoff");
        assert!(alone.status == 0 || is_refused, "{build}: {cutoff}");
        sets.extend((!is_refused).then_some(cutoff));
    }
    if sets.is_empty() {
        return 0;
    }
    patched(&sets).ok(&format!("{build}: {sets:?}"));
    for threads in [1, 3] {
        let (original, now) = (run(&build.path, threads), run(&tuned, threads));
        assert_eq!(original, now, "{build}: {sets:?}");
    }
    sets.len()
}

/// `OMPFUSE_SETTINGS`: how often chance chooses for each build.
#[test]
fn fixtures_execute_the_same() {
    let often = std::env::var("OMPFUSE_SETTINGS").ok();
    let often: u64 = often.map_or(1, |n| n.parse().expect("a number"));
    let mut set = 0;
    for name in some(few(&fixture::names(), 14)) {
        let fixture = Fixture::open(&name);
        let compilers = ["gcc", "clang"].iter();
        for build in compilers.flat_map(|c| fixture.ordinary_builds(c)) {
            let scan = Scan::of(&build.path);
            for seed in 0..often {
                set += check(&build, &scan, scan.sites.len() as u64 + 7 + 1000 * seed);
            }
        }
    }
    assert!(set > 20, "{set}");
}
