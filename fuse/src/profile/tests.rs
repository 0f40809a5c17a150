//! Tests of profiles.

use super::*;
use crate::summary::RegionStat;
use crate::testing::{BEGIN, listing, listing_threads};
use ompfuse_format::Construct;
use ompfuse_progress::Progress;

fn profile(name: &str, events: &[&str], swap: bool) -> Profile {
    Profile::of_run(name, listing(events, swap).read())
}

fn combined() -> Profile {
    let mut combiner = Combiner::new(Strategy::Lgl);
    combiner.add(profile("run-0001", &["cycles"], false));
    combiner.add(profile("run-0002", &["instructions", "cycles"], true));
    combiner.finish().unwrap().unwrap()
}

#[test]
fn one_input_is_handed_back() {
    assert_eq!(Combiner::new(Strategy::Lgl).finish(), Ok(None));
    let mut combiner = Combiner::new(Strategy::Lgl);
    combiner.add(profile("a", &["cycles"], false));
    assert_eq!(
        combiner.finish().unwrap().unwrap(),
        profile("a", &["cycles"], false)
    );
}

#[test]
fn who_waits_is_told_of_everything() {
    let told = std::sync::Mutex::new(vec![]);
    let tell = |share: f64| told.lock().unwrap().push(share);
    let progress = Progress::new(&tell);
    let assert_whole = |what: &str, whole: f64| {
        let shares = std::mem::take(&mut *told.lock().unwrap());
        let sum: f64 = shares.iter().sum();
        assert!(shares.len() > 1, "{what}: {shares:?}");
        assert!((sum - whole).abs() < 1e-9, "{what}: {shares:?}");
    };
    let fake = listing(&["cycles"], false);
    let run = fake.with_files(|files| Run::read_watched(files, progress));
    assert_eq!(run.xus, fake.read().xus);
    assert_whole("read", 1.0);
    let bytes = combined().to_parquet_watched(progress).unwrap();
    assert_eq!(bytes, combined().to_parquet().unwrap());
    assert_whole("in label order", 1.0);
    let (one, other) = (
        profile("a", &["cycles"], false),
        profile("b", &["cycles", "b"], false),
    );
    one.to_parquet_watched(progress).unwrap();
    assert_whole("to be ordered", 1.0);
    let mut combiner = Combiner::new(Strategy::Bc(crate::Relax::Halve));
    let inputs = [&one, &other, &other];
    inputs.iter().for_each(|&input| combiner.add(input.clone()));
    combiner.finish_watched(progress).unwrap();
    // But for the result, which is put together then.
    assert_whole("bc", 2.0 / 3.0);
}

/// A run of a module, with functions that can't count.
fn run_of(events: &[&str], refused: &[&str]) -> Profile {
    use ompfuse_format::site::{HexAddress, Uncounted};
    let mut run = profile("run", events, false);
    let refused = refused.iter().zip(1..).map(|(name, at)| Uncounted {
        address: HexAddress(at),
        name: (*name).to_owned(),
        instructions: 3,
        reason: "no room".to_owned(),
        sites: vec![],
    });
    run.summary.modules = vec![crate::summary::ModuleSummary {
        path: "/bin/program".to_owned(),
        build_id: None,
        runtimes: vec![],
        entries: vec![],
        patched: 1,
        skipped: vec![],
        coverage: Default::default(),
        uncounted: refused.collect(),
    }];
    run
}

fn all_of(runs: impl IntoIterator<Item = Profile>) -> Profile {
    let mut combiner = Combiner::new(Strategy::Lgl);
    runs.into_iter().for_each(|run| combiner.add(run));
    combiner.finish().unwrap().unwrap()
}

#[test]
fn the_order_and_grouping_of_runs_makes_no_difference() {
    let runs = || {
        [
            run_of(&["cycles"], &[]),
            run_of(&["cycles"], &["f", "g"]),
            run_of(&["instructions"], &["f", "g"]),
        ]
    };
    // What is told of all of them: times are the first one's, and numbers of runs follow their order.
    let told = |profile: &Profile| {
        let summary = &profile.summary;
        let mut events: Vec<_> = summary
            .events
            .iter()
            .map(|e| (e.name.clone(), e.run.is_some()))
            .collect();
        events.sort();
        let modules = summary.modules.clone();
        let matched = summary
            .matching
            .as_ref()
            .map(|m| (m.matched, m.unmatched.len()));
        let mut counts: Vec<Vec<Option<u64>>> = vec![];
        for stat in &summary.regions {
            let names = summary.events.iter().map(|e| &e.name);
            let mut known: Vec<_> = names.zip(&stat.counts).collect();
            known.sort();
            counts.push(known.into_iter().map(|(_, count)| *count).collect());
        }
        (events, modules, matched, counts, summary.runs.len())
    };
    let expected = told(&all_of(runs()));
    assert_eq!(expected.1[0].uncounted.len(), 2);
    for order in [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let shuffled = order.map(|at| runs()[at].clone());
        assert_eq!(told(&all_of(shuffled)), expected, "{order:?}");
    }
    let [a, b, c] = runs();
    assert_eq!(told(&all_of([all_of([a, b]), c])), expected);
    let [a, b, c] = runs();
    assert_eq!(told(&all_of([a, all_of([b, c])])), expected);
}

