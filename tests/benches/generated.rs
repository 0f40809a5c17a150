//! What reports say of programs that are drawn at random: `cargo bench -p ompfuse-tests --bench generated -- FIRST COUNT [WORD...]`.
//!
//! `show`: prints the program FIRST; `busy`: beside processes that keep all processors busy; `advice`: what the reports advise is followed, in pairs; another word: only this kind.
//! `target/generated` has a folder for each program, with the run, the report, and what the program said. Exit status 1 if a report is
//! wrong.

use ompfuse_tests::generated::{KINDS, Program};
use ompfuse_tests::planted::judge::Verdict;
use std::collections::BTreeMap;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Programs that sleep run side by side.
const AT_ONCE: usize = 3;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with('-'))
        .collect();
    let number = |at: usize| args.get(at).and_then(|a| a.parse::<u64>().ok());
    let folder = ompfuse_tests::target().0.join("generated");
    let Some(first) = number(0) else {
        println!(
            "no programs given: cargo bench -p ompfuse-tests --bench generated -- FIRST COUNT"
        );
        return ExitCode::SUCCESS;
    };
    let is = |word: &str| args.iter().any(|a| a == word);
    if is("show") {
        println!("{}", Program::draw(first, &folder).drawn.source());
        return ExitCode::SUCCESS;
    }
    let count = number(1).unwrap_or(1);
    let kinds: Vec<&str> = KINDS.iter().map(|k| k.0).filter(|k| is(k)).collect();
    let is_wanted = |p: &Program| kinds.is_empty() || kinds.contains(&p.kind());
    let mut load: Vec<_> = (0..if is("busy") { 2 } else { 0 })
        .map(|_| {
            let mut spin = Command::new("sh");
            let spin = spin
                .args(["-c", "while :; do :; done"])
                .stdout(Stdio::null());
            spin.spawn().expect("sh")
        })
        .collect();
    let (sleeping, computing): (Vec<u64>, Vec<u64>) = (first..first + count)
        .filter(|&n| is_wanted(&Program::draw(n, &folder)))
        .partition(|&n| !Program::draw(n, &folder).drawn.computes);
    let results = Mutex::new(BTreeMap::new());
    let advised = Mutex::new(vec![]);
    let judge = |number: u64| {
        let mut program = Program::draw(number, &folder);
        program.competes = is("busy");
        let Some(judged) = program.judge() else {
            return;
        };
        let said = &judged.said;
        let (word, why) = match &judged.verdict {
            Verdict::Right => ("right", String::new()),
            Verdict::NotKnown => ("not known", String::new()),
            Verdict::Wrong(why) => ("WRONG", why.join("; ")),
        };
        let truth = judged.known.losses.first();
        let truth = truth.map(|l| {
            (
                &l.words,
                &l.lines,
                100.0 * l.seconds / judged.known.available(),
            )
        });
        let place = said.line.map_or(String::new(), |l| format!(":{l}"));
        println!(
            "{}: {word}: {truth:.1?}; said {}{place} {:.1}; {why}",
            program.name(),
            said.cause,
            100.0 * said.share
        );
        let followed = match is("advice") {
            true => program.follow(),
            false => vec![],
        };
        for followed in followed {
            let harm = if followed.is_harmful() {
                "HARMFUL"
            } else {
                "harmless"
            };
            println!("{}: {harm}: {followed:.3?}", program.name());
            advised
                .lock()
                .expect("no panic")
                .push(followed.is_harmful());
        }
        results
            .lock()
            .expect("no panic")
            .insert(number, (program.kind(), word));
    };
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(&number) =
                    sleeping.get(next.fetch_add(1, Ordering::Relaxed) as usize)
                {
                    judge(number);
                }
            });
        }
    });
    computing.iter().copied().for_each(judge);
    for process in &mut load {
        let _ = process.kill();
        let _ = process.wait();
    }
    let results = results.into_inner().expect("no panic");
    let mut table: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    for (kind, word) in results.values() {
        let column = ["right", "not known", "WRONG"]
            .iter()
            .position(|c| c == word);
        for row in [*kind, "~ all"] {
            table.entry(row).or_default()[column.expect("one of them")] += 1;
        }
    }
    println!("\n| kind | right | not known | wrong |\n|---|---|---|---|");
    for (kind, [right, unknown, wrong]) in &table {
        println!("| {kind} | {right} | {unknown} | {wrong} |");
    }
    let advised = advised.into_inner().expect("no panic");
    let harmful = advised.iter().filter(|harmful| **harmful).count();
    println!("\nadvice followed: {}, harmful: {harmful}", advised.len());
    let wrong = table.get("~ all").map_or(0, |row| row[2]);
    ExitCode::from(u8::from(wrong + harmful > 0))
}
