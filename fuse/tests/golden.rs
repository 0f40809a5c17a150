//! The combination strategies against outputs that were computed by independent programs (tests/data: `a_lgl_in_N.csv`
//! are seven runs with five events each, `a_out_*` says which row of each makes each row of the result).

use ompfuse_fuse::{Combined, XuTable, combine_ctc, combine_lgl};
use std::collections::HashMap;
use std::fs;

fn data(name: &str) -> Vec<u8> {
    fs::read(format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn inputs() -> Vec<XuTable> {
    (1..=7)
        .map(|k| XuTable::from_csv(&data(&format!("a_lgl_in_{k}.csv"))).unwrap())
        .collect()
}

/// Type, label and the rows in each input, in the order of the result.
fn expected(name: &str) -> Vec<(String, String, Vec<u32>)> {
    let text = String::from_utf8(data(name)).unwrap();
    text.lines()
        .skip(1)
        .map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            (
                fields[0].to_owned(),
                fields[1].to_owned(),
                fields[2..].iter().map(|f| f.parse().unwrap()).collect(),
            )
        })
        .collect()
}

fn check(combined: &Combined, inputs: &[XuTable], expected: &[(String, String, Vec<u32>)]) {
    let table = &combined.table;
    assert_eq!(table.len(), expected.len());
    for (row, (site, label, sources)) in expected.iter().enumerate() {
        assert_eq!(&table.sites[table.site[row] as usize].name, site);
        assert_eq!(&table.label_text(row, 100).unwrap(), label);
        let got: Vec<u32> = combined.sources.iter().map(|s| s[row]).collect();
        assert_eq!(&got, sources, "row {row}");
    }
    assert!(combined.unmatched.is_empty());
    // Every event comes from the first input that holds it, from the row that the sources name.
    let mut origin: HashMap<&str, usize> = HashMap::new();
    for (run, input) in inputs.iter().enumerate() {
        for event in &input.events {
            origin.entry(&event.name).or_insert(run);
        }
    }
    assert_eq!(table.events.len(), origin.len());
    for (event, &run) in table.events.iter().zip(&combined.origins) {
        let run = run as usize;
        assert_eq!(run, origin[event.name.as_str()], "{}", event.name);
        let from = inputs[run].event(&event.name).unwrap();
        for row in 0..table.len() {
            assert_eq!(
                event.get(row),
                from.get(combined.sources[run][row] as usize)
            );
        }
    }
}

#[test]
fn lgl_is_exact() {
    let inputs = inputs();
    let combined = combine_lgl(&inputs.iter().collect::<Vec<_>>());
    check(&combined, &inputs, &expected("a_out_lgl_sources.csv"));
}

#[test]
fn ctc_is_exact() {
    let inputs = inputs();
    let combined = combine_ctc(&inputs.iter().collect::<Vec<_>>());
    check(&combined, &inputs, &expected("a_out_ctc_sources.csv"));
}
