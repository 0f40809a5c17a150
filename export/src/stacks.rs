//! Frames of samples, as all formats with stacks name them: the functions that a thread was in, each with its line.

use ompfuse_fuse::names::is_beginning;
use ompfuse_fuse::names::is_unnamed;
use ompfuse_fuse::samples::{SampledPlace, SampledPlaces, Share, Stack};
use std::collections::HashMap;

/// A function at a line of it, or what stands for time without one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The function; what is no function is in brackets.
    pub name: String,
    /// Path of its source file.
    pub file: Option<String>,
    /// The line there that was executed, or that made the call.
    pub line: Option<u32>,
    /// Path of the file with its code, if that isn't the program.
    pub object: Option<String>,
}

impl Frame {
    fn bracketed(name: &str) -> Frame {
        Frame {
            name: format!("[{name}]"),
            ..Frame::default()
        }
    }

    /// Its name with its place.
    pub(crate) fn text(&self) -> String {
        let file = self.file.as_deref().map(file_name);
        match (file, self.line) {
            (Some(file), Some(line)) => format!("{} {file}:{line}", self.name),
            _ => self.name.clone(),
        }
    }
}

/// Frames, each once.
#[derive(Debug)]
pub(crate) struct Frames<'p> {
    places: &'p SampledPlaces,
    index: HashMap<Frame, usize>,
    list: Vec<Frame>,
}

impl<'p> Frames<'p> {
    /// `places`: those that stacks refer to.
    pub(crate) fn new(places: &'p SampledPlaces) -> Frames<'p> {
        Frames {
            places,
            index: HashMap::new(),
            list: vec![],
        }
    }

    /// The frames of a sample below its construct, the outermost first: positions in [`Frames::list`].
    pub(crate) fn of(&mut self, stack: &Stack) -> Vec<usize> {
        let instead = match stack.share {
            Share::Work => None,
            Share::Runtime => Some("OpenMP runtime or waiting"),
            Share::Recording => Some("recording"),
            Share::Idle => Some("idle"),
            Share::Uncertain => Some("uncertain"),
        };
        if let Some(name) = instead {
            return vec![self.number(Frame::bracketed(name))];
        }
        let mut frames = vec![];
        if !stack.is_whole {
            frames.push(self.number(Frame::bracketed("callers not known")));
        }
        let known = |at: &Option<u32>| self.places.places.get((*at)? as usize);
        let calls: Vec<Option<&SampledPlace>> = stack.calls.iter().map(known).collect();
        // What comes before `main` tells nothing.
        let before = calls.iter().take_while(|place| place.is_some_and(begins));
        let before = before.count().min(calls.len().saturating_sub(1));
        for place in &calls[before..] {
            let Some(place) = place else {
                frames.push(self.number(Frame::bracketed("unknown")));
                continue;
            };
            if let Some(outer) = &place.inlined_into {
                frames.push(self.number(Frame {
                    name: outer.clone(),
                    object: place.object.clone(),
                    ..Frame::default()
                }));
            }
            frames.push(self.number(frame(place)));
        }
        frames
    }

    fn number(&mut self, frame: Frame) -> usize {
        let next = self.list.len();
        *self.index.entry(frame).or_insert_with_key(|frame| {
            self.list.push(frame.clone());
            next
        })
    }

    pub(crate) fn list(&self) -> &[Frame] {
        &self.list
    }

    pub(crate) fn into_list(self) -> Vec<Frame> {
        self.list
    }
}

fn frame(place: &SampledPlace) -> Frame {
    let object = place.object.as_deref().map(file_name);
    let unnamed = || Frame::bracketed(object.unwrap_or("unknown")).name;
    Frame {
        name: match &place.function {
            Some(begin) if is_unnamed(begin) => match object {
                Some(object) => format!("{object}:{begin}"),
                None => begin.clone(),
            },
            Some(name) => name.replace('\n', " "),
            None => unnamed(),
        },
        file: place.file.clone(),
        line: place.line,
        object: place.object.clone(),
    }
}

/// Whether it is what calls `main`, or a thread's own function.
fn begins(place: &SampledPlace) -> bool {
    let object = place.object.as_deref().unwrap_or_default();
    is_beginning(place.function.as_deref(), file_name(object))
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `_start`, the C library, `main`, `often` in `both`, a library without symbols.
    fn places() -> SampledPlaces {
        let place = |function: Option<&str>, object: Option<&str>| SampledPlace {
            function: function.map(str::to_owned),
            object: object.map(str::to_owned),
            ..SampledPlace::default()
        };
        let inlined = SampledPlace {
            inlined_into: Some("both".to_owned()),
            file: Some("/src/a.c".to_owned()),
            line: Some(8),
            ..place(Some("often"), None)
        };
        SampledPlaces {
            places: vec![
                place(Some("_start"), None),
                place(Some("call_main"), Some("/lib/libc.so.6")),
                place(Some("main"), None),
                inlined,
                place(None, Some("/lib/libx.so")),
                place(Some("0x1f0"), Some("/lib/libx.so")),
            ],
            objects: vec![],
            ..SampledPlaces::default()
        }
    }

    fn texts(share: Share, calls: &[Option<u32>], is_whole: bool) -> Vec<String> {
        let places = places();
        let mut frames = Frames::new(&places);
        let found = frames.of(&Stack {
            at_ns: 0,
            share,
            calls: calls.to_vec(),
            is_whole,
        });
        let text = |at: usize| frames.list()[at].text();
        found.into_iter().map(text).collect()
    }

    #[test]
    fn a_stack_begins_at_main_and_has_what_is_inlined() {
        let all: Vec<Option<u32>> = (0..5).map(Some).collect();
        assert_eq!(
            texts(Share::Work, &all, true),
            ["main", "both", "often a.c:8", "[libx.so]"]
        );
        // Nothing else is known of it.
        assert_eq!(texts(Share::Work, &all[..1], true), ["_start"]);
    }

    #[test]
    fn what_is_not_known_is_said() {
        assert_eq!(
            texts(Share::Work, &[Some(2), None, Some(99)], false),
            ["[callers not known]", "main", "[unknown]", "[unknown]"]
        );
        let unnamed = texts(Share::Work, &[Some(2), Some(5)], true);
        assert_eq!(unnamed, ["main", "libx.so:0x1f0"]);
        let runtime = texts(Share::Runtime, &[], true);
        assert_eq!(runtime, ["[OpenMP runtime or waiting]"]);
    }
}
