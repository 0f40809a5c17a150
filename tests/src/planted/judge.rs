//! Compares what a program says of itself with what a report says of it. All that is known about the report's JSON is in [`Said::read`]
//! and [`cause_of`].
//!
//! Right: the first cause, its place (the line, or the one beside it), its size (within 10 % or 2 points of the available time), own time
//! (5 % + 2 ms) and the number of threads.
//! Not known: the report says that it doesn't know the first cause, or that its size is at least that. Wrong: everything else, also if all losses together are more than
//! the program lost.

use serde_json::Value;

/// A line `TRUTH` of a program, or those of its ranks together. `fixtures/planted/planted.h` has the meanings.
#[derive(Debug, Clone, PartialEq)]
pub struct Truth {
    /// Words for the cause; each is right.
    pub causes: Vec<String>,
    /// Name of the source.
    pub file: String,
    /// Lines that are right; none if nothing is planted.
    pub lines: Vec<u32>,
    /// Function with the construct.
    pub function: String,
    /// From the first constructor to the exit, in seconds.
    pub own: f64,
    /// The most threads in teams at once.
    pub threads: u64,
    /// What the cause costs, as a share of all threads' time.
    pub lost: f64,
    /// Share of that time in which no thread works.
    pub all: f64,
}

/// What the report says first.
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    /// The first cause; `none` without any.
    pub cause: String,
    /// Its line; `None` if it has no place.
    pub line: Option<u32>,
    /// The name of the file with the line; `None` also without debug information.
    pub file: Option<String>,
    /// The function that it names.
    pub function: Option<String>,
    /// Its share of all threads' time.
    pub share: f64,
    /// Shares of all causes together.
    pub all: f64,
    /// The program's own time in seconds.
    pub own: Option<f64>,
    /// The most threads at once.
    pub threads: Option<u64>,
    /// The cause as a sentence.
    pub told: String,
    /// The report says that losses are at least that.
    pub is_least: bool,
}

/// Whether a report is right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is.
    Right,
    /// It says that it doesn't know.
    NotKnown,
    /// Why it isn't.
    Wrong(Vec<String>),
}

impl Truth {
    /// Reads all lines `TRUTH`. With `hidden` the cause is one that the recording can't see: its time looks like work.
    pub fn read(text: &str, hidden: bool) -> Option<Truth> {
        let mut of_ranks = Vec::new();
        for line in text.lines() {
            // A launcher may write something before it.
            let Some((_, values)) = line.split_once("TRUTH ") else {
                continue;
            };
            let value = |name: &str| {
                let mut all = values.split_whitespace().filter_map(|w| w.split_once('='));
                all.find(|(n, _)| *n == name).map(|(_, v)| v)
            };
            let number = |name: &str| value(name)?.parse::<f64>().ok();
            let base = number("own")? * number("threads")?;
            let lines = [value("line")?.parse().ok()?, value("also")?.parse().ok()?];
            let truth = Truth {
                causes: value("cause")?.split('|').map(str::to_owned).collect(),
                lines: lines.into_iter().filter(|&l| l > 0).collect(),
                file: value("file")?.to_owned(),
                function: value("function")?.to_owned(),
                own: number("own")?,
                threads: value("threads")?.parse().ok()?,
                lost: number("lost")?,
                all: number("all")?,
            };
            of_ranks.push((base, truth));
        }
        // A rank that never came to the construct has lost nothing by it.
        let is_planted = of_ranks.iter().any(|(_, t)| t.causes != ["none"]);
        for (_, truth) in &mut of_ranks {
            if is_planted && truth.causes == ["none"] {
                truth.lost = 0.0;
            }
        }
        let bases: f64 = of_ranks.iter().map(|(base, _)| base).sum();
        let mean = |of: fn(&Truth) -> f64| {
            let weighted = of_ranks.iter().map(|(base, truth)| base * of(truth));
            weighted.sum::<f64>() / bases
        };
        let (lost, all) = (mean(|t| t.lost), mean(|t| t.all));
        let own = of_ranks.iter().map(|(_, t)| t.own).fold(0.0, f64::max);
        // The rank that lost most has passed the construct.
        let most = of_ranks
            .iter()
            .max_by(|a, b| f64::total_cmp(&a.1.lost, &b.1.lost))?;
        let mut truth = Truth {
            lost,
            all,
            own,
            ..most.1.clone()
        };
        if hidden {
            truth.causes = vec!["unknown".to_owned()];
            truth.all -= truth.lost;
        }
        Some(truth)
    }

    /// Whether no report can name a cause.
    fn is_without_cause(&self) -> bool {
        self.causes.iter().any(|c| c == "none" || c == "unknown")
    }
}

