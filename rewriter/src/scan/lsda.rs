//! Exception tables: which calls may continue at a landing pad.

use super::functions::Function;
use super::image::Image;
use gimli::{EndianSlice, LittleEndian, Reader};

/// Landing pads that calls in a range of addresses lead to when the callee throws; where exceptions of other instructions are
/// caught (`-fnon-call-exceptions`), those too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pad {
    pub from: u64,
    pub to: u64,
    /// `None`: the exception leaves the function.
    pub pad: Option<u64>,
}

/// Reads numbers from an exception table.
struct Cursor<'a> {
    data: EndianSlice<'a, LittleEndian>,
    /// The address behind it.
    end: u64,
}

impl<'a> Cursor<'a> {
    /// Of bytes at an address.
    fn new(data: &'a [u8], va: u64) -> Cursor<'a> {
        Cursor {
            data: EndianSlice::new(data, LittleEndian),
            end: va.wrapping_add(data.len() as u64),
        }
    }

    /// A number in one of the `DW_EH_PE_*` encodings, without indirection.
    fn encoded(&mut self, encoding: u8) -> Option<u64> {
        let here = self.end.wrapping_sub(self.data.len() as u64);
        let data = &mut self.data;
        let value = match encoding & 0x0f {
            0x00 | 0x04 | 0x0c => data.read_u64(),
            0x01 => data.read_uleb128(),
            0x02 => data.read_u16().map(u64::from),
            0x03 => data.read_u32().map(u64::from),
            0x09 => data.read_sleb128().map(i64::cast_unsigned),
            0x0a => data.read_i16().map(|v| i64::from(v).cast_unsigned()),
            0x0b => data.read_i32().map(|v| i64::from(v).cast_unsigned()),
            _ => return None,
        };
        match encoding & 0xf0 {
            0x00 => value.ok(),
            0x10 => Some(here.wrapping_add(value.ok()?)),
            _ => None,
        }
    }
}

/// The landing pads of a function; `None` when its table can't be read.
pub(crate) fn landing_pads(image: &Image<'_>, function: &Function<'_>) -> Option<Vec<Pad>> {
    let Some(va) = function.lsda else {
        return Some(Vec::new());
    };
    parse(Cursor::new(image.rest(va)?, va), function.start)
}

fn parse(mut at: Cursor<'_>, start: u64) -> Option<Vec<Pad>> {
    let base = match at.data.read_u8().ok()? {
        0xff => start,
        encoding => at.encoded(encoding)?,
    };
    if at.data.read_u8().ok()? != 0xff {
        at.data.read_uleb128().ok()?;
    }
    let encoding = at.data.read_u8().ok()?;
    let len = usize::try_from(at.data.read_uleb128().ok()?).ok()?;
    let behind = at.data.len().checked_sub(len)?;
    let mut table = Cursor {
        data: at.data.split(len).ok()?,
        end: at.end.wrapping_sub(behind as u64),
    };
    let mut pads = Vec::new();
    while !table.data.is_empty() {
        let from = start.wrapping_add(table.encoded(encoding)?);
        let to = from.wrapping_add(table.encoded(encoding)?);
        let pad = table.encoded(encoding)?;
        table.data.read_uleb128().ok()?;
        pads.push(Pad {
            from,
            to,
            pad: (pad != 0).then(|| base.wrapping_add(pad)),
        });
    }
    Some(pads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_site_tables() {
        // No landing pad base, no types, uleb128, 8 bytes: [0x10, 0x15) -> 0x80; [0x20, 0x25) -> none.
        let table = [
            0xff, 0xff, 0x01, 9, 0x10, 0x05, 0x80, 0x01, 0, 0x20, 0x05, 0, 0,
        ];
        let parse = |data, va, start| parse(Cursor::new(data, va), start);
        let pads = parse(&table, 0x5000, 0x1000).unwrap();
        assert_eq!(
            pads,
            [
                Pad {
                    from: 0x1010,
                    to: 0x1015,
                    pad: Some(0x1080)
                },
                Pad {
                    from: 0x1020,
                    to: 0x1025,
                    pad: None
                }
            ]
        );
        assert_eq!(parse(&table[..9], 0, 0), None);
        assert_eq!(parse(&[], 0, 0), None);
    }

    #[test]
    fn numbers() {
        let mut c = Cursor::new(&[0x7f, 0xff, 0xff, 0xff, 0xff, 0xe5, 0x8e, 0x26], 8);
        assert_eq!(c.encoded(0x09), Some(u64::MAX));
        assert_eq!(c.encoded(0x1b), Some(8)); // pc-relative, -1, from address 9
        assert_eq!(c.encoded(0x01), Some(624_485));
        assert_eq!(c.encoded(0x01), None);
    }
}
