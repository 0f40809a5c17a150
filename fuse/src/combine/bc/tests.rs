use super::*;
use crate::testing::golden;
use proptest::prelude::*;
use serde_json::Value;

/// Matches two columns as a type with two events, XUs in row order.
fn tiny(relax: Relax) -> (Vec<[u64; 3]>, Vec<[u64; 3]>) {
    let data: Value = serde_json::from_slice(&golden("c_bc_tiny.json")).unwrap();
    let column = |side: &str, event: usize| -> Vec<u64> {
        let rows = data[side].as_array().unwrap();
        rows.iter().map(|r| r[event].as_u64().unwrap()).collect()
    };
    let columns = [0, 1].map(|e| Columns::new(column("prev", e), column("cur", e)));
    let (pairs, levels) = match_type(4, 4, &columns, relax);
    let mut pairs = pairs.into_iter();
    let found = levels
        .iter()
        .flat_map(|l| {
            let made: Vec<_> = pairs.by_ref().take(l.paired).collect();
            made.into_iter()
                .map(|(p, c)| [u64::from(p), u64::from(c), l.d])
                .collect::<Vec<_>>()
        })
        .collect();
    let levels = levels
        .iter()
        .map(|l| [l.d, l.paired as u64, l.left_prev as u64])
        .collect();
    (found, levels)
}

#[test]
fn four_xus_by_hand() {
    let data: Value = serde_json::from_slice(&golden("c_bc_tiny.json")).unwrap();
    for (relax, name) in [
        (Relax::Halve, "halve"),
        (Relax::Nn, "nn"),
        (Relax::Paper, "paper"),
    ] {
        let (pairs, levels) = tiny(relax);
        assert_eq!(
            serde_json::to_value(pairs).unwrap(),
            data[name]["pairs"],
            "{name}"
        );
        assert_eq!(
            serde_json::to_value(levels).unwrap(),
            data[name]["levels"],
            "{name}"
        );
    }
}

#[test]
fn splitmix_is_the_known_one() {
    let data: Value = serde_json::from_slice(&golden("e_splitmix.json")).unwrap();
    for (input, output) in data["splitmix64"].as_object().unwrap() {
        let output: u64 = output.as_str().unwrap().parse().unwrap();
        assert_eq!(splitmix64(input.parse().unwrap()), output);
    }
}

fn golden_inputs() -> Vec<XuTable> {
    (1..=15)
        .map(|i| XuTable::from_csv(&golden(&format!("a_bc_in_{i:02}.csv"))).unwrap())
        .collect()
}

/// Type, label and the row in each input, per combined XU.
fn text(combined: &Combined) -> Vec<String> {
    let table = &combined.table;
    (0..table.len())
        .map(|row| {
            let site = &table.sites[table.site[row] as usize].name;
            let label = table.label_text(row, usize::MAX).unwrap_or_default();
            let sources = combined.sources.iter().map(|s| s[row].to_string());
            format!("{site},{label},{}", sources.collect::<Vec<_>>().join(","))
        })
        .collect()
}

#[test]
fn fifteen_runs_give_the_golden_profiles() {
    let tables = golden_inputs();
    let runs: Vec<&XuTable> = tables.iter().collect();
    for (relax, order, name) in [
        (Relax::Halve, CellOrder::Label, "bc_halve"),
        (Relax::Nn, CellOrder::Label, "bc_nn"),
        (Relax::Paper, CellOrder::Label, "bc_paper"),
        (
            Relax::Halve,
            CellOrder::Shuffled(1),
            "bc_unlabelled_halve_seed1",
        ),
    ] {
        let expected = golden(&format!("a_out_{name}_sources.csv"));
        let expected: Vec<&str> = std::str::from_utf8(&expected)
            .unwrap()
            .lines()
            .skip(1)
            .collect();
        // The number of threads must not matter.
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            let (combined, traces) = pool
                .install(|| combine_traced(&runs, relax, order, Progress::default()))
                .unwrap();
            let found = text(&combined);
            assert_eq!(found.len(), expected.len(), "{name}");
            let wrong = found.iter().zip(&expected).find(|(f, e)| *f != *e);
            assert_eq!(wrong, None, "{name}, {threads} threads");
            assert!(combined.unmatched.is_empty());
            if relax == Relax::Paper {
                let levels: Value =
                    serde_json::from_slice(&golden("a_bc_paper_step1_levels.json")).unwrap();
                let found: Vec<Value> = traces[0]
                    .levels
                    .iter()
                    .map(|l| serde_json::json!({"d": l.d, "paired": l.paired, "left_prev": l.left_prev}))
                    .collect();
                assert_eq!(Value::from(found), levels);
            }
        }
    }
}

fn table(events: &[&str], rows: &[(u8, &str, &[&str])]) -> XuTable {
    let mut csv = format!("type,label,thread,t0_ns,t1_ns,{}\n", events.join(","));
    for (at, (site, label, counts)) in rows.iter().enumerate() {
        csv += &format!("{site},{label},0,{at},{at},{}\n", counts.join(","));
    }
    XuTable::from_csv(csv.as_bytes()).unwrap()
}

