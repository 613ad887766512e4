//! What a setting can be: its shape, how a person writes it, and how it is shown again. It knows no setting by name.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use unstuck_judge::Lang;
use unstuck_wire::time;

use super::path_patterns::PathPatterns;
use super::rewrite_rows::RewriteRows;
use super::tools::ToolModes;

/// One value, whatever layer it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Flag(bool),
    Word(&'static str),
    Time(Duration),
    Size(u64),
    Folder(Folder),
    Tools(ToolModes),
    Rewrites(RewriteRows),
    Count(u64),
    Patterns(PathPatterns),
}

/// A folder as it is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Folder {
    /// Where the platform keeps such things.
    Auto,
    At(PathBuf),
}

/// What a value must look like, with the least and the most that make sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Flag,
    Word(&'static [&'static str]),
    /// From the least to the most.
    Time(Duration, Duration),
    /// From the least to the most, in bytes.
    Size(u64, u64),
    Folder,
    /// Modes of single tools.
    Tools,
    /// Rows of rewrites.
    Rewrites,
    /// A whole number, from the least to the most.
    Count(u64, u64),
    /// Patterns of paths.
    Patterns,
}

const TIME_UNITS: [(&str, u64); 6] =
    [("w", 604_800_000), ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
const A_DAY: Duration = Duration::from_secs(86_400);
const SIZE_UNITS: [(&str, u64); 5] =
    [("TB", 1 << 40), ("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10), ("B", 1)];

impl Shape {
    /// Reads a value from text, as a variable, a flag or a string of a file gives it. Nothing comes back where it does
    /// not fit; [`Shape::wanted`] says what would.
    pub(crate) fn read(self, text: &str, home: Option<&Path>) -> Option<Value> {
        match self {
            Shape::Flag => text.parse().ok().map(Value::Flag),
            Shape::Word(words) => words.iter().find(|word| **word == text).map(|word| Value::Word(word)),
            Shape::Time(least, most) => {
                let time = time(text)?;
                (least..=most).contains(&time).then_some(Value::Time(time))
            }
            Shape::Size(least, most) => {
                let size = counted(text, &SIZE_UNITS)?;
                (least..=most).contains(&size).then_some(Value::Size(size))
            }
            Shape::Folder => folder(text, home).map(Value::Folder),
            Shape::Tools => ToolModes::read(text).map(Value::Tools),
            Shape::Rewrites => RewriteRows::read(text).map(Value::Rewrites),
            Shape::Count(least, most) => {
                let is_number = text.bytes().all(|digit| digit.is_ascii_digit());
                let count = is_number.then(|| text.parse().ok()).flatten()?;
                (least..=most).contains(&count).then_some(Value::Count(count))
            }
            Shape::Patterns => PathPatterns::read(text, home).map(Value::Patterns),
        }
    }

    /// Does it stand in quotes in a file?
    pub(crate) fn is_quoted(self) -> bool {
        match self {
            Shape::Flag | Shape::Count(..) => false,
            Shape::Word(_)
            | Shape::Time(..)
            | Shape::Size(..)
            | Shape::Folder
            | Shape::Tools
            | Shape::Rewrites
            | Shape::Patterns => true,
        }
    }

    /// What a value must look like, in words.
    pub(crate) fn wanted(self, lang: Lang) -> String {
        match (self, lang) {
            (Shape::Flag, Lang::En) => "true or false".to_owned(),
            (Shape::Flag, Lang::Zh) => "true 或 false".to_owned(),
            (Shape::Word(words), Lang::En) => format!("one of {}", words.join(", ")),
            (Shape::Word(words), Lang::Zh) => format!("以下之一：{}", words.join("、")),
            (Shape::Time(least, most), Lang::En) => {
                format!("a duration such as 150ms, 30s, 24h or 30d, from {} to {}", Time(least), Time(most))
            }
            (Shape::Time(least, most), Lang::Zh) => {
                format!("时长，例如 150ms、30s、24h 或 30d，从 {} 到 {}", Time(least), Time(most))
            }
            (Shape::Size(least, most), Lang::En) => {
                format!("a size such as 64KB or 1GB, from {} to {}", Size(least), Size(most))
            }
            (Shape::Size(least, most), Lang::Zh) => {
                format!("大小，例如 64KB 或 1GB，从 {} 到 {}", Size(least), Size(most))
            }
            (Shape::Folder, Lang::En) => "auto, an absolute path, or one that begins with ~/".to_owned(),
            (Shape::Folder, Lang::Zh) => "auto、绝对路径，或以 ~/ 开头的路径".to_owned(),
            (Shape::Tools, Lang::En) => {
                "none, or tools with their modes such as `WebFetch=shadow, mcp__*=advise`".to_owned()
            }
            (Shape::Tools, Lang::Zh) => {
                "none，或工具及其模式，例如 `WebFetch=shadow, mcp__*=advise`".to_owned()
            }
            (Shape::Rewrites, Lang::En) => {
                "all, or names of rewrites such as `python-to-python3, apt-yes`".to_owned()
            }
            (Shape::Rewrites, Lang::Zh) => "all，或改写的名称，例如 `python-to-python3, apt-yes`".to_owned(),
            (Shape::Count(least, most), Lang::En) => format!("a whole number from {least} to {most}"),
            (Shape::Count(least, most), Lang::Zh) => format!("{least} 到 {most} 的整数"),
            (Shape::Patterns, Lang::En) => {
                "none, or patterns that begin with /, ~/ or **/ such as `**/.env, ~/secrets/**`".to_owned()
            }
            (Shape::Patterns, Lang::Zh) => {
                "none，或以 /、~/ 或 **/ 开头的模式，例如 `**/.env, ~/secrets/**`".to_owned()
            }
        }
    }
}

/// Reads a duration: a whole number and a unit.
pub(crate) fn time(text: &str) -> Option<Duration> {
    counted(text, &TIME_UNITS).map(Duration::from_millis)
}

fn counted(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.len() - text.trim_start_matches(|sign: char| sign.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let (_, worth) = units.iter().find(|(name, _)| *name == unit.trim_start())?;
    number.parse::<u64>().ok()?.checked_mul(*worth)
}

fn folder(text: &str, home: Option<&Path>) -> Option<Folder> {
    if text == "auto" {
        return Some(Folder::Auto);
    }
    let path = match text.strip_prefix("~/") {
        Some(rest) => home?.join(rest),
        None => PathBuf::from(text),
    };
    (path.is_absolute() && !text.contains('\0')).then_some(Folder::At(path))
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Flag(on) => on.fmt(f),
            Value::Word(word) => word.fmt(f),
            Value::Time(time) => Time(*time).fmt(f),
            Value::Size(size) => Size(*size).fmt(f),
            Value::Folder(Folder::Auto) => "auto".fmt(f),
            Value::Folder(Folder::At(path)) => path.display().fmt(f),
            Value::Tools(tools) => tools.fmt(f),
            Value::Rewrites(rows) => rows.fmt(f),
            Value::Count(count) => count.fmt(f),
            Value::Patterns(patterns) => patterns.fmt(f),
        }
    }
}

/// A duration as a person writes it.
pub(crate) struct Time(pub(crate) Duration);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = time::span_ms(self.0);
        // Weeks are understood but not said: 30d and 28d stand better side by side than 30d and 4w. So is a single day.
        let units = if self.0 <= A_DAY { &TIME_UNITS[2..] } else { &TIME_UNITS[1..] };
        f.pad(&in_units(millis, units, "0s"))
    }
}

