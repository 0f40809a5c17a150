//! The interface between a patched module and the runtime library in its process.
//!
//! The rewriter appends three segments to a module: a read-only one (site table, note), an executable one
//! (a stub per call site, a *way* per target of theirs) and a writable one that starts with a [`ModuleHeader`]. The runtime
//! library finds the header through the note, writes its addresses into the header's slots, and from then on the stubs lead
//! to it. A slot that holds 0 makes its stubs pass through: the module behaves as the original.
//!
//! ```text
//! call site:   call stub_17                       ; was: call GOMP_barrier@plt
//! stub_17:     lea  r10, [rip + site_17]          ; -> SiteDesc
//!              jmp  way_3
//! way_3:       mov  r11, [rip + header.slots[s]]  ; 0 without the runtime library
//!              test r11, r11
//!              jz   original_target               ; indirect sites: jz +3, behind the next
//!              jmp  r11                           ; indirect sites: jmp [original GOT slot] follows
//! ```
//!
//! At a thunk's entry `r10` holds the address of the [`SiteDesc`], everything else is as the original callee
//! would see it (return address at `[rsp]`, stack arguments from `[rsp+8]`). `rax` is kept: `al` counts the vector
//! registers of a variadic call. An inline trampoline *calls* the slot with the same `r10` after it has stepped over
//! the red zone and saved `r11`, `r10`, `rax` and the arithmetic flags (`popfq` takes ten times as long as `sahf` and an
//! addition that overflows; the direction flag is clear wherever a compiler's own code is); the thunk preserves all other
//! registers, vector state included:
//!
//! ```text
//! trampoline:  lea  rsp, [rsp - 128]
//!              push r11 ; push r10 ; push rax
//!              lahf ; seto al ; push rax
//!              mov  r11, [rip + header.slots[INLINE]] ; test r11, r11 ; jz skip
//!              lea  r10, [rip + site] ; call r11
//! skip:        pop rax ; add al, 127 ; sahf ; pop rax
//!              pop r10 ; pop r11
//!              lea  rsp, [rsp + 128]
//!              ...displaced instructions, further probes between them...
//!              jmp  back
//! ```
//!
//! A call through a register or variable stays as it is. What makes the address that it calls, and nothing else uses,
//! makes that of a relay instead, in the same registers and at the same depth of the stack:
//!
//! ```text
//! load:        lea  rbx, [rip + relay]         ; was: mov rbx, [rip + GOT slot]
//!              call rbx                        ; as it was
//! behind_17:
//! relay:       endbr64
//!              lea  r11, [rip + behind_17] ; cmp [rsp], r11 ; je stub_17
//!              ...further calls...
//!              jmp  original_target            ; or the stub of the one jump among them
//! ```
//!
//! A module may count the instructions that its threads execute. Where nobody reads some register and the flags, a trampoline adds a
//! constant so:
//!
//! ```text
//!              mov  rcx, [rip + header.slots[COUNT]]  ; any register that is free
//!              test rcx, rcx ; jz behind
//!              add  qword ptr fs:[rcx], constant
//! behind:
//! ```
//!
//! Elsewhere it steps over the red zone first and saves rcx, rax and the flags, as for a probe. Constants are in parts of one
//! ([`exact::PARTS`](crate::event::exact::PARTS)). Where loops begin and end that count their turns by a register, a multiple of that is
//! added instead:
//!
//! ```text
//!              imul rdx, register, factor             ; another register that is free, or is kept on the stack
//!              add  rdx, constant
//!              add  qword ptr fs:[rcx], rdx
//! ```
//!
//! All relative fields are `address of the target - address of the field`, so that nothing needs a relocation.

pub mod handed;
mod probe;

pub use probe::Probe;

