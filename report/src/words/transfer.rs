//! Bytes that calls of MPI handed over.

use ompfuse_account::model::Transfer;
use ompfuse_account::units::{bytes, count, seconds};

/// What left.
pub(crate) fn left(transfer: &Transfer) -> String {
    match (transfer.bytes_out, transfer.unknown_calls) {
        (0, n) if n > 0 => "not known".to_owned(),
        (0, _) => "0".to_owned(),
        (out, _) => bytes(out),
    }
}

/// What came: what is known, and the bound of the rest.
pub(crate) fn came(transfer: &Transfer) -> String {
    let most = format!("≤ {}", bytes(transfer.bytes_at_most));
    match (transfer.bytes_in, transfer.bounded_calls) {
        (0, 0) if transfer.unknown_calls > 0 => "not known".to_owned(),
        (0, 0) => "0".to_owned(),
        (known, 0) => bytes(known),
        (0, _) => most,
        (known, _) => format!("{} + {most}", bytes(known)),
    }
}

/// A mean number of bytes.
pub(crate) fn mean(mean: Option<f64>) -> String {
    mean.map_or_else(|| "-".to_owned(), |b| bytes(b.round() as u64))
}

/// Receives that waited for the sender: how many of how many, and how long. `None`: none did.
pub(crate) fn late_sender(transfer: &Transfer) -> Option<String> {
    let late = transfer.late_sender.filter(|l| l.late > 0)?;
    Some(format!(
        "{} of {}, {}",
        count(late.late),
        count(late.receives),
        seconds(late.late_s)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_said() {
        let known = Transfer {
            bytes_in: 800,
            ..Transfer::default()
        };
        assert_eq!((left(&known), came(&known)), ("0".into(), "800 B".into()));
        let bounded = Transfer {
            bounded_calls: 1,
            bytes_at_most: 4_000_000,
            ..known
        };
        assert_eq!(came(&bounded), "800 B + ≤ 4.0 MB");
        let unknown = Transfer {
            unknown_calls: 1,
            ..Transfer::default()
        };
        assert_eq!(came(&unknown), "not known");
    }
}
