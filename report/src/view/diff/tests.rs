mod verdicts;

use super::*;
use ompfuse_compare::diff::{
    Basis, Change, Condition, Confidence, DIFF_VERSION, Diff, Lone, Matched, Pair, SideInfo,
    UnitChange,
};
use ompfuse_compare::gate::{Outcome, judge, parse};
use ompfuse_compare::side::{Quantity, Side, SideRegion};
use ompfuse_compare::statistics::changes;
use ompfuse_compare::testing::{region, side};
use ompfuse_format::Construct;

/// Runs that vary by one percent.
const NOISE: [f64; 5] = [1.0, 1.01, 0.99, 1.005, 0.995];

fn times(seconds: f64) -> Vec<f64> {
    NOISE.iter().map(|n| n * seconds).collect()
}

fn counts(n: f64) -> Vec<f64> {
    vec![n; 5]
}

/// A region with its time, its instructions, and its units.
fn at(
    construct: Construct,
    name: &str,
    line: u32,
    share: f64,
    values: &[(Quantity, Vec<f64>)],
) -> SideRegion {
    let values: Vec<(Quantity, &[f64])> = values.iter().map(|(q, v)| (q.clone(), &v[..])).collect();
    let mut region = region(name, share, &values);
    region.key.construct = construct;
    region.key.file = Some("/home/user/solver/src/solve.c".to_owned());
    region.key.line = Some(line);
    region
}

fn instructions() -> Quantity {
    Quantity::Event("instructions".to_owned())
}

fn work(seconds: f64, count: f64, units: f64) -> [(Quantity, Vec<f64>); 6] {
    [
        (Quantity::Time, times(seconds)),
        (Quantity::Executions, counts(10.0)),
        (Quantity::Units, counts(units)),
        (Quantity::Imbalance, times(0.05)),
        (instructions(), counts(count)),
        (
            Quantity::EventPerUnit("instructions".to_owned()),
            counts(count / units),
        ),
    ]
}

fn waits(wall: f64, time: f64, synchronization: f64) -> [(Quantity, Vec<f64>); 4] {
    [
        (Quantity::Wall, times(wall)),
        (Quantity::Time, times(time)),
        (Quantity::Synchronization, times(synchronization)),
        (Quantity::ImbalanceTime, times(0.02)),
    ]
}

fn sides() -> (Side, Side) {
    use Construct::{Loop, Parallel, Task};
    let total = |wall: f64, time: f64| {
        let values = [(Quantity::Wall, times(wall)), (Quantity::Time, times(time))];
        let values: Vec<(Quantity, &[f64])> =
            values.iter().map(|(q, v)| (q.clone(), &v[..])).collect();
        region("", 1.0, &values).values
    };
    let build = |regions, total| {
        let mut side = side(5, &[], regions);
        side.total = total;
        side
    };
    let mut a = build(
        vec![
            at(Loop, "solve", 61, 0.70, &work(3.2, 8e9, 1000.0)),
            at(
                Loop,
                "a|long_name<double, std::vector<int> >",
                90,
                0.10,
                &work(0.4, 1e9, 500.0),
            ),
            at(Parallel, "main", 30, 0.15, &waits(1.0, 0.2, 0.1)),
            at(Loop, "init", 12, 0.05, &work(0.1, 1e8, 10.0)),
        ],
        total(1.0, 4.0),
    );
    let mut b = build(
        vec![
            at(Loop, "solve", 64, 0.71, &work(3.68, 9.2e9, 1000.0)),
            at(
                Loop,
                "a|long_name<double, std::vector<int> >",
                93,
                0.09,
                &work(0.4, 1e9, 1000.0),
            ),
            at(Parallel, "main", 33, 0.16, &waits(1.12, 0.5, 0.38)),
            at(Loop, "init", 12, 0.04, &work(0.1, 1e8, 10.0)),
        ],
        total(1.12, 4.8),
    );
    (a.origin.name, b.origin.name) = ("runs/old".to_owned(), "runs/new".to_owned());
    a.regions
        .push(at(Task, "old", 130, 0.02, &work(0.05, 1e7, 3.0)));
    b.regions
        .push(at(Task, "new", 140, 0.03, &work(0.06, 1e7, 4.0)));
    (a, b)
}

