use super::*;
use crate::combine::{CellOrder, Combined, Relax, combine_bc, combine_ctc, combine_lgl};
use crate::testing::golden;
use serde_json::Value;
use std::collections::HashMap;

fn table(names: &[&str], columns: &[&[u64]]) -> XuTable {
    let mut csv = format!("type,label,thread,t0_ns,t1_ns,{}\n", names.join(","));
    for row in 0..columns[0].len() {
        let counts: Vec<String> = columns.iter().map(|c| c[row].to_string()).collect();
        csv += &format!("1,0.{row},0,0,1,{}\n", counts.join(","));
    }
    XuTable::from_csv(csv.as_bytes()).unwrap()
}

fn is_near(found: f64, expected: f64) {
    assert!(
        (found - expected).abs() <= 1e-9 * expected.abs().max(1.0),
        "{found}, expected {expected}"
    );
}

#[test]
fn correlation_error_by_hand() {
    let data: Value = serde_json::from_slice(&golden("f_ce_tiny.json")).unwrap();
    let read = |side: &str| {
        let column = |e: &str| -> Vec<u64> {
            data[side][e]
                .as_array()
                .unwrap()
                .iter()
                .map(|v| v.as_u64().unwrap())
                .collect()
        };
        table(
            &["A", "B", "C"],
            &[&column("A"), &column("B"), &column("C")],
        )
    };
    let reference = read("ref");
    let target = read("target");
    let references = References::new(&[&reference, &reference], &target).unwrap();
    let (found, _) = references.evaluate(&target).unwrap();
    is_near(found.correlation_error, data["CE"].as_f64().unwrap());
}

#[test]
fn what_is_missing_is_said() {
    let one = table(&["A", "B"], &[&[1, 2], &[3, 4]]);
    let other = table(&["A", "C"], &[&[1, 2], &[3, 4]]);
    let error = |runs: &[&XuTable], target| References::new(runs, target).unwrap_err();
    assert_eq!(error(&[&one], &one), EvaluationError::References(1));
    assert_eq!(error(&[&one, &other], &one), EvaluationError::Events(1));
    let empty = one.gather(&[]);
    assert_eq!(
        error(&[&one, &empty], &one),
        EvaluationError::Empty("reference 2".to_owned())
    );
    let references = References::new(&[&one, &one], &one).unwrap();
    assert_eq!(references.evaluate(&other), Err(EvaluationError::Events(1)));
    assert_eq!(
        references.evaluate(&empty),
        Err(EvaluationError::Empty("the profile".to_owned()))
    );
    assert!(references.spread().is_empty());
}

#[test]
fn who_waits_is_told_of_every_distance() {
    let one = table(&["A", "B", "C"], &[&[1, 2], &[3, 5], &[7, 7]]);
    let told = std::sync::Mutex::new(vec![]);
    let tell = |share: f64| told.lock().unwrap().push(share);
    for references in 2..5 {
        let runs = vec![&one; references];
        let references = References::with_progress(&runs, &one, Progress::new(&tell)).unwrap();
        references.evaluate(&one).unwrap();
        references.spread();
        let sum: f64 = told.lock().unwrap().drain(..).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    }
}

#[test]
fn xus_without_all_counts_are_left_out() {
    let csv = "type,label,thread,t0_ns,t1_ns,A,B\n1,0,0,0,1,5,6\n1,0,0,0,1,5,\n1,0,0,0,1,7,8\n";
    let table = XuTable::from_csv(csv.as_bytes()).unwrap();
    let references = References::new(&[&table, &table], &table).unwrap();
    assert_eq!(references.incomplete(), 2);
    assert_eq!(references.evaluate(&table).unwrap().1, 1);
}

fn read(prefix: &str, n: usize, width: usize) -> Vec<XuTable> {
    (1..=n)
        .map(|i| XuTable::from_csv(&golden(&format!("{prefix}{i:0width$}.csv"))).unwrap())
        .collect()
}

fn combined(runs: &[XuTable], how: impl Fn(&[&XuTable]) -> Combined) -> XuTable {
    how(&runs.iter().collect::<Vec<_>>()).table
}

fn bc(relax: Relax, order: CellOrder) -> impl Fn(&[&XuTable]) -> Combined {
    move |runs| combine_bc(runs, relax, order).unwrap()
}

/// The values of all strategies and of simulated multiplexing, computed by another program with other solvers.
#[test]
fn golden_profiles_have_the_golden_values() {
    let references = read("a_ref_", 5, 1);
    let references: Vec<&XuTable> = references.iter().collect();
    let (lgl, chain) = (read("a_lgl_in_", 7, 1), read("a_bc_in_", 15, 2));
    let hem = String::from_utf8(golden("a_out_hem_counts.csv")).unwrap();
    let (header, rows) = hem.split_once('\n').unwrap();
    let mut hem = format!("type,label,thread,t0_ns,t1_ns,{header}\n");
    rows.lines()
        .for_each(|line| hem += &format!("1,,0,0,0,{line}\n"));
    let profiles: HashMap<&str, XuTable> = [
        ("lgl", combined(&lgl, combine_lgl)),
        ("ctc", combined(&lgl, combine_ctc)),
        (
            "bc_halve",
            combined(&chain, bc(Relax::Halve, CellOrder::Label)),
        ),
        ("bc_nn", combined(&chain, bc(Relax::Nn, CellOrder::Label))),
        (
            "bc_paper",
            combined(&chain, bc(Relax::Paper, CellOrder::Label)),
        ),
        (
            "bc_unlabelled_halve_seed1",
            combined(&chain, bc(Relax::Halve, CellOrder::Shuffled(1))),
        ),
        ("hem", XuTable::from_csv(hem.as_bytes()).unwrap()),
        ("ref1", references[0].clone()),
    ]
    .into();
    let references = References::new(&references, &profiles["lgl"]).unwrap();
    let found: HashMap<&str, Evaluation> = profiles
        .iter()
        .map(|(name, table)| (*name, references.evaluate(table).unwrap().0))
        .collect();
    let summary = String::from_utf8(golden("a_summary.csv")).unwrap();
    assert_eq!(summary.lines().count(), 9);
    for line in summary.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let evaluation = &found[fields[0]];
        is_near(evaluation.epd, fields[2].parse().unwrap());
        is_near(evaluation.correlation_error, fields[3].parse().unwrap());
    }
    // Some values are printed as np.float64(...).
    let pairs = String::from_utf8(golden("a_tmd_pairs.csv")).unwrap();
    let number = |text: &str| -> f64 {
        text.trim_start_matches("np.float64(")
            .trim_end_matches(')')
            .parse()
            .unwrap()
    };
    assert_eq!(pairs.lines().count(), 1 + 4 * 528);
    for line in pairs.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let pair = found[fields[0]]
            .pairs
            .iter()
            .find(|p| p.x == fields[1] && p.y == fields[2])
            .unwrap();
        is_near(pair.uncalibrated, number(fields[3]));
        is_near(pair.calibration, number(fields[4]));
        is_near(pair.tmd, number(fields[5]));
    }
    // Fresh runs against each other are what 1 means.
    let fresh: Vec<f64> = references.spread().iter().map(|e| e.epd).collect();
    assert!(
        fresh.len() == 5 && fresh.iter().all(|e| (0.5..2.0).contains(e)),
        "{fresh:?}"
    );
}
