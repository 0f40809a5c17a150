//! Calls of MPI whose arguments tell how much they hand over, and to whom.

use super::sync;
use crate::entry::{self, Call};
use crate::mpi::{self, Mpi};
use crate::thread::{Cost, Thread};
use ompfuse_format::Construct;
use ompfuse_format::abi::NO_ARG;
use ompfuse_format::abi::handed::{Class, Handed, place};
use ompfuse_format::record::message::{ALL_RANKS, Message, Partner};

/// A call as [`sync::enclosed`] records it, and what it handed over.
pub(crate) fn message(thread: &Thread, call: &Call) -> u64 {
    // Before the call: the arguments on the stack are the callee's then.
    let asked = Asked::of(thread, call);
    let cost = Cost::new();
    let (result, t0) = sync::timed(thread, &cost, || call.forward());
    let site = entry::this(call.site());
    let construct = Construct::or_service(call.site().construct);
    thread.write_wait(construct, site, t0, 0, &cost);
    if let Some(asked) = asked {
        asked.tell(thread, site, result, t0);
    }
    result
}

/// An array of numbers, or one of them.
#[derive(Debug, Clone, Copy)]
struct Elements {
    count: u64,
    is_array: bool,
    datatype: u64,
}

/// What the arguments say.
#[derive(Debug, Clone, Copy)]
struct Asked {
    mpi: Mpi,
    handed: Handed,
    /// Bytes that leave and come; `None`: that isn't known.
    amount: Option<[u64; 2]>,
    /// Rank and tag of whom a message goes to and comes from; `None` in other communicators than that of all ranks.
    to: Option<[i32; 2]>,
    from: Option<[i32; 2]>,
    /// Whether the call can't return before all ranks of the program have called it, if there is anything to hand over.
    is_meeting: bool,
    /// Whether it hands nothing over, as a barrier.
    is_bare: bool,
    status: u64,
    datatype: u64,
}

impl Asked {
    #[inline(never)]
    fn of(thread: &Thread, call: &Call) -> Option<Asked> {
        if !thread.keeps_messages(entry::this(call.site())) {
            return None;
        }
        let mpi = mpi::get()?;
        let handed = Handed::from_byte(call.site().args[place::HANDED])?;
        let arguments = Arguments { call, mpi, handed };
        let is_message = handed.class == Class::Message;
        let communicator = arguments.communicator();
        let is_world = thread.keeps_partners() && communicator.is_some_and(|c| mpi.is_world(c));
        let partner = |at: usize| {
            let at = arguments.position(at).filter(|_| is_message && is_world)?;
            Some([arguments.number(at), arguments.number(at + 1)])
        };
        Some(Asked {
            mpi,
            handed,
            amount: arguments.amount(communicator),
            to: partner(place::TO),
            from: partner(place::FROM),
            is_meeting: !is_message && handed.is_blocking && is_world,
            is_bare: arguments.position(place::OUT).is_none()
                && arguments.position(place::IN).is_none(),
            status: arguments
                .position(place::STATUS)
                .map_or(0, |at| call.arg(at)),
            datatype: arguments
                .elements(place::IN)
                .filter(|_| is_message)
                .map_or(0, |e| e.datatype),
        })
    }

    /// Records it once the call has returned.
    #[inline(never)]
    fn tell(&self, thread: &Thread, site: u32, result: u64, t0: u64) {
        let is_fortran = self.handed.by_address;
        let mut message = Message {
            site,
            calls: u32::from(!self.is_bare),
            ..Message::default()
        };
        let mut from = self.from;
        match self.amount {
            None => message.unknown = 1,
            Some([out, most]) => {
                message.bytes_out = out;
                let is_bounded = self.handed.class == Class::Message && most > 0;
                let has_failed = !is_fortran && result as u32 != 0;
                let received = (is_bounded && !has_failed && self.status != 0)
                    .then(|| self.mpi.received(self.status, self.datatype, is_fortran))
                    .flatten();
                match received {
                    Some(received) => {
                        message.bytes_in = received.bytes;
                        from = from.map(|_| [received.source, received.tag]);
                    }
                    None if is_bounded => (message.bounded, message.bytes_at_most) = (1, most),
                    None => message.bytes_in = most,
                }
            }
        }
        let partner = |is_sent: bool, [rank, tag]: [i32; 2]| Partner {
            is_sent,
            is_blocking: self.handed.is_blocking,
            rank,
            tag,
            t0,
            t1: thread.last(),
        };
        // Nobody is behind negative numbers: MPI_PROC_NULL, or whoever it was.
        let is_told = |p: &[i32; 2]| p[0] >= 0 && p[1] >= 0;
        let sent = self.to.filter(is_told).map(|p| partner(true, p));
        let came = from.filter(is_told).map(|p| partner(false, p));
        let is_meeting = self.is_meeting && (self.is_bare || message.bytes_in > 0);
        let all = is_meeting.then(|| partner(true, [ALL_RANKS, 0]));
        message.partner = sent.or(came).or(all);
        if !message.is_empty() {
            thread.add_message(&message);
        }
        if let (Some(_), Some(_)) = (sent, came) {
            thread.add_message(&Message {
                site,
                partner: came,
                ..Message::default()
            });
        }
    }
}

/// A call's arguments, by what they mean.
#[derive(Clone, Copy)]
struct Arguments<'c> {
    call: &'c Call,
    mpi: Mpi,
    handed: Handed,
}

