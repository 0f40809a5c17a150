//! The values that the stages hand to each other: a [`Scan`] is what was found, with everything that `plan` needs.

use crate::count::Increment;
use ompfuse_format::abi::{NO_ARG, OWN_FUNCTIONS, Probe};
use ompfuse_format::site::{BinaryInfo, HexAddress, Outcome, SiteInfo, Uncounted};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Address in the module as linked (no bias).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkVa(pub u64);

impl std::fmt::Display for LinkVa {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl Serialize for LinkVa {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

/// Everything that `scan` found in a binary.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Scan {
    /// The binary.
    pub binary: BinaryInfo,
    /// Every site; `sites[i].info.id == i`.
    pub sites: Vec<Site>,
    /// Places for jumps to trampolines, disjoint, ascending. Every site with an [`Action::Inline`] is in exactly one.
    pub windows: Vec<Window>,
    /// Calls through registers and variables that can be led to probes, by where their addresses are made: each such
    /// site ([`Action::Call`] with `relayed`) is in exactly one.
    pub relays: Vec<Relay>,
    /// Constants that are added to a thread's count of instructions, by address: each lies in exactly one window.
    pub increments: Vec<Increment>,
    /// The functions that these belong to.
    #[serde(skip)]
    pub counting: Vec<Counting>,
    /// Addresses of the functions of [`ompfuse_format::abi::OWN_FUNCTIONS`], where the runtime is linked in.
    pub own_functions: [Option<LinkVa>; OWN_FUNCTIONS.len()],
}

/// A function that counts its instructions.
#[derive(Debug, Clone, PartialEq)]
pub struct Counting {
    /// What is told of it if it can't after all, but for the reason.
    pub told: Uncounted,
    /// Addresses of its increments, ascending.
    pub places: Vec<u64>,
    /// Begins and lengths of the parts of its code.
    pub code: Vec<(HexAddress, u64)>,
}

/// A site, with what `patch` would do about it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Site {
    /// What is printed and kept.
    pub info: SiteInfo,
    /// What to patch; `None` for sites that are skipped (`info.reason` says why) or implied by others.
    pub action: Option<Action>,
    /// The number of threads that its call asks for, if that is a constant; 0: the runtime's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asks_threads: Option<u32>,
    /// A function copies the data of the task that its call creates.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub copies: bool,
}

/// How a site is patched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Action {
    /// The call or jump instruction at the site's address is retargeted to a stub.
    Call {
        /// Length of the instruction: 5 (direct) or 6 (through the GOT).
        len: u8,
        /// A `jmp`, not a `call`.
        tail: bool,
        /// It goes through a register or variable, of any length, and stays as it is: a [`Relay`] leads to the stub.
        relayed: bool,
        /// Where it leads.
        target: Target,
        /// What the stub leads to.
        probe: ProbeSpec,
    },
    /// A probe before the instruction at the site's address, in the trampoline of its window.
    Inline(ProbeSpec),
}

/// Where a call leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum Target {
    /// To this address (a PLT stub or a local function).
    Direct(LinkVa),
    /// To the address in this 8-byte slot (GOT).
    Slot(LinkVa),
}

/// The probe's part of a [`ompfuse_format::abi::SiteDesc`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "documented at SiteDesc")]
pub struct ProbeSpec {
    pub probe: Probe,
    pub args: [u8; 8],
    pub nargs: u8,
    pub width: u8,
    pub unsigned: bool,
    pub param: i64,
    pub second: i64,
    /// Sets [`ompfuse_format::abi::FLAG_CHUNKS`].
    pub chunks: bool,
}

impl ProbeSpec {
    /// A probe that reads nothing.
    pub(crate) const fn bare(probe: Probe) -> ProbeSpec {
        ProbeSpec {
            probe,
            args: [NO_ARG; 8],
            nargs: 0,
            width: 0,
            unsigned: false,
            param: 0,
            second: 0,
            chunks: false,
        }
    }
}

/// Consecutive whole instructions that a jump may replace: no branch leads behind its first byte.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Window {
    /// First byte.
    pub start: LinkVa,
    /// Length in bytes of the displaced instructions, at least 5, or 2 with an island; may include padding behind an
    /// unconditional jump or return.
    pub len: u32,
    /// Sites with a probe in it, in the order of execution: each stands before the instruction at its address
    /// (several may stand before one instruction). None: it makes room for islands, and is patched if one of these is
    /// needed.
    pub sites: Vec<u32>,
    /// Where the 5-byte jump stands that a short jump leads to: in another window, behind the jump there.
    pub island: Option<LinkVa>,
}

