//! What calls of MPI handed over, by place and thread; and receives that began before their message was sent.
//!
//! The n-th message from one rank to another with one tag in one communicator is received by the n-th receive of such
//! (MPI 4.0, section 3.5). So sends and receives are matched by their order, but only where both sides have equally many on
//! record. Times of two ranks can be compared if their clocks are one; a message that comes before it is sent tells that
//! they aren't.

use super::clock::Clock;
use super::rows::Places;
use super::survey::Surveyed;
use ompfuse_format::record::message::{ALL_RANKS, Message, Partner};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// What the calls at one place handed over, of one thread.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageStat {
    /// Position in the sites.
    pub site: u32,
    /// Position in the processes.
    pub process: u16,
    /// Number of the thread in its process.
    pub thread: u32,
    /// Calls.
    pub calls: u64,
    /// Those whose bytes in are only known to be no more than `bytes_at_most`.
    pub bounded: u64,
    /// Those of which nothing is known.
    pub unknown: u64,
    /// Those that are known to have handed over something, and to have received something. Where only sums were recorded: all calls
    /// of a thread that has.
    pub sending: u64,
    /// See `sending`.
    pub receiving: u64,
    /// Bytes that left.
    pub bytes_out: u64,
    /// Bytes that came.
    pub bytes_in: u64,
    /// Bytes that the `bounded` calls had room for.
    pub bytes_at_most: u64,
    /// Of blocking receives, those whose message was found: `None` where no two ranks' times can be compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched: Option<Matched>,
}

/// Blocking receives whose messages were found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Matched {
    /// How many.
    pub receives: u64,
    /// Those that began before their message was sent.
    pub late: u64,
    /// Time that these waited until then, in nanoseconds.
    pub late_ns: u64,
}

/// When a process was in operations of all ranks that none of them can leave before the last one has come.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meetings {
    /// Position in the processes.
    pub process: u16,
    /// Such operations.
    pub all: u64,
    /// Some of them, the same ones on all ranks: number from 0, when it came and when it left, in nanoseconds of its host's
    /// `CLOCK_MONOTONIC`.
    pub times: Vec<(u64, i64, i64)>,
}

/// Meetings that are kept of a process.
const KEPT: u64 = 64;

/// A thread's messages.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    sums: HashMap<u32, Sum>,
    /// Ticks at the begin and end of meetings.
    meetings: Vec<(u64, u64)>,
    with_partners: Vec<(u32, Partner)>,
    /// There were more of them than are kept.
    is_cut: bool,
}

#[derive(Debug, Default)]
struct Sum {
    calls: u64,
    bounded: u64,
    unknown: u64,
    sending: u64,
    receiving: u64,
    bytes: [u64; 3],
}

/// Messages with partners that are kept of a thread, which takes 48 MB.
const MOST: usize = 1 << 20;

impl Messages {
    /// Takes in a record.
    pub(super) fn add(&mut self, m: &Message) {
        if let Some(all) = m.partner.filter(|p| p.rank == ALL_RANKS) {
            match self.meetings.len() {
                MOST => self.is_cut = true,
                _ => self.meetings.push((all.t0, all.t1)),
            }
        }
        if m.calls == 0 && m.partner.is_none_or(|p| p.rank == ALL_RANKS) {
            return;
        }
        let sum = self.sums.entry(m.site).or_default();
        sum.calls += u64::from(m.calls);
        sum.bounded += u64::from(m.bounded);
        sum.unknown = sum.unknown.saturating_add(m.unknown);
        let known = u64::from(m.calls).saturating_sub(m.unknown);
        if m.bytes_out > 0 {
            sum.sending += known;
        }
        if m.bytes_in > 0 {
            sum.receiving += known.saturating_sub(m.bounded.into());
        }
        let more = [m.bytes_out, m.bytes_in, m.bytes_at_most];
        for (sum, more) in sum.bytes.iter_mut().zip(more) {
            *sum = sum.saturating_add(more);
        }
        match m.partner {
            None
            | Some(Partner {
                rank: ALL_RANKS, ..
            }) => {}
            Some(_) if self.with_partners.len() == MOST => self.is_cut = true,
            Some(partner) => self.with_partners.push((m.site, partner)),
        }
    }
}

/// A process of the run.
pub(super) struct OfProcess<'t, 'f> {
    pub(super) rank: Option<u32>,
    pub(super) clock: Clock,
    pub(super) threads: &'t [Surveyed<'f>],
    /// What records' sites are.
    pub(super) places: &'t Places,
}

/// A send or receive.
#[derive(Debug, Clone, Copy)]
struct Side {
    begin: i64,
    end: i64,
    is_blocking: bool,
    /// Position in the sums.
    stat: usize,
}

/// Clocks of one host agree to this, in nanoseconds: their rates are measured.
const PRECISION_NS: i64 = 20_000;

