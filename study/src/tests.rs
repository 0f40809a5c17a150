use super::*;
use ompfuse_fuse::testing::programs::{Shape, execute};

fn runs(shape: Shape, n: u64) -> Vec<XuTable> {
    (0..n).map(|run| execute(shape, 400, 5, run)).collect()
}

fn setting(methods: &[Method]) -> Setting {
    Setting {
        slots: 5,
        period_ns: 100_000,
        references: 3,
        repetitions: 2,
        methods: methods.to_vec(),
    }
}

#[test]
fn the_hidden_truth_of_a_run_against_itself_is_no_error() {
    let run = execute(Shape::Tree, 200, 1, 0);
    let (a, b): (Vec<String>, Vec<String>) = (vec!["INS".into()], vec!["INS".into(), "CYC".into()]);
    let masked = [run.only(&a), run.only(&b)];
    let all: Vec<&XuTable> = masked.iter().collect();
    for combined in [combine_lgl(&all), combine_joint(&all)] {
        assert_eq!(hidden_error(&combined, &run, &[]), (0.0, 0.0));
    }
}

#[test]
fn every_method_is_scored_in_every_repetition() {
    let runs = runs(Shape::Tiles, 9);
    let runs: Vec<&XuTable> = runs.iter().collect();
    let told = std::sync::Mutex::new(vec![]);
    let tell = |share: f64| told.lock().unwrap().push(share);
    let result = experiment(&runs, &setting(&Method::ALL), Progress::new(&tell)).unwrap();
    assert_eq!((result.runs, result.events), (9, 33));
    assert_eq!(*told.lock().unwrap(), [1.0 / 16.0; 16]);
    for method in &result.methods {
        assert_eq!(method.scores.iter().flatten().count(), 2, "{method:?}");
        assert!(method.epd.unwrap().mean > 0.5);
    }
    // Interpolating is worse than combining.
    let error = |m| {
        result
            .methods
            .iter()
            .find(|r| r.method == m)
            .unwrap()
            .hidden_error
            .unwrap()
            .mean
    };
    assert!(error(Method::Hem) > error(Method::Lgl));
    let few = experiment(&runs[..4], &setting(&Method::ALL), Progress::default());
    assert!(
        few.unwrap_err()
            .to_string()
            .starts_with("4 complete runs given, at least 5")
    );
}

/// Runs are shown that were not used for planning, nor to compare with.
#[test]
fn the_default_beats_labels_and_behaviour_alone() {
    let runs: Vec<XuTable> = (0..20)
        .map(|run| execute(Shape::Lottery, 1000, 5, run))
        .collect();
    let runs: Vec<&XuTable> = runs.iter().collect();
    let setting = Setting {
        repetitions: 3,
        references: 5,
        ..setting(&[Method::Lgl, Method::Bc, Method::Default])
    };
    let result = experiment(&runs, &setting, Progress::default()).unwrap();
    let means = |at: usize| {
        let method = &result.methods[at];
        [method.epd, method.hidden_error_by_event].map(|e| e.unwrap().mean)
    };
    let [lgl, bc, ours] = [0, 1, 2].map(means);
    for (at, ours) in ours.into_iter().enumerate() {
        assert!(ours < lgl[at] && ours < bc[at], "{lgl:?} {bc:?} {ours}");
    }
}

#[test]
fn labels_that_no_two_runs_share_leave_lgl_nothing() {
    let runs = runs(Shape::Guided, 6);
    let runs: Vec<&XuTable> = runs.iter().collect();
    let result = experiment(
        &runs,
        &setting(&[Method::Lgl, Method::Joint]),
        Progress::default(),
    )
    .unwrap();
    let matched = |at: usize| result.methods[at].matched.map_or(0.0, |m| m.mean);
    assert!(
        matched(0) < 0.7 && matched(1) > 0.7,
        "{} {}",
        matched(0),
        matched(1)
    );
}

#[test]
fn labels_decide_what_they_fix_and_behaviour_the_rest() {
    let sets = [
        "CYC L1_DCM INS",
        "CYC LD SR",
        "L1_DCM CYC L2_TCM",
        "L1_DCM CYC STL_BE",
    ];
    let names = |set: &str| -> Vec<String> { set.split(' ').map(str::to_owned).collect() };
    let truth = execute(Shape::Tree, 1500, 3, 0);
    let run = |(run, set): (u64, &str)| execute(Shape::Tree, 1500, 3, run).only(&names(set));
    let runs: Vec<XuTable> = (0..).zip(sets).map(run).collect();
    let runs: Vec<&XuTable> = runs.iter().collect();
    let (joint, lgl) = (combine_joint(&runs), combine_lgl(&runs));
    let error = |combined: &ompfuse_fuse::Combined, name: &str| {
        let others: Vec<String> = truth
            .events
            .iter()
            .map(|e| e.name.clone())
            .filter(|n| n != name)
            .collect();
        hidden_error(combined, &truth, &others.iter().collect::<Vec<_>>()).0
    };
    for exact in ["LD", "SR"] {
        assert_eq!(error(&joint, exact), 0.0);
    }
    for of_schedule in ["L2_TCM", "STL_BE"] {
        let (ours, theirs) = (error(&joint, of_schedule), error(&lgl, of_schedule));
        assert!(ours < 0.8 * theirs, "{of_schedule}: {ours} {theirs}");
    }
}
