//! What must be true of the account of time in every report: it adds up, and all views follow from it. Computed anew from the JSON.

use serde_json::Value;

/// Shares and sums of seconds are rounded in their last digits.
const ROUNDED: f64 = 1e-9;

fn integer(value: &Value, key: &str) -> u64 {
    value[key]
        .as_u64()
        .unwrap_or_else(|| panic!("{key} of {value}"))
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// Checks a report. `what`: whose it is, for messages.
#[track_caller]
pub fn check(what: &str, report: &Value) {
    let account = &report["account"];
    if account.is_null() {
        return; // of a foreign table nothing is known of the program's time
    }
    let available = integer(account, "available_ns");
    let states = list(account, "states");
    let of_states: u64 = states.iter().map(|s| integer(s, "ns")).sum();
    assert_eq!(of_states, available, "{what}: states add up: {account}");
    let mut lost = 0;
    for state in states {
        let parts = list(state, "parts").iter().map(|p| integer(p, "ns"));
        assert_eq!(parts.sum::<u64>(), integer(state, "ns"), "{what}: {state}");
        share(
            what,
            &state["share"],
            integer(state, "ns") as f64 / available.max(1) as f64,
        );
        let is_lost = !["useful", "serial", "unknown"]
            .iter()
            .any(|s| state["state"] == *s);
        lost += if is_lost { integer(state, "ns") } else { 0 };
    }
    let processes = list(account, "processes");
    if !processes.is_empty() {
        let sum: u64 = processes.iter().map(|p| integer(p, "available_ns")).sum();
        assert_eq!(sum, available, "{what}: processes add up");
        for process in processes {
            let states = list(process, "states").iter();
            let sum: u64 = states.map(|s| s[1].as_u64().expect("nanoseconds")).sum();
            assert_eq!(sum, integer(process, "available_ns"), "{what}: {process}");
        }
    }
    let available_s = available as f64 * 1e-9;
    near(what, &report["available_s"], available_s);
    near(what, &report["losses_of_s"], available_s);
    // Useful time without a processor is no state.
    let lost_s = report["lost_s"]
        .as_f64()
        .expect("known where the account is");
    assert!(
        lost_s >= lost as f64 * 1e-9 - ROUNDED,
        "{what}: {lost_s} s lost, states {lost} ns"
    );
    assert!(
        lost_s <= available_s + ROUNDED,
        "{what}: {lost_s} s of {available_s} lost"
    );
    let losses = list(report, "losses");
    let told: f64 = losses
        .iter()
        .map(|l| l["seconds"].as_f64().expect("seconds"))
        .sum();
    assert!(
        told <= lost_s * (1.0 + 1e-9) + ROUNDED,
        "{what}: causes have {told} s of {lost_s}"
    );
    for loss in losses {
        let seconds = loss["seconds"].as_f64().expect("seconds");
        share(what, &loss["share"], seconds / available_s);
    }
    let efficiencies = account["efficiencies"].as_object();
    for (name, value) in efficiencies.into_iter().flatten() {
        if let Some(value) = value.as_f64() {
            assert!(
                (0.0..=1.0 + 1e-6).contains(&value),
                "{what}: {name} is {value}"
            );
        }
    }
    if let Some(e) = efficiencies
        && let (Some(balance), Some(scheduling)) =
            (e["load_balance"].as_f64(), e["scheduling"].as_f64())
    {
        let product = e["serialization"].as_f64().expect("known") * balance * scheduling;
        near(what, &e["openmp"], product);
    }
    for region in list(report, "regions") {
        let seconds = region["time_s"].as_f64().expect("seconds");
        share(
            what,
            &region["of_available"],
            seconds / available_s.max(f64::MIN_POSITIVE),
        );
    }
    for key in ["coverage", "serial_share"] {
        if let Some(value) = report[key].as_f64() {
            assert!((0.0..=1.0).contains(&value), "{what}: {key} is {value}");
        }
    }
}

#[track_caller]
fn near(what: &str, found: &Value, expected: f64) {
    let found = found.as_f64().unwrap_or_else(|| panic!("{what}: {found}"));
    let off = (found - expected).abs();
    assert!(
        off <= ROUNDED + 1e-9 * expected.abs(),
        "{what}: {found}, not {expected}"
    );
}

#[track_caller]
fn share(what: &str, found: &Value, expected: f64) {
    near(what, found, expected);
    let found = found.as_f64().expect("a number");
    assert!(
        (0.0..=1.0 + 1e-6).contains(&found),
        "{what}: a share of {found}"
    );
}