impl Said {
    /// Reads a report. `line_of` knows the lines of addresses in a program that was stripped.
    pub fn read(report: &Value, line_of: impl Fn(&str) -> Option<u32>) -> Said {
        let losses = report["losses"].as_array().map_or(&[][..], Vec::as_slice);
        let share = |loss: &Value| loss["share"].as_f64().unwrap_or(f64::NAN);
        let first = losses.first().unwrap_or(&Value::Null);
        let at = match &first["cause"] {
            // The recorded function with the most serial time, and that time.
            cause if cause["function"].is_array() => &cause["function"][0],
            cause if cause["at"].is_null() => &first["region"],
            cause => &cause["at"],
        };
        let regions = report["regions"].as_array().into_iter().flatten();
        let place = regions
            .into_iter()
            .find(|r| !at.is_null() && r["id"] == *at)
            .unwrap_or(&Value::Null);
        let line = place["source"]["line"].as_u64();
        let line = line.and_then(|l| u32::try_from(l).ok());
        let file = place["source"]["file"].as_str();
        let file = file.and_then(|f| f.rsplit('/').next());
        let account = &report["account"];
        // Of several processes the longest one, as their own times overlap.
        let most = |name: &str| {
            let processes = account["processes"].as_array().into_iter().flatten();
            let of_processes = processes.filter_map(|p| p[name].as_u64()).max();
            of_processes.or(account[name].as_u64())
        };
        Said {
            cause: cause_of(first, place),
            line: line.or_else(|| line_of(place["address"].as_str()?)),
            file: file.map(str::to_owned),
            function: place["function_demangled"].as_str().map(str::to_owned),
            share: if losses.is_empty() { 0.0 } else { share(first) },
            all: losses.iter().map(share).sum(),
            own: most("own_ns").map(|ns| ns as f64 * 1e-9),
            threads: most("threads"),
            is_least: report["lost_is_least"] == true,
            told: first["told"].as_str().unwrap_or_default().to_owned(),
        }
    }
}

/// The programs' word for a cause of the report.
pub(crate) fn cause_of(loss: &Value, place: &Value) -> String {
    let Some(kind) = loss["cause"]["kind"].as_str() else {
        return "none".to_owned();
    };
    let is_sections = loss["cause"]["is_sections"] == true;
    let construct = place["construct"].as_str().unwrap_or("unknown");
    let word = match kind {
        "serial_part" => "serial",
        "communication" | "late_sender" => "mpi",
        "uneven_units" | "uneven_distribution" | "uneven_tasks" | "uneven_code" => "imbalance",
        "few_units" if is_sections => "sections",
        "few_units" | "few_tasks" => "few",
        "one_thread" => "single",
        "slow_creation" => "producer",
        "held" | "call" => construct,
        "in_order" => "ordered",
        "many_barriers" => "barrier",
        "waits_for_tasks" | "one_by_one" => "taskwait",
        "costly_tasks" | "untaken_tasks" => "tasks",
        "costly_ranges" => "dispatch",
        "short_regions" => "fork",
        "no_processor" => "oversubscribed",
        // What is new has the programs' word, or is wrong.
        other => return other.replace('_', "-"),
    };
    word.to_owned()
}

