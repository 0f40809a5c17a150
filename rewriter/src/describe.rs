//! What a patched file says of itself: site table, window table, note, self-description.

use crate::count::{Increment, Term};
use crate::model::{Action, LinkVa, Scan, Site, Target};
use crate::plan::PlanOptions;
use crate::relay::RelayCode;
use crate::stubs::Redirect;
use crate::trampoline::Detour;
use ompfuse_format::abi::{
    Constants, FLAG_CHUNKS, FLAG_INDIRECT, FLAG_RELAYED, FLAG_TAIL, FLAG_UNCOUNTED, FLAG_UNSIGNED,
    NOTE_NAME, NOTE_TYPE, NoteDesc, Probe, SiteDesc, encode_followers, followers,
};
use ompfuse_format::event::exact;
use ompfuse_format::site::{Mechanism, Outcome, SelfDescription, SiteInfo};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufWriter, Read, Write};

/// What compressed self-descriptions begin with; the others begin with `{`.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// No description is longer: a damaged one could claim to be.
const MAX_TEXT: u64 = 1 << 30;

/// Length in bytes of the note: header, name, description.
pub(crate) const NOTE_LEN: u64 = 12 + 8 + NoteDesc::LEN as u64;

/// The window table stands behind the site table: a count (8 bytes), then start, trampoline (8 bytes each), length of
/// the window and of the trampoline (4 bytes each), island or 0 (8 bytes), ascending. Only `verify` reads it.
pub(crate) const WINDOW_LEN: u64 = 32;

/// What a relay takes in its table without its loads.
pub(crate) const RELAY_LEN: u64 = 16;

/// The ELF note that leads to the module header.
pub(crate) fn note(desc: NoteDesc) -> Vec<u8> {
    let mut out = Vec::with_capacity(NOTE_LEN as usize);
    out.extend_from_slice(&(NOTE_NAME.len() as u32).to_le_bytes());
    out.extend_from_slice(&(NoteDesc::LEN as u32).to_le_bytes());
    out.extend_from_slice(&NOTE_TYPE.to_le_bytes());
    out.extend_from_slice(NOTE_NAME);
    out.extend_from_slice(&desc.to_bytes());
    out
}

/// A site's entry in the table, before places are known.
struct Entry {
    desc: SiteDesc,
    /// Where the original call leads, or its slot.
    target: Option<LinkVa>,
    constants: Constants,
}

impl Entry {
    fn new(site: &Site, action: &Action) -> Entry {
        let (probe, target, flags) = match action {
            Action::Inline(probe) => (probe, None, 0),
            Action::Call {
                tail,
                relayed,
                target,
                probe,
                ..
            } => {
                let tail = if *tail { FLAG_TAIL } else { 0 };
                let relayed = if *relayed { FLAG_RELAYED } else { 0 };
                let (to, indirect) = match *target {
                    Target::Direct(to) => (to, 0),
                    Target::Slot(to) => (to, FLAG_INDIRECT),
                };
                (probe, Some(to), tail | relayed | indirect)
            }
        };
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        Entry {
            desc: SiteDesc {
                target_rel: 0,
                header_rel: 0,
                site: site.info.id,
                region: site.info.region,
                probe: probe.probe as u8,
                construct: site.info.construct as u8,
                flags: flags
                    | flag(probe.unsigned, FLAG_UNSIGNED)
                    | flag(probe.chunks, FLAG_CHUNKS),
                sizes: SiteDesc::encode_sizes(probe.width, probe.nargs),
                args: probe.args,
                constants_rel: 0,
            },
            target,
            constants: Constants {
                param: probe.param,
                second: probe.second,
            },
        }
    }

    fn has_constants(&self) -> bool {
        self.constants != Constants::default()
    }
}

/// The site table: what the runtime library has to know of the sites with a probe.
pub(crate) struct SiteTable {
    entries: Vec<Entry>,
    with_constants: usize,
}

