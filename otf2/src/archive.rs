//! An archive that is being written.

use crate::api::{Api, FlushCallbacks, RawArchive, RawAttributes, RawDefinitions};
use crate::{Error, Events, Library};
use std::ffi::{CStr, CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;

/// What the files of an archive are called, with an ending each.
const NAME: &CStr = c"traces";

// OTF2_FileMode, OTF2_FileSubstrate, OTF2_Compression.
const WRITE: u8 = 0;
const POSIX: u8 = 1;
const UNCOMPRESSED: u8 = 1;

/// Bytes that are written at once: the library's defaults, for events and for definitions.
const CHUNKS: [u64; 2] = [1 << 20, 4 << 20];

/// A chunk that is full is written to its file. `OTF2_FLUSH` is 1.
extern "C" fn flush(_: *mut c_void, _: u8, _: u64, _: *mut c_void, _: bool) -> u8 {
    1
}

static FLUSH: FlushCallbacks = FlushCallbacks {
    before: flush,
    after: None,
};

/// An archive that is being written. One that isn't finished is not closed either: its files are worthless.
pub struct Archive {
    pub(crate) api: &'static Api,
    pub(crate) raw: NonNull<RawArchive>,
    pub(crate) definitions: NonNull<RawDefinitions>,
    /// What the next event has beside its own values. The library empties it when that is written.
    pub(crate) attributes: NonNull<RawAttributes>,
}

impl std::fmt::Debug for Archive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Archive")
    }
}

/// Where an archive comes from.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'o> {
    /// Who writes it.
    pub creator: &'o str,
    /// What it is of.
    pub description: &'o str,
    /// Where that was executed.
    pub machine: &'o str,
}

impl Archive {
    /// Makes an archive in a folder, which exists and is empty.
    ///
    /// # Errors
    /// [`Error::Refused`] with the library's reason, as of all functions below.
    pub fn create(library: Library, folder: &Path, origin: Origin<'_>) -> Result<Archive, Error> {
        let api = library.0;
        let path = CString::new(folder.as_os_str().as_bytes())
            .map_err(|_| Error::Refused("a folder's name has no zero byte".to_owned()))?;
        let [events, definitions] = CHUNKS;
        let name = NAME.as_ptr();
        // SAFETY: two C strings that are copied.
        let raw = unsafe {
            (api.open)(
                path.as_ptr(),
                name,
                WRITE,
                events,
                definitions,
                POSIX,
                UNCOMPRESSED,
            )
        };
        let raw = api.pointer(raw)?;
        let archive = raw.as_ptr();
        // SAFETY: the archive was opened above; the callbacks are a static, and need no data.
        api.check(unsafe { (api.set_flush)(archive, &FLUSH, std::ptr::null_mut()) })?;
        // SAFETY: as above.
        api.check(unsafe { (api.set_serial)(archive) })?;
        let texts = [
            (api.set_creator, origin.creator),
            (api.set_description, origin.description),
            (api.set_machine, origin.machine),
        ];
        for (set, text) in texts {
            let text = c_string(text);
            // SAFETY: as above; the C string is copied.
            api.check(unsafe { set(archive, text.as_ptr()) })?;
        }
        // SAFETY: as above.
        api.check(unsafe { (api.open_events)(archive) })?;
        // SAFETY: as above; the writer belongs to the archive.
        let definitions = api.pointer(unsafe { (api.definitions)(archive) })?;
        // SAFETY: it takes nothing. The list is never freed: there is one for each archive.
        let attributes = api.pointer(unsafe { (api.attributes)() })?;
        Ok(Archive {
            api,
            raw,
            definitions,
            attributes,
        })
    }

    /// Begins the events of a location.
    ///
    /// # Errors
    /// As of [`Archive::create`].
    pub fn events(&mut self, location: u64) -> Result<Events<'_>, Error> {
        // SAFETY: the archive is open for writing; the writer belongs to it.
        let raw = self
            .api
            .pointer(unsafe { (self.api.events)(self.raw.as_ptr(), location) })?;
        Ok(Events::new(self, raw))
    }

    /// Writes what is left. `locations`: those that were defined.
    ///
    /// # Errors
    /// As of [`Archive::create`].
    pub fn finish(self, locations: &[u64]) -> Result<(), Error> {
        let (api, archive) = (self.api, self.raw.as_ptr());
        // SAFETY: the archive is open, and no writer of events is: each borrowed it.
        api.check(unsafe { (api.close_events)(archive) })?;
        // Local definitions would map a location's own identifiers to the archive's. Readers want the files.
        // SAFETY: as above.
        api.check(unsafe { (api.open_local)(archive) })?;
        for &location in locations {
            // SAFETY: as above; the writer belongs to the archive.
            let local = api.pointer(unsafe { (api.local)(archive, location) })?;
            // SAFETY: it was got just now.
            api.check(unsafe { (api.end_local)(archive, local.as_ptr()) })?;
        }
        // SAFETY: as above.
        api.check(unsafe { (api.close_local)(archive) })?;
        // SAFETY: it is closed once, since `self` is gone behind this.
        api.check(unsafe { (api.close)(archive) })
    }
}

/// A text without zero bytes.
pub(crate) fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{fffd}")).expect("zero bytes were replaced")
}
