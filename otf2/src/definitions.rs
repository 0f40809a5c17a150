//! Definitions of an archive: what identifiers in its events mean. Each may refer to those before it only.

use crate::archive::c_string;
use crate::{Archive, Error, Paradigm, ParadigmClass, Role, SystemDomain, UNDEFINED};

// OTF2_Type.
pub(crate) const UINT64: u8 = 4;
const STRING: u8 = 11;

// OTF2_LOCATION_GROUP_TYPE_PROCESS, OTF2_LOCATION_TYPE_CPU_THREAD.
const PROCESS: u8 = 1;
const CPU_THREAD: u8 = 1;

// OTF2_METRIC_TYPE_OTHER, OTF2_METRIC_ACCUMULATED_START, OTF2_BASE_DECIMAL, OTF2_METRIC_SYNCHRONOUS, OTF2_RECORDER_KIND_CPU.
const OTHER: u8 = 0;
const ACCUMULATED_START: u8 = 0;
const DECIMAL: u8 = 1;
const SYNCHRONOUS: u8 = 1;
const CPU: u8 = 2;

/// Of the times of all events.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    /// Ticks in a second.
    pub resolution: u64,
    /// The first tick.
    pub offset: u64,
    /// Ticks from there to the last event.
    pub length: u64,
    /// When the first tick was, in nanoseconds since 1970.
    pub realtime_ns: u64,
}

/// A region. Texts are identifiers of strings.
#[derive(Debug, Clone, Copy)]
pub struct Region {
    /// Its name.
    pub name: u32,
    /// Another name, for instance that of its function; may be the same.
    pub canonical: u32,
    /// More about it.
    pub description: u32,
    /// What it is.
    pub role: Role,
    /// What it belongs to.
    pub paradigm: Paradigm,
    /// The source file, or [`UNDEFINED`].
    pub file: u32,
    /// Its first line; 0: not known.
    pub line: u32,
}

/// What a group has as members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum GroupKind {
    /// Locations that can be in communicators of a paradigm.
    CommLocations = 4,
    /// Positions in the paradigm's group of the kind above.
    Comm = 5,
}

/// A group.
#[derive(Debug, Clone, Copy)]
pub struct Group<'g> {
    /// A string.
    pub name: u32,
    /// Its kind.
    pub kind: GroupKind,
    /// What it belongs to.
    pub paradigm: Paradigm,
    /// See [`GroupKind`].
    pub members: &'g [u64],
}

/// All of these return the library's errors ([`Error::Refused`]).
#[expect(clippy::missing_errors_doc, reason = "said above")]
impl Archive {
    /// Of the times of all events.
    pub fn clock(&mut self, clock: Clock) -> Result<(), Error> {
        let (api, to) = (self.api, self.definitions.as_ptr());
        let (resolution, offset) = (clock.resolution, clock.offset);
        let (length, realtime) = (clock.length, clock.realtime_ns);
        // SAFETY: the writer is the archive's, which is open.
        api.check(unsafe { (api.clock)(to, resolution, offset, length, realtime) })
    }

    /// A programming model.
    pub fn paradigm(&mut self, of: Paradigm, name: u32, class: ParadigmClass) -> Result<(), Error> {
        let (api, to) = (self.api, self.definitions.as_ptr());
        // SAFETY: as above.
        api.check(unsafe { (api.paradigm)(to, of as u8, name, class as u8) })
    }

    /// A text; zero bytes are replaced.
    pub fn string(&mut self, id: u32, text: &str) -> Result<(), Error> {
        let (api, to, text) = (self.api, self.definitions.as_ptr(), c_string(text));
        // SAFETY: as above; the C string is copied.
        api.check(unsafe { (api.string)(to, id, text.as_ptr()) })
    }

    /// An attribute that is a text.
    pub fn text_attribute(&mut self, id: u32, name: u32, about: u32) -> Result<(), Error> {
        self.attribute(id, name, about, STRING)
    }

    /// An attribute that is a number.
    pub fn number_attribute(&mut self, id: u32, name: u32, about: u32) -> Result<(), Error> {
        self.attribute(id, name, about, UINT64)
    }

