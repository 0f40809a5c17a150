use super::*;
use crate::compare::diff::{
    Basis, Change, Condition, Confidence, DIFF_VERSION, Diff, Lone, Matched, Pair, SideInfo,
    UnitChange,
};
use crate::compare::gate::{Outcome, judge, parse};
use crate::compare::side::{Quantity, Side, SideRegion};
use crate::compare::statistics::{
    changes,
    tests::{region, side},
};
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
    solve.schedules = Some([Some("static".to_owned()), Some("dynamic,8".to_owned())]);
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

fn verdict(change: impl Fn(&mut Side)) -> String {
    let (a, _) = sides();
    let mut b = a.clone();
    change(&mut b);
    let mut diff = made_up(&a, &b);
    (diff.only_a, diff.only_b) = (vec![], vec![]);
    crate::words::verdict(&diff)
}

fn put(
    values: &mut std::collections::BTreeMap<Quantity, crate::compare::Sample>,
    quantity: Quantity,
    of: &[f64],
) {
    values.insert(quantity, crate::compare::Sample::of(of).unwrap());
}

#[test]
fn verdicts_tell_what_is_known() {
    // By hand: five times are tested, so t is 4.501 (0.002 on two sides, 8 degrees of freedom) + 0.889 (0.8 on one side) = 5.390;
    // the deviation is 0.0079, its standard error 0.0079 * sqrt(2 / 5) = 0.0050.
    assert_eq!(
        verdict(|_| ()),
        "No difference of wall time was seen; one of 2.7% would have been. No region is certain to have changed."
    );
    let faster = verdict(|b| {
        put(&mut b.total, Quantity::Wall, &times(0.8));
        put(&mut b.total, Quantity::Time, &times(3.2));
        put(&mut b.regions[0].values, Quantity::Time, &times(2.4));
    });
    assert!(
        faster.starts_with("B takes 20.0% less wall time (1.00 s -> 800 ms, 95% interval -"),
        "{faster}"
    );
    assert!(
        faster.contains("Most of it is in the loop at solve.c:61 (-25.0% of thread time"),
        "{faster}"
    );
    // The program did not change, so no region is most of anything. Half the chunk: more units, no other time.
    let chunk = verdict(|b| put(&mut b.regions[1].values, Quantity::Units, &counts(1000.0)));
    assert!(
        chunk.starts_with("No difference of wall time was seen"),
        "{chunk}"
    );
    let why = "One region changed: the loop at solve.c:90 (no difference of thread time was seen; its work is in 1000 units, was in \
               500).";
    assert!(chunk.ends_with(why), "{chunk}");
    let once = verdict(|b| {
        put(&mut b.total, Quantity::Wall, &[1.1]);
        put(&mut b.total, Quantity::Time, &[4.4]);
        put(&mut b.regions[0].values, Quantity::Time, &[3.6]);
        b.origin.runs = 1;
    });
    assert!(
        once.starts_with("B takes 10.0% more wall time (1.00 s -> 1.10 s), but with one run"),
        "{once}"
    );
    assert!(once.ends_with("to tell noise from change."), "{once}");
}

#[test]
fn what_changed_is_told_once() {
    let median = |side: &mut Side, seconds: f64| {
        put(
            &mut side.regions[0].values,
            Quantity::MedianUnit,
            &times(seconds),
        );
        put(
            &mut side.regions[0].values,
            Quantity::Work,
            &times(1000.0 * seconds),
        );
        side.regions[0].values.remove(&instructions());
    };
    let said = |of_units: f64, of_time: f64| {
        let (mut a, _) = sides();
        median(&mut a, 0.0032);
        let mut b = a.clone();
        median(&mut b, 0.0032 * of_units);
        put(
            &mut b.regions[0].values,
            Quantity::Time,
            &times(3.2 * of_time),
        );
        let mut diff = made_up(&a, &b);
        (diff.only_a, diff.only_b) = (vec![], vec![]);
        crate::words::verdict(&diff)
    };
    let both = said(1.1, 1.1);
    assert!(
        both.ends_with(
            "solve.c:61 (+10.0% of thread time; its schedule is dynamic,8, was static)."
        ),
        "{both}"
    );
    // Half the units got slower.
    let other = said(1.3, 1.1);
    assert!(other.contains("+10.0% of thread time"), "{other}");
    assert!(
        other.contains("30.0% time") || other.contains("(median)"),
        "{other}"
    );
}