/// Version of this interface; a runtime library leaves modules of another version alone. The first had 64 bytes for every
/// site, and stubs that did what ways do; up to the third, trampolines saved all flags; the fourth had a window table
/// without islands; the eighth had a probe for chunks that begin without a comparison, and no table of constants; the ninth counted
/// instructions only, and told nothing of constructs in functions that don't count; the tenth counted whole numbers.
pub const ABI_VERSION: u32 = 11;

/// Name of the ELF note (with its terminating NUL, 8 bytes) and of the description's section.
pub const NOTE_NAME: &[u8; 8] = b"ompfuse\0";

/// Type of the ELF note whose description is a [`NoteDesc`].
pub const NOTE_TYPE: u32 = 1;

/// First bytes of a [`ModuleHeader`].
pub const MODULE_MAGIC: [u8; 8] = *b"OMPFUSE\0";

/// File name of the runtime library, as `$ORIGIN/NAME` in `DT_NEEDED`.
pub const RUNTIME_LIBRARY: &str = "libompfuse_runtime.so";

/// Number of slots in a [`ModuleHeader`]; unused ones hold 0.
pub const SLOTS: usize = 16;

/// Slot of the thunk for call sites.
pub const SLOT_CALL: usize = 0;
/// Slot of the thunk for calls with an argument block to copy ([`Probe::TaskCreate`], [`Probe::Taskloop`]).
pub const SLOT_TASK: usize = 1;
/// Slot of the thunk for inline probes.
pub const SLOT_INLINE: usize = 2;
/// Slot of no thunk: where in a thread's thread-local storage its count of instructions is.
pub const SLOT_COUNT: usize = 3;
/// Of a module with the OpenMP runtime linked in: functions that nobody else in the process can look up, each with the slot that
/// holds its address - address of the header. The first two are there or none is; 0 where one of the others isn't linked in.
pub const OWN_FUNCTIONS: [(usize, &str); 5] = [
    (14, "omp_get_thread_num"),
    (15, "omp_get_num_threads"),
    // Tells libomp (or Intel's) from libgomp.
    (11, "__kmpc_global_thread_num"),
    (12, "omp_get_team_num"),
    (13, "omp_get_num_teams"),
];

/// The note's description: where the module header and the self-description are. 32 bytes, little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct NoteDesc {
    /// [`ABI_VERSION`] of the rewriter.
    pub abi_version: u32,
    /// 0.
    pub reserved: u32,
    /// Link-time address of the [`ModuleHeader`].
    pub header_va: u64,
    /// File offset of the self-description ([`crate::site::SelfDescription`] as JSON, compressed by zstd; the first
    /// versions didn't compress it).
    pub description_offset: u64,
    /// Its length in bytes.
    pub description_len: u64,
}

impl NoteDesc {
    /// Length of the encoded form in bytes.
    pub const LEN: usize = 32;

    /// Encodes the description of the note.
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let mut out = [0; Self::LEN];
        out[0..4].copy_from_slice(&self.abi_version.to_le_bytes());
        out[4..8].copy_from_slice(&self.reserved.to_le_bytes());
        out[8..16].copy_from_slice(&self.header_va.to_le_bytes());
        out[16..24].copy_from_slice(&self.description_offset.to_le_bytes());
        out[24..32].copy_from_slice(&self.description_len.to_le_bytes());
        out
    }

    /// Decodes the description of the note; `None` when it is too short.
    pub fn from_bytes(bytes: &[u8]) -> Option<NoteDesc> {
        let word = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        Some(NoteDesc {
            abi_version: word(0)? as u32,
            reserved: (word(0)? >> 32) as u32,
            header_va: word(8)?,
            description_offset: word(16)?,
            description_len: word(24)?,
        })
    }
}

