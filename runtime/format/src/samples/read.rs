//! From bytes to values.

use super::*;

/// Why samples can't be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SamplesError {
    /// Shorter than its header, or no file of samples.
    #[error("not a file of samples of ompfuse")]
    NotSamples,
    /// Written by another version.
    #[error(
        "its samples have version {0}, and this ompfuse reads version {VERSION}: read them with the ompfuse that recorded them"
    )]
    Version(u32),
    /// A record that can't be, or the file ends in the midst of it.
    #[error("malformed record at byte {0}")]
    Malformed(usize),
}

/// A file of samples.
#[derive(Debug, Clone, Copy)]
pub struct SamplesFile<'a> {
    /// Its header.
    pub header: SamplesHeader,
    bytes: &'a [u8],
}

impl<'a> SamplesFile<'a> {
    /// Reads the header.
    ///
    /// # Errors
    /// [`SamplesError`] of what is no such file, or of another version.
    pub fn parse(bytes: &'a [u8]) -> Result<SamplesFile<'a>, SamplesError> {
        let head = bytes.get(..HEADER_LEN).ok_or(SamplesError::NotSamples)?;
        if head[..8] != MAGIC {
            return Err(SamplesError::NotSamples);
        }
        match half(head, 8) {
            VERSION => {}
            other => return Err(SamplesError::Version(other)),
        }
        let period_ns = word(head, 24);
        if half(head, 12) as usize != HEADER_LEN || period_ns == 0 {
            return Err(SamplesError::NotSamples);
        }
        let header = SamplesHeader {
            pid: half(head, 16),
            period_ns,
            has_tsc: half(head, 20) & HAS_TSC != 0,
        };
        Ok(SamplesFile { header, bytes })
    }

    /// The records, in the order of the file.
    pub fn records(&self) -> SampleRecords<'a> {
        SampleRecords {
            bytes: self.bytes,
            at: HEADER_LEN,
        }
    }
}

/// The records of a file of samples. Nothing follows an error.
#[derive(Debug, Clone)]
pub struct SampleRecords<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Iterator for SampleRecords<'a> {
    type Item = Result<SampleRecord<'a>, SamplesError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let at = self.at;
            let rest = self.bytes.get(at..).filter(|rest| !rest.is_empty())?;
            let malformed = SamplesError::Malformed(at);
            let Some(body) = body(rest) else {
                self.at = self.bytes.len();
                return Some(Err(malformed));
            };
            self.at += body.len();
            match read(body) {
                Some(Known::Record(record)) => return Some(Ok(record)),
                Some(Known::Other) => {}
                None => {
                    self.at = self.bytes.len();
                    return Some(Err(malformed));
                }
            }
        }
    }
}

enum Known<'a> {
    Record(SampleRecord<'a>),
    /// A kind of a later version.
    Other,
}

/// The bytes of the first record; `None`: they aren't all there.
fn body(rest: &[u8]) -> Option<&[u8]> {
    let len = usize::from(u16::from_le_bytes([*rest.get(2)?, *rest.get(3)?]));
    match len >= 8 && len.is_multiple_of(8) {
        true => rest.get(..len),
        false => None,
    }
}

fn read(body: &[u8]) -> Option<Known<'_>> {
    let (kind, flags, of) = (body[0], body[1], half(body, 4));
    let words = body.len() / 8 - 1;
    let at = |n: usize| word(body, 8 * (n + 1));
    let small = |n: usize| u32::try_from(at(n)).ok();
    let exactly = |n: usize| (words == n).then_some(());
    let at_least = |n: usize| (words >= n).then_some(());
    // Addresses from some word on.
    let stack = |from: usize| {
        at_least(from + 1)?;
        (words - from <= MAX_FRAMES).then_some(())?;
        Some(Sample {
            raw_ns: at(0),
            pid: small(1)?,
            tid: of,
            addresses: (from..words).map(at).collect(),
            is_whole: flags & IS_WHOLE != 0,
        })
    };
    Some(Known::Record(match kind {
        KIND_CLOCK => {
            exactly(2)?;
            SampleRecord::Clock(TscPair {
                tsc: at(0),
                raw_ns: at(1),
            })
        }
        KIND_SAMPLE => SampleRecord::Sample(stack(2)?),
        KIND_STOP => SampleRecord::Stop(Stop {
            sample: stack(3)?,
            call: match at(2) {
                NO_CALL => None,
                call => Some(u32::try_from(call).ok()?),
            },
        }),
        KIND_MAPPING => {
            at_least(4)?;
            let path = &body[40..];
            let end = path.iter().position(|&b| b == 0).unwrap_or(path.len());
            at(1).checked_add(at(2))?;
            SampleRecord::Mapping(Mapping {
                raw_ns: at(0),
                pid: of,
                begin: at(1),
                size: at(2),
                offset: at(3),
                path: &path[..end],
            })
        }
        KIND_FORK => {
            exactly(2)?;
            SampleRecord::Fork {
                raw_ns: at(0),
                pid: of,
                parent: small(1)?,
            }
        }
        KIND_EXEC => {
            exactly(1)?;
            SampleRecord::Exec {
                raw_ns: at(0),
                pid: of,
            }
        }
        KIND_SWITCH => {
            exactly(2)?;
            SampleRecord::Switch(Switch {
                raw_ns: at(0),
                pid: small(1)?,
                tid: of,
                is_out: flags & IS_OUT != 0,
                is_preempted: flags & IS_PREEMPTED != 0,
            })
        }
        KIND_LOST => {
            exactly(2)?;
            SampleRecord::Lost {
                raw_ns: at(0),
                count: at(1),
            }
        }
        KIND_CLOSED => {
            exactly(2)?;
            SampleRecord::Closed(Closed {
                raw_ns: at(0),
                amount: at(1),
                because: match flags {
                    0 => TooMuch::Switches,
                    OF_THREADS => TooMuch::Threads,
                    OF_EVENTS => TooMuch::Events,
                    OF_BYTES => TooMuch::Bytes,
                    _ => return None,
                },
            })
        }
        _ => return Some(Known::Other),
    }))
}

/// Of bytes that are there.
fn half(bytes: &[u8], at: usize) -> u32 {
    let bytes = bytes.get(at..).and_then(<[u8]>::first_chunk);
    u32::from_le_bytes(bytes.copied().unwrap_or_default())
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let bytes = bytes.get(at..).and_then(<[u8]>::first_chunk);
    u64::from_le_bytes(bytes.copied().unwrap_or_default())
}