#[test]
fn what_was_left_out_before_is_told_again() {
    let mut shorter = profile("b", &["cycles"], false);
    let rows: Vec<u32> = (1..shorter.xus.len() as u32).collect();
    shorter.xus = shorter.xus.gather(&rows);
    let both = all_of([profile("a", &["cycles"], false), shorter]);
    let left_out = |p: &Profile| {
        let matching = p.summary.matching.as_ref().expect("it was combined");
        matching
            .unmatched
            .iter()
            .map(|u| (u.run, u.count))
            .collect::<Vec<_>>()
    };
    assert_eq!(left_out(&both), [(0, 1)]);
    let before = profile("z", &["instructions"], false);
    let all = all_of([before, both]);
    assert!(left_out(&all).contains(&(1, 1)), "{:?}", left_out(&all));
}

#[test]
fn regions_get_the_counts_of_later_runs() {
    let profile = combined();
    assert_eq!(profile.origins, [0, 1]);
    let names: Vec<_> = profile
        .summary
        .events
        .iter()
        .map(|e| (e.name.as_str(), e.run))
        .collect();
    assert_eq!(names, [("cycles", Some(0)), ("instructions", Some(1))]);
    let task = |r: &&RegionStat| r.construct == Some(Construct::Task) && r.count() == 8;
    let region = profile.summary.regions.iter().find(task).unwrap();
    // Two counts per tick for the first counter of each run.
    assert_eq!(
        region.counts,
        [Some(2 * region.own_ns()), Some(2 * region.own_ns())]
    );
    let matching = profile.summary.matching.unwrap();
    assert_eq!(
        (
            matching.strategy.as_str(),
            matching.matched,
            matching.unmatched.len()
        ),
        ("lgl", 16, 0)
    );
    assert_eq!(profile.summary.runs.len(), 2);
}

#[test]
fn combining_a_combined_profile_keeps_the_runs_apart() {
    let mut combiner = Combiner::new(Strategy::Lgl);
    combiner.add(combined());
    let mut third = combined();
    third.xus.events[1].name = "branches".to_owned();
    third.summary.events[1].name = "branches".to_owned();
    combiner.add(third);
    let profile = combiner.finish().unwrap().unwrap();
    assert_eq!(profile.summary.runs.len(), 4);
    assert_eq!(profile.origins, [0, 1, 3]);
}

/// A run of two processes with an event that is not counted for every third unit, in label order.
fn two_processes(events: &[&str]) -> Profile {
    let mut fake = listing(events, false);
    fake.process(
        78,
        BEGIN + 10_000,
        listing_threads(3, false, BEGIN + 10_000),
        true,
    );
    let mut profile = Profile::of_run("run", fake.read()).in_label_order();
    profile.xus.events[0].present = Some((0..32).map(|row| row % 3 > 0).collect());
    for row in (0..32).filter(|row| row % 3 == 0) {
        profile.xus.events[0].values[row] = 0;
    }
    profile
}

#[test]
fn parquet_round_trips() {
    let profile = two_processes(&["cycles", "thread", "run:x"]);
    let bytes = profile.to_parquet().unwrap();
    assert_eq!(bytes, profile.to_parquet().unwrap());
    let again = Profile::from_parquet(bytes.clone()).unwrap();
    assert_eq!(again.summary, profile.summary);
    assert_eq!(again.origins, profile.origins);
    // Labels are kept in another shape; everything else is equal.
    for row in 0..32 {
        assert_eq!(
            again.xus.label_text(row, 99),
            profile.xus.label_text(row, 99)
        );
        assert_eq!(again.xus.key(row), profile.xus.key(row));
    }
    let same = XuTable {
        labels: profile.xus.labels.clone(),
        label: profile.xus.label.clone(),
        ..again.xus
    };
    assert_eq!(same, profile.xus);
    assert_eq!(
        Profile::summary_from_parquet(bytes).unwrap(),
        profile.summary
    );
}

#[test]
fn a_profile_without_xus_is_one_too() {
    let table = XuTable::from_csv(b"type,label,thread,t0_ns,t1_ns,INS\n").unwrap();
    let profile = Profile::of_table("none", table);
    let again = Profile::from_parquet(profile.to_parquet().unwrap()).unwrap();
    assert!(again.xus.is_empty());
    assert_eq!((again.xus.events.len(), again.origins), (1, vec![0]));
}

