//! What a patched file says of itself: site table, window table, note, self-description.

use crate::model::{Action, LinkVa, Scan, Site, Target};
use crate::plan::PlanOptions;
use crate::relay::RelayCode;
use crate::stubs::Redirect;
use crate::trampoline::Detour;
use ompfuse_format::abi::{
    FLAG_CHUNKS, FLAG_INDIRECT, FLAG_RELAYED, FLAG_TAIL, FLAG_UNSIGNED, NO_ARG, NOTE_NAME,
    NOTE_TYPE, NoteDesc, Probe, SiteDesc, encode_followers, followers,
};
use ompfuse_format::site::{Mechanism, Outcome, SelfDescription};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufWriter, Read, Write};

/// What compressed self-descriptions begin with; the others begin with `{`.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// No description is longer: a damaged one could claim to be.
const MAX_TEXT: u64 = 1 << 30;

/// Length in bytes of the note: header, name, description.
pub(crate) const NOTE_LEN: u64 = 12 + 8 + NoteDesc::LEN as u64;

/// The window table stands behind the site table: a count (8 bytes), then start, trampoline (8 bytes each), length of
/// the window and of the trampoline (4 bytes each), ascending. Only `verify` reads it.
pub(crate) const WINDOW_LEN: u64 = 24;

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

/// The table's entry for a site; those without a probe have probe number 0, so that indices are the scan's.
pub(crate) fn site_desc(site: &Site, patched: bool, at: LinkVa, header: LinkVa) -> SiteDesc {
    let mut desc = SiteDesc {
        target_rel: 0,
        header_rel: header.0.wrapping_sub(at.0 + 8) as i64,
        address: site.info.address.0,
        param: 0,
        site: site.info.id,
        region: site.info.region,
        probe: 0,
        flags: 0,
        construct: site.info.construct as u8,
        nargs: 0,
        width: 0,
        reserved: 0,
        args: [NO_ARG; 8],
        second: 0,
    };
    let Some(action) = site.action.as_ref().filter(|_| patched) else {
        return desc;
    };
    let probe = match action {
        Action::Inline(probe) => probe,
        Action::Call {
            tail,
            relayed,
            target,
            probe,
            ..
        } => {
            let (Target::Direct(to) | Target::Slot(to)) = *target;
            desc.target_rel = to.0.wrapping_sub(at.0) as i64;
            if matches!(target, Target::Slot(_)) {
                desc.flags |= FLAG_INDIRECT;
            }
            if *tail {
                desc.flags |= FLAG_TAIL;
            }
            if *relayed {
                desc.flags |= FLAG_RELAYED;
            }
            probe
        }
    };
    if probe.unsigned {
        desc.flags |= FLAG_UNSIGNED;
    }
    if probe.chunks {
        desc.flags |= FLAG_CHUNKS;
    }
    desc.second = probe.second;
    desc.probe = probe.probe as u16;
    desc.param = probe.param;
    desc.nargs = probe.nargs;
    desc.width = probe.width;
    desc.args = probe.args;
    desc
}

/// The site table.
pub(crate) fn site_table(
    scan: &Scan,
    patched: &BTreeSet<u32>,
    at: LinkVa,
    header: LinkVa,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(scan.sites.len() * SiteDesc::LEN);
    let uncounted = uncounted(scan, patched);
    for site in &scan.sites {
        let at = LinkVa(at.0 + out.len() as u64);
        let mut desc = site_desc(site, patched.contains(&site.info.id), at, header);
        if !uncounted.is_empty() {
            leave_out(&mut desc, &uncounted);
        }
        out.extend_from_slice(&desc.to_bytes());
    }
    out
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
fn leave_out(desc: &mut SiteDesc, uncounted: &BTreeSet<u32>) {
    let probe = Probe::from_number(desc.probe);
    if probe == Some(Probe::Barrier) && uncounted.contains(&(desc.param as u32)) {
        (desc.param, desc.second) = (0, 0);
    }
    if matches!(probe, Some(Probe::InlineLoopBegin | Probe::InlineLoopAgain)) {
        let all = followers(desc.site, desc.second);
        let left: Vec<u32> = all.filter(|f| !uncounted.contains(f)).collect();
        desc.second = encode_followers(desc.site, &left).unwrap_or(0);
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
    }
    out
}

/// SHA-256 in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect()
}

/// The self-description.
pub(crate) fn description(
    bytes: &[u8],
    scan: &Scan,
    patched: &BTreeSet<u32>,
    options: &PlanOptions,
) -> SelfDescription {
    let told = told_elsewhere(scan, patched);
    let sites = scan.sites.iter().map(|site| {
        let mut info = site.info.clone();
        if patched.contains(&info.id) {
            info.outcome = Outcome::Patched;
            info.reason = None;
        }
        // What a region's probes tell has none of its own.
        let is_implied = info.mechanism == Mechanism::Implied && info.outcome == Outcome::Patchable;
        if is_implied && (patched.contains(&info.region) || told.contains(&info.region)) {
            info.outcome = Outcome::Patched;
        }
        info
    });
    SelfDescription {
        version: options.version.clone(),
        binary: scan.binary.clone(),
        original_sha256: sha256(bytes),
        sites: sites.collect(),
    }
}

/// The self-description's bytes: JSON, compressed, with a checksum.
pub(crate) fn encode(description: &SelfDescription) -> io::Result<Vec<u8>> {
    let mut encoder = zstd::Encoder::new(Vec::new(), zstd::DEFAULT_COMPRESSION_LEVEL)?;
    encoder.include_checksum(true)?;
    let mut text = BufWriter::with_capacity(1 << 16, &mut encoder);
    serde_json::to_writer(&mut text, description)?;
    text.flush()?;
    drop(text);
    encoder.finish()
}

/// Reads a self-description, compressed or not.
pub(crate) fn decode(bytes: &[u8]) -> io::Result<SelfDescription> {
    let mut text = Vec::new();
    let json = match bytes.starts_with(&ZSTD) {
        true => {
            zstd::Decoder::new(bytes)?
                .take(MAX_TEXT)
                .read_to_end(&mut text)?;
            &text[..]
        }
        false => bytes,
    };
    Ok(serde_json::from_slice(json)?)
}

/// Stub numbers by the address of the call, of those that lead to their stubs themselves.
pub(crate) fn stub_numbers(calls: &[Redirect]) -> BTreeMap<LinkVa, u32> {
    let own = calls.iter().zip(0..).filter(|(c, _)| !c.relayed);
    own.map(|(c, n)| (c.at, n)).collect()
}

/// The relay table stands behind the window table: a count (8 bytes), then for each relay its address (8 bytes), length
/// and number of loads (4 bytes each), and their addresses (8 bytes each). Only `verify` reads it.
pub(crate) fn relay_table(relays: &[RelayCode], starts: &[LinkVa]) -> Vec<u8> {
    let mut out = (relays.len() as u64).to_le_bytes().to_vec();
    for (relay, start) in relays.iter().zip(starts) {
        out.extend_from_slice(&start.0.to_le_bytes());
        out.extend_from_slice(&(relay.len() as u32).to_le_bytes());
        out.extend_from_slice(&(relay.loads.len() as u32).to_le_bytes());
        for load in &relay.loads {
            out.extend_from_slice(&load.0.to_le_bytes());
        }
    }
    out
}

/// Its length in bytes.
pub(crate) fn relay_table_len(relays: &[RelayCode]) -> u64 {
    let loads = relays.iter().map(|r| RELAY_LEN + 8 * r.loads.len() as u64);
    8 + loads.sum::<u64>()
}
