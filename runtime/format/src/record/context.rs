//! Calling contexts: which chain of calls a thread was in where it forked a region.
//!
//! ```text
//! object    kind:u8 language:u8 len:u16 id's length:u16 path's length:u16 | begin:u64 end:u64 bias:u64 | build id, path, zeros
//! context   kind:u8 end:u8 len:u16 0:u32 | number:u64 | return address:u64...
//! calls     kind:u8 construct:u8 len:u16 site:u32 | context:u64
//! ```
//! All three hold for the thread that wrote them, from there on in its file. A context's addresses are run-time addresses; each
//! is in the last object before it that covers it. A context is written again, under another number, where the thread has
//! forgotten it: equal chains are one context, whatever their numbers.
//!
//! An object with a [`Language`] is a function of that language. Its addresses are above those of all code, and its link-time addresses are
//! lines. Its path is that of the source, a zero byte, and the function's name.

use super::get;
use crate::construct::Construct;

/// First byte of an [`Object`] record.
pub const KIND_OBJECT: u8 = 8;
/// First byte of a [`Context`] record.
pub const KIND_CONTEXT: u8 = 9;
/// First byte of a [`Calls`] record.
pub const KIND_CALLS: u8 = 10;

/// Most return addresses of a context.
pub const MAX_DEPTH: usize = 128;
/// Depth that is recorded unless the user wants another one.
pub const DEFAULT_DEPTH: u32 = 32;
/// Longest build id that is kept, in bytes.
pub const MAX_BUILD_ID: usize = 32;
/// Longest path that is kept, in bytes; a longer one is cut.
pub const MAX_PATH: usize = 1024;

/// What interprets a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Language {
    /// CPython.
    Python = 1,
}

impl Language {
    /// The language with this number.
    pub const fn from_number(number: u8) -> Option<Language> {
        match number {
            1 => Some(Language::Python),
            _ => None,
        }
    }
}

/// A file that the loader has mapped: the program or a library, patched or not. Or an interpreted function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Object<'a> {
    /// Of a function: its language.
    pub language: Option<Language>,
    /// First address.
    pub begin: u64,
    /// Behind its last address.
    pub end: u64,
    /// Difference between run-time and link-time addresses.
    pub bias: u64,
    /// Its build id, empty if it has none.
    pub build_id: &'a [u8],
    /// Its path, as the loader has it.
    pub path: &'a [u8],
}

impl Object<'_> {
    /// Encoded length in bytes.
    pub const fn len_of(build_id: usize, path: usize) -> usize {
        32 + (build_id + path).next_multiple_of(8)
    }
}

/// Why a chain has no further return address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum ChainEnd {
    /// The thread began there, or the body of the construct around it, whose own context goes on.
    Whole = 0,
    /// No more were wanted.
    Depth = 1,
    /// Code without unwind information, a stack that isn't the thread's own, or a signal handler.
    Unknown = 2,
}

impl ChainEnd {
    /// The end with this number.
    pub const fn from_number(number: u8) -> Option<ChainEnd> {
        Some(match number {
            0 => ChainEnd::Whole,
            1 => ChainEnd::Depth,
            2 => ChainEnd::Unknown,
            _ => return None,
        })
    }
}

/// A chain of return addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context<'a> {
    /// Its number on this thread, not 0.
    pub number: u64,
    /// Why it ends.
    pub end: ChainEnd,
    /// Innermost first.
    addresses: &'a [u8],
}

impl Context<'_> {
    /// Encoded length in bytes without addresses; each adds 8.
    pub const LEN: usize = 16;

    /// Return addresses, innermost first.
    pub fn addresses(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        let words = self.addresses.as_chunks::<8>().0.iter();
        words.map(|word| u64::from_le_bytes(*word))
    }
}

/// Where all regions were called from that the thread forks at a site from here on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Calls {
    /// Parallel or teams.
    pub construct: Construct,
    /// `module << 24 | site`.
    pub site: u32,
    /// The context's number on this thread; 0: not known.
    pub context: u64,
}

impl Calls {
    /// Encoded length in bytes.
    pub const LEN: usize = 16;
}