/// Start of the patched module's writable segment.
#[derive(Debug)]
#[repr(C)]
pub struct ModuleHeader {
    /// [`MODULE_MAGIC`].
    pub magic: [u8; 8],
    /// [`ABI_VERSION`].
    pub abi_version: u32,
    /// Number of [`SiteDesc`]s: one for every site with a probe.
    pub n_sites: u32,
    /// Run-time addresses of the thunks, 0 in the file, at the numbers of [`SLOT_CALL`] and the constants below it.
    pub slots: [u64; SLOTS],
    /// Link-time address of this header: the module's bias is `&header - header_va`.
    pub header_va: u64,
    /// Address of the first [`SiteDesc`] - address of this field.
    pub sites_rel: i64,
    /// The module's number in this process, written by the runtime library; 0 in the file.
    pub module: u32,
    /// The set of events ([`exact`](crate::event::exact)) that the module's code counts; 0 if it adds no constant.
    pub counts: u32,
    /// Tells this file from every other: a hash of the original and of the site table.
    pub identity: u64,
}

impl ModuleHeader {
    /// Length in bytes.
    pub const LEN: usize = 8 + 8 + 8 * SLOTS + 8 + 8 + 8 + 8;
    /// Offset of [`ModuleHeader::slots`] in bytes.
    pub const SLOTS_OFFSET: usize = 16;
    /// Offset of [`ModuleHeader::sites_rel`] in bytes.
    pub const SITES_REL_OFFSET: usize = 16 + 8 * SLOTS + 8;
    /// Offset of [`ModuleHeader::identity`] in bytes.
    pub const IDENTITY_OFFSET: usize = Self::SITES_REL_OFFSET + 8 + 8;

    /// Offset of [`ModuleHeader::counts`] in bytes.
    pub const COUNTS_OFFSET: usize = Self::SITES_REL_OFFSET + 8 + 4;

    /// The header as it stands in the file. `sites_va`: link-time address of the first [`SiteDesc`].
    pub fn encode(
        header_va: u64,
        sites_va: u64,
        (n_sites, counts): (u32, u32),
        identity: u64,
    ) -> [u8; Self::LEN] {
        let mut out = [0; Self::LEN];
        out[0..8].copy_from_slice(&MODULE_MAGIC);
        out[8..12].copy_from_slice(&ABI_VERSION.to_le_bytes());
        out[12..16].copy_from_slice(&n_sites.to_le_bytes());
        let at = Self::SLOTS_OFFSET + 8 * SLOTS;
        out[at..at + 8].copy_from_slice(&header_va.to_le_bytes());
        let rel = sites_va.wrapping_sub(header_va + Self::SITES_REL_OFFSET as u64);
        out[at + 8..at + 16].copy_from_slice(&rel.to_le_bytes());
        out[Self::COUNTS_OFFSET..][..4].copy_from_slice(&counts.to_le_bytes());
        out[Self::IDENTITY_OFFSET..].copy_from_slice(&identity.to_le_bytes());
        out
    }
}

/// Absent argument position in [`SiteDesc::args`].
pub const NO_ARG: u8 = 0xff;

/// [`SiteDesc::flags`]: `target_rel` leads to an 8-byte slot (GOT) that holds the target's address.
pub const FLAG_INDIRECT: u8 = 1;
/// [`SiteDesc::flags`]: the site is a jump, not a call.
pub const FLAG_TAIL: u8 = 2;
/// [`SiteDesc::flags`]: the values of `width` bytes are unsigned.
pub const FLAG_UNSIGNED: u8 = 4;

/// [`SiteDesc::flags`] of [`Probe::StaticInit`]: every chunk has a [`Probe::InlineNextChunk`].
pub const FLAG_CHUNKS: u8 = 8;

/// [`SiteDesc::flags`]: the call goes through a register or variable, and what makes the address leads to the stub.
pub const FLAG_RELAYED: u8 = 16;

/// [`SiteDesc::flags`], in a module that counts instructions: the construct's code is in a function that doesn't.
pub const FLAG_UNCOUNTED: u8 = 32;

