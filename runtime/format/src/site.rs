//! The description of a place in machine code: what `scan` prints, patched files carry and runs keep.

use crate::construct::Construct;
use crate::event::exact;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// An address, as a hexadecimal string in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HexAddress(pub u64);

impl core::fmt::Display for HexAddress {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl Serialize for HexAddress {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for HexAddress {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        let digits = text.strip_prefix("0x").unwrap_or(&text);
        u64::from_str_radix(digits, 16)
            .map(HexAddress)
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for HexAddress {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "HexAddress".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "An address, as a hexadecimal string.",
            "type": "string",
            "pattern": "^0x[0-9a-f]+$",
        })
    }
}

/// What a site does to its construct.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Edge {
    /// The construct begins here.
    Begin,
    /// It ends here.
    End,
    /// The call does all of it.
    Encloses,
    /// The next part of it is fetched here.
    Next,
}

/// How a probe is, or would be, placed (docs/design/patch.md#placing-probes).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mechanism {
    /// The call is retargeted to a stub.
    CallSite,
    /// As call-site, and the body follows into other threads.
    Closure,
    /// A jump to a trampoline with the displaced instructions.
    Inline,
    /// No code is changed here: another site's event tells (a barrier behind a loop, the outlined function's return).
    Implied,
    /// There is none.
    None,
}

/// What became of a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// A probe was placed, or other sites' probes tell what happens here ([`Mechanism::Implied`]).
    Patched,
    /// A probe can be placed.
    Patchable,
    /// No probe: see the reason.
    Skipped,
    /// It needs no probe: a setting, a question, or something that takes no time worth telling.
    Service,
}

/// A line of source text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Source {
    /// Path as the debug information has it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
}

/// What [`SiteInfo::detail`] says where it isn't certain that a loop is one.
pub const SHARED_CODE: &str = "two loops may share this code";

/// A text that many sites have.
pub type Text = Arc<str>;

/// A function that an instruction is in as the source has it, and the line there: that of the instruction itself in the
/// innermost one, that of the inlined call in the others.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Frame {
    /// The function's linkage name, where debug information has one.
    pub function: Option<Text>,
    /// The line.
    pub source: Option<Source>,
}

/// A place in machine code where something of OpenMP happens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteInfo {
    /// Number among the module's sites, by address.
    pub id: u32,
    /// Link-time address.
    pub address: HexAddress,
    /// Name of the function that it is in, where known.
    pub function: Option<Text>,
    /// The construct.
    pub construct: Construct,
    /// What the site does to it.
    pub edge: Edge,
    /// The site where the construct begins (`id` itself at a begin): the region.
    pub region: u32,
    /// The runtime's function that is called here.
    pub entry: Option<Text>,
    /// How the probe is placed.
    pub mechanism: Mechanism,
    /// The outlined function that is handed over here.
    pub outlined: Option<HexAddress>,
    /// Source line, from debug information or `ident_t.psource`: the user's, not that of a library's function which was
    /// inlined there.
    pub source: Option<Source>,
    /// Where functions were inlined around the site, they and their callers, the innermost first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<Arc<[Frame]>>,
    /// More about the construct: a schedule, a critical section's name, "or equivalent".
    pub detail: Option<Text>,
    /// Whether it has a probe.
    pub outcome: Outcome,
    /// Why it has none.
    pub reason: Option<Text>,
}

impl AsRef<SiteInfo> for SiteInfo {
    fn as_ref(&self) -> &SiteInfo {
        self
    }
}

/// What a call of an OpenMP runtime hands over and OpenMP leaves open, so that a patched file may hand over something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Parameter {
    /// The team's size: 1, or at most as many threads as the program asks for.
    Threads,
    /// A schedule that asks for its ranges, by the number that `omp_sched_t` has for it.
    Schedule,
    /// Iterations of a range of such a schedule.
    Chunk,
    /// Iterations of a taskloop's task, at least.
    Grainsize,
    /// A taskloop's tasks.
    NumTasks,
    /// Tasks in so many other ones are executed at once, as if their `if` clause were false.
    Cutoff,
}

impl Parameter {
    /// All of them.
    pub const ALL: [Parameter; 6] = [
        Parameter::Threads,
        Parameter::Schedule,
        Parameter::Chunk,
        Parameter::Grainsize,
        Parameter::NumTasks,
        Parameter::Cutoff,
    ];

    /// Its name, as users write it.
    pub const fn name(self) -> &'static str {
        match self {
            Parameter::Threads => "threads",
            Parameter::Chunk => "chunk",
            Parameter::Schedule => "schedule",
            Parameter::Grainsize => "grainsize",
            Parameter::NumTasks => "num_tasks",
            Parameter::Cutoff => "cutoff",
        }
    }
}

/// What a site hands over instead of what the program does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Setting {
    /// Number of the site.
    pub site: u32,
    /// What.
    pub parameter: Parameter,
    /// Its value, from 1 to 2^31 - 1.
    pub value: u32,
}

/// Schedules that can be set, with their numbers in `omp_sched_t`.
pub const SCHEDULES: [(&str, u32); 2] = [("dynamic", 2), ("guided", 3)];

