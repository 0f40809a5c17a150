//! What the kernel writes into a ring (perf_event_open(2)), as far as it is wanted.

use ompfuse_format::samples::{Mapping, SampleRecord, Switch};

/// Bytes behind every record but a sample: process and thread, time. A sample has the address, then these, registers, the stack.
const BEHIND: usize = 16;

/// Kinds of records (`enum perf_event_type`).
const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const FORK: u32 = 7;
pub(super) const SAMPLE: u32 = 9;
const MMAP2: u32 = 10;
const LOST_SAMPLES: u32 = 13;
const SWITCH: u32 = 14;

/// A program was executed (of [`COMM`]).
const IS_EXEC: u16 = 1 << 13;
/// A thread lost its processor (of [`SWITCH`]), and would have gone on.
const IS_OUT: u16 = 1 << 13;
const IS_PREEMPTED: u16 = 1 << 14;

/// The frame pointer, the stack pointer, the instruction: of the registers the kernel writes these, in this order (`enum
/// perf_event_x86_regs`).
pub(super) const REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;

/// A thread's registers at a sample, and what lies on its stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    /// The instruction that was next.
    pub(super) ip: u64,
    pub(super) sp: u64,
    pub(super) bp: u64,
    /// From the stack pointer on, as much as was copied.
    pub(super) stack: &'a [u8],
}

/// A thread that was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Looked<'a> {
    pub(super) raw_ns: u64,
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) frame: Frame<'a>,
}

/// What a record says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Met<'a> {
    /// A sample.
    Looked(Looked<'a>),
    /// To be kept.
    Record(SampleRecord<'a>),
    /// A thread began; a process, where it is to be kept.
    Began(Option<SampleRecord<'a>>),
    /// A thread ended: its process and number.
    Ended((u32, u32)),
    /// Nothing of interest.
    Other,
}

/// Reads a record's body. What is too short is nothing of interest: the kernel writes none.
pub(super) fn read(kind: u32, misc: u16, body: &[u8]) -> Met<'_> {
    known(kind, misc, body).unwrap_or(Met::Other)
}

fn known(kind: u32, misc: u16, body: &[u8]) -> Option<Met<'_>> {
    let behind = body.len().checked_sub(BEHIND);
    let raw_ns = || word(body, behind? + 8);
    Some(match kind {
        SAMPLE => Met::Looked(Looked {
            pid: half(body, 8)?,
            tid: half(body, 12)?,
            raw_ns: word(body, 16)?,
            frame: frame(word(body, 0)?, body.get(24..).unwrap_or_default()),
        }),
        MMAP2 => {
            let path = body.get(64..behind?)?;
            let end = path.iter().position(|&b| b == 0).unwrap_or(path.len());
            Met::Record(SampleRecord::Mapping(Mapping {
                raw_ns: raw_ns()?,
                pid: half(body, 0)?,
                begin: word(body, 8)?,
                size: word(body, 16)?,
                offset: word(body, 24)?,
                path: &path[..end],
            }))
        }
        COMM if misc & IS_EXEC != 0 => Met::Record(SampleRecord::Exec {
            raw_ns: raw_ns()?,
            pid: half(body, 0)?,
        }),
        FORK => {
            let (pid, parent) = (half(body, 0)?, half(body, 4)?);
            let raw_ns = word(body, 16)?;
            let fork = SampleRecord::Fork {
                raw_ns,
                pid,
                parent,
            };
            // A thread's process is that of its creator.
            Met::Began((pid != parent).then_some(fork))
        }
        EXIT => Met::Ended((half(body, 0)?, half(body, 8)?)),
        LOST => Met::Record(SampleRecord::Lost {
            raw_ns: raw_ns()?,
            count: word(body, 8)?,
        }),
        LOST_SAMPLES => Met::Record(SampleRecord::Lost {
            raw_ns: raw_ns()?,
            count: word(body, 0)?,
        }),
        SWITCH => Met::Record(SampleRecord::Switch(Switch {
            raw_ns: raw_ns()?,
            pid: half(body, behind?)?,
            tid: half(body, behind? + 4)?,
            is_out: misc & IS_OUT != 0,
            is_preempted: misc & IS_OUT != 0 && misc & IS_PREEMPTED != 0,
        })),
        _ => Met::Other,
    })
}

