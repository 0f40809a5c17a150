//! Counts of the simulated PMU. What depends on the executed code alone is equal in every run, execution unit by execution
//! unit: so labels, attribution and exclusivity are right at once, or this fails.

mod processes;

use ompfuse_tests::fixture::{Build, Fixture, Stability};
use ompfuse_tests::process::Output;
use ompfuse_tests::table::{self, Xu};
use ompfuse_tests::{command, has};
use std::collections::BTreeMap;
use std::path::Path;

/// Events that depend on the executed code alone.
const CODE: [&str; 14] = [
    "sim-instructions",
    "sim-loads",
    "sim-stores",
    "sim-load-bytes",
    "sim-store-bytes",
    "sim-branches",
    "sim-taken",
    "sim-calls",
    "sim-returns",
    "sim-fp-instructions",
    "sim-multiplications",
    "sim-divisions",
    "sim-atomics",
    "sim-indirect-branches",
];
/// One event of the models, and what the OpenMP runtime does: not compared, but counted.
const OTHERS: [&str; 2] = ["sim-l1d-misses", "sim-runtime-instructions"];

/// Runs that are compared, per number of threads.
const RUNS: &str = "2";
const THREADS: [usize; 2] = [2, 5];

/// Fixtures in which something is done again if another thread came in between, and the event whose count tells that: only XUs
/// that differ in it may differ in others. Floating-point numbers are added up atomically, in reductions or by `atomic`
/// (locked instructions); `locks` asks for a lock until it gets it (calls).
const REPEATED: [(&str, &str); 5] = [
    ("cg", "sim-atomics"),
    ("loops", "sim-atomics"),
    ("shapes", "sim-atomics"),
    ("sync", "sim-atomics"),
    ("locks", "sim-calls"),
];

/// Not compared for sections: compilers copy the code that chooses the next one, so the way to a section depends on the one
/// before it.
const BETWEEN_SECTIONS: &str = "sim-taken";

/// Variants whose labels differ so much between runs that one label may mean two grids: nothing of two runs is compared.
const INCOMPARABLE: [(&str, &str); 1] = [("mg", "threaded")];

pub(crate) fn can_simulate() -> bool {
    has("qemu-x86_64")
}

/// Records under the simulator. The C library's code counts for nobody: what an allocation costs depends on all others.
fn record(program: &Path, args: &[&str], threads: usize, out: &Path, repeat: &str) -> Output {
    let events = [&CODE[..], &OTHERS].concat().join(",");
    let flags = [
        "--simulate=libraries=no",
        "--repeat",
        repeat,
        "--events",
        &events,
    ];
    table::record(program, args, threads, out, &flags)
}

/// What two XUs must have in common for the same code to be executed: construct, label and number of iterations (other numbers
/// are a matter of labels, and guided loops' ranges depend on timing); and for a loop's ranges and for
/// sections whether it is the first on its thread, since what compilers compute once per loop is executed right before it.
type Key = (String, String, String, bool);

/// The XUs of a run by what makes them comparable.
fn by_key(mut xus: Vec<Xu>) -> BTreeMap<Key, Vec<Xu>> {
    xus.sort_by_key(|x| x.number("start_ns"));
    let mut loops: BTreeMap<(String, String), ()> = BTreeMap::new();
    let mut keyed: BTreeMap<Key, Vec<Xu>> = BTreeMap::new();
    for xu in xus {
        let (parent, _) = xu.label.rsplit_once('.').expect("labels have components");
        let is_first = xu.construct != "task"
            && loops
                .insert((parent.to_owned(), xu.columns["thread"].clone()), ())
                .is_none();
        let column = |name: &str| xu.columns[name].clone();
        let key = (
            column("type"),
            xu.label.clone(),
            column("iterations"),
            is_first,
        );
        keyed.entry(key).or_default().push(xu);
    }
    keyed
}

/// Compares the counts of XUs that two runs have both. Returns how many they were. `repeats`: the event, see [`REPEATED`].
#[track_caller]
fn compare(
    what: &str,
    one: &BTreeMap<Key, Vec<Xu>>,
    two: &BTreeMap<Key, Vec<Xu>>,
    repeats: Option<&str>,
) -> usize {
    let (mut compared, mut repeated) = (0, 0);
    let mut different = Vec::new();
    for (key, a) in one {
        let Some(b) = two.get(key) else { continue };
        let ([a], [b]) = (&a[..], &b[..]) else {
            continue; // labels that aren't unique are another test's business
        };
        compared += 1;
        if repeats.is_some_and(|event| a.number(event) != b.number(event)) {
            repeated += 1;
            continue;
        }
        let all = CODE.iter().filter(|e| a.number(e) != b.number(e));
        let all = all.filter(|&&e| a.construct != "section" || e != BETWEEN_SECTIONS);
        different.extend(all.map(|e| (key, *e, a.number(e), b.number(e))));
    }
    let some: Vec<_> = different.iter().take(8).collect();
    assert!(
        different.is_empty(),
        "{what}: {} counts of {compared} XUs differ: {some:?}",
        different.len()
    );
    assert!(repeated * 5 <= compared, "{what}: {repeated} of {compared}");
    compared
}

