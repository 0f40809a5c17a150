//! The self-description of a patched file as it is written: JSON with a column per property of the sites, and every text
//! once. A file may have a hundred thousand sites, and is read whenever it is recorded.

use crate::construct::Construct;
use crate::site::{
    BinaryInfo, Edge, Frame, HexAddress, Mechanism, Outcome, SelfDescription, SiteInfo, Source,
    Text,
};
use serde::de::Error as _;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

/// What stands in the file.
#[derive(Serialize, Deserialize)]
struct Written<'a> {
    version: Cow<'a, str>,
    binary: Cow<'a, BinaryInfo>,
    original_sha256: Cow<'a, str>,
    columns: Columns<'a>,
}

type Kind = (Construct, Edge, Mechanism, Outcome);

/// The n-th entry of each column is that of site n.
#[derive(Default, PartialEq, Serialize, Deserialize)]
struct Columns<'a> {
    texts: Vec<Cow<'a, str>>,
    kinds: Vec<Kind>,
    /// Distance from the site before.
    address: Vec<i64>,
    /// Index in `kinds`.
    kind: Vec<u32>,
    /// Distance to the region's site.
    region: Vec<i64>,
    /// Index in `texts` from 1, or 0 for none; so are the others.
    function: Vec<u32>,
    entry: Vec<u32>,
    detail: Vec<u32>,
    reason: Vec<u32>,
    file: Vec<u32>,
    /// Line in the file, 0 without one.
    line: Vec<u32>,
    /// Distance of the outlined function from the site.
    outlined: Vec<Option<i64>>,
    /// Index in `frames` from 1 of the innermost one, or 0; empty if all are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    frame: Vec<u32>,
    /// Every frame once, behind the one around it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    frames: Vec<FrameRow>,
}

/// Function, file (as the columns of texts), line, and the frame around it (index in `frames` from 1, or 0).
type FrameRow = (u32, u32, u32, u32);

/// A chain of more frames than this is damaged.
const MAX_FRAMES: usize = 1000;

/// Numbers things in the order of their first use.
struct Numbers<T>(HashMap<T, u32>);

impl<T: std::hash::Hash + Eq> Numbers<T> {
    fn of(&mut self, thing: T, add: impl FnOnce()) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(thing).or_insert_with(|| {
            add();
            next
        })
    }
}

/// The numbers of texts that were looked up lately, column by column: many sites have the same one, which need not be read for
/// that.
#[derive(Default)]
struct Shared<'a>([[Option<(&'a Text, u32)>; LATELY]; 4]);

/// So many texts of a column are kept.
const LATELY: usize = 16;

impl<'a> Shared<'a> {
    fn number(
        &mut self,
        column: usize,
        text: Option<&'a Text>,
        look_up: impl FnOnce(&'a str) -> u32,
    ) -> u32 {
        let Some(text) = text else { return 0 };
        let place = &mut self.0[column][(text.as_ptr().addr() / 16) % LATELY];
        match place {
            Some((known, number)) if Text::ptr_eq(known, text) => *number,
            _ => place.insert((text, look_up(text))).1,
        }
    }
}

impl<'a> Columns<'a> {
    fn new(sites: &'a [SiteInfo]) -> Columns<'a> {
        let mut columns = Columns::default();
        let mut numbers = Numbers(HashMap::new());
        let mut shared = Shared::default();
        let mut kinds = Numbers(HashMap::new());
        let mut frames = Numbers(HashMap::new());
        let mut before = 0;
        for site in sites {
            let texts = &mut columns.texts;
            let mut text = |text: Option<&'a str>| match text {
                Some(text) => 1 + numbers.of(text, || texts.push(Cow::Borrowed(text))),
                None => 0,
            };
            let mut of = |column: usize, shared_text: &'a Option<Text>| {
                shared.number(column, shared_text.as_ref(), |t| text(Some(t)))
            };
            columns.function.push(of(0, &site.function));
            columns.entry.push(of(1, &site.entry));
            columns.detail.push(of(2, &site.detail));
            columns.reason.push(of(3, &site.reason));
            let source = site.source.as_ref();
            columns.file.push(text(source.map(|s| s.file.as_str())));
            columns.line.push(source.map_or(0, |s| s.line));
            let mut around = 0;
            for frame in site.frames.iter().flat_map(|f| f.iter().rev()) {
                let source = frame.source.as_ref();
                let row = (
                    text(frame.function.as_deref()),
                    text(source.map(|s| s.file.as_str())),
                    source.map_or(0, |s| s.line),
                    around,
                );
                around = 1 + frames.of(row, || columns.frames.push(row));
            }
            columns.frame.push(around);
            let kind = (site.construct, site.edge, site.mechanism, site.outcome);
            let all = &mut columns.kinds;
            columns.kind.push(kinds.of(kind, || all.push(kind)));
            let address = site.address.0;
            columns.address.push(distance(before, address));
            before = address;
            let region = i64::from(site.region) - i64::from(site.id);
            columns.region.push(region);
            let outlined = site.outlined.map(|to| distance(address, to.0));
            columns.outlined.push(outlined);
        }
        if columns.frames.is_empty() {
            columns.frame.clear();
        }
        columns
    }

