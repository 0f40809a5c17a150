use super::*;
use crate::side::{SideRegion, Unseen};
use crate::testing::{region, side};
use crate::{Sample, compare};
use ompfuse_account::model::UncountedWork;

const STEADY: [f64; 5] = [1.00, 1.01, 1.00, 0.99, 1.00];

fn event(name: &str) -> Quantity {
    Quantity::Event(name.to_owned())
}

/// Two loops, `solve` with 90 % of the time and `init` with the rest; `solve` takes `factor` times as long.
fn build(factor: f64, noise: &[f64]) -> Side {
    let slow: Vec<f64> = noise.iter().map(|n| n * factor).collect();
    let more: Vec<f64> = noise.iter().map(|_| (1000.0 * factor).round()).collect();
    let same: Vec<f64> = noise.iter().map(|_| 100.0).collect();
    let values = |time: &[f64], instructions: &[f64]| {
        [
            (Quantity::Time, time),
            (Quantity::Imbalance, time),
            (Quantity::Executions, &same),
            (event("sim-instructions"), instructions),
        ]
        .map(|(quantity, values)| (quantity, values.to_vec()))
    };
    let named = |name: &str, share, values: &[(Quantity, Vec<f64>); 4]| {
        let values: Vec<(Quantity, &[f64])> =
            values.iter().map(|(q, v)| (q.clone(), &v[..])).collect();
        let mut region = region(name, share, &values);
        region.key.file = Some(format!("/src/{name}.c"));
        region.key.line = Some(61);
        region
    };
    let total = [
        (Quantity::Wall, &slow[..]),
        (event("sim-instructions"), &more),
        (event("cycles"), &slow),
    ];
    let regions = vec![
        named("solve", 0.9, &values(&slow, &more)),
        named("init", 0.1, &values(noise, &same)),
    ];
    let mut side = side(noise.len() as u32, &total, regions);
    side.origin.name = if factor == 1.0 { "A" } else { "B" }.to_owned();
    side
}

/// With exact counts of each region, of which samples say how much of the work isn't in them: of `solve`, of `init`.
fn counted(factor: f64, uncounted: [(u64, u64); 2]) -> Side {
    let mut side = build(factor, &[1.0; 2]);
    let exact = event("instructions:exact");
    let sample = |v: f64| Sample::of(&[v, v]).unwrap();
    side.total.insert(exact.clone(), sample(1000.0 * factor));
    let work = uncounted.map(|(work, uncounted)| UncountedWork {
        work,
        uncounted,
        functions: vec![],
    });
    for (region, work) in side.regions.iter_mut().zip(&work) {
        region.values.insert(exact.clone(), sample(500.0 * factor));
        region.uncounted = Some(work.clone());
    }
    side.uncounted = UncountedWork::sum(work.iter().map(Some));
    side
}

#[test]
fn what_is_in_no_count_decides_nothing() {
    let whole = "instructions:exact>5%";
    let of = |name: &str| format!("region(\"{name}\").instructions:exact>5%");
    let known = counted(1.0, [(100, 5), (9, 0)]);
    let more = counted(2.0, [(100, 5), (9, 0)]);
    let hidden = counted(2.0, [(100, 6), (9, 0)]);
    assert!(matches!(verdict(whole, &known, &known), Verdict::Passes));
    assert!(matches!(
        verdict(whole, &known, &more),
        Verdict::Holds { .. }
    ));
    // On either side, and in whatever direction.
    for (a, b) in [(&known, &hidden), (&hidden, &known), (&hidden, &hidden)] {
        let Verdict::Undecided { doubts } = verdict(whole, a, b) else {
            panic!("{whole}");
        };
        let work = &doubts[0].uncounted.as_ref().unwrap().work;
        assert_eq!((work.work, work.uncounted), (109, 6));
        assert!(matches!(
            verdict(&of("solve"), a, b),
            Verdict::Undecided { .. }
        ));
        // Too few samples of its own: it is as the program is.
        assert!(matches!(
            verdict(&of("init"), a, b),
            Verdict::Undecided { .. }
        ));
    }
    let value = |side| verdict("b.instructions:exact>1", &known, side);
    assert!(matches!(value(&hidden), Verdict::Undecided { .. }));
    assert!(matches!(value(&more), Verdict::Holds { .. }));
    // Too few in all: the counts decide, unless it can't be chance.
    let few = counted(2.0, [(4, 1), (5, 1)]);
    assert!(matches!(
        verdict(whole, &known, &few),
        Verdict::Holds { .. }
    ));
    let sure = counted(2.0, [(4, 1), (5, 2)]);
    assert!(matches!(
        verdict(whole, &known, &sure),
        Verdict::Undecided { .. }
    ));
    // Other counts have all code.
    assert!(matches!(
        verdict("sim-instructions>5%", &hidden, &hidden),
        Verdict::Passes
    ));
}

