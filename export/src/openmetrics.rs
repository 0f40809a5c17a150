//! Metrics in the text form of OpenMetrics, which Prometheus and its relatives read.
//!
//! [`write`](fn@write) makes them of a report, [`families`] are what they are made of: whoever watches a run that goes on fills them itself.

pub mod families;
mod of_report;

pub use families::{Family, Labels, Number, place};
pub use of_report::write;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use std::fmt;

/// What an answer with this text has as its `Content-Type`.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The text of these families; those without samples are left out.
///
/// # Errors
/// None that is known: the text is in memory.
pub fn text(families: Vec<Family>) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("ompfuse");
    registry.register_collector(Box::new(Families(families)));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry)?;
    Ok(text)
}

/// The library's own families keep their samples by hash, and would list them in another order each time.
#[derive(Debug)]
struct Families(Vec<Family>);

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for family in self.0.iter().filter(|f| !f.samples.is_empty()) {
            let unit = family.in_seconds.then_some(&Unit::Seconds);
            let kind = match family.kind {
                families::Kind::Counter => MetricType::Counter,
                families::Kind::Gauge => MetricType::Gauge,
            };
            let mut encoder = encoder.encode_descriptor(family.name, family.help, unit, kind)?;
            for (labels, number) in &family.samples {
                number.encode(family.kind, encoder.encode_family(labels)?)?;
            }
        }
        Ok(())
    }
}

impl Number {
    fn encode(self, kind: families::Kind, encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        match (kind, self) {
            (families::Kind::Gauge, Number::Count(n)) => {
                ConstGauge::new(i64::try_from(n).unwrap_or(i64::MAX)).encode(encoder)
            }
            (families::Kind::Gauge, Number::Seconds(s)) => ConstGauge::new(s).encode(encoder),
            (_, Number::Count(n)) => ConstCounter::new(n).encode(encoder),
            (_, Number::Seconds(s)) => ConstCounter::new(s).encode(encoder),
        }
    }
}

#[cfg(test)]
mod tests;