    /// The frames of each number in the column `frame`; `None` if they contradict each other.
    fn chains(&self, texts: &[Text]) -> Option<Vec<Arc<[Frame]>>> {
        let text = |number: u32| match number.checked_sub(1) {
            Some(number) => texts.get(number as usize).cloned().map(Some),
            None => Some(None),
        };
        let mut chains: Vec<Arc<[Frame]>> = Vec::with_capacity(self.frames.len());
        for &(function, file, line, around) in &self.frames {
            let own = Frame {
                function: text(function)?,
                source: text(file)?.map(|file| Source {
                    file: file.to_string(),
                    line,
                }),
            };
            let around = match around.checked_sub(1) {
                Some(around) => chains.get(around as usize)?,
                None => &Arc::from([]),
            };
            // Nothing was inlined into more functions than this.
            if around.len() > MAX_FRAMES {
                return None;
            }
            let chain = std::iter::once(own).chain(around.iter().cloned());
            chains.push(chain.collect());
        }
        Some(chains)
    }

    /// The rows; `None` if the columns contradict each other.
    fn rows(&self) -> Option<Vec<SiteInfo>> {
        let texts: Vec<Text> = self.texts.iter().map(|t| Text::from(&**t)).collect();
        let text = |column: &[u32], row: usize| -> Option<Option<Text>> {
            match column.get(row)?.checked_sub(1) {
                Some(number) => Some(Some(texts.get(number as usize)?.clone())),
                None => Some(None),
            }
        };
        let chains = self.chains(&texts)?;
        let frames = |at: usize| -> Option<Option<Arc<[Frame]>>> {
            match self.frame.get(at).or(self.frame.is_empty().then_some(&0))? {
                0 => Some(None),
                number => Some(Some(chains.get(*number as usize - 1)?.clone())),
            }
        };
        let mut address = 0u64;
        let mut row = |at: usize| {
            address = address.wrapping_add_signed(*self.address.get(at)?);
            let kind = *self.kind.get(at)? as usize;
            let (construct, edge, mechanism, outcome) = *self.kinds.get(kind)?;
            let id = u32::try_from(at).ok()?;
            let line = *self.line.get(at)?;
            let outlined = *self.outlined.get(at)?;
            let region = i64::from(id).checked_add(*self.region.get(at)?)?;
            Some(SiteInfo {
                id,
                address: HexAddress(address),
                function: text(&self.function, at)?,
                construct,
                edge,
                region: u32::try_from(region).ok()?,
                entry: text(&self.entry, at)?,
                mechanism,
                outlined: outlined.map(|to| HexAddress(address.wrapping_add_signed(to))),
                source: text(&self.file, at)?.map(|file| Source {
                    file: file.to_string(),
                    line,
                }),
                frames: frames(at)?,
                detail: text(&self.detail, at)?,
                outcome,
                reason: text(&self.reason, at)?,
            })
        };
        (0..self.address.len()).map(&mut row).collect()
    }
}

fn distance(from: u64, to: u64) -> i64 {
    to.wrapping_sub(from).cast_signed()
}

