//! The page that describes the report's JSON field by field, made of its schema.

use super::schema;
use serde_json::Value;
use std::collections::VecDeque;
use std::fmt::Write;

/// What comes before the tables.
const ABOUT: &str = "\
# JSON of `ompfuse report`

`ompfuse report RUN --format json` prints one object with all data of the report. `ompfuse report --schema` prints its JSON Schema
([report.schema.json](../report.schema.json)). `ompfuse report --schema=markdown` prints this page.

- Scripts can rely on the names. New fields and kinds of notes can appear at any time: ignore unknown ones. `version` grows when a field is
  removed or changes its meaning.
- Fields whose names end with `_s` are in seconds. Shares are from 0 to 1. Nothing is rounded.
- A value that was not measured is null, never 0. A field marked *optional* is absent if it doesn't apply.
- Runs are numbered from 1 in the order of `runs`. Times are from the first run.
- An XU (execution unit) is an executed range of loop iterations, section or task. *Own* time excludes the constructs inside.
- `notes`, `told`, `remedy`, `most`, `command`, `doubt`, `incomplete` and `reason` are sentences for people, made from the other values.
  Their words can change; scripts should use the values.
";

/// The page, in Markdown.
pub(super) fn page() -> String {
    let schema = schema::report();
    let types = &schema["$defs"];
    let mut out = ABOUT.to_owned();
    let mut known = Vec::new();
    let mut waiting = VecDeque::from([("Report".to_owned(), &schema)]);
    while let Some((name, of)) = waiting.pop_front() {
        section(&mut out, &name, of);
        let mut names = Vec::new();
        references(of, &mut names);
        for name in names {
            if !known.contains(&name) {
                known.push(name.clone());
                let of = &types[&name];
                waiting.push_back((name, of));
            }
        }
    }
    out
}

/// Names of the types that a type mentions, in its order.
fn references(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields.iter().filter(|(name, _)| *name != "$defs") {
                match (name.as_str(), value) {
                    ("$ref", Value::String(path)) => names.push(referred(path).to_owned()),
                    _ => references(value, names),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| references(value, names)),
        _ => {}
    }
}

fn referred(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

fn section(out: &mut String, name: &str, of: &Value) {
    let about = text(of, "description");
    line(out, format_args!("\n## {name}\n"));
    if !about.is_empty() {
        line(out, format_args!("{about}\n"));
    }
    if let Some(kinds) = of["oneOf"].as_array() {
        return alternatives(out, kinds);
    }
    match of["properties"].as_object() {
        Some(_) => {
            line(
                out,
                format_args!("| field | type | meaning |\n|---|---|---|"),
            );
            for (field, of, is_optional) in fields(of) {
                let optional = if is_optional { ", *optional*" } else { "" };
                let (mut kind, about) = (type_of(of), text(of, "description"));
                if is_optional {
                    // It is left out instead.
                    kind = kind.replace(" or null", "");
                }
                line(
                    out,
                    format_args!("| `{field}` | {kind}{optional} | {about} |"),
                );
            }
        }
        None => line(out, format_args!("Type: {}", type_of(of))),
    }
}

/// An object's fields but for tags, and whether they may be absent.
fn fields(of: &Value) -> impl Iterator<Item = (&String, &Value, bool)> {
    let required = |name: &String| {
        let list = of["required"].as_array().into_iter().flatten();
        list.into_iter().any(|r| r == name)
    };
    let all = of["properties"].as_object().into_iter().flatten();
    all.filter(|(_, of)| of.get("const").is_none())
        .map(move |(name, of)| (name, of, !required(name)))
}

/// A type that is one of several things: a word each, or objects.
fn alternatives(out: &mut String, kinds: &[Value]) {
    if kinds.iter().all(|kind| kind.get("const").is_some()) {
        line(out, format_args!("| value | meaning |\n|---|---|"));
        for kind in kinds {
            let (word, about) = (text(kind, "const"), text(kind, "description"));
            line(out, format_args!("| `\"{word}\"` | {about} |"));
        }
        return;
    }
    line(
        out,
        format_args!("| value | fields | meaning |\n|---|---|---|"),
    );
    for kind in kinds {
        alternative(out, "", "", kind);
    }
}

/// One of several objects, or several if it has alternatives itself. `tags`, `before`: what they have in common.
fn alternative(out: &mut String, tags: &str, before: &str, kind: &Value) {
    let mut tags = tags.to_owned();
    if let Some(word) = kind.get("const") {
        tags = format!("`{word}`");
    }
    for (name, of) in kind["properties"].as_object().into_iter().flatten() {
        if let Some(word) = of.get("const") {
            let comma = if tags.is_empty() { "" } else { ", " };
            let _ = write!(tags, "{comma}`{name}: {word}`");
        }
    }
    if tags.is_empty() {
        tags.push_str("object");
    }
    let own: Vec<String> = fields(kind)
        .map(|(name, of, _)| match text(of, "description") {
            "" => format!("`{name}` ({})", type_of(of)),
            about => format!("`{name}` ({}): {about}", type_of(of)),
        })
        .collect();
    let gap = if before.is_empty() { "" } else { " " };
    let own = format!("{before}{gap}{}", own.join(" "));
    match kind["oneOf"].as_array() {
        Some(kinds) => kinds.iter().for_each(|k| alternative(out, &tags, &own, k)),
        None => {
            let about = text(kind, "description");
            line(out, format_args!("| {tags} | {} | {about} |", own.trim()));
        }
    }
}

/// A type, for people.
fn type_of(of: &Value) -> String {
    if let Some(path) = of["$ref"].as_str() {
        let name = referred(path);
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(any) = of["anyOf"].as_array() {
        let all: Vec<String> = any.iter().map(type_of).collect();
        return all.join(" or ");
    }
    let word = |word: &str| match word {
        "array" if of["maxItems"] == 2 && of["minItems"] == 2 => {
            format!("pair of {}", type_of(&of["items"]))
        }
        "array" => format!("list of {}", type_of(&of["items"])),
        "object" => match &of["additionalProperties"] {
            Value::Object(_) => format!("object: name to {}", type_of(&of["additionalProperties"])),
            _ => "object".to_owned(),
        },
        "boolean" => "true or false".to_owned(),
        other => other.to_owned(),
    };
    match &of["type"] {
        Value::String(one) => word(one),
        Value::Array(several) => {
            let all: Vec<String> = several.iter().filter_map(Value::as_str).map(word).collect();
            all.join(" or ")
        }
        _ => "any".to_owned(),
    }
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = writeln!(out, "{text}");
}
