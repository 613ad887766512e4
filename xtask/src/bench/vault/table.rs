//! What was measured, as tables and as answers to what is aimed at.

use std::fmt::Write as _;
use std::time::Duration;

use super::arena::{Cell, Measurements};
use super::peer::Who;
use super::tree::Amount;
use super::{FEW_FILES, MANY_FILES, Row};
use crate::Fault;
use crate::bench::contest::{Ratio, quantile};
use crate::bench::store::thousands;

/// At most so many times the stat walk, when nothing has changed.
const AIM_FLOOR: f64 = 1.4;
/// At least so many times faster than git with a warm index, when nothing has changed.
const AIM_GIT: f64 = 1.5;
/// At least so many times faster than `git reset --hard`.
const AIM_RESET: f64 = 3.0;
/// With ten times the entries it may take so much more than ten times as long.
const AIM_LINEAR: f64 = 1.25;
/// The most memory on any tree, in megabytes.
const AIM_MEMORY: u64 = 512;

/// The two tables of one tree.
pub fn tables(of: &Measurements) -> Result<String, Fault> {
    let mut text = format!(
        "\n### {} ({} entries, {} MB)\n\n",
        of.title,
        thousands(of.entries as u32),
        thousands((of.bytes / 1_000_000) as u32)
    );
    text += "| snapshot | first | nothing changed | 1 file changed | 1 % changed | peak memory |\n|---|---|---|---|---|---|\n";
    for who in Who::ALL {
        row(&mut text, of, who, who.snapshot_name(), &Row::ALL[..4], memory)?;
    }
    text += "\n| restore | 1 file changed | 1 % changed | all deleted | peak memory | as before? |\n|---|---|---|---|---|---|\n";
    for who in Who::ALL {
        row(&mut text, of, who, who.restore_name(), &Row::ALL[4..], |cells| {
            format!("{} | {}", memory(cells), exactness(cells))
        })?;
    }
    let faults = of.cells.iter().filter_map(|cell| Some((cell, cell.fault.as_ref()?)));
    for (cell, fault) in faults {
        writeln!(text, "\n{} failed ({}): {fault}", cell.who.snapshot_name(), cell.row.name())?;
    }
    writeln!(text, "\nRounds that count: {}; in all {:.0} s.", rounds(of), of.lasted.as_secs_f64())?;
    Ok(text)
}

fn row(
    text: &mut String,
    of: &Measurements,
    who: Who,
    name: &str,
    rows: &[Row],
    end: impl Fn(&[&Cell]) -> String,
) -> Result<(), Fault> {
    let cells: Vec<&Cell> = rows.iter().filter_map(|row| of.cell(who, *row)).collect();
    if cells.is_empty() {
        return Ok(());
    }
    write!(text, "| {name} |")?;
    for row in rows {
        match (of.cell(who, *row), of.times(who, *row), of.times(Who::Unstuck, *row)) {
            (_, Some(mine), Some(ours)) if who != Who::Unstuck => {
                write!(text, " {} · {} |", time(mine), ratio(mine, ours))?
            }
            (_, Some(mine), _) => write!(text, " {} |", time(mine))?,
            (Some(_), None, _) => write!(text, " failed |")?,
            (None, None, _) => write!(text, " – |")?,
        }
    }
    Ok(writeln!(text, " {} |", end(&cells))?)
}

fn memory(cells: &[&Cell]) -> String {
    format!("{:.0} MB", cells.iter().map(|cell| cell.peak).max().unwrap_or(0) as f64 / 1024.0)
}

/// What came back wrongly, for each row.
fn exactness(cells: &[&Cell]) -> String {
    let counted = cells.iter().filter(|cell| !cell.times.is_empty());
    let (exact, wrong): (Vec<&Cell>, Vec<&Cell>) = counted.partition(|cell| cell.differs.is_nothing());
    match (exact.is_empty(), wrong.is_empty()) {
        (true, true) => "–".to_owned(),
        (false, true) => "exact".to_owned(),
        (_, false) => {
            let told: Vec<String> =
                wrong.iter().map(|cell| format!("{}: {}", cell.row.name(), cell.differs)).collect();
            told.join("; ")
        }
    }
}

fn rounds(of: &Measurements) -> String {
    let of_row = |row: &Row| {
        let counts = of.cells.iter().filter(|cell| cell.row == *row).map(|cell| cell.times.len());
        let (least, most) = (counts.clone().min().unwrap_or(0), counts.max().unwrap_or(0));
        let told = if least == most { most.to_string() } else { format!("{least}–{most}") };
        format!("{} {told}", row.name())
    };
    Row::ALL.iter().map(of_row).collect::<Vec<_>>().join(", ")
}

fn time(times: &[Duration]) -> String {
    let ms = quantile(times, 0.5).as_secs_f64() * 1_000.0;
    match ms {
        ms if ms < 100.0 => format!("{ms:.1} ms"),
        ms if ms < 1_000.0 => format!("{ms:.0} ms"),
        ms => format!("{:.2} s", ms / 1_000.0),
    }
}

/// One round has no spread.
fn ratio(mine: &[Duration], ours: &[Duration]) -> String {
    let ratio = Ratio::of(mine, ours);
    match mine.len().min(ours.len()) {
        1 => format!("{:.2}", ratio.median),
        _ => ratio.to_string(),
    }
}

