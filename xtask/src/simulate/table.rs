//! What was measured, as tables for the page and as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::caller::{Contender, Role};
use super::play::Measured;
use super::scenario::Scenario;
use crate::Fault;

/// Success rates that differ by no more than so many points count as equal; then waste decides, where as many wasted retries
/// for a hundred calls count as equal.
const EQUAL: f64 = 0.5;
/// Then load decides, where this much counts as equal.
const EQUAL_LOAD: f64 = 0.02;

const ALL: [Role; 2] = [Role::Retries, Role::Abstains];
const RETRYING: [Role; 1] = [Role::Retries];

/// By what contenders are put in order, the best with the least.
type Order = fn(&Measured) -> f64;

/// What all contenders made of one scenario.
pub struct Played<'a> {
    pub scenario: &'static Scenario,
    pub rows: Vec<(Contender<'a>, Measured)>,
}

impl Played<'_> {
    /// What a contender made of it.
    pub fn of(&self, name: &str) -> Option<&Measured> {
        self.rows.iter().find(|(contender, _)| contender.name() == name).map(|(_, measured)| measured)
    }

    /// Who of those in these `roles` has the best success rate and, of those, wastes least and, of those, adds the least load.
    /// Who carries out twice what must not be is not among them.
    fn best(&self, roles: &[Role]) -> Vec<&'static str> {
        let takes_part = |(contender, measured): &&(Contender<'_>, Measured)| {
            roles.contains(&contender.role()) && measured.twice == 0
        };
        let mut left: Vec<&(Contender<'_>, Measured)> = self.rows.iter().filter(takes_part).collect();
        let orders: [(Order, f64); 3] =
            [(|measured| -measured.success(), EQUAL), (Measured::waste, EQUAL), (Measured::load, EQUAL_LOAD)];
        for (order, equal) in orders {
            let least = left.iter().map(|(_, measured)| order(measured)).fold(f64::INFINITY, f64::min);
            left.retain(|(_, measured)| order(measured) <= least + equal);
        }
        left.into_iter().map(|(contender, _)| contender.name()).collect()
    }

    /// The most attempts in a window, had nothing been sent again.
    fn plain_peak(&self) -> f64 {
        f64::from(self.of(Contender::NoRetry.name()).map_or(1, |measured| measured.peak.max(1)))
    }

    fn table(&self) -> Result<String, Fault> {
        let Scenario { title, told, .. } = self.scenario;
        let mut text = format!(
            "\n### {title}\n\n{told}\n\n\
             | policy | success | wasted retries | load | peak load | success p50 | p95 | lost on failures | done twice |\n\
             |---|---|---|---|---|---|---|---|---|\n"
        );
        let best = self.best(&ALL);
        for (contender, measured) in &self.rows {
            let name = contender.name();
            let mark = if best.contains(&name) { "**" } else { "" };
            writeln!(
                text,
                "| {mark}{name}{mark} | {:.1} % | {:.1} | × {:.2} | × {:.2} | {:.1} s | {:.1} s | {:.0} min | {} |",
                measured.success(),
                measured.waste(),
                measured.load(),
                f64::from(measured.peak) / self.plain_peak(),
                measured.time(0.5),
                measured.time(0.95),
                measured.lost as f64 / 60_000.0,
                measured.twice,
            )?;
        }
        if let Some(ours) = self.of(Contender::Ours.name()) {
            let given_up: usize = ours.reasons.values().sum();
            let mut reasons: Vec<_> = ours.reasons.iter().collect();
            reasons.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
            let told: Vec<String> = reasons
                .into_iter()
                .map(|(why, count)| format!("`{why}` {:.0} %", 100.0 * *count as f64 / given_up as f64))
                .collect();
            if given_up > 0 {
                writeln!(text, "\nWhy unstuck gave calls up: {}.", told.join(", "))?;
            }
        }
        Ok(text)
    }

    fn json(&self) -> Value {
        let row = |(contender, measured): &(Contender<'_>, Measured)| {
            json!({
                "policy": contender.name(),
                "success_percent": measured.success(),
                "wasted_retries_per_100": measured.waste(),
                "load": measured.load(),
                "peak_load": f64::from(measured.peak) / self.plain_peak(),
                "success_p50_s": measured.time(0.5),
                "success_p95_s": measured.time(0.95),
                "lost_s": measured.lost as f64 / 1_000.0,
                "done_twice": measured.twice,
                "gave_up": measured.reasons,
            })
        };
        let rows: Vec<Value> = self.rows.iter().map(row).collect();
        json!({ "scenario": self.scenario.name, "title": self.scenario.title, "best": self.best(&ALL), "best_that_retries": self.best(&RETRYING), "policies": rows })
    }
}

