//! What a site's description says to the probes.

use core::ptr::addr_of;
use ompfuse_format::abi::{Constants, FLAG_UNSIGNED, ModuleHeader, SiteDesc};
use ompfuse_format::record::site_ref;

/// Number of a site's module in the process.
#[inline(always)]
fn module(site: &SiteDesc) -> u32 {
    let header = (addr_of!(site.header_rel) as usize).wrapping_add(site.header_rel as usize)
        as *const ModuleHeader;
    // SAFETY: the rewriter's relative address of the header, in the same module.
    unsafe { (*header).module }
}

/// The constants of a site's probe.
#[inline(always)]
pub(crate) fn constants(site: &SiteDesc) -> Constants {
    if site.constants_rel == 0 {
        return Constants::default();
    }
    let at = (addr_of!(site.constants_rel) as usize).wrapping_add(site.constants_rel as usize)
        as *const Constants;
    // SAFETY: the rewriter's relative address of this site's constants, in the same table.
    unsafe { at.read_unaligned() }
}

/// A site as records name it.
#[inline(always)]
pub(crate) fn this(site: &SiteDesc) -> u32 {
    site_ref(module(site), site.site)
}

/// The site that began a site's construct.
#[inline(always)]
pub(crate) fn region(site: &SiteDesc) -> u32 {
    site_ref(module(site), site.region)
}

/// A loop bound of the program, sign- or zero-extended from the site's width.
#[inline(always)]
pub(crate) fn bound(site: &SiteDesc, value: u64) -> i64 {
    match (site.width(), site.flags & FLAG_UNSIGNED != 0) {
        (4, false) => i64::from(value as i32),
        (4, true) => i64::from(value as u32),
        (2, false) => i64::from(value as i16),
        (2, true) => i64::from(value as u16),
        (1, false) => i64::from(value as i8),
        (1, true) => i64::from(value as u8),
        _ => value as i64,
    }
}

/// A loop bound behind a pointer of the program.
///
/// # Safety
/// The pointer must be the one that the program handed to the runtime for a value of the site's width.
#[inline(always)]
pub(crate) unsafe fn bound_at(site: &SiteDesc, pointer: u64) -> i64 {
    // SAFETY: the caller's promise.
    unsafe {
        match site.width() {
            4 => bound(site, u64::from((pointer as *const u32).read_unaligned())),
            2 => bound(site, u64::from((pointer as *const u16).read_unaligned())),
            1 => bound(site, u64::from((pointer as *const u8).read())),
            _ => (pointer as *const i64).read_unaligned(),
        }
    }
}
