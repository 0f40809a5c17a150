//! Random programs for as long as one likes.
//!
//! ```sh
//! cargo bench -p ompfuse-tests --bench soak -- MINUTES [FIRST]    # programs FIRST, FIRST + 1, ...; else beginning anywhere
//! cargo bench -p ompfuse-tests --bench soak -- one NUMBER         # this one
//! cargo bench -p ompfuse-tests --bench soak -- counts FIRST COUNT # instructions that programs count, against stepping through them
//! ```
//!
//! What fails is made smaller, and kept in `target/soak`. Exit status 1 if anything failed.

use ompfuse_tests::soak::{Case, Verdict};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with('-'))
        .collect();
    let number = |at: usize| args.get(at).and_then(|a| a.parse::<u64>().ok());
    if args.first().is_some_and(|a| a == "one") {
        let Some(case) = number(1).and_then(Case::draw) else {
            println!("soak: no such program, or not here");
            return ExitCode::FAILURE;
        };
        println!("{}\n// {case}", case.source());
        return ExitCode::from(u8::from(judged(&case).is_some()));
    }
    if args.first().is_some_and(|a| a == "counts") {
        return counts(number(1).unwrap_or(1), number(2).unwrap_or(100));
    }
    let Some(minutes) = number(0) else {
        println!("no time given: cargo bench -p ompfuse-tests --bench soak -- MINUTES [FIRST]");
        return ExitCode::SUCCESS;
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let mut next = number(1).unwrap_or_else(|| now.map_or(1, |n| n.as_secs()));
    let end = Instant::now() + Duration::from_secs(minutes * 60);
    println!("programs from number {next} on");
    let (mut right, mut units, mut useless, mut wrong) = (0u64, 0, 0u64, 0u64);
    while Instant::now() < end {
        let drawn = Case::draw(next);
        next += 1;
        let Some(case) = drawn else { continue };
        match case.judge() {
            Verdict::Right(xus) => {
                right += 1;
                units += xus;
            }
            Verdict::Useless(why) => {
                useless += 1;
                let first = why.lines().take(3).collect::<Vec<_>>().join(" ");
                println!("{case}: useless: {first}");
            }
            Verdict::Wrong(what) => {
                wrong += 1;
                println!("{case}: WRONG: {what}");
                keep(&case, what);
            }
        }
        if (right + useless + wrong).is_multiple_of(50) {
            println!("{right} right ({units} XUs), {wrong} wrong, {useless} useless");
        }
    }
    println!("{right} right ({units} XUs), {wrong} wrong, {useless} useless");
    ExitCode::from(u8::from(wrong > 0))
}

/// Counts of so many programs, from this one on.
fn counts(first: u64, count: u64) -> ExitCode {
    let (mut right, mut steps, mut wrong) = (0, 0, 0);
    let mut useless: BTreeMap<String, u64> = BTreeMap::new();
    for case in (first..first + count).filter_map(Case::draw) {
        match case.judge_counts() {
            Verdict::Right(all) => {
                right += 1;
                steps += all;
            }
            Verdict::Useless(why) => {
                let first = why.lines().next().unwrap_or_default().to_owned();
                *useless.entry(first).or_default() += 1;
            }
            Verdict::Wrong(what) => {
                wrong += 1;
                println!("{case}: WRONG: {what}");
            }
        }
    }
    let all: u64 = useless.values().sum();
    println!(
        "{right} right ({steps} instructions), {wrong} wrong, {all} not compared: {useless:?}"
    );
    ExitCode::from(u8::from(wrong > 0))
}

/// What is wrong with a case.
fn judged(case: &Case) -> Option<String> {
    let verdict = case.judge();
    println!("{verdict:?}");
    match verdict {
        Verdict::Wrong(what) => {
            keep(case, what.clone());
            Some(what)
        }
        _ => None,
    }
}

/// Makes a failing program smaller, and keeps it.
fn keep(case: &Case, what: String) {
    let (small, what) = case.shrink(what);
    let folder = ompfuse_tests::target().0.join("soak");
    let file = folder.join(format!("{}.c", case.number()));
    let text = format!(
        "// {small}\n// {}\n{}",
        what.replace('\n', "\n// "),
        small.source()
    );
    let kept = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&file, text));
    match kept {
        Ok(()) => println!("  {} parts left: {}; {what}", small.size(), file.display()),
        Err(e) => println!("  cannot write {}: {e}", file.display()),
    }
}
