//! The experiment of the papers on recorded runs: `ompfuse evaluate --mask` for each program, and tables of what it says.

use ompfuse_tests::command;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Events that a run may show.
const SLOTS: &str = "5";
/// Runs that are kept to compare with.
const KEPT: &str = "5";
/// How often it is done, each time with another choice of runs.
const REPETITIONS: &str = "500";
/// Student's t for 95 % and so many repetitions.
const STUDENT: f64 = 1.9647;
/// How long a group of events has the counters, in microseconds.
const PERIOD: &str = "100";

/// A table: its title, the key in the answer, what it says.
const TABLES: [(&str, &str, &str); 6] = [
    (
        "EPD",
        "epd",
        "About 1 for a fresh complete run; *complete* is the first run itself, which is what a perfect method gives.",
    ),
    (
        "Correlation Error",
        "correlation_error",
        "Mean over the pairs of events of the difference of Spearman's coefficients.",
    ),
    (
        "Hidden-truth error",
        "hidden_error",
        "Sum of |count - hidden count| / sum of the hidden counts, over the events that the method's first run does not show.",
    ),
    (
        "Hidden-truth error by event",
        "hidden_error_by_event",
        "The same for each of these events, and their mean.",
    ),
    (
        "Error by event, the same events for all",
        "shared_error_by_event",
        "The mean over the events that no method's first run shows.",
    ),
    (
        "Error by event, all events",
        "error_by_event",
        "The mean over all events; those of a method's first run have none.",
    ),
];

/// Evaluates what `folder` holds of the programs, prints the tables, and writes them to `out`.
pub(super) fn experiment(folder: &Path, programs: &[&str], out: Option<&Path>) {
    let answers: Vec<(&str, Value)> = programs
        .iter()
        .map(|name| (*name, evaluate(&folder.join(name))))
        .collect();
    let text = report(&answers);
    println!("{text}");
    if let Some(out) = out {
        std::fs::write(out, text).expect("the results can be written");
    }
}

/// The runs of a folder, compared.
fn evaluate(folder: &Path) -> Value {
    let listing = std::fs::read_dir(folder).expect("its runs were recorded");
    let mut runs: Vec<PathBuf> = listing
        .map(|e| e.expect("it can be listed").path())
        .collect();
    runs.sort();
    let mut evaluate = command::with_threads(2);
    evaluate
        .args(["evaluate", "--mask", SLOTS, "--keep", KEPT])
        .args(["--repeat", REPETITIONS, "--period", PERIOD])
        .args(["--format", "json", "--reference"])
        .args(runs);
    // Takes as long as it takes, also on a busy machine: tests' commands are ended after a while.
    let answer = evaluate.output().expect("the command can be started");
    let said = String::from_utf8_lossy(&answer.stderr);
    assert!(answer.status.success(), "{evaluate:?}: {said}");
    serde_json::from_slice(&answer.stdout).expect("JSON was asked for")
}

fn report(answers: &[(&str, Value)]) -> String {
    let mut text = format!(
        "# Strategies on recorded runs\n\n{}, {}. Made by\n\n```sh\ncargo bench -p ompfuse-tests --bench simulated -- experiment FOLDER \
         results.md\n```\n\n\
         Complete runs of real programs, recorded under the simulated PMU, pose as runs that show {SLOTS} events each: what the \
         strategies make of them is compared with what was hidden, and with {KEPT} complete runs that they never saw. Means of {REPETITIONS} \
         repetitions with other choices of runs, and half the width of their 95 % confidence interval. hem: hardware multiplexing in slices of \
         {PERIOD} us. The sets of joint are planned with what two further runs tell, those of bc with one of them, those of lgl are the events in \
         order. default: as joint, but the first set is counted by five runs, of which the most typical one is the first. Bold: the \
         default where it is no higher than the best of lgl and bc.\n",
        date(),
        machine()
    );
    text += "\n| program | runs | XUs | events | EPD of fresh complete runs | runs of lgl | bc | joint | default |\n|---|---|---|---|---|---|---|---|---|\n";
    for (name, answer) in answers {
        let of = |method: &str| find(answer, method)["runs"].to_string();
        let fresh = |end: &str| answer["fresh"][end].as_f64().unwrap_or(f64::NAN);
        let _ = writeln!(
            text,
            "| {name} | {} | {} | {} | {:.3} to {:.3} | {} | {} | {} | {} |",
            answer["runs"],
            answer["xus"],
            answer["events"],
            fresh("min"),
            fresh("max"),
            of("lgl"),
            of("bc"),
            of("joint"),
            of("default")
        );
    }
    for (title, key, says) in TABLES {
        text += &table(title, key, says, answers);
        if key == "epd" {
            text += &differences(answers);
        }
    }
    text
}