/// Where an address is made that is called through a register or variable, and nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Relay {
    /// What is called.
    pub target: Target,
    /// The instructions that make the address, or a number that is added to something known: `mov r64, [rip + slot]`,
    /// `lea r64, [rip + address]`, `movabs r64, number`. Ascending.
    pub loads: Vec<LinkVa>,
    /// The instructions that read the address from a table: such a number is a slot's distance from something known.
    /// Ascending.
    pub reads: Vec<Read>,
    /// The calls, in the order of their addresses; at most one of them is a jump.
    pub sites: Vec<u32>,
}

/// An instruction that reads a table, `mov r64, [register + register]`, or calls what is there. It takes the register with
/// the distance instead, where the relay's address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Read {
    /// Its address.
    pub at: LinkVa,
    /// The x86 number of the register.
    pub register: u8,
}

impl AsRef<SiteInfo> for Site {
    fn as_ref(&self) -> &SiteInfo {
        &self.info
    }
}

impl From<Scan> for Cow<'_, Scan> {
    fn from(scan: Scan) -> Self {
        Cow::Owned(scan)
    }
}

impl<'a> From<&'a Scan> for Cow<'a, Scan> {
    fn from(scan: &'a Scan) -> Self {
        Cow::Borrowed(scan)
    }
}

/// Numbers over a scan's sites.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Totals {
    /// All of them.
    pub sites: usize,
    /// With a probe.
    pub patched: usize,
    /// That could have one.
    pub patchable: usize,
    /// That have none, each with its reason.
    pub skipped: usize,
    /// That need none.
    pub services: usize,
}

impl Scan {
    /// Doesn't count the functions that have increments where something at this address can't be patched, and says why. Returns
    /// whether there are such functions.
    pub(crate) fn withdraw(&mut self, at: LinkVa, why: &str) -> bool {
        const LONGEST_INSTRUCTION: u64 = 15;
        let behind = |w: &Window| w.start.0.saturating_add(u64::from(w.len));
        let touched =
            |w: &&Window| w.start.0 < at.0.saturating_add(LONGEST_INSTRUCTION) && at.0 < behind(w);
        let windows: Vec<&Window> = self.windows.iter().filter(touched).collect();
        let lies_in = |va: &u64| windows.iter().any(|w| w.start.0 <= *va && *va < behind(w));
        // A window that makes room for others of its function has no increment.
        let spans = |f: &Counting| {
            let (first, last) = (f.places.first(), f.places.last());
            first.is_some_and(|&va| va <= at.0) && last.is_some_and(|&va| at.0 <= va)
        };
        let all = || self.counting.iter();
        let mut places: BTreeSet<u64> = all()
            .filter(|f| f.places.iter().any(lies_in))
            .map(|f| f.told.address.0)
            .collect();
        if places.is_empty() {
            places.extend(all().filter(|f| spans(f)).map(|f| f.told.address.0));
        }
        let Some(counted) = self.binary.counted.as_mut().filter(|_| !places.is_empty()) else {
            return false;
        };
        let is_meant = |f: &mut Counting| places.contains(&f.told.address.0);
        let mut gone = BTreeSet::new();
        for f in self.counting.extract_if(.., is_meant) {
            gone.extend(f.places);
            counted.code.retain(|part| !f.code.contains(part));
            counted.refused.push(Uncounted {
                reason: why.to_owned(),
                ..f.told
            });
        }
        counted.refused.sort_by_key(|f| f.address.0);
        let is_counted = |f: &(HexAddress, u32)| !places.contains(&f.0.0);
        counted.functions.retain(is_counted);
        self.increments.retain(|i| !gone.contains(&i.at));
        true
    }

    /// Counts the sites by outcome.
    pub fn totals(&self) -> Totals {
        let count = |o| self.sites.iter().filter(|s| s.info.outcome == o).count();
        Totals {
            sites: self.sites.len(),
            patched: count(Outcome::Patched),
            patchable: count(Outcome::Patchable),
            skipped: count(Outcome::Skipped),
            services: count(Outcome::Service),
        }
    }
}
