//! What calls of MPI handed over.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes that calls of MPI handed over, by their arguments: number of elements times size of the datatype. What a collective
/// operation sends inside of MPI is another matter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Transfer {
    /// Number of recorded calls.
    pub calls: u64,
    /// Bytes that they handed over for other ranks, or wrote to files.
    pub bytes_out: u64,
    /// Bytes that they received or read, where that is known.
    pub bytes_in: u64,
    /// Number of calls that don't tell how much they received: the program ignores the status, or the call returns before.
    pub bounded_calls: u64,
    /// Bytes that the `bounded_calls` had room for: an upper bound, not in `bytes_in`.
    pub bytes_at_most: u64,
    /// Number of calls of which no bytes are known.
    pub unknown_calls: u64,
    /// Number of calls that handed over something. With `--units sums`: all calls of threads that did.
    pub calls_out: u64,
    /// Number of calls that are known to have received something, likewise.
    pub calls_in: u64,
    /// `bytes_out / calls_out`: the mean size of a message; null if nothing left.
    pub mean_out: Option<f64>,
    /// `bytes_in / calls_in`; null if nothing is known to have come.
    pub mean_in: Option<f64>,
    /// Receives that began before their message was sent; null if no receive and message
    /// were matched. They aren't with `--units sums`.
    pub late_sender: Option<LateSender>,
}

/// Blocking receives (`MPI_Recv`, `MPI_Sendrecv`) that wait for the sender. They are matched with the calls that sent the message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LateSender {
    /// Number of receives whose message was found.
    pub receives: u64,
    /// Number of those that began before the call that sent the message.
    pub late: u64,
    /// Time from their begins until those calls began, in seconds.
    pub late_s: f64,
}

impl Transfer {
    /// Adds another one's numbers.
    pub(crate) fn add(&mut self, more: &Transfer) {
        let Transfer {
            calls,
            bytes_out,
            bytes_in,
            bounded_calls,
            bytes_at_most,
            unknown_calls,
            calls_out,
            calls_in,
            mean_out: _,
            mean_in: _,
            late_sender,
        } = more;
        self.calls += calls;
        self.bounded_calls += bounded_calls;
        self.unknown_calls += unknown_calls;
        self.calls_out += calls_out;
        self.calls_in += calls_in;
        for (sum, more) in [
            (&mut self.bytes_out, bytes_out),
            (&mut self.bytes_in, bytes_in),
            (&mut self.bytes_at_most, bytes_at_most),
        ] {
            *sum = sum.saturating_add(*more);
        }
        if let Some(more) = late_sender {
            let LateSender {
                receives,
                late,
                late_s,
            } = more;
            let sum = self.late_sender.get_or_insert_default();
            sum.receives += receives;
            sum.late += late;
            sum.late_s += late_s;
        }
        let mean = |bytes: u64, calls: u64| (calls > 0).then(|| bytes as f64 / calls as f64);
        self.mean_out = mean(self.bytes_out, self.calls_out);
        self.mean_in = mean(self.bytes_in, self.calls_in);
    }

    /// The sum of some.
    pub(crate) fn sum<'t>(all: impl Iterator<Item = &'t Transfer>) -> Option<Transfer> {
        all.fold(None, |sum, more| {
            let mut sum = sum.unwrap_or_default();
            sum.add(more);
            Some(sum)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_of_calls_that_hand_over_something() {
        let one = Transfer {
            calls: 10,
            bytes_out: 80,
            bytes_in: 20,
            calls_out: 8,
            calls_in: 4,
            ..Transfer::default()
        };
        let sum = Transfer::sum([one, one].iter()).expect("there are two");
        assert_eq!((sum.mean_out, sum.mean_in), (Some(10.0), Some(5.0)));
        assert_eq!(Transfer::sum([].iter()), None);
    }
}