#[test]
fn what_only_one_side_has_may_be_most_of_it() {
    let (a, b) = sides();
    let mut diff = made_up(&a, &b);
    diff.only_b[0].time_s = 0.7;
    // What only A has may be it under another name.
    let verdict = crate::words::verdict(&diff);
    assert!(!verdict.contains("only B has"), "{verdict}");
    diff.only_a.clear();
    let verdict = crate::words::verdict(&diff);
    assert!(
        verdict.ends_with(
            "Most of it is the task at solve.c:140, which only B has (+700 ms of thread time)."
        ),
        "{verdict}"
    );
}

#[test]
fn a_simulator_counts_instructions_instead_of_time() {
    let (mut a, mut b) = sides();
    let count = |side: &mut Side, all: f64| {
        side.total.clear();
        put(&mut side.total, instructions(), &counts(all));
        for region in &mut side.regions {
            region.values.retain(|quantity, _| !quantity.is_time());
        }
    };
    count(&mut a, 9.1e9);
    count(&mut b, 1.03e10);
    let diff = made_up(&a, &b);
    assert_eq!(
        crate::words::verdict(&diff),
        "B executes 13.2% more instructions in its regions (9.10 G -> 10.3 G, exact). Most of it is in the loop at \
         solve.c:64 (+15.0% of instructions; its schedule is dynamic,8, was static; its code executes 15.0% more instructions)."
    );
    let found = outcomes(&["instructions>1%"], &diff, &a, &b);
    assert!(found[0].holds());
    let remark = github(&diff, &found, &with_prefix());
    assert!(
        remark.starts_with("::error file=src/solve.c,line=64,"),
        "{remark}"
    );
}

#[test]
fn a_build_compared_with_itself_has_no_table() {
    let (a, _) = sides();
    let mut diff = made_up(&a, &a);
    (diff.only_a, diff.only_b) = (vec![], vec![]);
    let shown = text(&diff, &[], &Options::default());
    assert!(
        !shown.contains("What changed") && !shown.contains("Largest"),
        "{shown}"
    );
    let notice = github(&diff, &[], &Options::default());
    assert!(
        notice.starts_with("::notice ") && notice.lines().count() == 1,
        "{notice}"
    );
    assert_eq!(gitlab(&diff, &[], &Options::default()), "[]");
    let is_changed = |list: &[Change]| {
        list.iter()
            .any(|c| c.finding == crate::compare::Finding::Changed)
    };
    assert!(!diff.pairs.iter().any(Pair::is_changed) && !is_changed(&diff.total));
}

#[test]
fn a_unit_that_is_slower_in_every_run_is_told_first_where_it_stands_out() {
    let (a, b) = sides();
    let mut diff = made_up(&a, &b);
    let pair = &mut diff.pairs[0];
    let unit = |time_s| UnitChange {
        disturbed: [0, 0],
        labels: [String::new(), String::new()],
        what: "iterations 417..418".to_owned(),
        time_s,
        is_certain: true,
    };
    pair.unit = Some(unit([3.26e-6, 103e-6]));
    let causes = crate::words::causes(pair);
    let told =
        "its unit (iterations 417..418) takes 103 µs, was 3.26 µs (medians; slower in every run)";
    assert_eq!(causes.first().map(String::as_str), Some(told));
    // Where its whole region is slower it is one of many.
    pair.unit = Some(unit([3.26e-6, 5e-6]));
    let causes = crate::words::causes(pair);
    assert!(!causes[0].starts_with("its unit"), "{causes:?}");
    assert!(
        causes.iter().any(|c| c.starts_with("its unit")),
        "{causes:?}"
    );
}