fn verdict_of(expression: &str, a: &Side, b: &Side, strict: bool) -> Verdict {
    let gate = parse(expression).unwrap();
    judge(&[gate], &compare(a, b), a, b, strict)
        .remove(0)
        .verdict
}

fn verdict(expression: &str, a: &Side, b: &Side) -> Verdict {
    verdict_of(expression, a, b, false)
}

/// The functions of the regions where it holds; empty if it passes, `program` for the whole.
fn where_it_holds(expression: &str, a: &Side, b: &Side) -> Vec<String> {
    match verdict(expression, a, b) {
        Verdict::Holds { hits } => {
            let name = |hit: &Hit| match &hit.region {
                Some(key) => key.function.clone().unwrap(),
                None => "program".to_owned(),
            };
            hits.iter().map(name).collect()
        }
        Verdict::Passes => vec![],
        Verdict::Undecided { doubts } => panic!("{expression}: {doubts:?}"),
        Verdict::Error { problem } => panic!("{expression}: {problem:?}"),
    }
}

fn problem(expression: &str, a: &Side, b: &Side) -> Problem {
    match verdict(expression, a, b) {
        Verdict::Error { problem } => problem,
        other => panic!("{expression}: {other:?}"),
    }
}

#[test]
fn what_is_beyond_its_limit_holds() {
    let (a, b) = (build(1.0, &STEADY), build(1.1, &STEADY));
    for (expression, places) in [
        ("time>5%", &["program"][..]),
        ("wall>5%", &["program"]),
        ("time>15%", &[]),
        ("time<-5%", &[]),
        ("time>-20%", &["program"]),
        ("instructions>9.9%", &["program"]),
        ("instructions>10%", &[]),
        ("instructions!=", &["program"]),
        ("region(\"solve\").time>3%", &["solve"]),
        ("region(\"s*e.c:61\").time>3%", &["solve"]),
        ("region(\"solve.c\").instructions>=10%", &["solve"]),
        ("region(\"*\").time>3%", &["solve"]),
        ("region(\"init\").time>3%", &[]),
        ("imbalance>5%", &["solve"]),
        ("imbalance>15%", &[]),
        ("b.imbalance>105%", &["solve"]),
        ("b.imbalance>90%", &["solve", "init"]),
        ("b.region(\"init\").time>2s", &[]),
        ("executions!=", &[]),
        ("new-regions>0", &[]),
    ] {
        assert_eq!(where_it_holds(expression, &a, &b), places, "{expression}");
    }
    assert_eq!(where_it_holds("time<-5%", &b, &a), ["program"]);
    assert_eq!(where_it_holds("executions!=", &a, &a), [""; 0]);
}

#[test]
fn noise_alone_does_not_hold_unless_strict() {
    let noisy = [1.0, 1.3, 0.8, 1.1, 0.9];
    let (a, b) = (build(1.0, &noisy), build(1.1, &noisy));
    let Verdict::Undecided { doubts } = verdict("time>5%", &a, &b) else {
        panic!();
    };
    // 18.6 % of noise: (3.355 + 0.889) x 0.186 x sqrt(2 / 5) = 0.499, by a table of Student's distribution: 65 %.
    let visible = doubts[0].could_see.unwrap();
    assert!((0.64..0.66).contains(&visible), "{visible}");
    assert!(doubts[0].runs_needed.unwrap() > 100, "{doubts:?}");
    assert_eq!(verdict("time>300%", &a, &b), Verdict::Passes);
    // What got faster for sure is not slower.
    let faster = build(0.1, &noisy);
    assert_eq!(verdict("time>5%", &a, &faster), Verdict::Passes);
    assert!(matches!(
        verdict_of("time>5%", &a, &b, true),
        Verdict::Holds { .. }
    ));
    assert_eq!(verdict_of("time>15%", &a, &b, true), Verdict::Passes);
    // Counts that are constant on each side need no test.
    assert_eq!(where_it_holds("instructions>5%", &a, &b), ["program"]);
}

#[test]
fn one_run_tells_only_what_does_not_vary() {
    let (mut a, mut b) = (build(1.0, &STEADY), build(1.1, &[1.0]));
    let Problem::OneRun { side, quantity } = problem("time>50%", &a, &b) else {
        panic!();
    };
    assert_eq!((&*side, quantity), ("B", Quantity::Wall));
    assert!(matches!(
        problem("cycles>50%", &a, &b),
        Problem::OneRun { .. }
    ));
    assert!(matches!(
        verdict_of("time>5%", &a, &b, true),
        Verdict::Holds { .. }
    ));
    // Addresses decide about counts, too.
    assert!(matches!(
        problem("instructions>5%", &a, &b),
        Problem::OneRun { .. }
    ));
    (a.origin.is_steady, b.origin.is_steady) = (true, true);
    assert_eq!(where_it_holds("instructions>5%", &a, &b), ["program"]);
    assert_eq!(where_it_holds("executions!=", &a, &b), [""; 0]);
}

