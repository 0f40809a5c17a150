//! Locks: which one an interval of a critical section or an OpenMP lock was about.
//!
//! ```text
//! lock      kind:u8 0:u8 len:u16 number:u32 | address:u64
//! ```
//! The number is the process's, and is the `index` of the lock's intervals on all threads. The thread that meets a lock
//! first tells its address, behind the object that it is in ([`super::context::Object`]), if it is in one.

use super::get;

/// First byte of a [`Lock`] record.
pub const KIND_LOCK: u8 = 11;

/// [`Lock::address`] of the one lock that `critical` without a name has in libgomp.
pub const UNNAMED_CRITICAL: u64 = 0;

/// A lock's number in its process, and where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lock {
    /// Its number, not 0.
    pub number: u32,
    /// Its address in the process, or [`UNNAMED_CRITICAL`].
    pub address: u64,
}

impl Lock {
    /// Encoded length in bytes.
    pub const LEN: usize = 16;
}

/// The words of a lock's record, written through `put(word index, value)`.
pub fn encode_lock(lock: &Lock, mut put: impl FnMut(usize, u64)) {
    let len = Lock::LEN as u64;
    put(
        0,
        u64::from(KIND_LOCK) | len << 16 | u64::from(lock.number) << 32,
    );
    put(1, lock.address);
}

/// Such a record, whose bytes these are.
pub(super) fn read_lock(body: &[u8]) -> Option<Lock> {
    let body = body.get(..Lock::LEN)?;
    let number = (get(body, 0) >> 32) as u32;
    (number != 0).then(|| Lock {
        number,
        address: get(body, 8),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_come_back() {
        let lock = Lock {
            number: 4096,
            address: 0x7fff_ffff_0008,
        };
        let mut words = [0; 2];
        encode_lock(&lock, |at, word| words[at] = word);
        let body: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        assert_eq!(read_lock(&body), Some(lock));
        assert_eq!(read_lock(&body[..8]), None);
        assert_eq!(read_lock(&[0; 16]), None);
    }
}