/// [`SiteDesc::nargs`]: that many or more, [`Constants::param`] says how many.
pub const MANY_ARGUMENTS: u8 = 15;
/// Most arguments that a probe hands on, where it is one of variadic calls ([`Probe::Enclosed`]); others hand on 14.
pub const MOST_ARGUMENTS: u8 = 64;

/// What the runtime library needs to know of a site with a probe: 32 bytes in the read-only segment, ascending by site.
/// The [`Constants`] of those that have some stand behind the last one, in the same order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct SiteDesc {
    /// Address of the original target (or of its slot, [`FLAG_INDIRECT`]) - address of this field. 0 for inline sites.
    pub target_rel: i32,
    /// Address of the [`ModuleHeader`] - address of this field.
    pub header_rel: i32,
    /// Number of this site among all of the module, as the self-description counts them.
    pub site: u32,
    /// Number of the site that began the construct (itself at a begin): the region.
    pub region: u32,
    /// A [`Probe`]'s number.
    pub probe: u8,
    /// A [`crate::Construct`]'s number.
    pub construct: u8,
    /// `FLAG_*`.
    pub flags: u8,
    /// [`SiteDesc::width`] and [`SiteDesc::nargs`].
    pub sizes: u8,
    /// Positions of the arguments that the probe reads; their order is documented at each [`Probe`].
    pub args: [u8; 8],
    /// Address of the site's [`Constants`] - address of this field; 0 where both are 0.
    pub constants_rel: i32,
}

/// Constants of a probe, where it has any: 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Constants {
    /// The number of a call's arguments ([`MANY_ARGUMENTS`]), the filter of [`Probe::InlineMaster`], the other site of
    /// [`Probe::InlineLoopAgain`], a distance of [`Probe::InlineChunk`].
    pub param: i64,
    /// The offset of [`Probe::InlineChunk`], loops that follow ([`followers`]).
    pub second: i64,
}

impl Constants {
    /// Length in bytes.
    pub const LEN: usize = 16;

    /// Encodes the two.
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let mut out = [0; Self::LEN];
        out[..8].copy_from_slice(&self.param.to_le_bytes());
        out[8..].copy_from_slice(&self.second.to_le_bytes());
        out
    }
}

impl SiteDesc {
    /// Length in bytes.
    pub const LEN: usize = 32;
    /// Offset of [`SiteDesc::header_rel`] in bytes.
    pub const HEADER_REL_OFFSET: usize = 4;
    /// Offset of [`SiteDesc::constants_rel`] in bytes.
    pub const CONSTANTS_REL_OFFSET: usize = 28;

    /// Width in bytes of the values behind pointers or in registers (up to 8).
    #[inline(always)]
    pub const fn width(&self) -> u8 {
        self.sizes & 0xf
    }

    /// How many integer arguments the target takes (those from the seventh on are on the stack); [`MANY_ARGUMENTS`] stands
    /// for a number up to [`MOST_ARGUMENTS`] in the constants.
    #[inline(always)]
    pub const fn nargs(&self) -> u8 {
        self.sizes >> 4
    }

    /// Encodes [`SiteDesc::sizes`]; no entry point has values that don't fit.
    pub const fn encode_sizes(width: u8, nargs: u8) -> u8 {
        let nargs = if nargs > MANY_ARGUMENTS {
            MANY_ARGUMENTS
        } else {
            nargs
        };
        width & 0xf | nargs << 4
    }

    /// Encodes the site.
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let mut out = [0; Self::LEN];
        out[0..4].copy_from_slice(&self.target_rel.to_le_bytes());
        out[4..8].copy_from_slice(&self.header_rel.to_le_bytes());
        out[8..12].copy_from_slice(&self.site.to_le_bytes());
        out[12..16].copy_from_slice(&self.region.to_le_bytes());
        out[16..20].copy_from_slice(&[self.probe, self.construct, self.flags, self.sizes]);
        out[20..28].copy_from_slice(&self.args);
        out[28..32].copy_from_slice(&self.constants_rel.to_le_bytes());
        out
    }
}