#[test]
fn what_was_not_measured_is_an_error() {
    let (a, mut b) = (build(1.0, &STEADY), build(1.1, &STEADY));
    b.origin.events.insert("sim-loads".to_owned(), 5);
    b.total.remove(&event("cycles"));
    let Problem::NotMeasured { side, quantity, .. } = problem("cycles>1%", &a, &b) else {
        panic!();
    };
    assert_eq!((&*side, quantity), ("B", event("cycles")));
    // A slip of the pen is an event that nobody counted.
    assert!(matches!(
        problem("tiem>5%", &a, &b),
        Problem::NotMeasured { .. }
    ));
    assert!(matches!(
        problem("max-unit>5%", &a, &b),
        Problem::NotMeasured { .. }
    ));
    b.regions[0].values.remove(&Quantity::Imbalance);
    let Problem::NotMeasured { region, .. } = problem("imbalance>50%", &a, &b) else {
        panic!();
    };
    assert_eq!(region.unwrap().function.as_deref(), Some("solve"));
}

#[test]
fn what_is_damaged_or_gone_is_an_error() {
    let (a, b) = (build(1.0, &STEADY), build(1.1, &STEADY));
    assert!(matches!(
        problem("region(\"nothing*\").time>1%", &a, &b),
        Problem::NoRegion { .. }
    ));
    let mut damaged = b.clone();
    damaged.origin.damage.push("records lost".to_owned());
    assert!(matches!(
        problem("time>50%", &a, &damaged),
        Problem::Damaged { .. }
    ));
    assert!(matches!(
        problem("time>50%", &damaged, &a),
        Problem::Damaged { .. }
    ));

    let mut gone = b.clone();
    gone.regions.remove(1);
    let about_it = "region(\"init\").time>1%";
    assert!(matches!(
        problem(about_it, &a, &gone),
        Problem::NoPartner { .. }
    ));
    assert!(matches!(
        problem("region(\"*\").time>50%", &a, &gone),
        Problem::NoPartner { .. }
    ));
    assert_eq!(where_it_holds("time>50%", &a, &gone), [""; 0]);
    gone.origin.unseen.push(Unseen {
        module: "solve".to_owned(),
        lost: 1,
    });
    assert!(matches!(
        problem("time>50%", &a, &gone),
        Problem::LostProbe { .. }
    ));
    // More of what is known already would not change it.
    assert_eq!(where_it_holds("time>5%", &a, &gone), ["program"]);
}

#[test]
fn new_regions_are_counted() {
    let (mut a, b) = (build(1.0, &STEADY), build(1.1, &STEADY));
    a.regions.remove(1);
    assert_eq!(where_it_holds("new-regions>0", &a, &b), ["init"]);
    assert_eq!(where_it_holds("new-regions>1", &a, &b), [""; 0]);
    a.origin.unseen.push(Unseen {
        module: "solve".to_owned(),
        lost: 1,
    });
    assert!(matches!(
        problem("new-regions>0", &a, &b),
        Problem::MayBeOld { .. }
    ));
}

#[test]
fn what_one_side_lacks_is_executed_never_there() {
    let (whole, mut less) = (build(1.0, &STEADY), build(1.0, &STEADY));
    less.regions.remove(1);
    for (a, b) in [(&less, &whole), (&whole, &less)] {
        assert_eq!(where_it_holds("executions!=", a, b), ["init"]);
        let named = "region(\"init\").executions!=";
        assert_eq!(where_it_holds(named, a, b), ["init"]);
    }
    assert_eq!(where_it_holds("executions>10%", &less, &whole), ["init"]);
    assert_eq!(where_it_holds("executions>10%", &whole, &less), [""; 0]);
    // A loop without a partner on the other side may be the same one.
    let mut other = whole.clone();
    let key = &mut other.regions[1].key;
    (key.file, key.line) = (Some("/src/start.c".to_owned()), Some(9));
    key.function = Some("start".to_owned());
    other.regions[1]
        .values
        .insert(Quantity::Executions, Sample::Same(5, 7.0));
    let diff = compare(&whole, &other);
    assert_eq!((diff.only_a.len(), diff.only_b.len()), (1, 1), "{diff:#?}");
    assert_eq!(where_it_holds("executions!=", &whole, &other), [""; 0]);
    assert!(matches!(
        problem("new-regions>0", &whole, &other),
        Problem::MayBeOld {
            may_be_other: true,
            ..
        }
    ));
}

#[test]
fn estimates_of_a_model_are_not_taken_for_an_event() {
    let with = |misses: f64| {
        let counts: Vec<f64> = STEADY.iter().map(|_| misses).collect();
        let mut side = build(1.0, &STEADY);
        let added: SideRegion = region("", 1.0, &[(event("sim-branch-misses"), &counts)]);
        side.total.extend(added.values);
        side
    };
    let (a, b) = (with(10.0), with(20.0));
    assert!(matches!(
        problem("branch-misses>5%", &a, &b),
        Problem::NotMeasured { .. }
    ));
    assert_eq!(where_it_holds("sim-branch-misses>5%", &a, &b), ["program"]);
}
