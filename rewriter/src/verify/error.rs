//! Why a patched file is rejected.

use thiserror::Error;

/// Why a patched file is rejected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum VerifyError {
    #[error("the {which} is no ELF file that goblin accepts: {what}")]
    Elf { which: &'static str, what: String },
    #[error(
        "the file doesn't say that ompfuse patched it; give the original first, then the patched file"
    )]
    NotPatched,
    #[error("the file was made of another original: its SHA-256 is {expected}")]
    OtherOriginal { expected: String },
    #[error("{what}; patch the original again")]
    Damaged { what: String },
    #[error("site {site} at {at:#x}: {what}; patch the original again")]
    Site { site: u32, at: u64, what: String },
    #[error("code at {at:#x}: expected `{expected}`, found `{found}`; patch the original again")]
    Code {
        at: u64,
        expected: String,
        found: String,
    },
    #[error(
        "byte {offset:#x} of the file changed outside every planned range; patch the original again"
    )]
    Changed { offset: u64 },
    #[error("{first} and {second} overlap at offset {offset:#x}; patch the original again")]
    Overlap {
        first: &'static str,
        second: &'static str,
        offset: u64,
    },
    #[error("the relocation of {at:#x} touches changed bytes; exclude the site there with --skip")]
    Relocation { at: u64 },
    #[error("{what} at offset {offset:#x} isn't what was planned")]
    NotThePlan { what: &'static str, offset: u64 },
}

impl VerifyError {
    pub(super) fn damaged(what: impl Into<String>) -> VerifyError {
        VerifyError::Damaged { what: what.into() }
    }
}