/// How many loops [`Constants::second`] can name.
pub const MAX_FOLLOWERS: usize = 4;

/// Encodes the sites that follow site `own` for [`Constants::second`]; `None` if they are too many or too far away.
pub fn encode_followers(own: u32, sites: &[u32]) -> Option<i64> {
    if sites.len() > MAX_FOLLOWERS {
        return None;
    }
    let mut out = 0;
    for (nth, &site) in sites.iter().enumerate() {
        let distance = i16::try_from(i64::from(site) - i64::from(own)).ok()?;
        out |= u64::from(distance.cast_unsigned()) << (16 * nth);
    }
    Some(out.cast_signed())
}

/// The sites that [`encode_followers`] encoded.
pub fn followers(own: u32, second: i64) -> impl Iterator<Item = u32> {
    let distance = move |nth: usize| (second >> (16 * nth)) as i16;
    (0..MAX_FOLLOWERS)
        .map(distance)
        .take_while(|&d| d != 0)
        .map(move |d| own.wrapping_add_signed(i32::from(d)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_have_the_documented_sizes() {
        assert_eq!(size_of::<SiteDesc>(), SiteDesc::LEN);
        assert_eq!(size_of::<ModuleHeader>(), ModuleHeader::LEN);
        assert_eq!(size_of::<NoteDesc>(), NoteDesc::LEN);
        assert_eq!(
            core::mem::offset_of!(ModuleHeader, sites_rel),
            ModuleHeader::SITES_REL_OFFSET
        );
        assert_eq!(
            core::mem::offset_of!(ModuleHeader, slots),
            ModuleHeader::SLOTS_OFFSET
        );
        assert_eq!(
            core::mem::offset_of!(ModuleHeader, counts),
            ModuleHeader::COUNTS_OFFSET
        );
        assert_eq!(
            core::mem::offset_of!(ModuleHeader, identity),
            ModuleHeader::IDENTITY_OFFSET
        );
        assert_eq!(core::mem::offset_of!(SiteDesc, args), 20);
        assert_eq!(
            core::mem::offset_of!(SiteDesc, header_rel),
            SiteDesc::HEADER_REL_OFFSET
        );
        assert_eq!(
            core::mem::offset_of!(SiteDesc, constants_rel),
            SiteDesc::CONSTANTS_REL_OFFSET
        );
        assert_eq!(size_of::<Constants>(), Constants::LEN);
    }

    #[test]
    fn sizes_round_trip() {
        let mut site = SiteDesc {
            target_rel: 0,
            header_rel: 0,
            site: 0,
            region: 0,
            probe: 0,
            construct: 0,
            flags: 0,
            sizes: 0,
            args: [NO_ARG; 8],
            constants_rel: 0,
        };
        for (width, nargs) in [(0, 0), (8, 12), (4, 15), (2, 1)] {
            site.sizes = SiteDesc::encode_sizes(width, nargs);
            assert_eq!((site.width(), site.nargs()), (width, nargs));
        }
    }

    #[test]
    fn followers_round_trip() {
        for sites in [&[][..], &[8], &[3, 9], &[8, 9, 10, 6]] {
            let second = encode_followers(7, sites).unwrap();
            assert_eq!(followers(7, second).collect::<Vec<_>>(), sites);
        }
        assert_eq!(encode_followers(7, &[1, 2, 3, 4, 5]), None);
        assert_eq!(encode_followers(7, &[70_000]), None);
    }

    #[test]
    fn note_round_trips() {
        let note = NoteDesc {
            abi_version: 1,
            reserved: 0,
            header_va: 0x40_4000,
            description_offset: 7,
            description_len: 9,
        };
        assert_eq!(NoteDesc::from_bytes(&note.to_bytes()), Some(note));
        assert_eq!(NoteDesc::from_bytes(&note.to_bytes()[..31]), None);
    }
}
