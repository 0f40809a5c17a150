//! Debug information that is in other files than the program or library: where it is looked for.
//!
//! As gdb and addr2line do, and without the network:
//!
//! 1. by build id, in the folders that the user names, in `/usr/lib/debug`, and in the folder where debuginfod's client keeps
//!    what it has fetched;
//! 2. by the name in `.gnu_debuglink`, beside the file, in `.debug` there, and in those folders, under the file's own path
//!    and directly. It must have the build id, or else the checksum, that the file names.
//!
//! A supplementary file (`dwz -m`) is looked for by its path in `.gnu_debugaltlink`, and by its build id likewise.

use crate::input::{self, Input};
use crate::output::note;
use ompfuse_rewriter::debug::{DebugFiles, DebugLinks, links};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where distributions put debug information.
const SYSTEM: &str = "/usr/lib/debug";

/// Variable with further folders, separated by colons.
const VARIABLE: &str = "OMPFUSE_DEBUG_PATH";

/// Where to look for debug information, as several commands take it.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct DebugArgs {
    /// Look for separate debug information in this file or folder too
    ///
    /// OMPFUSE_DEBUG_PATH names further ones, separated by colons.
    #[arg(long, value_name = "PATH", value_parser = existing)]
    pub(crate) debug_path: Vec<PathBuf>,
}

/// A path that exists, from the root on: other processes get it too.
fn existing(path: &str) -> Result<PathBuf, String> {
    std::fs::canonicalize(path).map_err(|e| e.to_string())
}

/// Files with debug information, mapped.
#[derive(Default)]
pub(crate) struct Found {
    separate: Option<Input>,
    supplementary: Option<Input>,
}

impl Found {
    /// Their bytes.
    pub(crate) fn files(&self) -> DebugFiles<'_> {
        DebugFiles {
            separate: self.separate.as_deref(),
            supplementary: self.supplementary.as_deref(),
        }
    }

    /// Gives the memory of their pages back.
    pub(crate) fn release(&self) {
        let all = self.separate.iter().chain(&self.supplementary);
        all.for_each(Input::release);
    }

    /// For the key of a cached copy, whose description has the lines.
    pub(crate) fn key(&self) -> String {
        let identity = self.files().identity();
        identity.map(|i| format!(" debug={i}")).unwrap_or_default()
    }
}

impl DebugArgs {
    /// The options as arguments of a command.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = String> {
        let all = self.debug_path.iter();
        all.map(|p| format!("--debug-path={}", p.display()))
    }

    /// Finds the debug information of a file that has none itself, and what it has in common with others.
    pub(crate) fn find(&self, path: &Path, bytes: &[u8]) -> Found {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        self.find_of(&path, bytes)
    }

    /// The same of a file that may be anybody's: by build id only, so that it names no other file.
    pub(crate) fn find_by_id(&self, bytes: &[u8]) -> Found {
        self.find_of(Path::new(""), bytes)
    }

    /// `path`: empty if nothing is looked for by name.
    fn find_of(&self, path: &Path, bytes: &[u8]) -> Found {
        let own = links(bytes);
        let places = Places::new(self);
        let mut found = Found::default();
        let mut with_lines = (path.to_owned(), own.supplementary.clone());
        if !own.has_lines {
            let separate = places.separate(path, &own);
            with_lines.1 = None;
            if let Some((at, input)) = separate {
                with_lines = (at, links(&input).supplementary);
                found.separate = Some(input);
            }
        }
        if let (at, Some((name, id))) = with_lines {
            found.supplementary =
                places.supplementary(&at, Path::new(OsStr::from_bytes(&name)), &id);
        }
        found
    }
}

/// The files and folders to look in.
struct Places {
    /// Laid out as [`SYSTEM`], those of the user first.
    folders: Vec<PathBuf>,
    /// Debug information itself.
    files: Vec<PathBuf>,
    /// Where debuginfod's client keeps files.
    caches: Vec<PathBuf>,
}

