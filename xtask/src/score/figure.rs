//! One measured number, and whether more of it is good.

use serde_json::{Value, json};

use crate::Fault;

/// Which way is up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// It only describes; nobody is held to it.
    Neither,
}

/// One measured number. It has no value where there was nothing to measure it on.
#[derive(Debug, Clone)]
pub struct Figure {
    /// Its name, as the recorded file and `--json` write it.
    pub name: String,
    /// The number, rounded to three digits.
    pub value: Option<f64>,
    /// Which way is up.
    pub better: Better,
}

impl Figure {
    /// A figure of this name; the value is rounded, so that it can be compared with what was written down.
    pub fn new(name: impl Into<String>, value: Option<f64>, better: Better) -> Figure {
        Figure { name: name.into(), value: value.map(rounded), better }
    }

    /// Says how it is worse than what was recorded, if it is.
    pub fn drop_from(&self, recorded: f64) -> Result<(), String> {
        let worse = match (self.better, self.value) {
            (Better::Neither, _) => false,
            (Better::Higher, Some(value)) => value < recorded,
            (Better::Lower, Some(value)) => value > recorded,
            (Better::Higher | Better::Lower, None) => true,
        };
        match worse {
            true => Err(format!("{} is {}, recorded is {}", self.name, self, recorded)),
            false => Ok(()),
        }
    }
}

impl std::fmt::Display for Figure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.value {
            Some(value) => f.pad(&value.to_string()),
            None => f.pad("-"),
        }
    }
}

/// Part of a whole, unless the whole is nothing.
pub fn share(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Three digits after the point, ties to even, as decimal text would show it.
pub fn rounded(value: f64) -> f64 {
    format!("{value:.3}").parse().unwrap_or(value)
}

/// A file's figures as a recorded table.
pub fn to_toml(source: &str, figures: &[Figure]) -> String {
    let mut text = format!("[{source:?}]\n");
    for figure in figures.iter().filter(|figure| figure.better != Better::Neither) {
        if let Some(value) = figure.value {
            text += &format!("{} = {value:?}\n", figure.name);
        }
    }
    text
}

/// Figures by their names, as `--json` prints them.
pub fn to_json(figures: &[Figure]) -> Value {
    Value::Object(figures.iter().map(|figure| (figure.name.clone(), json!(figure.value))).collect())
}

/// Compares figures with the recorded ones of the same source.
pub fn compare(source: &str, figures: &[Figure], recorded: &toml::Table) -> Result<Vec<String>, Fault> {
    let table = recorded.get(source).and_then(toml::Value::as_table);
    let table =
        table.ok_or_else(|| format!("nothing is recorded for {source}: run `cargo xtask score --record`"))?;
    let mut drops = Vec::new();
    for (name, value) in table {
        let value =
            value.as_float().ok_or_else(|| format!("{source}: {name} is not a number with a point"))?;
        match figures.iter().find(|figure| figure.name == *name) {
            Some(figure) => {
                drops.extend(figure.drop_from(value).err().map(|drop| format!("{source}: {drop}")))
            }
            None => drops.push(format!("{source}: {name} is recorded, but no longer measured")),
        }
    }
    Ok(drops)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(better: Better, now: Option<f64>, recorded: f64, drops: bool) {
        let figures = [Figure::new("x", now, better)];
        let table: toml::Table = format!("[a]\nx = {recorded:?}").parse().unwrap();
        assert_eq!(
            compare("a", &figures, &table).unwrap().len(),
            usize::from(drops),
            "{figures:?} against {recorded}"
        );
    }

    #[test]
    fn a_figure_drops_only_against_its_own_direction() {
        check(Better::Higher, Some(0.97), 0.97, false);
        check(Better::Higher, Some(0.98), 0.97, false);
        check(Better::Higher, Some(0.969), 0.97, true);
        check(Better::Lower, Some(0.0), 0.0, false);
        check(Better::Lower, Some(1.0), 0.0, true);
    }

    #[test]
    fn a_figure_that_can_no_longer_be_measured_is_a_drop() {
        check(Better::Higher, None, 0.5, true);
    }

    #[test]
    fn noise_below_the_third_digit_is_no_drop() {
        check(Better::Higher, Some(2.0 / 3.0), 0.667, false);
    }
}
