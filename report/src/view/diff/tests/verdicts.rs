//! The verdict, and what is told once.

use super::*;

fn verdict(change: impl Fn(&mut Side)) -> String {
    let (a, _) = sides();
    let mut b = a.clone();
    change(&mut b);
    let mut diff = made_up(&a, &b);
    (diff.only_a, diff.only_b) = (vec![], vec![]);
    crate::words::verdict(&diff)
}

fn put(
    values: &mut std::collections::BTreeMap<Quantity, ompfuse_compare::Sample>,
    quantity: Quantity,
    of: &[f64],
) {
    values.insert(quantity, ompfuse_compare::Sample::of(of).unwrap());
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
            .any(|c| c.finding == ompfuse_compare::Finding::Changed)
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

#[test]
fn how_a_schedule_divides_a_loop_is_a_row_and_a_schedule_is_a_headline() {
    let compared = |schedule: &str| {
        let (a, _) = sides();
        let mut b = a.clone();
        put(&mut b.regions[1].values, Quantity::Units, &[1000.0; 5]);
        let mut diff = made_up(&a, &b);
        (diff.only_a, diff.only_b) = (vec![], vec![]);
        for pair in &mut diff.pairs {
            pair.schedules = None;
            for key in pair.a.iter_mut().chain(&mut pair.b) {
                key.schedule = Some(schedule.to_owned());
            }
        }
        diff
    };
    for schedule in ["dynamic", "guided", "auto", "static,", "dynamic,8"] {
        let mut diff = compared(schedule);
        let verdict = crate::words::verdict(&diff);
        assert!(
            verdict.ends_with("No region is certain to have changed."),
            "{verdict}"
        );
        let shown = text(&diff, &[], &Options::default());
        assert!(
            shown.contains("its work is in 1000 units, was in 500"),
            "{shown}"
        );
        assert!(!github(&diff, &[], &Options::default()).contains("::warning"));
        diff.pairs[0].schedules = Some([Some("static".to_owned()), Some(schedule.to_owned())]);
        let verdict = crate::words::verdict(&diff);
        assert_eq!(
            verdict.contains("was static"),
            schedule != "auto",
            "{verdict}"
        );
    }
    // Threads alone divide this one: other units are another program.
    let verdict = crate::words::verdict(&compared("static"));
    assert!(verdict.contains("1000 units, was in 500"), "{verdict}");
}