impl Places {
    fn new(args: &DebugArgs) -> Places {
        let variable = std::env::var_os(VARIABLE).unwrap_or_default();
        let of_variable = std::env::split_paths(&variable).filter(|p| p.is_absolute());
        let all = args.debug_path.iter().cloned().chain(of_variable);
        let (mut folders, files): (Vec<_>, Vec<_>) = all.partition(|p| p.is_dir());
        folders.push(SYSTEM.into());
        Places {
            folders,
            files,
            caches: caches(),
        }
    }

    /// Paths of files with this build id.
    fn of_id(&self, id: &str) -> Vec<PathBuf> {
        let Some((first, rest)) = id.split_at_checked(2).filter(|(_, rest)| !rest.is_empty())
        else {
            return Vec::new();
        };
        let folders = self.folders.iter();
        let named = folders.map(|f| {
            f.join(".build-id")
                .join(first)
                .join(format!("{rest}.debug"))
        });
        let cached = self.caches.iter().map(|f| f.join(id).join("debuginfo"));
        named.chain(cached).collect()
    }

    /// The debug information that was stripped off a file.
    fn separate(&self, path: &Path, own: &DebugLinks) -> Option<(PathBuf, Input)> {
        let id = own.build_id.as_deref();
        let is_right = |at: &Path, input: &Input| {
            let theirs = links(input);
            if !theirs.has_lines {
                return false;
            }
            match (id, theirs.build_id.as_deref(), &own.link) {
                (Some(id), Some(theirs), _) => id == theirs,
                (.., Some((_, sum))) => is_of(at, input, *sum),
                _ => false,
            }
        };
        let open = |at: PathBuf| {
            let input = at.is_file().then(|| input::map(&at).ok()).flatten()?;
            is_right(&at, &input).then_some((at, input))
        };
        let by_id = id.map(|id| self.of_id(id)).unwrap_or_default();
        let by_name = own.link.iter().flat_map(|(name, _)| self.named(path, name));
        let own_path = |at: &PathBuf| at != path;
        let mut all = self.files.iter().cloned().chain(by_id).chain(by_name);
        all.by_ref().filter(own_path).find_map(open)
    }

    /// Paths that a file's `.gnu_debuglink` may mean.
    fn named(&self, path: &Path, name: &[u8]) -> Vec<PathBuf> {
        let name = Path::new(OsStr::from_bytes(name));
        let Some(folder) = path.parent() else {
            return Vec::new();
        };
        let mut all = vec![folder.join(name), folder.join(".debug").join(name)];
        for root in &self.folders {
            let inside = folder.strip_prefix("/").unwrap_or(folder);
            all.push(root.join(inside).join(name));
            all.push(root.join(name));
        }
        all
    }

    /// The file that a file with debug information has parts in common with.
    fn supplementary(&self, path: &Path, name: &Path, id: &str) -> Option<Input> {
        let beside = path.parent().map(|folder| folder.join(name));
        let in_folders = self
            .folders
            .iter()
            .filter_map(|f| Some(f.join(name.file_name()?)));
        let open = |at: PathBuf| {
            let input = at.is_file().then(|| input::map(&at).ok()).flatten()?;
            (links(&input).build_id.as_deref() == Some(id)).then_some(input)
        };
        let all = beside.into_iter().chain(self.of_id(id)).chain(in_folders);
        all.chain(self.files.iter().cloned()).find_map(open)
    }
}

/// Whether a file without build id has the checksum that another one names.
fn is_of(at: &Path, bytes: &[u8], sum: u32) -> bool {
    let same = crc32fast::hash(bytes) == sum;
    if !same {
        note(format_args!(
            "{} is not used: it is the debug information of another build",
            at.display()
        ));
    }
    same
}

/// The folders that debuginfod's client uses, as elfutils has them.
fn caches() -> Vec<PathBuf> {
    let folder = |name| {
        std::env::var_os(name)
            .filter(|v| !v.is_empty())
            .map(PathBuf::from)
    };
    let home = folder("HOME");
    let in_home = |path: &str| home.as_ref().map(|h| h.join(path));
    let named = folder("DEBUGINFOD_CACHE_PATH");
    let of_user = folder("XDG_CACHE_HOME").or_else(|| in_home(".cache"));
    let all = [
        named,
        of_user.map(|c| c.join("debuginfod_client")),
        in_home(".debuginfod_client_cache"),
    ];
    all.into_iter().flatten().collect()
}
