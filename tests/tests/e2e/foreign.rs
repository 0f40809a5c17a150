//! Tables of other recorders, with the gaps that these have.

use ompfuse_tests::{command, schema};
use std::path::{Path, PathBuf};

/// A table of so many execution units, with counts as a function of the row.
fn table(folder: &Path, name: &str, events: &str, counts: impl Fn(u64) -> String) -> PathBuf {
    let row = |n: u64| format!("7,0.{n},0,{},{},{}\n", 10 * n, 10 * n + 9, counts(n));
    let text = format!("type,label,thread,t0_ns,t1_ns,{events}\n")
        + &(0..100).map(row).collect::<String>();
    let path = folder.join(name);
    std::fs::write(&path, text).expect("there is room");
    path
}

#[test]
fn gaps_in_shared_events_lose_no_labelled_unit() {
    let folder = tempfile::tempdir().expect("there is room");
    let one = table(folder.path(), "one.csv", "A,B", |n| match n % 2 {
        0 => format!("{},{}", n * n, n),
        _ => format!(",{n}"),
    });
    let two = table(folder.path(), "two.csv", "A,C", |n| {
        format!("{},{}", n * n, 3 * n)
    });
    for strategy in [&[][..], &["--strategy", "lgl"]] {
        let out = folder.path().join("both.parquet");
        let args = [Path::new("combine"), &one, &two, Path::new("-o"), &out].map(Path::as_os_str);
        let said = command::ok(args.into_iter().chain(strategy.iter().map(|s| s.as_ref())));
        assert!(said.text().contains(": 100 execution units"), "{said:?}");
    }
}

/// A unit that only one table has is told with the reason, as a value and as a sentence.
#[test]
fn units_that_match_none_are_told_with_the_reason() {
    let folder = tempfile::tempdir().expect("there is room");
    let one = table(folder.path(), "one.csv", "A", |n| n.to_string());
    let two = folder.path().join("two.csv");
    let text = std::fs::read_to_string(table(folder.path(), "all.csv", "B", |n| n.to_string()));
    let text = text
        .expect("it was written")
        .replace("7,0.99,", "7,0.1234,");
    std::fs::write(&two, text).expect("there is room");
    let out = folder.path().join("both.parquet");
    command::ok([Path::new("combine"), &one, &two, Path::new("-o"), &out]);
    let report = schema::checked(&out);
    let unmatched = report["unmatched"].as_array().expect("a list");
    let told: Vec<_> = unmatched
        .iter()
        .map(|u| (&u["run"], &u["because"], &u["reason"]))
        .collect();
    let absent = |run: u16| serde_json::json!({"kind": "absent", "run": run});
    assert_eq!(
        told,
        [
            (
                &1.into(),
                &absent(2),
                &"run 2 has none with the same label".into()
            ),
            (
                &2.into(),
                &absent(1),
                &"run 1 has none with the same label".into()
            ),
        ]
    );
}

/// What is missing in a unit may have happened there.
#[test]
fn what_is_unknown_is_not_never() {
    let folder = tempfile::tempdir().expect("there is room");
    let gaps = table(folder.path(), "gaps.csv", "A,B,C", |n| match n {
        0 => ",0,7".to_owned(),
        n => format!("{n},0,7"),
    });
    let report = command::ok([Path::new("report"), &gaps]);
    let never = report
        .text()
        .lines()
        .filter(|l| l.contains("never"))
        .map(str::to_owned)
        .collect::<Vec<_>>();
    assert_eq!(never.len(), 1, "{report:?}");
    assert!(
        never[0].contains('B') && !never[0].contains('A'),
        "{never:?}"
    );
}

#[test]
fn events_that_references_lack_are_named() {
    let folder = tempfile::tempdir().expect("there is room");
    let all = |n: u64| format!("{},{},{}", n, n * n % 17, n % 5);
    let few = |n: u64| format!("{},{}", n, n * n % 17);
    let profile = table(folder.path(), "profile.csv", "A,B,C", all);
    let one = table(folder.path(), "one.csv", "A,B,C", all);
    let two = table(folder.path(), "two.csv", "A,B", few);
    let evaluate = |more: &[&str]| {
        let args = [
            Path::new("evaluate"),
            &profile,
            Path::new("--reference"),
            &one,
            &two,
        ]
        .map(Path::as_os_str);
        args.into_iter()
            .chain(more.iter().map(|s| s.as_ref()))
            .map(ToOwned::to_owned)
            .collect::<Vec<_>>()
    };
    let text = command::ok(evaluate(&[]));
    assert!(
        text.text()
            .contains("Not evaluated, since a reference did not count them: C\n"),
        "{text:?}"
    );
    let json = command::json(evaluate(&["--format", "json"]));
    assert_eq!(json["not_evaluated"], serde_json::json!(["C"]));
}

/// A plan names every event that it has no place for.
#[test]
fn plans_drop_nothing_silently() {
    let plan = ["plan", "--simulate", "--slots", "1", "--strategy", "bc"];
    let wanted = ["--events", "sim-loads,sim-stores,sim-calls"];
    let text = command::ok(plan.into_iter().chain(wanted));
    assert!(
        text.text().contains("left out, as bc shares events"),
        "{text:?}"
    );
    let json = command::json(plan.into_iter().chain(wanted).chain(["--format", "json"]));
    let left_out = json["left_out"].as_array().expect("a list").len();
    let planned = json["sets"].as_array().expect("a list").iter();
    let planned: usize = planned.map(|s| s.as_array().expect("a set").len()).sum();
    assert_eq!((planned, left_out), (1, 2), "{json}");
}
