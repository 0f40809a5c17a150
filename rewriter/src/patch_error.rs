//! What can stand in the way of a patch, and what to do about it.

use crate::model::LinkVa;
use crate::verify::VerifyError;
use thiserror::Error;

/// Why a binary can't be patched.
#[derive(Debug, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum PatchError {
    #[error("cannot patch {path}: {what}; give an x86-64 ELF program or shared library")]
    Format { path: String, what: String },
    #[error("cannot patch {path}: it is patched already; start from the original")]
    AlreadyPatched { path: String },
    #[error(
        "cannot patch site {id} in {path}: there are only {sites} sites; take an id that `ompfuse scan` lists"
    )]
    UnknownSite { path: String, id: u32, sites: usize },
    #[error("cannot patch site {at} in {path}: {what}; exclude it with --skip {at}")]
    Site {
        path: String,
        at: LinkVa,
        what: String,
    },
    #[error(
        "cannot patch call site {at} in {path}: {len} bytes free, 5 needed; exclude it with --skip {at}"
    )]
    TooShort { path: String, at: LinkVa, len: u32 },
    #[error(
        "cannot patch site {at} in {path}: {to} is more than 2 GiB away from the code that is added; \
         its arrays are too large for this version"
    )]
    TooFar {
        path: String,
        at: LinkVa,
        to: LinkVa,
    },
    #[error(
        "cannot add {library} to the libraries that {path} loads: {what}; `ompfuse patch --dormant` adds none"
    )]
    Needed {
        path: String,
        library: String,
        what: String,
    },
    #[error(
        "the patched {path} failed its verification ({source}); report this as a bug of ompfuse"
    )]
    Verify { path: String, source: VerifyError },
    #[error(
        "the plan is for a file of {planned} bytes, {path} has {actual}; scan and plan it again"
    )]
    OtherFile {
        path: String,
        planned: u64,
        actual: u64,
    },
}