fn counts_are_equal_in_every_run(name: &str, compiler: &str) {
    if !can_simulate() {
        return;
    }
    let fixture = Fixture::open(name);
    let repeats = REPEATED.iter().find(|r| r.0 == name).map(|r| r.1);
    for build in fixture.ordinary_builds(compiler) {
        let stability = fixture.stability(&build.variant);
        let folder = tempfile::tempdir().expect("there is room for a patched program");
        let patched = table::patch(&build, folder.path(), &[]);
        let mut of_other_teams = None;
        for threads in THREADS {
            let out = folder.path().join(threads.to_string());
            record(&patched, &[], threads, &out, RUNS).ok(&build.to_string());
            let runs = table::runs(&out);
            let runs: Vec<_> = runs.iter().map(|r| by_key(checked(&build, r))).collect();
            let [one, two] = &runs[..] else {
                panic!("{build}: {} runs", runs.len());
            };
            let what = format!("{build}, {threads} threads");
            if INCOMPARABLE.contains(&(name, &build.variant)) {
                assert_eq!(stability, Stability::None, "{what}");
                continue;
            }
            let compared = compare(&what, one, two, repeats);
            // Which chunk comes first on its thread is open, so some have no partner.
            let all = one.keys().filter(|k| two.contains_key(*k)).count();
            assert!(
                compared * 2 >= all,
                "{what}: {compared} of {all} are compared"
            );
            if stability != Stability::None {
                assert!(
                    compared > 0 && compared * 2 >= one.len(),
                    "{what}: {compared} of {}",
                    one.len()
                );
            }
            if let Some((threads, other)) = of_other_teams.replace((threads, one.clone()))
                && matches!(stability, Stability::Threads | Stability::Teams)
            {
                let what = format!("{what} and {threads}");
                let compared = compare(&what, one, &other, repeats);
                assert!(
                    compared * 2 >= one.len(),
                    "{what}: {compared} of {}",
                    one.len()
                );
            }
        }
    }
}

/// The XUs of a run; each has all counts, and has executed something.
fn checked(build: &Build, run: &Path) -> Vec<Xu> {
    let xus = table::export(run);
    for xu in &xus {
        assert!(xu.number("sim-instructions") > 0, "{build}: {xu:?}");
        OTHERS.iter().for_each(|event| {
            xu.number(event);
        });
    }
    xus
}

for_some_fixtures!(crate::simulated::counts_are_equal_in_every_run;
    cg by gcc, locks by clang, loops by gcc, sections by clang, tasking by gcc, taskloop by clang);

/// Tasks of known length: each instruction is counted once.
#[test]
fn instructions_are_those_that_were_executed() {
    const ROUNDS: u64 = 100_000;
    if !can_simulate() {
        return;
    }
    for compiler in ["gcc", "clang"] {
        for build in Fixture::open("counted").ordinary_builds(compiler) {
            let folder = tempfile::tempdir().expect("there is room for a recording");
            let patched = table::patch(&build, folder.path(), &[]);
            record(&patched, &[], 3, folder.path(), "1").ok("record");
            let xus = checked(&build, &table::runs(folder.path())[0]);
            let rest = |xu: &Xu, event: &str, per_round: u64| {
                let rank = xu
                    .label
                    .rsplit('.')
                    .nth(1)
                    .and_then(|r| r.parse::<u64>().ok());
                xu.number(event) - per_round * ROUNDS * rank.expect("a rank")
            };
            let tasks: Vec<_> = xus.iter().filter(|x| x.construct == "task").collect();
            assert_eq!(tasks.len(), 8, "{build}");
            for (event, per_round, most) in [("sim-instructions", 2, 40), ("sim-branches", 1, 4)] {
                let rests: Vec<u64> = tasks.iter().map(|t| rest(t, event, per_round)).collect();
                assert!(
                    rests.iter().all(|&r| r == rests[0] && r <= most),
                    "{build}: {event} {rests:?}"
                );
            }
            for task in tasks {
                // All but the last round of each jump back.
                assert_eq!(
                    task.number("sim-branches") - task.number("sim-taken"),
                    1,
                    "{build}: {task:?}"
                );
                assert_eq!(
                    task.number("sim-calls") + task.number("sim-fp-instructions"),
                    0,
                    "{build}"
                );
            }
        }
    }
}

/// Where the processor counts, it agrees: what a task's probes add is the same for all tasks.
#[test]
fn the_processor_counts_the_same() {
    let events = command::json(["events", "--format", "json"]);
    let list = events["events"].as_array().expect("a list of events");
    if !list
        .iter()
        .any(|e| e["name"] == "instructions" && e["available"] == true)
    {
        // No skip: a machine without counters can't be made to have them.
        println!("no hardware counters here: they are not compared");
        return;
    }
    if !can_simulate() {
        return;
    }
    for build in Fixture::open("cholesky").ordinary_builds("gcc") {
        let folder = tempfile::tempdir().expect("there is room for a recording");
        let patched = table::patch(&build, folder.path(), &[]);
        let (real, simulated) = (folder.path().join("real"), folder.path().join("simulated"));
        table::record(&patched, &[], 2, &real, &["--events", "instructions"]).ok("record");
        record(&patched, &[], 2, &simulated, "1").ok("record");
        let counts = |folder: &Path, event: &str| -> BTreeMap<String, u64> {
            let xus = table::export(&table::runs(folder)[0]);
            let tasks = xus.iter().filter(|x| x.construct == "task");
            tasks.map(|x| (x.label.clone(), x.number(event))).collect()
        };
        let (real, simulated) = (
            counts(&real, "instructions"),
            counts(&simulated, "sim-instructions"),
        );
        assert!(
            real.len() > 100 && real.keys().eq(simulated.keys()),
            "{build}"
        );
        let mut added: Vec<i64> = real
            .iter()
            .map(|(label, n)| *n as i64 - simulated[label] as i64)
            .collect();
        added.sort_unstable();
        // The kernel's interrupts are counted where that is allowed, so some may have more.
        let usual = added[added.len() / 2];
        let same = added.iter().filter(|&&a| a == usual).count();
        assert!(
            (0..2000).contains(&usual) && same * 4 >= added.len() * 3 && added[0] >= usual - 16,
            "{build}: {added:?}"
        );
    }
}
