//! Sections that a report has on request.

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// Known kinds of losses, with advice.
    Properties,
    /// The tree of call paths.
    CallPaths,
    /// How units' times are distributed.
    Units,
    /// Events per parallel region and thread.
    RegionEvents,
    /// All ranks of an MPI program, how balanced regions are among them, and what calls handed over.
    Ranks,
    /// Classes of overhead per parallel region.
    Overheads,
    /// Critical sections and locks.
    Locks,
    /// Work, span, and predicted times.
    Scaling,
    /// Constructs without a probe.
    Skipped,
    /// A table of threads for each region, and overheads relative to the program.
    PerThread,
    /// Where each region is called from.
    Callers,
    /// What the columns mean.
    Legend,
}

impl Section {
    /// All of them, with their names on the command line.
    pub const ALL: [(&'static str, Section); 12] = [
        ("properties", Section::Properties),
        ("call-paths", Section::CallPaths),
        ("units", Section::Units),
        ("region-events", Section::RegionEvents),
        ("ranks", Section::Ranks),
        ("overheads", Section::Overheads),
        ("locks", Section::Locks),
        ("scaling", Section::Scaling),
        ("skipped", Section::Skipped),
        ("per-thread", Section::PerThread),
        ("callers", Section::Callers),
        ("legend", Section::Legend),
    ];
}

/// A set of sections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sections(u16);

impl Sections {
    /// Every one.
    pub const ALL: Sections = Sections(u16::MAX);

    /// With another one.
    pub fn with(self, section: Section) -> Sections {
        Sections(self.0 | 1 << section as u16)
    }

    /// Whether it is among them.
    pub fn has(self, section: Section) -> bool {
        self.0 & 1 << section as u16 != 0
    }
}
