//! Exception tables: which calls may continue at a landing pad.

use super::functions::Function;
use super::image::Image;

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
    data: &'a [u8],
    /// Address of `data`'s first byte.
    va: u64,
}

impl Cursor<'_> {
    fn u8(&mut self) -> Option<u8> {
        let (&first, rest) = self.data.split_first()?;
        self.data = rest;
        self.va = self.va.wrapping_add(1);
        Some(first)
    }

    fn fixed(&mut self, len: usize, signed: bool) -> Option<u64> {
        let mut bytes = [0; 8];
        for byte in bytes.iter_mut().take(len) {
            *byte = self.u8()?;
        }
        if signed && len < 8 && bytes[len - 1] & 0x80 != 0 {
            bytes[len..].fill(0xff);
        }
        Some(u64::from_le_bytes(bytes))
    }

    fn leb(&mut self, signed: bool) -> Option<u64> {
        let (mut value, mut shift) = (0u64, 0u32);
        loop {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            shift += 7;
            if byte & 0x80 == 0 {
                if signed && shift < 64 && byte & 0x40 != 0 {
                    value |= u64::MAX << shift;
                }
                return Some(value);
            }
            if shift > 70 {
                return None;
            }
        }
    }

    /// A number in one of the `DW_EH_PE_*` encodings, without indirection.
    fn encoded(&mut self, encoding: u8) -> Option<u64> {
        let here = self.va;
        let value = match encoding & 0x0f {
            0x00 | 0x04 | 0x0c => self.fixed(8, false)?,
            0x01 => self.leb(false)?,
            0x02 => self.fixed(2, false)?,
            0x03 => self.fixed(4, false)?,
            0x09 => self.leb(true)?,
            0x0a => self.fixed(2, true)?,
            0x0b => self.fixed(4, true)?,
            _ => return None,
        };
        match encoding & 0xf0 {
            0x00 => Some(value),
            0x10 => Some(here.wrapping_add(value)),
            _ => None,
        }
    }
}

/// The landing pads of a function; `None` when its table can't be read.
pub(crate) fn landing_pads(image: &Image<'_>, function: &Function<'_>) -> Option<Vec<Pad>> {
    let Some(va) = function.lsda else {
        return Some(Vec::new());
    };
    parse(
        Cursor {
            data: image.rest(va)?,
            va,
        },
        function.start,
    )
}

fn parse(mut at: Cursor<'_>, start: u64) -> Option<Vec<Pad>> {
    let base = match at.u8()? {
        0xff => start,
        encoding => at.encoded(encoding)?,
    };
    if at.u8()? != 0xff {
        at.leb(false)?;
    }
    let encoding = at.u8()?;
    let len = usize::try_from(at.leb(false)?).ok()?;
    let mut table = Cursor {
        data: at.data.get(..len)?,
        va: at.va,
    };
    let mut pads = Vec::new();
    while !table.data.is_empty() {
        let from = start.wrapping_add(table.encoded(encoding)?);
        let to = from.wrapping_add(table.encoded(encoding)?);
        let pad = table.encoded(encoding)?;
        table.leb(false)?;
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
        let pads = parse(
            Cursor {
                data: &table,
                va: 0x5000,
            },
            0x1000,
        )
        .unwrap();
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
        assert_eq!(
            parse(
                Cursor {
                    data: &table[..9],
                    va: 0
                },
                0
            ),
            None
        );
        assert_eq!(parse(Cursor { data: &[], va: 0 }, 0), None);
    }

    #[test]
    fn numbers() {
        let mut c = Cursor {
            data: &[0x7f, 0xff, 0xff, 0xff, 0xff, 0xe5, 0x8e, 0x26],
            va: 8,
        };
        assert_eq!(c.encoded(0x09), Some(u64::MAX));
        assert_eq!(c.encoded(0x1b), Some(8)); // pc-relative, -1, from address 9
        assert_eq!(c.encoded(0x01), Some(624_485));
        assert_eq!(c.encoded(0x01), None);
    }
}