/// What is compared with the best of lgl and bc.
const OURS: &str = "default";

const METHODS: [&str; 8] = [
    "ctc",
    "lgl",
    "bc",
    "bc-unlabelled",
    "joint",
    "default",
    "hem",
    "complete",
];

fn table(title: &str, key: &str, says: &str, answers: &[(&str, Value)]) -> String {
    let mut text = format!(
        "\n## {title}\n\n{says}\n\n| program | {} |\n",
        METHODS.join(" | ")
    );
    text += &format!("|---{}|\n", "|---".repeat(METHODS.len()));
    let (mut no_higher, mut lower) = (0, 0);
    for (name, answer) in answers {
        let mean = |method: &str| find(answer, method)[key]["mean"].as_f64();
        let best = [mean("lgl"), mean("bc")]
            .into_iter()
            .flatten()
            .reduce(f64::min);
        let (is_no_higher, is_lower) = match (mean(OURS), best) {
            (Some(ours), Some(best)) => (ours <= best + 1e-12, ours < best - 1e-12),
            _ => (false, false),
        };
        no_higher += usize::from(is_no_higher);
        lower += usize::from(is_lower);
        let cell = |method: &&str| {
            let value = &find(answer, method)[key];
            let text = match (value["mean"].as_f64(), value["margin"].as_f64()) {
                (Some(mean), Some(margin)) => format!("{mean:.4} ± {margin:.4}"),
                (Some(mean), None) => format!("{mean:.4}"),
                _ => "-".to_owned(),
            };
            if *method == OURS && is_no_higher {
                format!("**{text}**")
            } else {
                text
            }
        };
        let cells: Vec<String> = METHODS.iter().map(cell).collect();
        let _ = writeln!(text, "| {name} | {} |", cells.join(" | "));
    }
    let _ = writeln!(
        text,
        "\nThe default is no higher than the best of lgl and bc on {no_higher} of {}, lower on {lower}.",
        answers.len()
    );
    text
}

/// How the EPDs of ours differ from the others' within the repetitions.
fn differences(answers: &[(&str, Value)]) -> String {
    const AGAINST: [&str; 4] = ["lgl", "bc", "joint", "complete"];
    let mut text = format!(
        "\nEPD of the default less that of the others, in the same repetitions (which share runs: the intervals are too narrow rather than too \
         wide); differences within the spread of fresh runs mean nothing:\n\n| program | {} |\n|---{}|\n",
        AGAINST.join(" | "),
        "|---".repeat(AGAINST.len())
    );
    for (name, answer) in answers {
        let scores = |method: &str| -> Vec<f64> {
            let scores = find(answer, method)["scores"]
                .as_array()
                .into_iter()
                .flatten();
            scores
                .map(|s| s["epd"].as_f64().unwrap_or(f64::NAN))
                .collect()
        };
        let ours = scores(OURS);
        let cell = |method: &&str| {
            let differences: Vec<f64> = ours
                .iter()
                .zip(scores(method))
                .map(|(a, b)| a - b)
                .collect();
            let n = differences.len() as f64;
            let mean = differences.iter().sum::<f64>() / n;
            let squares: f64 = differences.iter().map(|d| (d - mean).powi(2)).sum();
            let margin = STUDENT * (squares / (n - 1.0) / n).sqrt();
            format!("{mean:+.4} ± {margin:.4}")
        };
        let cells: Vec<String> = AGAINST.iter().map(cell).collect();
        let _ = writeln!(text, "| {name} | {} |", cells.join(" | "));
    }
    text
}

/// What an answer says of a method.
fn find<'a>(answer: &'a Value, method: &str) -> &'a Value {
    let mut methods = answer["methods"].as_array().into_iter().flatten();
    methods
        .find(|m| m["method"] == method)
        .unwrap_or(&Value::Null)
}

fn date() -> String {
    let output = Command::new("date").arg("+%Y-%m-%d").output();
    output.map_or_else(
        |_| "at an unknown date".to_owned(),
        |o| String::from_utf8_lossy(&o.stdout).trim().to_owned(),
    )
}

/// The processor, as it names itself.
fn machine() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|l| l.strip_prefix("model name"));
    let model = model.map_or("unknown processor", |m| m.trim_matches([':', ' ', '\t']));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{model}, {cores} cores")
}