/// `rest`: registers and stack, where there are such.
fn frame(ip: u64, rest: &[u8]) -> Frame<'_> {
    let read = || {
        /// Registers of a 64-bit program (`PERF_SAMPLE_REGS_ABI_64`).
        const IS_64: u64 = 2;
        let (abi, bp, sp) = (word(rest, 0)?, word(rest, 8)?, word(rest, 16)?);
        let copied = rest.get(40..).filter(|_| abi == IS_64)?;
        let len = usize::try_from(word(rest, 32)?).ok()?;
        // Behind it stands how much of it was there.
        let used = usize::try_from(word(copied, len)?).ok()?;
        let stack = copied.get(..len.min(used))?;
        Some(Frame { ip, sp, bp, stack })
    };
    read().unwrap_or(Frame {
        ip,
        sp: 0,
        bp: 0,
        stack: &[],
    })
}

fn half(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*bytes))
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(parts: &[&[u8]]) -> Vec<u8> {
        parts.concat()
    }

    #[test]
    fn records_of_the_kernel() {
        let (one, two) = (7u32.to_ne_bytes(), 8u32.to_ne_bytes());
        let (address, time) = (0x40_1000u64.to_ne_bytes(), 5u64.to_ne_bytes());
        let words = |words: &[u64]| {
            words
                .iter()
                .flat_map(|w| w.to_ne_bytes())
                .collect::<Vec<_>>()
        };
        let looked = |sp, bp, stack| {
            Met::Looked(Looked {
                raw_ns: 5,
                pid: 7,
                tid: 8,
                frame: Frame {
                    ip: 0x40_1000,
                    sp,
                    bp,
                    stack,
                },
            })
        };
        let with = |rest: &[u64]| body(&[&address, &one, &two, &time, &words(rest)]);
        let bare = with(&[]);
        assert_eq!(read(SAMPLE, 0, &bare), looked(0, 0, &[]));
        // Registers, the stack's size, the stack, what of it is used.
        let whole = with(&[2, 70, 80, 0x40_1000, 16, 1, 2, 8]);
        let used = words(&[1]);
        assert_eq!(read(SAMPLE, 0, &whole), looked(80, 70, &used));
        // Of a program of 32 bits, and of code of the kernel.
        for rest in [&[1, 70, 80, 0x40_1000, 8, 1, 8][..], &[0, 0]] {
            assert_eq!(read(SAMPLE, 0, &with(rest)), looked(0, 0, &[]));
        }
        let switch = body(&[&one, &two, &time]);
        let Met::Record(SampleRecord::Switch(switch)) = read(SWITCH, IS_OUT, &switch) else {
            panic!("a switch");
        };
        assert!(switch.is_out && !switch.is_preempted && switch.tid == 8);
        let thread = body(&[&one, &one, &two, &one, &time, &one, &two, &time]);
        assert_eq!(read(FORK, 0, &thread), Met::Began(None));
        let path = b"/lib/x\0\0";
        let mapping = body(&[
            &one, &two, &address, &time, &time, &[0; 32], path, &one, &two, &time,
        ]);
        let Met::Record(SampleRecord::Mapping(mapping)) = read(MMAP2, 0, &mapping) else {
            panic!("a mapping");
        };
        assert_eq!((mapping.path, mapping.raw_ns), (&b"/lib/x"[..], 5));
        for kind in 0..20 {
            assert_eq!(read(kind, 0, &[]), Met::Other, "{kind}");
        }
    }
}