#[test]
fn other_bytes_are_refused() {
    let text = |bytes: Vec<u8>| Profile::from_parquet(bytes).unwrap_err().to_string();
    assert!(text(b"PAR1 no".to_vec()).starts_with("not a readable Parquet file"));
    let mut bytes = combined().to_parquet().unwrap();
    bytes.truncate(bytes.len() / 2);
    assert!(text(bytes).starts_with("not a readable Parquet file"));
    // Another version's: where the file says which it is, one digit differs.
    let mut bytes = combined().to_parquet().unwrap();
    let key = b"ompfuse.version";
    let at = bytes.windows(key.len()).rposition(|w| w == key).unwrap();
    let digit = (at..bytes.len()).find(|&n| bytes[n] == b'3').unwrap();
    bytes[digit] = b'2';
    assert_eq!(
        text(bytes),
        "its layout has version \"2\", and this ompfuse reads version 3: read it with the ompfuse that wrote it"
    );
}

#[test]
fn the_strategies_of_the_default_tell_their_confidence() {
    for (strategy, name) in [(Strategy::Joint, "joint"), (Strategy::default(), "lgl")] {
        let mut combiner = Combiner::new(strategy);
        combiner.add(profile("a", &["cycles"], false));
        combiner.add(profile("b", &["cycles", "branches"], true));
        let combined = combiner.finish().unwrap().unwrap();
        let matching = combined.summary.matching.as_ref().unwrap();
        assert_eq!((matching.strategy.as_str(), matching.matched), (name, 16));
        let confidence = combined.xus.confidence.as_deref();
        assert!(confidence.is_some_and(|c| c.len() == 16 && (name == "joint" || c == [100; 16])));
        let again = Profile::from_parquet(combined.to_parquet().unwrap()).unwrap();
        assert_eq!(
            again.xus.confidence,
            combined.in_label_order().xus.confidence
        );
    }
}

#[test]
fn every_count_keeps_its_xu() {
    let (a, b) = (
        profile("a", &["cycles", "branches"], false),
        profile("b", &["cycles", "xu:x"], true),
    );
    for strategy in [
        Strategy::Joint,
        Strategy::Ctc,
        Strategy::Bc(Relax::Halve),
        Strategy::Lgl,
    ] {
        let mut combiner = Combiner::new(strategy).with_sources();
        combiner.add(a.clone());
        combiner.add(b.clone());
        let bytes = combiner.finish().unwrap().unwrap().to_parquet().unwrap();
        let again = Profile::from_parquet(bytes).unwrap();
        assert_eq!(again.xus.events.len(), 3);
        let Some(sources) = &again.sources else {
            assert_eq!(strategy, Strategy::Lgl);
            continue;
        };
        for ((column, rows), &run) in again.xus.events.iter().zip(sources).zip(&again.origins) {
            let from = [&a, &b][run as usize].xus.event(&column.name).unwrap();
            assert!(
                rows.len() == 16 && (0..16).all(|at| column.get(at) == from.get(rows[at] as usize))
            );
        }
    }
}

#[test]
fn every_column_is_described_in_the_file_and_in_the_documents() {
    let mut combiner = Combiner::new(Strategy::Joint).with_sources();
    combiner.add(profile("a", &["cycles"], false));
    combiner.add(profile("b", &["cycles", "branches"], true));
    let bytes = combiner.finish().unwrap().unwrap().to_parquet().unwrap();
    let file = bytes::Bytes::from(bytes);
    let reader = ::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file);
    let documented = include_str!("../../../docs/reference/columns.md");
    let (documented, _) = documented.split_once("\n## The CSV table\n").unwrap();
    let (mut described, mut missing) = (0, vec![]);
    for field in reader.unwrap().schema().fields() {
        let name = field.name();
        let Some(meaning) = field.metadata().get("description") else {
            let event = name.rsplit(':').next();
            assert!(
                event.is_some_and(|e| e == "cycles" || e == "branches"),
                "{name}"
            );
            continue;
        };
        let line = format!("- `{name}` ({}): {meaning}\n", type_of(field));
        missing.extend((!documented.contains(&line)).then_some(line));
        described += 1;
    }
    assert!(
        missing.is_empty(),
        "docs/reference/columns.md lacks\n{}",
        missing.join("\n")
    );
    let rows = documented.lines().filter(|l| l.starts_with("- `"));
    let of_profile = rows.filter(|l| !l.contains("*event*"));
    assert_eq!(of_profile.count(), described);
}

/// A column's type as the documents have it.
fn type_of(field: &arrow_schema::Field) -> String {
    use arrow_schema::DataType;
    let what = match field.data_type() {
        DataType::Utf8 | DataType::Dictionary(..) => "text",
        DataType::FixedSizeBinary(16) => "16 bytes",
        DataType::Float32 => "number",
        DataType::Boolean => "boolean",
        other if other.is_integer() => "integer",
        other => panic!("{field}: {other}"),
    };
    let or_null = if field.is_nullable() { "?" } else { "" };
    format!("{what}{or_null}")
}
