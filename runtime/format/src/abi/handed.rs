//! How the arguments of a call of MPI tell what it hands over ([`Probe::Message`](super::Probe::Message)).
//!
//! [`SiteDesc::args`](super::SiteDesc::args) then holds a [`Handed`] and positions of arguments ([`place`]).

/// Which ranks hand over how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    /// Messages, and parts of files: `out` leaves; what comes in is in the status, and no more than `in`.
    Message = 1,
    /// `out` leaves and `in` comes, on all ranks.
    Exact = 2,
    /// `out` leaves the root and `in` comes to the others.
    Broadcast = 3,
    /// `out` leaves all ranks and `in` comes to the root.
    Reduce = 4,
    /// As [`Class::Reduce`]; `in` comes from each rank.
    Gather = 5,
    /// `out` leaves the root for each rank, and `in` comes to all.
    Scatter = 6,
    /// `out` leaves all ranks, and `in` comes from each.
    Allgather = 7,
    /// `out` leaves for each rank, and `in` comes from each.
    Alltoall = 8,
    /// `out` leaves for each rank, and one rank's part of it comes.
    ReduceScatter = 9,
}

impl Class {
    /// The class with this number.
    pub const fn from_number(number: u8) -> Option<Class> {
        Some(match number {
            1 => Class::Message,
            2 => Class::Exact,
            3 => Class::Broadcast,
            4 => Class::Reduce,
            5 => Class::Gather,
            6 => Class::Scatter,
            7 => Class::Allgather,
            8 => Class::Alltoall,
            9 => Class::ReduceScatter,
            _ => return None,
        })
    }
}

/// Positions in [`SiteDesc::args`](super::SiteDesc::args), which hold positions of arguments or [`NO_ARG`](super::NO_ARG).
pub mod place {
    /// The [`Handed`](super::Handed).
    pub const HANDED: usize = 0;
    /// The number of elements that leave. Their datatype is the next argument, behind an array of distances if there are
    /// [`Handed::many_out`](super::Handed::many_out) numbers.
    pub const OUT: usize = 1;
    /// The same of what comes in.
    pub const IN: usize = 2;
    /// To whom a message goes, with the tag behind it; or the root.
    pub const TO: usize = 3;
    /// From whom a message comes, with the tag behind it.
    pub const FROM: usize = 4;
    /// The communicator.
    pub const COMMUNICATOR: usize = 5;
    /// The status.
    pub const STATUS: usize = 6;
    /// The buffer that may be `MPI_IN_PLACE`.
    pub const IN_PLACE: usize = 7;
}

/// The first of a site's [`SiteDesc::args`](super::SiteDesc::args).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handed {
    /// Which ranks hand over how much.
    pub class: Class,
    /// Arguments are addresses of what they are: of 4-byte numbers and Fortran's handles.
    pub by_address: bool,
    /// `out` is the address of a number for each rank.
    pub many_out: bool,
    /// `in` is the address of a number for each rank.
    pub many_in: bool,
    /// The call returns when that is done; one of a collective operation not before all ranks have called it.
    pub is_blocking: bool,
}

impl Handed {
    /// As a byte.
    pub const fn byte(self) -> u8 {
        self.class as u8
            | (self.many_out as u8) << 4
            | (self.many_in as u8) << 5
            | (self.is_blocking as u8) << 6
            | (self.by_address as u8) << 7
    }

    /// Of such a byte.
    pub const fn from_byte(byte: u8) -> Option<Handed> {
        let Some(class) = Class::from_number(byte & 0xf) else {
            return None;
        };
        Some(Handed {
            class,
            many_out: byte & 0x10 != 0,
            many_in: byte & 0x20 != 0,
            is_blocking: byte & 0x40 != 0,
            by_address: byte & 0x80 != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_round_trip() {
        for byte in 0..=255 {
            if let Some(handed) = Handed::from_byte(byte) {
                assert_eq!(handed.byte(), byte);
            }
        }
        assert_eq!(Handed::from_byte(0), None);
        assert_eq!(Handed::from_byte(super::super::NO_ARG), None);
    }
}