impl SelfDescription {
    /// Writes it as JSON. Sites are told by their place: `sites[i].id == i`.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_json(&self, to: impl Write) -> serde_json::Result<()> {
        serde_json::to_writer(
            to,
            &Written {
                version: Cow::Borrowed(&self.version),
                binary: Cow::Borrowed(&self.binary),
                original_sha256: Cow::Borrowed(&self.original_sha256),
                columns: Columns::new(&self.sites),
            },
        )
    }

    /// Whether [`SelfDescription::write_json`] wrote this, without another copy of the sites in memory.
    ///
    /// # Errors
    /// It is no JSON of that form.
    pub fn is_written_in(&self, json: &[u8]) -> serde_json::Result<bool> {
        let written: Written<'_> = serde_json::from_slice(json)?;
        Ok(written.version == self.version
            && *written.binary == self.binary
            && written.original_sha256 == self.original_sha256
            && written.columns == Columns::new(&self.sites))
    }

    /// Reads what [`SelfDescription::write_json`] wrote.
    ///
    /// # Errors
    /// It is no JSON of that form, or contradicts itself.
    pub fn from_json(json: &[u8]) -> serde_json::Result<SelfDescription> {
        let written: Written<'_> = serde_json::from_slice(json)?;
        let sites = written.columns.rows();
        let sites = sites
            .ok_or_else(|| serde_json::Error::custom("the columns of sites don't fit together"))?;
        Ok(SelfDescription {
            version: written.version.into_owned(),
            binary: written.binary.into_owned(),
            original_sha256: written.original_sha256.into_owned(),
            sites,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(id: u32, address: u64) -> SiteInfo {
        SiteInfo {
            id,
            address: HexAddress(address),
            function: None,
            construct: Construct::Barrier,
            edge: Edge::Encloses,
            region: id,
            entry: None,
            mechanism: Mechanism::CallSite,
            outlined: None,
            source: None,
            frames: None,
            detail: None,
            outcome: Outcome::Patched,
            reason: None,
        }
    }

    fn description() -> SelfDescription {
        let text = |t: &str| Some(t.into());
        let begin = SiteInfo {
            function: text("main"),
            entry: text("GOMP_parallel"),
            construct: Construct::Parallel,
            edge: Edge::Begin,
            mechanism: Mechanism::Closure,
            outlined: Some(HexAddress(0x40_1000)),
            source: Some(Source {
                file: "a \"b\".c".into(),
                line: 7,
            }),
            ..site(0, 0x40_2000)
        };
        let end = SiteInfo {
            region: 0,
            function: text("main"),
            outcome: Outcome::Skipped,
            reason: text("a name\\that needs more than ASCII: \u{fc}"),
            detail: text("main"),
            // Below the one before.
            ..site(1, 0x40_1ff0)
        };
        SelfDescription {
            version: "1.2".into(),
            binary: BinaryInfo {
                path: "lu.x".into(),
                build_id: None,
                kind: "pie".into(),
                stripped: true,
                runtimes: vec!["libgomp.so.1".into()],
                debug_files: None,
                loops_of: Vec::new(),
                settings: Vec::new(),
                counted: None,
            },
            original_sha256: "00".into(),
            sites: vec![begin, end, site(2, u64::MAX), site(3, 5)],
        }
    }

    #[test]
    fn descriptions_round_trip() {
        let mut json = Vec::new();
        description().write_json(&mut json).unwrap();
        assert_eq!(SelfDescription::from_json(&json).unwrap(), description());
        assert!(description().is_written_in(&json).unwrap());
        let mut other = description();
        other.sites[2].outcome = Outcome::Skipped;
        assert!(!other.is_written_in(&json).unwrap());
        let text = String::from_utf8(json).unwrap();
        assert_eq!(text.matches("main").count(), 1, "{text}");
    }

    #[test]
    fn columns_that_contradict_each_other_are_errors() {
        let mut json = Vec::new();
        description().write_json(&mut json).unwrap();
        let mut value: serde_json::Value = serde_json::from_slice(&json).unwrap();
        for column in ["kind", "function", "line", "outlined", "region"] {
            let mut damaged = value.clone();
            let entries = damaged["columns"][column].as_array_mut().unwrap();
            entries.pop();
            let error = SelfDescription::from_json(damaged.to_string().as_bytes()).unwrap_err();
            assert!(error.to_string().contains("don't fit together"), "{error}");
        }
        for (column, wrong) in [("kind", 99), ("reason", 99), ("region", -1)] {
            let before = value["columns"][column][0].take();
            value["columns"][column][0] = wrong.into();
            assert!(SelfDescription::from_json(value.to_string().as_bytes()).is_err());
            value["columns"][column][0] = before;
        }
    }
}