impl SiteTable {
    /// `patched`: sites with an action, ascending, as the entries will be.
    pub(crate) fn new(scan: &Scan, patched: &BTreeSet<u32>) -> SiteTable {
        let uncounted = uncounted(scan, patched);
        let sites = patched.iter().map(|&id| &scan.sites[id as usize]);
        let entries: Vec<Entry> = sites
            .filter_map(|site| {
                let mut entry = Entry::new(site, site.action.as_ref()?);
                if !uncounted.is_empty() {
                    leave_out(&mut entry, &uncounted);
                }
                let counted = scan.binary.counted.as_ref();
                if counted.is_some_and(|counted| counted.leaves_out(site.info.id)) {
                    entry.desc.flags |= FLAG_UNCOUNTED;
                }
                Some(entry)
            })
            .collect();
        SiteTable {
            with_constants: entries.iter().filter(|e| e.has_constants()).count(),
            entries,
        }
    }

    /// Number of entries.
    pub(crate) fn count(&self) -> u32 {
        self.entries.len() as u32
    }

    /// Length in bytes.
    pub(crate) fn len(&self) -> u64 {
        (self.entries.len() * SiteDesc::LEN + self.with_constants * Constants::LEN) as u64
    }

    /// The bytes for an address; what an entry can't reach otherwise.
    pub(crate) fn encode(&self, at: LinkVa, header: LinkVa) -> Result<Vec<u8>, LinkVa> {
        let mut out = Vec::with_capacity(self.len() as usize);
        let mut constants = Vec::with_capacity(self.with_constants * Constants::LEN);
        let constants_at = at.0 + (self.entries.len() * SiteDesc::LEN) as u64;
        for entry in &self.entries {
            let here = at.0 + out.len() as u64;
            let relative = |to: u64, field: usize| {
                let distance = to.wrapping_sub(here + field as u64) as i64;
                i32::try_from(distance).map_err(|_| LinkVa(to))
            };
            let mut desc = entry.desc;
            if let Some(target) = entry.target {
                desc.target_rel = relative(target.0, 0)?;
            }
            desc.header_rel = relative(header.0, SiteDesc::HEADER_REL_OFFSET)?;
            if entry.has_constants() {
                let to = constants_at + constants.len() as u64;
                desc.constants_rel = relative(to, SiteDesc::CONSTANTS_REL_OFFSET)?;
                constants.extend_from_slice(&entry.constants.to_bytes());
            }
            out.extend_from_slice(&desc.to_bytes());
        }
        out.extend(constants);
        Ok(out)
    }
}

/// What [`ompfuse_format::abi::ModuleHeader::identity`] holds: made of the original's hash and of the site table.
pub(crate) fn identity(original_sha256: &str, site_table: &[u8]) -> u64 {
    let mut hash = Sha256::new();
    hash.update(original_sha256);
    hash.update(site_table);
    let first = hash.finalize();
    first.iter().take(8).fold(0, |n, &b| n << 8 | u64::from(b))
}

/// Loops that would begin behind barriers, some of which have no probe: on no thread they are counted.
fn uncounted(scan: &Scan, patched: &BTreeSet<u32>) -> BTreeSet<u32> {
    let barriers = scan.sites.iter().filter_map(|s| match &s.action {
        Some(Action::Call { probe, .. }) if probe.probe == Probe::Barrier && probe.second != 0 => {
            Some((s.info.id, probe.param as u32, (probe.second - 1) as u32))
        }
        _ => None,
    });
    barriers
        .filter(|(barrier, _, share)| !patched.contains(barrier) || !patched.contains(share))
        .map(|(_, begun, _)| begun)
        .collect()
}

/// Loops whose begin is told by the probe of a barrier before them.
fn told_elsewhere(scan: &Scan, patched: &BTreeSet<u32>) -> BTreeSet<u32> {
    let uncounted = uncounted(scan, patched);
    let barriers = scan.sites.iter().filter_map(|s| match &s.action {
        Some(Action::Call { probe, .. }) if probe.probe == Probe::Barrier && probe.second != 0 => {
            Some(probe.param as u32)
        }
        _ => None,
    });
    barriers
        .filter(|begun| !uncounted.contains(begun))
        .collect()
}

