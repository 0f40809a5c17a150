//! The documents that describe printed JSON, made of the types and their comments. They are committed, so that the command
//! carries them and not what makes them.

use super::json::{
    CallPathWords, LockWords, LossWords, OverheadWords, ProbesWords, RegionWords, ReportWords,
    RunningWords, ScalingWords, TriedWords, UnmatchedWords,
};
use super::{diff, growth, history, series};
use crate::model::Report;
use crate::sampled::SampledReport;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

/// Each document: its path in the repository, and what should stand there.
pub fn documents() -> Vec<(&'static str, String)> {
    let printed = |schema: Value| format!("{schema:#}\n");
    vec![
        ("docs/report.schema.json", printed(report())),
        (
            "docs/series.schema.json",
            printed(of_type::<series::SeriesJson<'_>>()),
        ),
        (
            "docs/intervals.schema.json",
            printed(of_type::<growth::GrowthJson<'_>>()),
        ),
        (
            "docs/lines.schema.json",
            printed(of_type::<SampledReport>()),
        ),
        (
            "docs/diff.schema.json",
            printed(of_type::<diff::Compared<'_>>()),
        ),
        (
            "docs/history.schema.json",
            printed(of_type::<history::HistoryJson<'_>>()),
        ),
    ]
}

/// What [`json`](super::json) prints, as a JSON Schema of draft 2020-12. Fields may be added to any object.
pub(super) fn report() -> Value {
    let mut schema = generator().into_root_schema_for::<Report>().to_value();
    add::<ReportWords>(&mut schema);
    let of_type = |schema: &mut Value, name: &str, words: fn(&mut Value)| {
        words(&mut schema["$defs"][name]);
    };
    of_type(&mut schema, "Lock", add::<LockWords>);
    of_type(&mut schema, "Loss", add::<LossWords>);
    of_type(&mut schema, "Scaling", add::<ScalingWords>);
    of_type(&mut schema, "Tried", add::<TriedWords>);
    of_type(&mut schema, "CallPath", add::<CallPathWords>);
    of_type(&mut schema, "ProbeTime", add::<ProbesWords>);
    of_type(&mut schema, "Region", add::<RegionWords>);
    of_type(&mut schema, "Running", add::<RunningWords>);
    of_type(&mut schema, "ParallelOverhead", add::<OverheadWords>);
    of_type(&mut schema, "UnmatchedXus", add::<UnmatchedWords>);
    tidy(&mut schema);
    schema
}

/// Of any type that is printed.
fn of_type<T: JsonSchema>() -> Value {
    let mut schema = generator().into_root_schema_for::<T>().to_value();
    tidy(&mut schema);
    schema
}

/// Makes descriptions of doc comments: one line, and names instead of links.
fn tidy(value: &mut Value) {
    if let Some(Value::String(text)) = value.get_mut("description") {
        let words: Vec<&str> = text.split_whitespace().collect();
        *text = words.join(" ").replace("[`", "`").replace("`]", "`");
    }
    match value {
        Value::Object(fields) => fields.values_mut().for_each(tidy),
        Value::Array(list) => list.iter_mut().for_each(tidy),
        _ => {}
    }
}

fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
}

/// Adds the properties of `W` to those of an object.
fn add<W: JsonSchema>(object: &mut Value) {
    let words: Schema = generator().into_root_schema_for::<W>();
    for list in ["properties", "required"] {
        match (&mut object[list], words.get(list)) {
            (Value::Object(all), Some(Value::Object(own))) => all.extend(own.clone()),
            (Value::Array(all), Some(Value::Array(own))) => all.extend(own.iter().cloned()),
            _ => unreachable!("an object has properties, and some are always there"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{documents, report};
    use std::path::Path;

    #[test]
    fn committed_documents_are_current() {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for (path, wanted) in documents() {
            let committed = std::fs::read_to_string(repository.join(path)).unwrap();
            assert!(
                committed == wanted,
                "{path} is not current: cargo run -p ompfuse-report --features schema --example schemas"
            );
        }
    }

    #[test]
    fn every_field_is_described() {
        fn check(name: &str, value: &serde_json::Value) {
            for (field, of) in value["properties"].as_object().into_iter().flatten() {
                let is_tag = of.get("const").is_some();
                // Values that are an object of one field are described as a whole.
                let is_whole = value["additionalProperties"] == false;
                let about = if is_whole { value } else { of };
                let is_told = about["description"].as_str().is_some_and(|d| !d.is_empty());
                assert!(is_tag || is_told, "{name}.{field}");
            }
            let kinds = value["oneOf"].as_array().into_iter().flatten();
            kinds.for_each(|kind| check(name, kind));
        }
        let schema = report();
        check("report", &schema);
        let types = schema["$defs"].as_object().unwrap();
        types.iter().for_each(|(name, of)| check(name, of));
    }
}