/// Within 10 %, or 2 points of the available time.
pub(crate) fn is_near(said: f64, truth: f64) -> bool {
    (said - truth).abs() <= (0.1 * truth).max(0.02)
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// Judges a report. `functions`: functions are recorded, so that the serial one has to be named.
pub fn judge(truth: &Truth, said: &Said, functions: bool) -> Verdict {
    let mut wrong = Vec::new();
    match said.own {
        Some(own) if (own - truth.own).abs() <= 0.05 * truth.own + 0.002 => {}
        own => wrong.push(format!(
            "own time {} ms, not {:.1}",
            own.map_or("?".to_owned(), |o| format!("{:.1}", 1e3 * o)),
            1e3 * truth.own
        )),
    }
    if said.threads != Some(truth.threads) {
        wrong.push(format!("threads {:?}, not {}", said.threads, truth.threads));
    }
    if said.all > truth.all + (0.1 * truth.all).max(0.02) || said.all.is_nan() {
        let [all, true_all] = [said.all, truth.all].map(percent);
        wrong.push(format!("all losses {all}, not {true_all}"));
    }
    let is_short = said.is_least && said.share < truth.lost && !is_near(said.share, truth.lost);
    let is_unknown = said.cause == "unknown";
    // What is asserted without a cause to find may only be what the machine takes.
    let may_be_small = truth.is_without_cause() && said.share <= truth.all + 0.02;
    if !is_unknown && !may_be_small {
        if !truth.causes.contains(&said.cause) {
            wrong.push(format!(
                "cause {}, not {}",
                said.cause,
                truth.causes.join("|")
            ));
        } else if !is_near(said.share, truth.lost) && !is_short {
            let [share, lost] = [said.share, truth.lost].map(percent);
            wrong.push(format!("size {share}, not {lost}"));
        }
        wrong.extend(wrong_place(truth, said, functions));
    }
    match (wrong.is_empty(), is_unknown || is_short) {
        (false, _) => Verdict::Wrong(wrong),
        (true, true) if !truth.is_without_cause() => Verdict::NotKnown,
        (true, _) => Verdict::Right,
    }
}

/// The programs' functions that sleep and compute.
const UNITS: [&str; 2] = ["nap", "spin"];

/// Lines that compilers may be off: gcc gives `ordered` and `single` the line before, clang some loops the one behind.
const LINES: u32 = 1;

fn wrong_place(truth: &Truth, said: &Said, functions: bool) -> Option<String> {
    let is_serial = said.cause == "serial";
    // Neither code outside of constructs nor the machine is at a line.
    let is_nowhere = is_serial || said.cause == "oversubscribed";
    // The function that was planted, or the one in it with all the work.
    let names_it = said
        .function
        .as_deref()
        .is_some_and(|f| f == truth.function || UNITS.contains(&f));
    if is_serial && functions {
        // Serial code has no construct. Its function is known if functions are recorded.
        return (!names_it)
            .then(|| format!("function {:?}, not {}", said.function, truth.function));
    }
    let is_there = |line: u32| truth.lines.iter().any(|l| l.abs_diff(line) <= LINES);
    let in_file = said.file.as_ref().is_none_or(|file| *file == truth.file);
    match said.line {
        None if is_nowhere => None,
        Some(line) if is_there(line) && in_file => None,
        line => Some(format!(
            "place {}:{}, not {}:{:?}",
            said.file.as_deref().unwrap_or("?"),
            line.map_or("?".to_owned(), |l| l.to_string()),
            truth.file,
            truth.lines
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const LINE: &str = "TRUTH cause=critical file=a.c line=9 also=4 function=f seconds=0.4 threads=4 own=0.2 lost=0.5 all=0.52";

    fn report(kind: &str, line: u32, share: f64, own: f64) -> Said {
        let report = json!({
            "account": {"own_ns": (1e9 * own) as u64, "threads": 4},
            "losses": [{"cause": {"kind": kind, "at": 7}, "share": share, "told": "so"}],
            "regions": [{"id": 7, "construct": "critical", "source": {"file": "/a.c", "line": line}}],
        });
        Said::read(&report, |_| None)
    }

    fn verdict(said: &Said) -> Verdict {
        judge(&Truth::read(LINE, false).expect("a truth"), said, false)
    }

    #[test]
    fn each_part_of_an_answer_can_be_wrong() {
        assert_eq!(verdict(&report("held", 9, 0.46, 0.201)), Verdict::Right);
        assert_eq!(verdict(&report("held", 4, 0.54, 0.211)), Verdict::Right);
        let reasons = |said: &Said| match verdict(said) {
            Verdict::Wrong(reasons) => reasons,
            other => panic!("{other:?}"),
        };
        let starts = [
            (report("held", 7, 0.5, 0.2), "place a.c:7"),
            (report("held", 9, 0.4, 0.2), "size 40.0 %"),
            (report("held", 9, 0.5, 0.22), "own time 220.0"),
            (report("serial_part", 9, 0.5, 0.2), "cause serial"),
        ];
        for (said, start) in starts {
            let reasons = reasons(&said);
            assert_eq!(reasons.len(), 1, "{reasons:?}");
            assert!(reasons[0].starts_with(start), "{reasons:?}");
        }
        assert_eq!(reasons(&report("held", 9, 0.6, 0.2)).len(), 2);
    }

    #[test]
    fn what_cannot_be_known_may_be_said() {
        assert_eq!(verdict(&report("unknown", 1, 0.5, 0.2)), Verdict::NotKnown);
        let hidden = Truth::read(LINE, true).expect("a truth");
        let unknown = report("unknown", 1, 0.01, 0.2);
        assert_eq!(judge(&hidden, &unknown, false), Verdict::Right);
        let blamed = report("held", 9, 0.5, 0.2);
        assert!(matches!(judge(&hidden, &blamed, false), Verdict::Wrong(_)));
    }

    #[test]
    fn ranks_are_taken_together() {
        let other = LINE
            .replace("lost=0.5", "lost=0.1")
            .replace("line=9", "line=3");
        let both = Truth::read(&format!("{other}\n[1] {LINE}\n"), false).expect("a truth");
        assert!((both.lost - 0.3).abs() < 1e-9);
        assert_eq!(both.lines, [9, 4]);
    }
}