/// Takes them out of what a site tells of them.
fn leave_out(entry: &mut Entry, uncounted: &BTreeSet<u32>) {
    let constants = &mut entry.constants;
    let probe = Probe::from_number(entry.desc.probe);
    if probe == Some(Probe::Barrier) && uncounted.contains(&(constants.param as u32)) {
        *constants = Constants::default();
    }
    if matches!(probe, Some(Probe::InlineLoopBegin | Probe::InlineLoopAgain)) {
        let site = entry.desc.site;
        let all = followers(site, constants.second);
        let left: Vec<u32> = all.filter(|f| !uncounted.contains(f)).collect();
        constants.second = encode_followers(site, &left).unwrap_or(0);
    }
}

/// The window table.
pub(crate) fn window_table(detours: &[Detour]) -> Vec<u8> {
    let mut out = (detours.len() as u64).to_le_bytes().to_vec();
    for d in detours {
        out.extend_from_slice(&d.start.0.to_le_bytes());
        out.extend_from_slice(&d.trampoline.0.to_le_bytes());
        out.extend_from_slice(&d.len.to_le_bytes());
        out.extend_from_slice(&d.trampoline_len.to_le_bytes());
        out.extend_from_slice(&d.island.map_or(0, |at| at.0).to_le_bytes());
    }
    out
}

/// So many bytes are read before `passed` is called.
const BETWEEN_RELEASES: usize = 4 << 20;

/// SHA-256 in hexadecimal. `passed`: called with the share that was read and isn't needed any more.
pub(crate) fn sha256(bytes: &[u8], passed: &(dyn Fn(f64) + Sync)) -> String {
    let mut hash = Sha256::new();
    for part in bytes.chunks(BETWEEN_RELEASES) {
        hash.update(part);
        passed(part.len() as f64 / bytes.len() as f64);
    }
    let hash = hash.finalize();
    hash.iter().map(|b| format!("{b:02x}")).collect()
}

/// The self-description.
pub(crate) fn description(
    original_sha256: String,
    scan: Cow<'_, Scan>,
    patched: &BTreeSet<u32>,
    options: &PlanOptions,
) -> SelfDescription {
    let told = told_elsewhere(&scan, patched);
    let (binary, mut sites): (_, Vec<SiteInfo>) = match scan {
        Cow::Owned(scan) => (
            scan.binary,
            scan.sites.into_iter().map(|s| s.info).collect(),
        ),
        Cow::Borrowed(scan) => {
            let sites = scan.sites.iter().map(|s| s.info.clone());
            (scan.binary.clone(), sites.collect())
        }
    };
    for info in &mut sites {
        if patched.contains(&info.id) {
            info.outcome = Outcome::Patched;
            info.reason = None;
        }
        // What a region's probes tell has none of its own.
        let is_implied = info.mechanism == Mechanism::Implied && info.outcome == Outcome::Patchable;
        if is_implied && (patched.contains(&info.region) || told.contains(&info.region)) {
            info.outcome = Outcome::Patched;
        }
    }
    SelfDescription {
        version: options.version.clone(),
        binary,
        original_sha256,
        sites,
    }
}

/// The self-description's bytes: JSON, compressed, with a checksum.
pub(crate) fn encode(description: &SelfDescription) -> io::Result<Vec<u8>> {
    let mut encoder = zstd::Encoder::new(Vec::new(), zstd::DEFAULT_COMPRESSION_LEVEL)?;
    encoder.include_checksum(true)?;
    let mut text = BufWriter::with_capacity(1 << 16, &mut encoder);
    description.write_json(&mut text)?;
    text.flush()?;
    drop(text);
    encoder.finish()
}

/// Reads a self-description, compressed or not.
pub(crate) fn decode(bytes: &[u8]) -> io::Result<SelfDescription> {
    Ok(SelfDescription::from_json(&text(bytes)?)?)
}

/// Whether this is what a description is encoded as.
pub(crate) fn encodes(bytes: &[u8], description: &SelfDescription) -> io::Result<bool> {
    Ok(description.is_written_in(&text(bytes)?)?)
}

