//! What can be wrong with a file that is to be scanned.

/// Why a file can't be scanned. Each message says what is wrong, where, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScanError {
    /// The file doesn't start as ELF files do.
    #[error("cannot read {path}: not an ELF file; give a compiled program or shared library")]
    NotElf {
        /// The file.
        path: String,
    },
    /// 32-bit or big-endian.
    #[error("cannot read {path}: a {form} ELF file; only 64-bit little-endian x86-64 is supported")]
    Form {
        /// The file.
        path: String,
        /// `32-bit` or `big-endian`.
        form: &'static str,
    },
    /// Made for another processor.
    #[error("cannot read {path}: made for {machine}; only x86-64 is supported")]
    Machine {
        /// The file.
        path: String,
        /// The processor's name or ELF number.
        machine: String,
    },
    /// Neither program nor shared library.
    #[error("{path}: {kind}")]
    Kind {
        /// The file.
        path: String,
        /// What it is, and what to give instead.
        kind: &'static str,
    },
    /// A part that the headers promise isn't there.
    #[error(
        "cannot read {path}: truncated: {what} at offset {offset:#x} lies behind the end of the \
         file ({len:#x}); get a complete copy"
    )]
    Truncated {
        /// The file.
        path: String,
        /// The part.
        what: &'static str,
        /// Where it should be.
        offset: u64,
        /// The file's length.
        len: u64,
    },
    /// The headers contradict themselves.
    #[error("cannot read {path}: malformed: {what}; build it again or report the linker")]
    Malformed {
        /// The file.
        path: String,
        /// The contradiction.
        what: String,
    },
    /// Nobody would load the runtime library.
    #[error(
        "{path}: a static executable: without a loader no runtime library can be added; \
         link it dynamically"
    )]
    Static {
        /// The file.
        path: String,
    },
    /// The file is an output of `ompfuse patch`.
    #[error("{path}: already patched by ompfuse; give the original file")]
    AlreadyPatched {
        /// The file.
        path: String,
    },
    /// The file is an output of `ompfuse patch`, but what it says of itself can't be read.
    #[error(
        "{path}: patched by ompfuse, but its description is damaged or was stripped; patch the original again \
         (to strip a patched program, strip its original)"
    )]
    Undescribed {
        /// The file.
        path: String,
    },
    /// A runtime is linked in whose functions can't be told from others.
    #[error(
        "{path}: an OpenMP runtime is linked in, but without symbols its functions can't be found; \
         give a file with its symbol table, or link the runtime dynamically"
    )]
    NamelessRuntime {
        /// The file.
        path: String,
    },
    /// A runtime is linked in that can't be asked what a probe has to know.
    #[error(
        "{path}: an OpenMP runtime is linked in without its {function}, so that threads and teams can't be told apart; \
         link it with -Wl,--undefined={function}, or link the runtime dynamically"
    )]
    IncompleteRuntime {
        /// The file.
        path: String,
        /// What the linker left out.
        function: &'static str,
    },
    /// The file is the OpenMP runtime.
    #[error(
        "{path}: an OpenMP runtime library itself; give the programs and libraries that call it"
    )]
    Runtime {
        /// The file.
        path: String,
    },
    /// Functions were to be chosen by their source file, which only debug information tells.
    #[error(
        "{path}: cannot choose functions by source file, because it has no debug information; compile with -g, or give \
         the functions' names"
    )]
    NoLines {
        /// The file.
        path: String,
    },
    /// No OpenMP, and no function that is wanted.
    #[error(
        "{path}: no OpenMP in it, and no function that --functions or --loops chooses; `--functions '*'` lists all that it has"
    )]
    NoFunctions {
        /// The file.
        path: String,
    },
    /// No function of an OpenMP runtime is imported or contained.
    #[error(
        "{path}: no OpenMP in it: no function of an OpenMP runtime is imported or contained; \
         give the program or library that holds the parallel code"
    )]
    NoOpenMp {
        /// The file.
        path: String,
    },
}
