//! What reports say of programs with one planted bottleneck or none: `cargo bench -p ompfuse-tests --bench planted [-- WORD...]`.
//!
//! `busy`: only programs whose units sleep, which hold on a busy machine; `idle`: only those that compute; `list`: names only; `write`:
//! what is not right goes into `docs/measurements/verdicts.md` too; `advice`: what the reports advise is tried, in pairs. Every other word is a part of the names of cases (`fixtures/planted/cases.toml`);
//! all such words must occur. `target/planted` has a folder for each case, with the run, the report, and what the program said.

use ompfuse_tests::planted::{Case, Judged, Programs, cases, judge::Verdict};
use std::fmt::Write as _;

const WORDS: [&str; 5] = ["busy", "idle", "list", "write", "advice"];

/// How many cases ended how.
#[derive(Default)]
struct Counts {
    right: usize,
    not_known: usize,
    wrong: usize,
}

impl Counts {
    fn add(&mut self, verdict: &Verdict) {
        *match verdict {
            Verdict::Right => &mut self.right,
            Verdict::NotKnown => &mut self.not_known,
            Verdict::Wrong(_) => &mut self.wrong,
        } += 1;
    }

    fn row(&self, name: &str) -> String {
        let all = self.right + self.not_known + self.wrong;
        let [right, not_known, wrong] = [self.right, self.not_known, self.wrong];
        format!("| {name} | {all} | {right} | {not_known} | {wrong} |\n")
    }
}

fn row(case: &Case, judged: &Judged) -> String {
    let Judged {
        truth,
        said,
        verdict,
    } = judged;
    let place = |line: Option<u32>| line.map_or(String::new(), |l| format!(":{l}"));
    let verdict = match verdict {
        Verdict::Right => "right".to_owned(),
        Verdict::NotKnown => "not known".to_owned(),
        Verdict::Wrong(reasons) => format!("**wrong**: {}", reasons.join("; ")),
    };
    format!(
        "| {} | {}{} {:.1} % | {}{} {:.1} % | {:.0} / {:.0} | {verdict} |\n",
        case.name(),
        truth.causes.join(" or "),
        place(truth.lines.first().copied()),
        100.0 * truth.lost,
        said.cause,
        place(said.line),
        100.0 * said.share,
        1e3 * truth.own,
        1e3 * said.own.unwrap_or(f64::NAN),
    )
    .replace('*', "\\*")
    .replace("\\*\\*wrong\\*\\*", "**wrong**")
}

const TABLE: &str = "\n| program, run | planted | said | own time, ms: program's / report's | verdict |\n|---|---|---|---|---|\n";

fn main() {
    let given: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with('-'))
        .collect();
    let is = |word: &str| given.iter().any(|w| w == word);
    let parts: Vec<&String> = given
        .iter()
        .filter(|w| !WORDS.contains(&w.as_str()))
        .collect();
    let is_wanted = |case: &Case| {
        let name = case.name();
        parts.iter().all(|p| name.contains(p.as_str()))
            && (case.sleeps() || !is("busy"))
            && !(case.sleeps() && is("idle"))
    };
    let wanted: Vec<Case> = cases().into_iter().filter(is_wanted).collect();
    if is("list") {
        for case in &wanted {
            println!("{}", case.name());
        }
        return;
    }
    let mut programs = Programs::new(&ompfuse_tests::target().0.join("planted"));
    let (mut sleeping, mut computing) = (Counts::default(), Counts::default());
    let (mut table, mut skipped) = (TABLE.to_owned(), String::new());
    let (mut advised, mut bad) = (String::new(), 0);
    print!("{TABLE}");
    for case in &wanted {
        if let Some(lack) = case.lacks() {
            let _ = writeln!(skipped, "- {}: needs {lack}", case.name());
            continue;
        }
        let Some(judged) = programs.judge(case) else {
            let _ = writeln!(skipped, "- {}: no compiler", case.name());
            continue;
        };
        let counts = if case.sleeps() {
            &mut sleeping
        } else {
            &mut computing
        };
        counts.add(&judged.verdict);
        let row = row(case, &judged);
        print!("{row}");
        if judged.verdict != Verdict::Right {
            table += &row;
        }
        if is("advice") {
            for tried in programs.tried(case) {
                bad += usize::from(tried.is_bad());
                let line = format!(
                    "| {} | {:?} | {:.0} | {:.0} |{}\n",
                    case.name(),
                    tried.advice,
                    1e3 * tried.before_s,
                    1e3 * tried.after_s,
                    if tried.is_bad() {
                        " **slower** |"
                    } else {
                        " |"
                    },
                );
                advised += &line;
            }
        }
    }
    let mut summary =
        "| programs | runs | right | not known | wrong |\n|---|---|---|---|---|\n".to_owned();
    summary += &sleeping.row("sleeping");
    summary += &computing.row("computing");
    if !skipped.is_empty() {
        summary += &format!("\nNot run here:\n\n{skipped}");
    }
    if is("advice") {
        summary += &format!(
            "\nAdvice that was tried, own times in ms, the shortest of three: {bad} made a program slower.\n\n| program, run | advice | as it is | with it | |\n|---|---|---|---|---|\n{advised}"
        );
    }
    println!("\n{summary}");
    if is("write") {
        let path = ompfuse_tests::repository().join("docs/measurements/verdicts.md");
        let text = std::fs::read_to_string(&path).expect("docs/measurements/verdicts.md");
        // What people write stays; what was measured is replaced.
        let (head, _) = text
            .split_once("## Result\n")
            .expect("a heading for the result");
        let text = format!("{head}## Result\n\n{summary}{table}");
        std::fs::write(&path, text).expect("the document can be written");
    }
}