impl Arguments<'_> {
    fn position(&self, at: usize) -> Option<usize> {
        let position = self.call.site().args[at];
        (position != NO_ARG).then_some(usize::from(position))
    }

    /// The number or Fortran handle that an argument is.
    fn number(&self, position: usize) -> i32 {
        let argument = self.call.arg(position);
        if !self.handed.by_address {
            return argument as i32;
        }
        // SAFETY: Fortran hands over the address of a number; MPI itself reads it in this call.
        unsafe { (argument as *const i32).read_unaligned() }
    }

    fn handle(&self, position: usize) -> u64 {
        match self.handed.by_address {
            true => self.number(position) as u32 as u64,
            false => self.call.arg(position),
        }
    }

    fn communicator(&self) -> Option<u64> {
        let handle = self.handle(self.position(place::COMMUNICATOR)?);
        Some(self.mpi.communicator(handle, self.handed.by_address))
    }

    /// What leaves or comes, by the arguments: only for what MPI doesn't ignore in this call.
    fn elements(&self, at: usize) -> Option<Elements> {
        let position = self.position(at)?;
        let is_array = match at {
            place::OUT => self.handed.many_out,
            _ => self.handed.many_in,
        };
        let count = match (is_array, self.handed.by_address) {
            (false, true) => i64::from(self.number(position)).cast_unsigned(),
            (false, false) if self.call.site().width() == 8 => self.call.arg(position),
            (false, false) => i64::from(self.call.arg(position) as i32).cast_unsigned(),
            (true, _) => self.call.arg(position),
        };
        // An array of distances lies between, but where all ranks get a part of one result.
        let has_distances = is_array && self.handed.class != Class::ReduceScatter;
        let datatype = self.handle(position + 1 + usize::from(has_distances));
        Some(Elements {
            count,
            is_array,
            datatype: self.mpi.datatype(datatype, self.handed.by_address),
        })
    }

    /// The bytes of one rank's part. `rank`: whose, where there is a number for each.
    fn part(&self, elements: Elements, rank: u64) -> Option<u64> {
        let count = match elements.is_array {
            true => self.nth(elements, rank),
            false => elements.count.cast_signed(),
        };
        self.mpi.bytes(count, elements.datatype)
    }

    fn nth(&self, elements: Elements, rank: u64) -> i64 {
        // SAFETY: the program's array has a number for each rank of the communicator, which MPI reads in this call.
        unsafe {
            match self.call.site().width() {
                8 => (elements.count as *const i64)
                    .add(rank as usize)
                    .read_unaligned(),
                _ => i64::from(
                    (elements.count as *const i32)
                        .add(rank as usize)
                        .read_unaligned(),
                ),
            }
        }
    }

    /// The bytes of so many ranks' parts.
    fn parts(&self, elements: Elements, ranks: u64) -> Option<u64> {
        if !elements.is_array {
            let count = elements.count.cast_signed();
            let all = count.checked_mul(i64::try_from(ranks).ok()?)?;
            return self.mpi.bytes(all, elements.datatype);
        }
        let mut all: i64 = 0;
        for rank in 0..ranks {
            all = all.checked_add(self.nth(elements, rank))?;
        }
        self.mpi.bytes(all, elements.datatype)
    }

    /// Bytes that leave and come.
    fn amount(&self, communicator: Option<u64>) -> Option<[u64; 2]> {
        let one = |at: usize| match self.position(at) {
            None => Some(0),
            Some(_) => self.part(self.elements(at)?, 0),
        };
        // The datatype of what goes nowhere, or comes from nowhere, may be anything.
        let to_one = |peer: usize, at: usize| match self.position(peer) {
            Some(position) if self.is_nobody(peer, position) => Some(0),
            _ => one(at),
        };
        if let Class::Message | Class::Exact = self.handed.class {
            let out = to_one(place::TO, place::OUT)?;
            return Some([out, to_one(place::FROM, place::IN)?]);
        }
        let (rank, size) = self.mpi.rank_and_size(communicator?)?;
        let root = self.position(place::TO).map(|at| self.number(at));
        let is_root = root.is_some_and(|root| i64::from(root) == rank.cast_signed());
        let is_in_place = match self.position(place::IN_PLACE) {
            None => false,
            Some(at) => {
                let buffer = self.call.arg(at);
                self.mpi.is_in_place(buffer, self.handed.by_address)?
            }
        };
        let out = || self.elements(place::OUT);
        let into = || self.elements(place::IN);
        Some(match self.handed.class {
            Class::Message | Class::Exact => return None,
            Class::Broadcast if is_root => [one(place::OUT)?, 0],
            Class::Broadcast => [0, one(place::IN)?],
            Class::Reduce if is_root => [one(place::OUT)?, one(place::IN)?],
            Class::Reduce => [one(place::OUT)?, 0],
            Class::Gather if !is_root => [one(place::OUT)?, 0],
            Class::Gather | Class::Allgather => {
                let own = match is_in_place {
                    true => self.part(into()?, rank)?,
                    false => one(place::OUT)?,
                };
                [own, self.parts(into()?, size)?]
            }
            Class::Scatter if !is_root => [0, one(place::IN)?],
            Class::Scatter => {
                let own = match is_in_place {
                    true => self.part(out()?, rank)?,
                    false => one(place::IN)?,
                };
                [self.parts(out()?, size)?, own]
            }
            Class::Alltoall => {
                let come = self.parts(into()?, size)?;
                match is_in_place {
                    true => [come, come],
                    false => [self.parts(out()?, size)?, come],
                }
            }
            Class::ReduceScatter => [self.parts(out()?, size)?, self.part(out()?, rank)?],
        })
    }

    /// Whether the partner is `MPI_PROC_NULL`. A message's source may be `MPI_ANY_SOURCE`, which is negative as well.
    fn is_nobody(&self, peer: usize, position: usize) -> bool {
        let may_be_any = peer == place::FROM && self.handed.class == Class::Message;
        self.number(position) < 0 && !may_be_any
    }
}