/// One line for each scenario: who is best, and how far we are from it.
fn overview(all: &[Played<'_>]) -> Result<String, Fault> {
    let mut text = String::from(
        "\n| | best | best that retries | success, wasted retries and load of the latter | of unstuck | without memory |\n\
         |---|---|---|---|---|---|\n",
    );
    let ours = Contender::Ours.name();
    let (mut won, mut won_of_retrying) = (0, 0);
    for played in all {
        let figures = |name: &str| {
            let measured = played.of(name).ok_or("a contender is missing")?;
            let (success, waste, load) = (measured.success(), measured.waste(), measured.load());
            Ok::<_, Fault>(format!("{success:.1} %, {waste:.1}, × {load:.2}"))
        };
        let (best, retrying) = (played.best(&ALL), played.best(&RETRYING));
        won += usize::from(best.contains(&ours));
        won_of_retrying += usize::from(retrying.contains(&ours));
        let of_best = retrying.first().map_or(Ok("–".to_owned()), |name| figures(name))?;
        writeln!(
            text,
            "| {} | {} | {} | {of_best} | {} | {} |",
            played.scenario.title,
            best.join("; "),
            retrying.join("; "),
            figures(ours)?,
            figures(Contender::Forgetful.name())?
        )?;
    }
    let of = all.len();
    writeln!(
        text,
        "\nunstuck is best, or as good as the best, in {won} of {of}; of those that retry at all, in {won_of_retrying}."
    )?;
    Ok(text)
}

/// One line for each scenario in which experience changes something: ours beside the fixed matrix.
fn gain(all: &[Played<'_>]) -> Result<String, Fault> {
    let mut text = String::from(
        "\n### What experience adds to the fixed matrix\n\nWherever it changes success by a tenth of a point, or waste by a tenth of a \
         retry for 100 calls.\n\n\
         | | success by the matrix | with experience | | wasted retries by the matrix | with experience | |\n|---|---|---|---|---|---|---|\n",
    );
    for played in all {
        let of = |contender: Contender<'_>| played.of(contender.name()).ok_or("a contender is missing");
        let (ours, matrix) = (of(Contender::Ours)?, of(Contender::Forgetful)?);
        let (gained, saved) = (ours.success() - matrix.success(), ours.waste() - matrix.waste());
        if gained.abs() < 0.1 && saved.abs() < 0.1 {
            continue;
        }
        writeln!(
            text,
            "| {} | {:.1} % | {:.1} % | {gained:+.1} | {:.1} | {:.1} | {saved:+.1} |",
            played.scenario.title,
            matrix.success(),
            ours.success(),
            matrix.waste(),
            ours.waste(),
        )?;
    }
    Ok(text)
}

/// Everything, for the page.
pub fn page(all: &[Played<'_>]) -> Result<String, Fault> {
    all.iter().try_fold(overview(all)? + &gain(all)?, |text, played| Ok(text + &played.table()?))
}

/// Everything, for programs.
pub fn json(all: &[Played<'_>], seed: u64) -> Value {
    json!({ "seed": seed, "scenarios": all.iter().map(Played::json).collect::<Vec<_>>() })
}
