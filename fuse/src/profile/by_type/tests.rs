use super::*;
use crate::ProfileWriter;
use crate::combine::Relax;
use crate::profile::ProfileError;
use crate::testing::{golden, listing};
use bytes::Bytes;

/// Everything about each XU, as text.
fn rows(profile: &Profile) -> Vec<String> {
    let xus = &profile.xus;
    let row = |row: usize| {
        let counts: Vec<_> = xus.events.iter().map(|e| (&e.name, e.get(row))).collect();
        let confidence = xus.confidence.as_ref().map(|c| c[row]);
        let sources = profile.sources.iter().flatten();
        let sources: Vec<u32> = sources.map(|s| s[row]).collect();
        format!(
            "{:?} {:?} {:?} {:?} {} {} {} {:?} {:?} {counts:?} {confidence:?} {sources:?}",
            xus.label_text(row, usize::MAX),
            xus.label_hash(row),
            xus.sites.get(xus.site[row] as usize),
            xus.construct[row],
            xus.thread[row],
            xus.first[row],
            xus.iterations[row],
            (xus.t0_ns[row], xus.t1_ns[row], xus.own_ns[row]),
            (xus.process[row], xus.cpu[row], xus.parts[row]),
        )
    };
    (0..xus.len()).map(row).collect()
}

/// Combined type by type from pieces of 37 rows, and everything at once.
fn both_ways(strategy: Strategy, inputs: &[(&str, Bytes)]) -> (Profile, Profile, usize) {
    let open = |bytes: &Bytes| Pieces::with_limit(bytes.clone(), 37).unwrap();
    let scanned: Vec<Scanned> = inputs
        .iter()
        .map(|(name, bytes)| open(bytes).scan(name).unwrap())
        .collect();
    let passes = passes(&scanned, 0);
    let (mut state, mut bytes) = (Passes::default(), vec![]);
    let mut writer = ProfileWriter::new(&mut bytes);
    for pass in &passes {
        let selected = inputs.iter().zip(&scanned).map(|((_, bytes), scanned)| {
            let (mut selection, mut pieces) = (pass.of(scanned), open(bytes));
            loop {
                let piece = pieces.read().unwrap();
                if piece.is_empty() {
                    return Ok::<_, BcError>(selection.finish());
                }
                selection.add(&piece);
            }
        });
        let combined = state.combine(strategy, selected).unwrap().unwrap();
        writer.write(&combined).unwrap();
    }
    writer.finish(&state.into_summary()).unwrap();

    let mut combiner = Combiner::new(strategy).with_sources();
    for (name, bytes) in inputs {
        combiner.add(match Profile::from_parquet(bytes.clone()) {
            Ok(profile) => profile,
            Err(ProfileError::NoSummary) => {
                Profile::of_table(name, XuTable::from_parquet(bytes.clone()).unwrap())
            }
            Err(_) => Profile::of_table(name, XuTable::from_csv(bytes).unwrap()),
        });
    }
    let at_once = combiner.finish().unwrap().unwrap();
    let at_once = Profile::from_parquet(at_once.to_parquet().unwrap()).unwrap();
    (Profile::from_parquet(bytes).unwrap(), at_once, passes.len())
}

fn check(strategy: Strategy, inputs: &[(&str, Bytes)]) {
    let (by_type, at_once, passes) = both_ways(strategy, inputs);
    assert!(passes > 1, "several types");
    assert!(!at_once.xus.is_empty());
    assert_eq!(by_type.summary, at_once.summary, "{}", strategy.name());
    assert_eq!(by_type.origins, at_once.origins);
    // Types one after the other, each in the order of labels.
    let mut expected = rows(&at_once);
    let mut found = rows(&by_type);
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected, "{}", strategy.name());
}

#[test]
fn the_same_as_all_types_at_once() {
    let files = |prefix: &str, numbers: &[&str]| -> Vec<(String, Bytes)> {
        numbers
            .iter()
            .map(|n| (format!("{prefix}{n}"), golden(&format!("{prefix}{n}.csv"))))
            .map(|(name, bytes)| (name, Bytes::from(bytes)))
            .collect()
    };
    let by_label = files("a_lgl_in_", &["1", "2", "3", "4"]);
    let chain = files("a_bc_in_", &["01", "02", "03", "04", "05"]);
    let named = |files: &'_ [(String, Bytes)]| -> Vec<(&'static str, Bytes)> {
        let leak = |name: &str| -> &'static str { name.to_owned().leak() };
        files.iter().map(|(n, b)| (leak(n), b.clone())).collect()
    };
    for strategy in [Strategy::Lgl, Strategy::Ctc] {
        check(strategy, &named(&by_label));
    }
    for strategy in [Strategy::Bc(Relax::Halve), Strategy::Joint, Strategy::Lgl] {
        check(strategy, &named(&chain));
    }
}

#[test]
fn profiles_of_runs_and_broken_labels() {
    let profile = |name: &str, events: &[&str], swap| {
        let mut profile = Profile::of_run(name, listing(events, swap).read());
        let order = profile.xus.labels.depth_first(&profile.xus.label);
        profile.xus.label[order[3] as usize] = crate::label::LabelId::NONE;
        profile.xus.site[order[5] as usize] = u32::MAX;
        Bytes::from(profile.to_parquet().unwrap())
    };
    let inputs = [
        ("a", profile("a", &["cycles"], false)),
        ("b", profile("b", &["instructions", "cycles"], true)),
    ];
    for strategy in [Strategy::Lgl, Strategy::Ctc] {
        check(strategy, &inputs);
    }
}

#[test]
fn what_fits_goes_together() {
    let input = Bytes::from(golden("a_lgl_in_1.csv"));
    let scanned = [Pieces::open(input.clone()).unwrap().scan("a").unwrap()];
    let types = scanned[0].types.len();
    assert_eq!(passes(&scanned, 0).len(), types);
    assert_eq!(passes(&scanned, u64::MAX / 2).len(), 1);
    let largest = scanned[0].types.values().max().unwrap();
    let two = passes(&scanned, 5 * largest * (ROW + COUNT * 5)).len();
    assert!(two < types, "{two} of {types}");
    assert!(need(&input).unwrap() > input.len() as u64);
}

#[test]
fn broken_files_are_refused() {
    assert!(Pieces::open(Bytes::from_static(b"PAR1 no")).is_err());
    assert!(need(&Bytes::from_static(b"PAR1 no")).is_err());
    assert!(Pieces::open(Bytes::from_static(b"a,b\n1,2\n")).is_err());
    let late = "type,label,thread,t0_ns,t1_ns,E\n".to_owned()
        + &"1,0.1,0,0,0,1\n".repeat(50)
        + "1,0.1,0,0,0,x\n";
    let error = Pieces::with_limit(late.into(), 37).unwrap().scan("late");
    let error = error.unwrap_err().to_string();
    assert_eq!(
        error,
        "line 52: \"x\" in column E, where a count (a whole number from 0 on) or nothing belongs"
    );
}
