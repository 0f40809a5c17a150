//! What is in no region: rows beside those of the regions.

use crate::model::{Report, State};

/// Seconds, class for colours, name and place.
pub(crate) type Row = (f64, &'static str, &'static str, &'static str);

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
    let rows = [
        (State::Serial, "serial", "serial", "outside constructs"),
        (State::IdleSerial, "idle", "idle", "beside serial code"),
        (State::IdleCommunication, "idle", "idle", "beside MPI"),
        (State::IdleTeam, "idle", "idle", "beside smaller teams"),
        (State::Unknown, "unknown", "unknown", "not on record"),
    ];
    let row = |(state, class, name, place)| (account.ns(state) as f64 * 1e-9, class, name, place);
    rows.into_iter().map(row).collect()
}