#[test]
fn what_cannot_be_matched_is_listed() {
    let a = table(
        &["A", "B"],
        &[
            (1, "0.1", &["5", "1"]),
            (1, "0.2", &["9", "2"]),
            (1, "0.3", &["", "3"]),
            (2, "0.4", &["1", "4"]),
        ],
    );
    let b = table(
        &["A", "C"],
        &[(1, "0.2", &["9", "7"]), (3, "0.9", &["9", "8"])],
    );
    let combined = combine_bc(&[&a, &b], Relax::Halve, CellOrder::Label).unwrap();
    assert_eq!(combined.sources, [[1], [0]]);
    assert_eq!(combined.origins, [0, 0, 1]);
    assert_eq!(combined.table.event("C").unwrap().get(0), Some(7));
    let list: Vec<_> = combined
        .unmatched
        .iter()
        .map(|u| (u.run, u.site.name.as_str(), u.count, u.reason))
        .collect();
    let surplus = |run| Reason::Surplus { run };
    assert_eq!(
        list,
        [
            (0, "1", 1, surplus(1)),
            (0, "1", 1, Reason::Uncounted),
            (0, "2", 1, surplus(1)),
            (1, "3", 1, surplus(0)),
        ]
    );
}

#[test]
fn a_chain_needs_common_events() {
    let (a, b) = (table(&["A"], &[]), table(&["B"], &[]));
    let error = combine_bc(&[&a, &b], Relax::Halve, CellOrder::Label).unwrap_err();
    assert!(error.to_string().starts_with("run 2 shares no event"));
    assert!(
        combine_bc(&[], Relax::Halve, CellOrder::Label)
            .unwrap()
            .table
            .is_empty()
    );
}

/// The search without a grid or an axis, straight from the definition.
fn naive_next(columns: &[&Columns], d: u64, prev: &[u32], cur: &[u32], relax: Relax) -> u64 {
    let at = |side: &[u64], low: u64, range: u64, row: u32| {
        (side[row as usize] - low) as f64 * (d as f64 / range as f64)
    };
    let norm =
        |differences: &mut dyn Iterator<Item = f64>| differences.map(|x| x * x).sum::<f64>().sqrt();
    let distance = |p: u32, c: u32| {
        norm(
            &mut columns
                .iter()
                .map(|x| at(&x.prev, x.low, x.range, p) - at(&x.cur, x.low, x.range, c)),
        )
    };
    let of_cells =
        |p: u32, c: u32| {
            norm(&mut columns.iter().map(|x| {
                x.cell(x.prev[p as usize], d) as f64 - x.cell(x.cur[c as usize], d) as f64
            }))
        };
    let pairs: Vec<(u32, u32)> = prev
        .iter()
        .flat_map(|&p| cur.iter().map(move |&c| (p, c)))
        .collect();
    let nearest = pairs
        .iter()
        .map(|&(p, c)| of_cells(p, c))
        .fold(f64::INFINITY, f64::min);
    let smallest = pairs
        .iter()
        .filter(|&&(p, c)| relax == Relax::Nn || of_cells(p, c) <= nearest * (1.0 + 1e-12))
        .map(|&(p, c)| distance(p, c))
        .fold(f64::INFINITY, f64::min);
    ((d as f64 / (1.0 + smallest)).floor() as u64)
        .min(d - 1)
        .max(1)
}

proptest! {
    #[test]
    fn searches_are_the_naive_ones(
        points in proptest::collection::vec((0u64..60, 0u64..40), 2..40), split in 1usize..39, d in 2u64..50,
    ) {
        let split = split.min(points.len() - 1);
        let columns: Vec<Columns> = [0, 1]
            .map(|e| {
                let column: Vec<u64> = points.iter().map(|p| if e == 0 { p.0 } else { p.1 }).collect();
                Columns::new(column[..split].to_vec(), column[split..].to_vec())
            })
            .into_iter()
            .filter(|c| c.range > 0)
            .collect();
        prop_assume!(!columns.is_empty());
        let columns: Vec<&Columns> = columns.iter().collect();
        let prev: Vec<u32> = (0..split as u32).collect();
        let cur: Vec<u32> = (0..(points.len() - split) as u32).collect();
        prop_assert_eq!(
            nearest::next_of_all(&columns, d, &prev, &cur),
            naive_next(&columns, d, &prev, &cur, Relax::Nn)
        );
        prop_assert_eq!(
            nearest::next_of_nearest_cells(&columns, d, &prev, &cur),
            naive_next(&columns, d, &prev, &cur, Relax::Paper)
        );
    }

    /// As many pairs as the smaller side has XUs, each XU once.
    #[test]
    fn every_type_is_used_up(
        prev in proptest::collection::vec((any::<u64>(), 0u64..9, Just(3u64)), 1..60),
        cur in proptest::collection::vec((any::<u64>(), 0u64..9, Just(3u64)), 1..60),
        relax in prop_oneof![Just(Relax::Halve), Just(Relax::Nn), Just(Relax::Paper)],
    ) {
        let column = |f: &dyn Fn(&(u64, u64, u64)) -> u64| {
            Columns::new(prev.iter().map(f).collect(), cur.iter().map(f).collect())
        };
        let columns = [column(&|r| r.0), column(&|r| r.1), column(&|r| r.2)];
        let (mut pairs, levels) = match_type(prev.len(), cur.len(), &columns, relax);
        prop_assert_eq!(pairs.len(), prev.len().min(cur.len()));
        prop_assert!(levels.windows(2).all(|w| w[1].d < w[0].d));
        pairs.sort_unstable();
        pairs.dedup_by_key(|p| p.0);
        pairs.sort_unstable_by_key(|p| p.1);
        pairs.dedup_by_key(|p| p.1);
        prop_assert_eq!(pairs.len(), prev.len().min(cur.len()));
    }
}