fn made_up(a: &Side, b: &Side) -> Diff {
    let info = |side: &Side| SideInfo {
        name: side.origin.name.clone(),
        program: "solver".to_owned(),
        runs: side.origin.runs,
        threads: 4,
    };
    let pair = |(a, b)| Matched {
        a: vec![a],
        b: vec![b],
        basis: Basis::Order,
        confidence: Confidence::High,
        is_group: false,
    };
    let matched: Vec<Matched<'_>> = a.regions[..4]
        .iter()
        .zip(&b.regions[..4])
        .map(pair)
        .collect();
    let (total, mut pairs) = changes(a, b, &matched);
    let solve = pairs
        .iter_mut()
        .find(|p| p.a[0].function.as_deref() == Some("solve"))
        .unwrap();
    if a.regions[0].values != b.regions[0].values {
        solve.schedules = Some([Some("static".to_owned()), Some("dynamic,8".to_owned())]);
    }
    solve.distance = Some(0.15);
    solve.unit = Some(UnitChange {
        disturbed: [0, 0],
        labels: ["[1 0x4011d6 0]".to_owned(), "[1 0x4012e0 0]".to_owned()],
        what: "iterations 10..20".to_owned(),
        time_s: [0.0032, 0.0049],
        is_certain: false,
    });
    let init = pairs
        .iter_mut()
        .find(|p| p.a[0].function.as_deref() == Some("init"))
        .unwrap();
    init.is_group = true;
    init.a.push(init.a[0].clone());
    init.b.push(init.b[0].clone());
    let lone = |region: &SideRegion, may_be_unseen| Lone {
        key: region.key.clone(),
        share: region.share,
        time_s: 0.05,
        may_be_unseen,
        may_be_other: false,
        executions: Some(10.0),
    };
    Diff {
        version: DIFF_VERSION,
        a: info(a),
        b: info(b),
        conditions: vec![
            Condition::Arguments,
            Condition::Events {
                only_a: vec!["cycles".to_owned()],
                only_b: vec![],
            },
        ],
        turns: None,
        matched: [0.98, 0.97],
        alike: 1.0,
        total,
        pairs,
        only_a: vec![lone(&a.regions[4], true)],
        only_b: vec![lone(&b.regions[4], false)],
    }
}

fn outcomes(expressions: &[&str], diff: &Diff, a: &Side, b: &Side) -> Vec<Outcome> {
    let gates: Vec<_> = expressions.iter().map(|e| parse(e).unwrap()).collect();
    judge(&gates, diff, a, b, false)
}

/// The comparison, and what became of some expressions.
fn everything() -> (Diff, Vec<Outcome>) {
    let (a, b) = sides();
    let mut diff = made_up(&a, &b);
    let mut found = outcomes(
        &[
            "time>5%",
            "region(\"solve\").instructions/unit>10%",
            "region(\"100%:new,\").time>1%",
        ],
        &diff,
        &a,
        &b,
    );
    diff.only_a[0].may_be_unseen = false;
    found.extend(outcomes(&["time>50%"], &diff, &a, &b));
    diff.only_a[0].may_be_unseen = true;
    (diff, found)
}

#[test]
fn text_of_a_comparison() {
    let (diff, outcomes) = everything();
    insta::assert_snapshot!(text(&diff, &outcomes, &Options::default()));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let (diff, outcomes) = everything();
    for width in 40..=140 {
        let options = Options {
            width,
            ..Options::default()
        };
        for line in text(&diff, &outcomes, &options).lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn colours_change_no_letter() {
    let (diff, outcomes) = everything();
    let coloured = text(
        &diff,
        &outcomes,
        &Options {
            colour: true,
            ..Options::default()
        },
    );
    assert!(coloured.contains("\x1b["));
    let mut plain = String::new();
    for (at, part) in coloured.split("\x1b[").enumerate() {
        plain += if at == 0 {
            part
        } else {
            part.split_once('m').unwrap().1
        };
    }
    assert_eq!(plain, text(&diff, &outcomes, &Options::default()));
}

#[test]
fn only_the_largest_changes_are_listed() {
    let (diff, outcomes) = everything();
    let shown = text(
        &diff,
        &outcomes,
        &Options {
            top: 1,
            ..Options::default()
        },
    );
    assert!(
        shown.contains("solve.c:64") && shown.contains("2 more; --top lists them"),
        "{shown}"
    );
    let markdown = markdown(
        &diff,
        &[],
        &Options {
            top: 1,
            ..Options::default()
        },
    );
    assert!(markdown.contains("2 more regions changed"), "{markdown}");
}

#[test]
fn markdown_of_a_comparison() {
    let (diff, outcomes) = everything();
    insta::assert_snapshot!(markdown(&diff, &outcomes, &Options::default()));
}

#[test]
fn junit_of_a_comparison() {
    let (diff, outcomes) = everything();
    insta::assert_snapshot!(junit(&diff, &outcomes).unwrap());
}

fn with_prefix() -> Options {
    Options {
        source_root: Some("/home/user/solver/".to_owned()),
        ..Options::default()
    }
}

#[test]
fn annotations_of_a_comparison() {
    let (diff, outcomes) = everything();
    insta::assert_snapshot!(github(&diff, &outcomes, &with_prefix()));
}

#[test]
fn code_quality_of_a_comparison() {
    let (diff, outcomes) = everything();
    insta::assert_snapshot!(gitlab(&diff, &outcomes, &with_prefix()));
}

#[test]
fn only_whole_folders_are_left_out_of_paths() {
    let (diff, outcomes) = everything();
    let options = Options {
        source_root: Some("/home/user/sol".to_owned()),
        ..Options::default()
    };
    assert!(github(&diff, &outcomes, &options).contains("file=/home/user/solver/src/solve.c,"));
}
