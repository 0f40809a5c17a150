//! From values to bytes.

use super::*;

/// Appends a file's header.
pub fn encode_header(header: &SamplesHeader, out: &mut Vec<u8>) {
    let flags = if header.has_tsc { HAS_TSC } else { 0 };
    out.extend_from_slice(&MAGIC);
    for word in [VERSION, HEADER_LEN as u32, header.pid, flags] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    out.extend_from_slice(&header.period_ns.to_le_bytes());
}

/// Appends a record. Of a sample the innermost [`MAX_FRAMES`] addresses are kept, of a path what fits.
pub fn encode_record(record: &SampleRecord<'_>, out: &mut Vec<u8>) {
    match record {
        SampleRecord::Clock(pair) => put(out, (KIND_CLOCK, 0), 0, &[pair.tsc, pair.raw_ns], &[]),
        SampleRecord::Sample(s) => stack(out, KIND_SAMPLE, s, &[]),
        SampleRecord::Stop(stop) => {
            let call = stop.call.map_or(NO_CALL, u64::from);
            stack(out, KIND_STOP, &stop.sample, &[call]);
        }
        SampleRecord::Mapping(m) => {
            let path = &m.path[..m.path.len().min(MAX_PATH)];
            let words = [m.raw_ns, m.begin, m.size, m.offset];
            put(out, (KIND_MAPPING, 0), m.pid, &words, path);
        }
        SampleRecord::Fork {
            raw_ns,
            pid,
            parent,
        } => {
            put(
                out,
                (KIND_FORK, 0),
                *pid,
                &[*raw_ns, u64::from(*parent)],
                &[],
            );
        }
        SampleRecord::Exec { raw_ns, pid } => put(out, (KIND_EXEC, 0), *pid, &[*raw_ns], &[]),
        SampleRecord::Switch(s) => {
            let flags = flag(s.is_out, IS_OUT) | flag(s.is_preempted, IS_PREEMPTED);
            let words = [s.raw_ns, u64::from(s.pid)];
            put(out, (KIND_SWITCH, flags), s.tid, &words, &[]);
        }
        SampleRecord::Lost { raw_ns, count } => {
            put(out, (KIND_LOST, 0), 0, &[*raw_ns, *count], &[]);
        }
        SampleRecord::Closed(c) => {
            let because = match c.because {
                TooMuch::Switches => 0,
                TooMuch::Threads => OF_THREADS,
                TooMuch::Events => OF_EVENTS,
                TooMuch::Bytes => OF_BYTES,
            };
            put(out, (KIND_CLOSED, because), 0, &[c.raw_ns, c.amount], &[]);
        }
    }
}

fn stack(out: &mut Vec<u8>, kind: u8, s: &Sample, before: &[u64]) {
    let kept = &s.addresses[..s.addresses.len().min(MAX_FRAMES)];
    let is_whole = s.is_whole && kept.len() == s.addresses.len();
    let words = [&[s.raw_ns, u64::from(s.pid)], before, kept].concat();
    put(out, (kind, flag(is_whole, IS_WHOLE)), s.tid, &words, &[]);
}

/// No path in a record is longer; the kernel's are shorter.
const MAX_PATH: usize = 8192;

fn flag(is_set: bool, flag: u8) -> u8 {
    if is_set { flag } else { 0 }
}

fn put(out: &mut Vec<u8>, (kind, flags): (u8, u8), of: u32, words: &[u64], text: &[u8]) {
    // Of text there is a zero behind it, and it fills words.
    let rest = match text {
        [] => 0,
        text => (text.len() / 8 + 1) * 8,
    };
    let len = 8 * (1 + words.len()) + rest;
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&(len as u16).to_le_bytes());
    out.extend_from_slice(&of.to_le_bytes());
    words
        .iter()
        .for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
    out.extend_from_slice(text);
    out.extend(std::iter::repeat_n(0, rest - text.len()));
}