/// A size as a person writes it.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&in_units(self.0, &SIZE_UNITS, "0B"))
    }
}

/// The number in the largest unit that loses nothing.
fn in_units(number: u64, units: &[(&str, u64)], nothing: &str) -> String {
    let fits = units.iter().find(|(_, worth)| number > 0 && number.is_multiple_of(*worth));
    fits.map_or(nothing.to_owned(), |(unit, worth)| format!("{}{unit}", number / worth))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY_TIME: Shape = Shape::Time(Duration::ZERO, Duration::MAX);
    const ANY_SIZE: Shape = Shape::Size(0, u64::MAX);

    #[track_caller]
    fn check(shape: Shape, text: &str, shown: Option<&str>) {
        let read = shape.read(text, Some(Path::new("/home/ada")));
        assert_eq!(read.map(|value| value.to_string()).as_deref(), shown, "{text:?}");
    }

    #[test]
    fn a_duration_is_shown_in_the_largest_unit_that_loses_nothing() {
        check(ANY_TIME, "150ms", Some("150ms"));
        check(ANY_TIME, "60s", Some("1m"));
        check(ANY_TIME, "90 m", Some("90m"));
        check(ANY_TIME, "2w", Some("14d"));
        check(ANY_TIME, "1d", Some("24h"));
        check(ANY_TIME, "0h", Some("0s"));
    }

    #[test]
    fn a_duration_without_a_unit_or_past_all_counting_is_none() {
        let nonsense = ["", "s", "5", "-1s", "1.5h", "1h30m", "5 fortnights", "1S", "99999999999999999999d"];
        nonsense.iter().for_each(|text| check(ANY_TIME, text, None));
        check(ANY_TIME, "18446744073709551615w", None);
    }

    #[test]
    fn a_size_counts_in_steps_of_1024() {
        assert_eq!(ANY_SIZE.read("64KB", None), Some(Value::Size(65_536)));
        check(ANY_SIZE, "1024MB", Some("1GB"));
        check(ANY_SIZE, "1000B", Some("1000B"));
        ["64", "64kb", "1.5GB", "KB", "999999999TB"].iter().for_each(|text| check(ANY_SIZE, text, None));
    }

    #[test]
    fn a_value_outside_its_bounds_is_none() {
        let shape = Shape::Time(Duration::from_secs(1), Duration::from_secs(60));
        check(shape, "1s", Some("1s"));
        check(shape, "999ms", None);
        check(shape, "61s", None);
    }

    #[test]
    fn a_folder_is_absolute_or_in_the_home() {
        check(Shape::Folder, "/var/state", Some("/var/state"));
        check(Shape::Folder, "~/state", Some("/home/ada/state"));
        check(Shape::Folder, "auto", Some("auto"));
        ["state", "../state", "", "~", "~bob/state"].iter().for_each(|text| check(Shape::Folder, text, None));
        assert_eq!(Shape::Folder.read("~/state", None), None);
    }
}