/// A run's messages, by place and thread. `is_one_host`: all ranks are on one, as far as is known.
pub(super) fn of_run(processes: &[OfProcess<'_, '_>], is_one_host: bool) -> Vec<MessageStat> {
    let mut stats = vec![];
    let mut sides: HashMap<(u32, u32, i32), [Vec<Side>; 2]> = HashMap::new();
    let mut is_whole = is_one_host;
    for (number, process) in (0..).zip(processes) {
        for thread in process.threads {
            let messages = &thread.messages;
            is_whole &= !messages.is_cut && thread.file.header.lost == 0;
            let mut of_site: HashMap<u32, usize> = HashMap::new();
            let mut sums: Vec<_> = messages.sums.iter().collect();
            sums.sort_by_key(|(site, _)| **site);
            for (&raw, sum) in sums {
                let Some(place) = process.places.get(&raw).copied().flatten() else {
                    continue;
                };
                of_site.insert(raw, stats.len());
                let [bytes_out, bytes_in, bytes_at_most] = sum.bytes;
                stats.push(MessageStat {
                    site: place.0,
                    process: number,
                    thread: thread.file.header.index,
                    calls: sum.calls,
                    bounded: sum.bounded,
                    unknown: sum.unknown,
                    sending: sum.sending,
                    receiving: sum.receiving,
                    bytes_out,
                    bytes_in,
                    bytes_at_most,
                    matched: None,
                });
            }
            for (site, p) in &messages.with_partners {
                let other = u32::try_from(p.rank).ok();
                let stat = of_site.get(site).copied();
                let (Some(own), Some(other), Some(stat)) = (process.rank, other, stat) else {
                    continue;
                };
                let (from, to) = if p.is_sent {
                    (own, other)
                } else {
                    (other, own)
                };
                let both = sides.entry((from, to, p.tag)).or_default();
                both[usize::from(!p.is_sent)].push(Side {
                    begin: process.clock.at(p.t0),
                    end: process.clock.at(p.t1),
                    is_blocking: p.is_blocking,
                    stat,
                });
            }
        }
    }
    if is_whole {
        add_late(sides.into_values(), &mut stats);
    }
    stats
}

/// The meetings of a run's processes. `run_begin_ns`: the time of the host that clocks count from.
pub(super) fn meetings_of(processes: &[OfProcess<'_, '_>], run_begin_ns: u64) -> Vec<Meetings> {
    let of_process = |(number, process): (u16, &OfProcess<'_, '_>)| {
        let is_whole = |t: &Surveyed<'_>| !t.messages.is_cut && t.file.header.lost == 0;
        if !process.threads.iter().all(is_whole) {
            return None; // they are known by their numbers
        }
        let threads = process.threads.iter();
        let mut found: Vec<(u64, u64)> = threads
            .flat_map(|t| &t.messages.meetings)
            .copied()
            .collect();
        found.sort_unstable();
        let all = found.len() as u64;
        let numbers = (0..KEPT.min(all)).map(|nth| match all <= KEPT {
            true => nth,
            false => nth * (all - 1) / (KEPT - 1),
        });
        let at = |tsc| process.clock.at(tsc).saturating_add_unsigned(run_begin_ns);
        let times = numbers.map(|number| {
            let (begin, end) = found[number as usize];
            (number, at(begin), at(end))
        });
        (all > 0).then(|| Meetings {
            process: number,
            all,
            times: times.collect(),
        })
    };
    (0..).zip(processes).filter_map(of_process).collect()
}

/// Matches sends and receives.
fn add_late(all: impl Iterator<Item = [Vec<Side>; 2]>, stats: &mut [MessageStat]) {
    let mut matched: HashMap<usize, Matched> = HashMap::new();
    for [mut sends, mut receives] in all {
        if sends.len() != receives.len() {
            continue;
        }
        sends.sort_by_key(|s| s.begin);
        receives.sort_by_key(|r| r.begin);
        for (send, receive) in sends.iter().zip(&receives) {
            if !receive.is_blocking {
                continue;
            }
            if receive.end < send.begin.saturating_sub(PRECISION_NS) {
                return; // by these clocks it was there before it was sent
            }
            let wait = send.begin.min(receive.end).saturating_sub(receive.begin);
            let of_place = matched.entry(receive.stat).or_default();
            of_place.receives += 1;
            if let Some(wait) = u64::try_from(wait).ok().filter(|&wait| wait > 0) {
                of_place.late += 1;
                of_place.late_ns += wait;
            }
        }
    }
    for (stat, matched) in matched {
        stats[stat].matched = Some(matched);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(begin: i64, end: i64, stat: usize) -> Side {
        Side {
            begin,
            end,
            is_blocking: true,
            stat,
        }
    }

    fn late(all: Vec<[Vec<Side>; 2]>) -> Option<Matched> {
        let mut stats = vec![MessageStat::default(); 2];
        add_late(all.into_iter(), &mut stats);
        stats[1].matched
    }

    #[test]
    fn receives_wait_until_their_message_is_sent() {
        let sends = vec![side(900_000, 901_000, 0), side(500_000, 501_000, 0)];
        let receives = vec![side(100_000, 502_000, 1), side(950_000, 960_000, 1)];
        let expected = Matched {
            receives: 2,
            late: 1,
            late_ns: 400_000,
        };
        assert_eq!(late(vec![[sends, receives]]), Some(expected));
    }

    #[test]
    fn nothing_is_said_where_a_side_is_missing_or_clocks_differ() {
        let sends = vec![side(900_000, 901_000, 0)];
        let receives = vec![side(100_000, 502_000, 1), side(950_000, 960_000, 1)];
        assert_eq!(late(vec![[sends.clone(), receives.clone()]]), None);
        assert_eq!(late(vec![[sends, receives[..1].to_vec()]]), None);
    }
}