/// Its text.
fn text(bytes: &[u8]) -> io::Result<Cow<'_, [u8]>> {
    if !bytes.starts_with(&ZSTD) {
        return Ok(Cow::Borrowed(bytes));
    }
    let mut text = Vec::new();
    zstd::Decoder::new(bytes)?
        .take(MAX_TEXT)
        .read_to_end(&mut text)?;
    Ok(Cow::Owned(text))
}

/// Stub numbers by the address of the call, of those that lead to their stubs themselves.
pub(crate) fn stub_numbers(calls: &[Redirect]) -> BTreeMap<LinkVa, u32> {
    let own = calls.iter().zip(0..).filter(|(c, _)| !c.relayed);
    own.map(|(c, n)| (c.at, n)).collect()
}

/// The relay table stands behind the window table: a count (8 bytes), then for each relay its address (8 bytes), length
/// and number of loads, those of tables included (4 bytes each), and their addresses (8 bytes each). Only `verify` reads it.
pub(crate) fn relay_table(relays: &[RelayCode], starts: &[LinkVa]) -> Vec<u8> {
    let mut out = (relays.len() as u64).to_le_bytes().to_vec();
    for (relay, start) in relays.iter().zip(starts) {
        out.extend_from_slice(&start.0.to_le_bytes());
        out.extend_from_slice(&(relay.len() as u32).to_le_bytes());
        out.extend_from_slice(&(relay.changed().count() as u32).to_le_bytes());
        for load in relay.changed() {
            out.extend_from_slice(&load.0.to_le_bytes());
        }
    }
    out
}

/// Its length in bytes.
pub(crate) fn relay_table_len(relays: &[RelayCode]) -> u64 {
    let loads = relays
        .iter()
        .map(|r| RELAY_LEN + 8 * r.changed().count() as u64);
    8 + loads.sum::<u64>()
}

/// The table of constants stands behind the relay table: a count (8 bytes), then for each the address of the instruction that it
/// belongs to (8 bytes), what is added to each event's sum (4 bytes each), the free register or 255, and the place (2 bytes each), and 4
/// bytes of 0; ascending. Behind it those that add multiples of a register: a count (8 bytes), then for each its number among the
/// constants (4 bytes), the register (2 bytes), the other one, how many are kept (1 byte each), and the factor of each event (8 bytes each). Only `verify`
/// reads it.
pub(crate) const INCREMENT_LEN: u64 = 8 + 4 * exact::COUNT as u64 + 8;
/// Of each that adds multiples.
pub(crate) const TERM_LEN: u64 = 8 + 8 * exact::COUNT as u64;

/// The table of constants.
pub(crate) fn count_table(increments: &[Increment]) -> Vec<u8> {
    let mut out = (increments.len() as u64).to_le_bytes().to_vec();
    for increment in increments {
        out.extend_from_slice(&increment.at.to_le_bytes());
        let amounts = increment.amounts.iter();
        out.extend(amounts.flat_map(|amount| amount.to_le_bytes()));
        let scratch = u16::from(increment.scratch.unwrap_or(u8::MAX));
        out.extend_from_slice(&scratch.to_le_bytes());
        out.extend_from_slice(&(increment.place as u16).to_le_bytes());
        out.extend([0; 4]);
    }
    out.extend((terms(increments).count() as u64).to_le_bytes());
    for (number, term) in terms(increments) {
        out.extend((number as u32).to_le_bytes());
        out.extend(u16::from(term.register).to_le_bytes());
        out.extend([term.spare, term.kept]);
        out.extend(term.factors.iter().flat_map(|factor| factor.to_le_bytes()));
    }
    out
}

/// Those that add multiples of a register.
fn terms(increments: &[Increment]) -> impl Iterator<Item = (usize, Term)> {
    let all = increments.iter().enumerate();
    all.filter_map(|(n, increment)| Some((n, increment.term?)))
}

/// Its length in bytes.
pub(crate) fn count_table_len(increments: &[Increment]) -> u64 {
    16 + INCREMENT_LEN * increments.len() as u64 + TERM_LEN * terms(increments).count() as u64
}