impl Row {
    fn name(self) -> &'static str {
        match self {
            Row::First => "first",
            Row::NoChange => "nothing changed",
            Row::Changed(Amount::OneFile) => "1 file changed",
            Row::Changed(Amount::OnePercent) => "1 % changed",
            Row::Restored(Amount::OneFile) => "1 file restored",
            Row::Restored(Amount::OnePercent) => "1 % restored",
            Row::Rebuilt => "all restored",
        }
    }
}

/// One aim on all trees: what was measured on each, and whether that is enough.
struct Aim {
    told: Vec<String>,
    is_met: bool,
}

impl Aim {
    fn new() -> Aim {
        Aim { told: Vec::new(), is_met: true }
    }

    fn add(&mut self, told: String, is_met: bool) {
        self.told.push(if is_met { told } else { format!("{told} (missed)") });
        self.is_met &= is_met;
    }

    /// Somebody's time as a ratio to another's, on every tree on which both ran.
    fn compare(
        measured: &[Measurements],
        row: Row,
        (who, other): (Who, Who),
        is_met: impl Fn(f64) -> bool,
    ) -> Aim {
        let mut aim = Aim::new();
        for of in measured {
            if let (Some(mine), Some(theirs)) = (of.times(who, row), of.times(other, row)) {
                let ratio = Ratio::of(mine, theirs).median;
                aim.add(format!("{}: {ratio:.2}", of.title), is_met(ratio));
            }
        }
        aim
    }

    fn line(&self, aim: &str) -> String {
        let end = match (self.told.is_empty(), self.is_met) {
            (true, _) => "Not measured.".to_owned(),
            (false, true) => format!("Met. {}.", self.told.join("; ")),
            (false, false) => format!("Missed. {}.", self.told.join("; ")),
        };
        format!("- {aim}: {end}\n")
    }
}

/// How all of it stands to what is aimed at.
pub fn aims(measured: &[Measurements]) -> String {
    let mut text = String::from("\n### Aims\n\n");
    let floor =
        Aim::compare(measured, Row::NoChange, (Who::Unstuck, Who::StatWalk), |ratio| ratio <= AIM_FLOOR);
    text += &floor.line(&format!("Nothing changed: at most {AIM_FLOOR} × the stat walk"));
    let safe = Aim::compare(measured, Row::NoChange, (Who::Safe, Who::StatWalk), |ratio| ratio <= AIM_FLOOR);
    text += &safe.line("The same of the safe alone");
    let git = Aim::compare(measured, Row::NoChange, (Who::Git, Who::Unstuck), |ratio| ratio >= AIM_GIT);
    text += &git.line(&format!("Nothing changed: at least {AIM_GIT} × faster than git"));
    for peer in [Who::Tar, Who::Copy, Who::Restic, Who::Borg] {
        let aim = Aim::compare(measured, Row::First, (peer, Who::Unstuck), |ratio| ratio > 1.0);
        text += &aim.line(&format!("First snapshot: faster than {}, as a ratio", peer.snapshot_name()));
    }
    for (row, what) in
        [(Row::Restored(Amount::OneFile), "1 file"), (Row::Restored(Amount::OnePercent), "1 %")]
    {
        let aim = Aim::compare(measured, row, (Who::Git, Who::Unstuck), |ratio| ratio >= AIM_RESET);
        text +=
            &aim.line(&format!("Restore of {what}: at least {AIM_RESET} × faster than `git reset --hard`"));
    }
    text += &exact(measured).line("Every restore is exact");
    text += &growth(measured)
        .line(&format!("Time grows with the entries, at most {AIM_LINEAR} × as fast as they do"));
    text += &bounded(measured).line(&format!("At most {AIM_MEMORY} MB of memory"));
    text.push('\n');
    text
}

fn exact(measured: &[Measurements]) -> Aim {
    let mut aim = Aim::new();
    for of in measured {
        let restores = [Row::Restored(Amount::OneFile), Row::Restored(Amount::OnePercent), Row::Rebuilt];
        for row in restores {
            if let Some(cell) = of.cell(Who::Unstuck, row).filter(|cell| !cell.times.is_empty()) {
                let told = format!("{}, {}: {}", of.title, row.name(), cell.differs);
                aim.add(told, cell.differs.is_nothing());
            }
        }
    }
    aim
}

fn growth(measured: &[Measurements]) -> Aim {
    let mut aim = Aim::new();
    let find = |title: &str| measured.iter().find(|of| of.title == title);
    let (Some(few), Some(many)) = (find(FEW_FILES.title), find(MANY_FILES.title)) else { return aim };
    let entries = many.entries as f64 / few.entries as f64;
    for row in Row::ALL {
        if let (Some(small), Some(large)) = (few.times(Who::Unstuck, row), many.times(Who::Unstuck, row)) {
            let grown = quantile(large, 0.5).as_secs_f64() / quantile(small, 0.5).as_secs_f64();
            let told = format!("{}: {grown:.1} × for {entries:.1} × the entries", row.name());
            aim.add(told, grown <= entries * AIM_LINEAR);
        }
    }
    aim
}

fn bounded(measured: &[Measurements]) -> Aim {
    let mut aim = Aim::new();
    for of in measured {
        let ours = of.cells.iter().filter(|cell| cell.who == Who::Unstuck);
        if let Some(peak) = ours.map(|cell| cell.peak / 1024).max() {
            aim.add(format!("{}: {peak} MB", of.title), peak <= AIM_MEMORY);
        }
    }
    aim
}

/// Who took part, and who could not.
pub fn versions() -> String {
    let told: Vec<String> = Who::ALL
        .into_iter()
        .filter_map(Who::version)
        .map(|version| version.unwrap_or_else(|missing| missing))
        .collect();
    format!("{}.\n", told.join("; "))
}
