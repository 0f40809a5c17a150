//! Messages: the bytes that a thread's calls of MPI handed over, and who the partner was.
//!
//! ```text
//! message   kind:u8 flags:u8 len:u16 site:u32 | calls:u32 bounded:u32 | unknown:u64 | out:u64 in:u64 at most:u64
//! partner   the same with flag PARTNER | peer:i32 tag:i32 | begin:u64 end:u64
//! ```
//! A record may stand for several calls. One with a partner stands for one message of one call: its begin and end are the call's.
//! A call that sends and receives has a second record, for the message that it received, which counts no call.

use super::get;

/// First byte of a [`Message`] record.
pub const KIND_MESSAGE: u8 = 12;

// Bits of the second byte.
const PARTNER: u8 = 1;
const IS_SENT: u8 = 2;
const IS_BLOCKING: u8 = 4;

/// What calls of MPI at one site handed over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Message {
    /// `module << 24 | site`.
    pub site: u32,
    /// Calls that it is about.
    pub calls: u32,
    /// Those of them whose bytes in are only known to be no more than [`Message::bytes_at_most`] says.
    pub bounded: u32,
    /// Those of them of which nothing is known.
    pub unknown: u64,
    /// Bytes that the calls handed over for others.
    pub bytes_out: u64,
    /// Bytes that they received.
    pub bytes_in: u64,
    /// Bytes that the `bounded` ones had room for.
    pub bytes_at_most: u64,
    /// The partner, if that is known.
    pub partner: Option<Partner>,
}

/// A [`Partner::rank`]: all ranks. The call was of a collective operation in the communicator of all ranks, and could not return before
/// all had called it: a *meeting*.
pub const ALL_RANKS: i32 = i32::MIN;

/// Who the partner of a message in the communicator of all ranks was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partner {
    /// Whether the message was sent to it; else it came from there.
    pub is_sent: bool,
    /// Whether the call returned when that was done.
    pub is_blocking: bool,
    /// Its rank, or [`ALL_RANKS`].
    pub rank: i32,
    /// The message's tag.
    pub tag: i32,
    /// Time stamp counter at the call's begin.
    pub t0: u64,
    /// ... and at its end.
    pub t1: u64,
}

impl Message {
    /// Encoded length in bytes without a partner.
    pub const LEN: usize = 48;
    /// Encoded length in bytes with one.
    pub const LEN_WITH_PARTNER: usize = 72;

    /// Encoded length in bytes.
    pub const fn len(&self) -> usize {
        match self.partner {
            None => Message::LEN,
            Some(_) => Message::LEN_WITH_PARTNER,
        }
    }

    /// Whether it is about nothing.
    pub const fn is_empty(&self) -> bool {
        self.calls == 0 && self.partner.is_none()
    }
}

/// The words of such a record, written through `put(word index, value)`.
pub fn encode_message(m: &Message, mut put: impl FnMut(usize, u64)) {
    let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
    let flags = m.partner.map_or(0, |p| {
        PARTNER | bit(p.is_sent, IS_SENT) | bit(p.is_blocking, IS_BLOCKING)
    });
    let halves = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    let head = u32::from(KIND_MESSAGE) | u32::from(flags) << 8 | (m.len() as u32) << 16;
    put(0, halves(head, m.site));
    put(1, halves(m.calls, m.bounded));
    put(2, m.unknown);
    put(3, m.bytes_out);
    put(4, m.bytes_in);
    put(5, m.bytes_at_most);
    if let Some(p) = m.partner {
        put(6, halves(p.rank as u32, p.tag as u32));
        put(7, p.t0);
        put(8, p.t1);
    }
}

/// Such a record, whose bytes these are.
pub(super) fn read_message(body: &[u8]) -> Option<Message> {
    let flags = *body.get(1)?;
    let has = |bit: u8| flags & bit != 0;
    let len = match has(PARTNER) {
        true => Message::LEN_WITH_PARTNER,
        false => Message::LEN,
    };
    let body = body.get(..len)?;
    let word = |at: usize| get(body, 8 * at);
    let high = |at: usize| (word(at) >> 32) as u32;
    Some(Message {
        site: high(0),
        calls: word(1) as u32,
        bounded: high(1),
        unknown: word(2),
        bytes_out: word(3),
        bytes_in: word(4),
        bytes_at_most: word(5),
        partner: has(PARTNER).then(|| Partner {
            is_sent: has(IS_SENT),
            is_blocking: has(IS_BLOCKING),
            rank: word(6) as i32,
            tag: high(6) as i32,
            t0: word(7),
            t1: word(8),
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back() {
        let partner = Partner {
            is_sent: true,
            is_blocking: false,
            rank: 3,
            tag: -1,
            t0: 1 << 40,
            t1: u64::MAX,
        };
        for partner in [None, Some(partner)] {
            let message = Message {
                site: 0x0200_0007,
                calls: 9,
                bounded: 2,
                unknown: 1,
                bytes_out: 1 << 33,
                bytes_in: 5,
                bytes_at_most: u64::MAX,
                partner,
            };
            let mut words = vec![0; message.len() / 8];
            encode_message(&message, |at, word| words[at] = word);
            let body: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
            assert_eq!(read_message(&body), Some(message));
            assert_eq!(read_message(&body[..40]), None);
        }
    }
}
