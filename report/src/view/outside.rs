//! What is in no region: rows beside those of the regions.

use ompfuse_account::model::{Report, State};

/// Seconds, class for colours, name and place.
pub(crate) type Row = (f64, &'static str, &'static str, &'static str);

/// From this share on it is said what no row has.
const SHOWN: f64 = 0.001;

/// The rows, of the account where there is one.
pub(crate) fn outside(report: &Report) -> Vec<Row> {
    let Some(account) = &report.account else {
        let serial = &report.serial;
        return vec![
            (serial.program_s, "serial", "serial", "outside constructs"),
            (serial.idle_s, "idle", "idle", "between regions"),
            (serial.unknown_s, "unknown", "unknown", "unknown place"),
        ];
    };
    let ns = |state: State| account.ns(state);
    // Functions and loops outside of regions have rows of their own, as calls have.
    let serial = account.parts(State::Serial).iter();
    let serial = serial.filter(|p| p.region.is_none()).map(|p| p.ns).sum();
    let rows = [
        (serial, "serial", "serial", "outside constructs"),
        (ns(State::IdleSerial), "idle", "idle", "beside serial code"),
        (ns(State::IdleCommunication), "idle", "idle", "beside MPI"),
        (ns(State::IdleTeam), "idle", "idle", "beside smaller teams"),
        (ns(State::Unknown), "unknown", "unknown", "not on record"),
    ];
    let row = |(ns, class, name, place)| (ns as f64 * 1e-9, class, name, place);
    let mut rows: Vec<Row> = rows.into_iter().map(row).collect();
    // Threads that are being started have no record yet, and what was left out of a recording has sums only.
    let told = report
        .regions
        .iter()
        .map(|r| r.time_s)
        .chain(rows.iter().map(|r| r.0));
    let all_s = account.available_ns as f64 * 1e-9;
    let rest = all_s - told.sum::<f64>();
    if rest > SHOWN * all_s {
        rows.push((rest, "manage", "other", "starting, left out"));
    }
    rows
}