    fn attribute(&mut self, id: u32, name: u32, about: u32, of: u8) -> Result<(), Error> {
        let (api, to) = (self.api, self.definitions.as_ptr());
        // SAFETY: as above.
        api.check(unsafe { (api.attribute)(to, id, name, about, of) })
    }

    /// A node of the system tree. `parent`: another one, or [`UNDEFINED`].
    pub fn system_node(
        &mut self,
        id: u32,
        (name, class): (u32, u32),
        parent: u32,
        domain: SystemDomain,
    ) -> Result<(), Error> {
        let (api, to) = (self.api, self.definitions.as_ptr());
        // SAFETY: as above.
        api.check(unsafe { (api.system)(to, id, name, class, parent) })?;
        // SAFETY: as above.
        api.check(unsafe { (api.domain)(to, id, domain as u8) })
    }

    /// A process.
    pub fn process(&mut self, id: u32, name: u32, host: u32) -> Result<(), Error> {
        let (api, to) = (self.api, self.definitions.as_ptr());
        // SAFETY: as above.
        api.check(unsafe { (api.location_group)(to, id, name, PROCESS, host, UNDEFINED) })
    }

    /// A thread, with the number of its events.
    pub fn thread(&mut self, id: u64, name: u32, events: u64, process: u32) -> Result<(), Error> {
        let (api, to) = (self.api, self.definitions.as_ptr());
        // SAFETY: as above.
        api.check(unsafe { (api.location)(to, id, name, CPU_THREAD, events, process) })
    }

    /// A region.
    pub fn region(&mut self, id: u32, region: Region) -> Result<(), Error> {
        let (api, to) = (self.api, self.definitions.as_ptr());
        let (name, canonical, about) = (region.name, region.canonical, region.description);
        let (role, paradigm) = (region.role as u8, region.paradigm as u8);
        let (file, line) = (region.file, region.line);
        // No flags; the last line is not known.
        // SAFETY: as above.
        api.check(unsafe {
            (api.region)(
                to, id, name, canonical, about, role, paradigm, 0, file, line, 0,
            )
        })
    }

    /// A group.
    pub fn group(&mut self, id: u32, group: Group<'_>) -> Result<(), Error> {
        let (api, to) = (self.api, self.definitions.as_ptr());
        let (kind, paradigm) = (group.kind as u8, group.paradigm as u8);
        let (number, members) = (group.members.len() as u32, group.members.as_ptr());
        // SAFETY: as above; so many members are read, and copied.
        api.check(unsafe { (api.group)(to, id, group.name, kind, paradigm, 0, number, members) })
    }

    /// A communicator.
    pub fn comm(&mut self, id: u32, name: u32, group: u32) -> Result<(), Error> {
        let (api, to) = (self.api, self.definitions.as_ptr());
        // SAFETY: as above.
        api.check(unsafe { (api.comm)(to, id, name, group, UNDEFINED, 0) })
    }

    /// A metric whose values are sums since the location's begin.
    pub fn metric(&mut self, id: u32, name: u32, about: u32, unit: u32) -> Result<(), Error> {
        let (api, to) = (self.api, self.definitions.as_ptr());
        let (kind, mode, value) = (OTHER, ACCUMULATED_START, UINT64);
        // SAFETY: as above.
        api.check(unsafe {
            (api.metric_member)(to, id, name, about, kind, mode, value, DECIMAL, 0, unit)
        })
    }

    /// Metrics, at most 255, that are written together, at enters and leaves.
    pub fn metric_class(&mut self, id: u32, metrics: &[u32]) -> Result<(), Error> {
        let (api, to) = (self.api, self.definitions.as_ptr());
        let number = u8::try_from(metrics.len()).unwrap_or(u8::MAX);
        // SAFETY: as above; so many metrics are read, and copied.
        api.check(unsafe { (api.metric_class)(to, id, number, metrics.as_ptr(), SYNCHRONOUS, CPU) })
    }
}
