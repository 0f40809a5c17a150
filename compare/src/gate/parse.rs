//! `--fail-on` expressions as text.
//!
//! ```text
//! EXPRESSION = [ "b." ] [ 'region("' SELECTOR '").' ] QUANTITY COMPARISON [ LIMIT ]
//! COMPARISON = ">" | ">=" | "<" | "<=" | "!="
//! LIMIT      = NUMBER [ "%" | "s" | "ms" | "us" | "ns" ]
//! ```
//!
//! Changes have limits in percent, values (`b.`) in the quantity's unit, and `!=` has none. An efficiency with a limit that is a number from
//! 0 to 1 is a value, with `b.` or without. Blanks may stand between any two.

use super::{Comparison, Gate, Subject};
use crate::side::{Quantity, Unit};
use ompfuse_fuse::names::{Chooses, Selector};

/// An expression that means nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected} at character {at} of '{expression}'")]
pub struct GateError {
    /// As the user wrote it.
    pub expression: String,
    /// The character at which it stops to make sense, from 1; one more than it has if something is missing at its end.
    pub at: usize,
    /// What would make sense there.
    pub expected: String,
}

/// What new regions are called.
const NEW_REGIONS: &str = "new-regions";

/// Reads an expression.
///
/// # Errors
/// It means nothing; the error says from which character on.
///
/// ```
/// # use ompfuse_compare::gate::parse;
/// assert!(parse("region(\"solve*\").time > 3%").is_ok());
/// let error = parse("time> x%").unwrap_err();
/// assert_eq!(error.to_string(), "expected a number at character 7 of 'time> x%'");
/// ```
pub fn parse(expression: &str) -> Result<Gate, GateError> {
    let mut reader = Reader {
        text: expression,
        at: 0,
    };
    let (mut is_value, mut selector) = (false, None);
    loop {
        reader.blanks();
        if !is_value && reader.takes("b.") {
            is_value = true;
        } else if selector.is_none() && reader.takes("region(") {
            selector = Some(reader.selector()?);
        } else {
            break;
        }
    }
    let name = reader.name()?;
    let mut subject = match name {
        NEW_REGIONS if selector.is_none() && !is_value => Subject::NewRegions,
        NEW_REGIONS => {
            return Err(reader.error_at(
                reader.at - name.len(),
                "another quantity; new-regions stands alone",
            ));
        }
        _ => {
            let quantity = name.parse().unwrap_or_else(|never| match never {});
            match is_value {
                true => Subject::Value(quantity),
                false => Subject::Change(quantity),
            }
        }
    };
    reader.blanks();
    let comparison = reader.comparison()?;
    reader.blanks();
    if let Subject::Change(quantity) = &subject
        && quantity.is_efficiency()
        && comparison != Comparison::Differs
        && !reader.rest().contains('%')
    {
        subject = Subject::Value(quantity.clone());
    }
    let limit = match (comparison, &subject) {
        (Comparison::Differs, Subject::Change(_)) => 0.0,
        (Comparison::Differs, _) => {
            return Err(reader.error_at(reader.at - 2, "'>' or '<'; '!=' compares A with B"));
        }
        (_, Subject::Change(_)) => reader.percent()?,
        (_, Subject::NewRegions) => reader.number("a number")?,
        (_, Subject::Value(quantity)) => reader.value(quantity)?,
    };
    reader.blanks();
    if reader.at < expression.len() {
        return Err(reader.error("the end"));
    }
    Ok(Gate {
        expression: expression.trim().to_owned(),
        selector,
        subject,
        comparison,
        limit,
    })
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn error(&self, expected: &str) -> GateError {
        self.error_at(self.at, expected)
    }

    fn error_at(&self, at: usize, expected: &str) -> GateError {
        GateError {
            expression: self.text.to_owned(),
            at: self.text[..at].chars().count() + 1,
            expected: expected.to_owned(),
        }
    }

    fn blanks(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn takes(&mut self, word: &str) -> bool {
        let is_next = self.rest().starts_with(word);
        if is_next {
            self.at += word.len();
        }
        is_next
    }

    /// What stands in `region(...).`, behind the opening parenthesis.
    fn selector(&mut self) -> Result<Selector, GateError> {
        self.blanks();
        let quote = match self.rest().chars().next() {
            Some(quote @ ('"' | '\'')) => quote,
            _ => return Err(self.error("a pattern in quotes")),
        };
        self.at += 1;
        let Some(length) = self.rest().find(quote) else {
            return Err(self.error_at(self.text.len(), &format!("the closing {quote}")));
        };
        let pattern = &self.rest()[..length];
        let selector = Selector::parse(pattern, Chooses::OfBuilds)
            .map_err(|why| self.error(&format!("a selector ({why})")))?;
        self.at += length + 1;
        self.blanks();
        if !self.takes(")") {
            return Err(self.error("')'"));
        }
        self.blanks();
        if !self.takes(".") {
            return Err(self.error("'.' and a quantity"));
        }
        Ok(selector)
    }

    fn name(&mut self) -> Result<&'t str, GateError> {
        let is_end = |c: char| c.is_whitespace() || "<>=!\"'()%".contains(c);
        let name = self.rest().split(is_end).next().unwrap_or_default();
        if name.is_empty() {
            return Err(self.error("a quantity, such as time or instructions"));
        }
        self.at += name.len();
        Ok(name)
    }

    fn comparison(&mut self) -> Result<Comparison, GateError> {
        // Longer ones first: `>` begins `>=`.
        let known = [
            (">=", Comparison::AtLeast),
            ("<=", Comparison::AtMost),
            ("!=", Comparison::Differs),
            (">", Comparison::Above),
            ("<", Comparison::Below),
        ];
        let found = known.iter().find(|(text, _)| self.takes(text));
        found
            .map(|(_, comparison)| *comparison)
            .ok_or_else(|| self.error("'>', '>=', '<', '<=' or '!='"))
    }

    fn number(&mut self, what: &str) -> Result<f64, GateError> {
        let is_part = |c: &char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+');
        let length = self.rest().chars().take_while(is_part).count();
        let number = self.rest()[..length]
            .parse()
            .ok()
            .filter(|n: &f64| n.is_finite());
        let number = number.ok_or_else(|| self.error(what))?;
        self.at += length;
        self.blanks();
        Ok(number)
    }

    /// The limit of a change.
    fn percent(&mut self) -> Result<f64, GateError> {
        let number = self.number("a number")?;
        match self.takes("%") {
            true => Ok(number / 100.0),
            false => Err(self.error("'%': changes have limits in percent")),
        }
    }

    /// The limit of a value.
    fn value(&mut self, quantity: &Quantity) -> Result<f64, GateError> {
        let number = self.number("a number")?;
        let units: &[(&str, f64)] = match quantity.unit() {
            Unit::Share if quantity.is_efficiency() && !self.rest().starts_with('%') => {
                return Ok(number);
            }
            Unit::Share => &[("%", 0.01)],
            Unit::Count => return Ok(number),
            Unit::Seconds => &[
                ("ms", 1e-3),
                ("us", 1e-6),
                ("µs", 1e-6),
                ("ns", 1e-9),
                ("s", 1.0),
            ],
        };
        let unit = units.iter().find(|(unit, _)| self.takes(unit));
        match (unit, quantity.unit()) {
            (Some((_, factor)), _) => Ok(number * factor),
            (None, Unit::Share) => Err(self.error("'%'")),
            (None, _) => Err(self.error("a unit of time: s, ms, us or ns")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_understood() {
        let change = |name: &str| Subject::Change(name.parse().unwrap());
        let value = |name: &str| Subject::Value(name.parse().unwrap());
        for (text, selector, subject, comparison, limit) in [
            ("time>5%", None, change("time"), Comparison::Above, 0.05),
            (
                " time <= -2.5 % ",
                None,
                change("time"),
                Comparison::AtMost,
                -0.025,
            ),
            (
                "instructions/unit>1%",
                None,
                change("instructions/unit"),
                Comparison::Above,
                0.01,
            ),
            (
                "executions!=",
                None,
                change("executions"),
                Comparison::Differs,
                0.0,
            ),
            (
                "region(\"s*(int)\").max-unit >= 20%",
                Some("s*(int)"),
                change("max-unit"),
                Comparison::AtLeast,
                0.2,
            ),
            (
                "b.imbalance>10%",
                None,
                value("imbalance"),
                Comparison::Above,
                0.1,
            ),
            (
                "b.region('lu.c:6').time<5ms",
                Some("lu.c:6"),
                value("time"),
                Comparison::Below,
                0.005,
            ),
            (
                "region('b.c').b.units>1000",
                Some("b.c"),
                value("units"),
                Comparison::Above,
                1000.0,
            ),
            (
                "parallel-efficiency<0.8",
                None,
                value("parallel-efficiency"),
                Comparison::Below,
                0.8,
            ),
            (
                "region('solve*').b.load-balance<80%",
                Some("solve*"),
                value("load-balance"),
                Comparison::Below,
                0.8,
            ),
            (
                "parallel-efficiency<-5%",
                None,
                change("parallel-efficiency"),
                Comparison::Below,
                -0.05,
            ),
            (
                "new-regions>0",
                None,
                Subject::NewRegions,
                Comparison::Above,
                0.0,
            ),
            ("r1c2>1%", None, change("r1c2"), Comparison::Above, 0.01),
        ] {
            let gate = parse(text).unwrap();
            let named = gate.selector.as_ref().map(Selector::text);
            let found = (named, gate.subject, gate.comparison);
            assert_eq!(found, (selector, subject, comparison), "{text}");
            assert!((gate.limit - limit).abs() < 1e-12, "{text}: {}", gate.limit);
            assert_eq!(gate.expression, text.trim());
        }
    }

    #[test]
    fn errors_point_at_the_character() {
        for (text, at, expected) in [
            ("", 1, "a quantity, such as time or instructions"),
            (">5%", 1, "a quantity, such as time or instructions"),
            ("time", 5, "'>', '>=', '<', '<=' or '!='"),
            ("time=5%", 5, "'>', '>=', '<', '<=' or '!='"),
            ("time>", 6, "a number"),
            ("time> x%", 7, "a number"),
            ("time>5", 7, "'%': changes have limits in percent"),
            ("time>5-%", 6, "a number"),
            ("time>5% or", 9, "the end"),
            ("executions!=0", 13, "the end"),
            ("region(solve).time>1%", 8, "a pattern in quotes"),
            ("region(\"solve.time>1%", 22, "the closing \""),
            (
                "region(\"\").time>1%",
                9,
                "a selector (empty; give a construct, a function, FILE:LINE, FILE, lib:FILE or an address)",
            ),
            ("region(\"f\".time>1%", 11, "')'"),
            ("region(\"f\")time>1%", 12, "'.' and a quantity"),
            (
                "region(\"f\").new-regions>1",
                13,
                "another quantity; new-regions stands alone",
            ),
            ("b.executions!=", 13, "'>' or '<'; '!=' compares A with B"),
            ("b.time>5", 9, "a unit of time: s, ms, us or ns"),
            ("b.time>5%", 9, "a unit of time: s, ms, us or ns"),
            ("b.imbalance>5", 14, "'%'"),
            ("größe>5", 8, "'%': changes have limits in percent"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!((error.at, &*error.expected), (at, expected), "{text}");
        }
    }
}