/// The words of an object's record, written through `put(word index, value)`. Build id and path are no longer than
/// [`MAX_BUILD_ID`] and [`MAX_PATH`].
pub fn encode_object(o: &Object<'_>, mut put: impl FnMut(usize, u64)) {
    let len = Object::len_of(o.build_id.len(), o.path.len()) as u64;
    let lengths = (o.build_id.len() as u64) << 32 | (o.path.len() as u64) << 48;
    let language = o.language.map_or(0, |language| language as u64);
    put(
        0,
        u64::from(KIND_OBJECT) | language << 8 | len << 16 | lengths,
    );
    put(1, o.begin);
    put(2, o.end);
    put(3, o.bias);
    let (mut word, mut at) = (0, 0);
    for byte in o.build_id.iter().chain(o.path) {
        word |= u64::from(*byte) << (8 * (at % 8));
        at += 1;
        if at % 8 == 0 {
            put(3 + at / 8, word);
            word = 0;
        }
    }
    if at % 8 != 0 {
        put(4 + at / 8, word);
    }
}

/// The words of a context's record but for its addresses, which follow from word 2 on.
pub fn encode_context(number: u64, end: ChainEnd, depth: usize, mut put: impl FnMut(usize, u64)) {
    let len = (Context::LEN + 8 * depth) as u64;
    put(0, u64::from(KIND_CONTEXT) | (end as u64) << 8 | len << 16);
    put(1, number);
}

/// The words of such a record.
pub fn encode_calls(c: &Calls, mut put: impl FnMut(usize, u64)) {
    let len = Calls::LEN as u64;
    put(
        0,
        u64::from(KIND_CALLS) | (c.construct as u64) << 8 | len << 16 | u64::from(c.site) << 32,
    );
    put(1, c.context);
}

/// An object's record, whose bytes these are.
pub(super) fn read_object(body: &[u8]) -> Option<Object<'_>> {
    let head = get(body.get(..32)?, 0);
    let [id, path] = [32, 48].map(|bit| usize::from((head >> bit) as u16));
    if id > MAX_BUILD_ID || path > MAX_PATH {
        return None;
    }
    let text = body.get(32..32 + id + path)?;
    let (build_id, path) = text.split_at_checked(id)?;
    Some(Object {
        language: Language::from_number(body[1]),
        begin: get(body, 8),
        end: get(body, 16),
        bias: get(body, 24),
        build_id,
        path,
    })
}

/// A context's record, whose bytes these are.
pub(super) fn read_context(body: &[u8]) -> Option<Context<'_>> {
    let addresses = body.get(Context::LEN..)?;
    let number = get(body, 8);
    if addresses.len() > 8 * MAX_DEPTH || number == 0 {
        return None;
    }
    Some(Context {
        number,
        end: ChainEnd::from_number(body[1])?,
        addresses,
    })
}

/// Such a record, whose bytes these are.
pub(super) fn read_calls(body: &[u8]) -> Option<Calls> {
    let body = body.get(..Calls::LEN)?;
    Some(Calls {
        construct: Construct::from_number(body[1])?,
        site: (get(body, 0) >> 32) as u32,
        context: get(body, 8),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(words: usize, encode: impl FnOnce(&mut dyn FnMut(usize, u64))) -> Vec<u8> {
        let mut all = vec![0; words];
        encode(&mut |at, word| all[at] = word);
        all.iter().flat_map(|w| w.to_le_bytes()).collect()
    }

    #[test]
    fn objects_come_back() {
        for path in ["", "/a", "/lib/x.so.1", "/usr/lib/x86_64"] {
            let language = path.starts_with("/a").then_some(Language::Python);
            let object = Object {
                language,
                begin: 0x7f00_0000_0000,
                end: 0x7f00_0010_0000,
                bias: 0x7f00_0000_0000,
                build_id: &[1, 2, 3, 250],
                path: path.as_bytes(),
            };
            let len = Object::len_of(4, path.len());
            let body = bytes(len / 8, |put| encode_object(&object, put));
            assert_eq!(usize::from(body[2]) | usize::from(body[3]) << 8, len);
            assert_eq!(read_object(&body), Some(object));
            assert_eq!(read_object(&body[..24]), None);
        }
    }

    #[test]
    fn contexts_and_their_users_come_back() {
        let chain = [0x40_1234, 0x7fff_ffff_0000, 7];
        let body = bytes(5, |put| {
            encode_context(9, ChainEnd::Depth, chain.len(), &mut *put);
            (2..).zip(chain).for_each(|(at, address)| put(at, address));
        });
        let context = read_context(&body).expect("it is whole");
        assert_eq!((context.number, context.end), (9, ChainEnd::Depth));
        assert_eq!(context.addresses().collect::<Vec<u64>>(), chain);
        assert_eq!(read_context(&body[..8]), None);
        let calls = Calls {
            construct: Construct::Parallel,
            site: 0x0200_0007,
            context: 9,
        };
        let body = bytes(2, |put| encode_calls(&calls, put));
        assert_eq!(read_calls(&body), Some(calls));
        assert_eq!(read_calls(&body[..8]), None);
    }
}
