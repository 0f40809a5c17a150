//! What describes printed JSON: JSON Schemas of draft 2020-12, made of the types and their comments.

use super::json::{
    CallPathWords, LockWords, LossWords, OverheadWords, ProbesWords, RegionWords, ReportWords,
    RunningWords, ScalingWords, TriedWords, UnmatchedWords,
};
use super::sampled::shares::SharesJson;
use super::{diff, growth, history, series};
use ompfuse_account::model::Report;
use ompfuse_account::sampled::SampledReport;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

/// Of `ompfuse report --format json`.
pub fn report() -> String {
    printed(&report_schema())
}

/// Of `ompfuse report RUN RUN... --format json`.
pub fn series() -> String {
    of_type::<series::SeriesJson<'_>>()
}

/// Of `ompfuse report --interval LENGTH --format json`.
pub fn intervals() -> String {
    of_type::<growth::GrowthJson<'_>>()
}

/// Of `ompfuse report --lines --format json`.
pub fn lines() -> String {
    of_type::<SampledReport>()
}

/// Of `ompfuse diff --format json`.
pub fn diff() -> String {
    of_type::<diff::Compared<'_>>()
}

/// Of `ompfuse diff --format json` where a side has samples only.
pub fn shares() -> String {
    of_type::<SharesJson<'_>>()
}

/// Of `ompfuse history --format json`.
pub fn history() -> String {
    of_type::<history::HistoryJson<'_>>()
}

fn printed(schema: &Value) -> String {
    format!("{schema:#}\n")
}

/// What [`json`](super::json) prints. Fields may be added to any object.
fn report_schema() -> Value {
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
fn of_type<T: JsonSchema>() -> String {
    let mut schema = generator().into_root_schema_for::<T>().to_value();
    tidy(&mut schema);
    printed(&schema)
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
    use super::report_schema;

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
        let schema = report_schema();
        check("report", &schema);
        let types = schema["$defs"].as_object().unwrap();
        types.iter().for_each(|(name, of)| check(name, of));
    }
}