impl std::fmt::Display for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.parameter.name();
        let mut schedules = SCHEDULES.iter();
        let schedule =
            schedules.find(|s| self.parameter == Parameter::Schedule && s.1 == self.value);
        match schedule {
            Some((schedule, _)) => write!(f, "{name}={schedule}"),
            None => write!(f, "{name}={}", self.value),
        }
    }
}

/// What was scanned.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BinaryInfo {
    /// Path as given.
    pub path: String,
    /// Build id in hexadecimal, where there is one.
    pub build_id: Option<String>,
    /// `pie`, `executable` or `library`.
    pub kind: String,
    /// Whether the symbol table is gone.
    pub stripped: bool,
    /// OpenMP runtimes that it needs or contains (`libgomp.so.1`, ...).
    pub runtimes: Vec<String>,
    /// What tells the files that its debug information was read from, where that isn't its own: their build ids and lengths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub debug_files: Option<String>,
    /// Places of the first probes of functions whose loops are regions; none by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loops_of: Vec<HexAddress>,
    /// What the patched file hands over instead of what the program does, ascending; none by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<Setting>,
    /// Functions whose instructions are counted; `None`: nothing is counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<Counted>,
}

/// Which functions of a file count their instructions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counted {
    /// Events that are counted; none if that is [`exact::NAME`] only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// Those that do: place of the first probe that a function could have, and number of instructions.
    pub functions: Vec<(HexAddress, u32)>,
    /// All of their code: begins and lengths in bytes, ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub code: Vec<(HexAddress, u64)>,
    /// Those that were to be counted, and can't.
    pub refused: Vec<Uncounted>,
    /// Sites of constructs whose code is in functions that were not to be counted, ascending; none by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<u32>,
}

/// A function whose instructions can't be counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uncounted {
    /// Place of the first probe that it could have.
    pub address: HexAddress,
    /// Its name, or its address where it has none.
    pub name: String,
    /// Number of its instructions, as far as they are known.
    pub instructions: u32,
    /// Why.
    pub reason: String,
    /// Sites of constructs whose code is in it, ascending; none by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sites: Vec<u32>,
}

impl Counted {
    /// Of this set of events.
    pub fn of(set: u32) -> Counted {
        let events = exact::names(set).map(str::to_owned);
        Counted {
            events: events.collect(),
            ..Counted::default()
        }
    }

    /// The set of events that are counted.
    pub fn set(&self) -> u32 {
        let numbers = self.events.iter().filter_map(|name| exact::number(name));
        let set = numbers.fold(0, |set, n| set | 1 << n);
        if set == 0 { 1 } else { set }
    }

    /// Whether the code of the construct that a site belongs to is in a function that isn't counted.
    pub fn leaves_out(&self, site: u32) -> bool {
        let refused = self.refused.iter().map(|f| &f.sites);
        let mut lists = refused.chain([&self.left_out]);
        lists.any(|sites| sites.binary_search(&site).is_ok())
    }

    /// Whether an instruction is in a function that is counted. `None`: nobody has noted where these are.
    pub fn covers(&self, address: u64) -> Option<bool> {
        if self.code.is_empty() && !self.functions.is_empty() {
            return None;
        }
        let behind = self.code.partition_point(|(begin, _)| begin.0 <= address);
        let last = behind.checked_sub(1).map(|at| self.code[at]);
        Some(last.is_some_and(|(begin, len)| address - begin.0 < len))
    }

    /// Instructions in functions that are counted, and in those that are not.
    pub fn instructions(&self) -> (u64, u64) {
        let counted = self.functions.iter().map(|f| u64::from(f.1)).sum();
        let refused = self.refused.iter().map(|f| u64::from(f.instructions));
        (counted, refused.sum())
    }
}

/// What a patched file says of itself (in its `.ompfuse` section; [`crate::description`] writes and reads it).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SelfDescription {
    /// Version of ompfuse that patched it.
    pub version: String,
    /// The original.
    pub binary: BinaryInfo,
    /// SHA-256 of the original's bytes, in hexadecimal.
    pub original_sha256: String,
    /// Every site; `sites[i].id == i`.
    pub sites: Vec<SiteInfo>,
}

/// A reason without the addresses in it, so that equal ones are counted together.
pub fn without_addresses(reason: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in reason.split(' ') {
        let Some(digits) = word.strip_prefix("0x") else {
            words.push(word.to_owned());
            continue;
        };
        words.pop_if(|w| w == "at");
        if let Some(last) = words.last_mut() {
            *last += digits.trim_start_matches(|c: char| c.is_ascii_hexdigit());
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_hexadecimal_strings() {
        let json = serde_json::to_string(&HexAddress(0x4011a6)).unwrap();
        assert_eq!(json, "\"0x4011a6\"");
        assert_eq!(
            serde_json::from_str::<HexAddress>(&json).unwrap(),
            HexAddress(0x4011a6)
        );
        assert!(serde_json::from_str::<HexAddress>("\"zz\"").is_err());
    }

    #[test]
    fn reasons_lose_their_addresses() {
        for (reason, kind) in [
            (
                "implied by the barrier at 0x4ebf7e",
                "implied by the barrier",
            ),
            (
                "no probe at its end 0x12: 4 bytes free, 5 needed",
                "no probe at its end: 4 bytes free, 5 needed",
            ),
            ("unknown entry point", "unknown entry point"),
        ] {
            assert_eq!(without_addresses(reason), kind);
        }
    }
}
