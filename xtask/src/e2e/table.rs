//! Agents by scenarios: what passed, what failed and what cannot be honoured, and one closing line that counts them.

use std::time::Duration;

use super::agents::Agent;
use super::scenarios::Scenario;

/// How one scenario ended with one agent.
pub enum Ending {
    /// It holds.
    Passed,
    /// It does not, and what the model received.
    Failed(String),
    /// The agent cannot honour it, and why.
    Skipped(&'static str),
}

/// One cell of the table.
pub struct Cell {
    /// Whose.
    pub agent: &'static Agent,
    /// What was played.
    pub scenario: &'static Scenario,
    /// How it ended.
    pub ending: Ending,
    /// How long it took.
    pub took: Duration,
}

impl Cell {
    /// Says how it ended, as soon as it has.
    pub fn tell(&self) {
        let (agent, scenario, seconds) = (self.agent.name, self.scenario.name, self.took.as_secs_f64());
        match &self.ending {
            Ending::Passed => println!("{agent:<10}{scenario:<16}{seconds:>6.1} s  passed"),
            Ending::Failed(why) => println!("{agent:<10}{scenario:<16}{seconds:>6.1} s  FAILED: {why}"),
            Ending::Skipped(why) => println!("{agent:<10}{scenario:<16}{:>8}  skipped: {why}", "-"),
        }
    }
}

/// Shows all cells; returns how many failed, and the closing line.
pub fn show(agents: &[&Agent], scenarios: &[&Scenario], cells: &[Cell]) -> (usize, String) {
    let heads: String = agents.iter().map(|agent| format!("{:<10}", agent.name)).collect();
    println!("\n{:<16}{heads}", "");
    for scenario in scenarios {
        let word = |agent: &&Agent| {
            let fits = |cell: &&Cell| cell.agent.name == agent.name && cell.scenario.name == scenario.name;
            let word = match cells.iter().find(fits).map(|cell| &cell.ending) {
                Some(Ending::Passed) => "pass",
                Some(Ending::Failed(_)) => "FAIL",
                Some(Ending::Skipped(_)) => "n/a",
                None => "?",
            };
            format!("{word:<10}")
        };
        println!("{:<16}{}", scenario.name, agents.iter().map(word).collect::<String>());
    }
    let count = |wanted: fn(&Ending) -> bool| cells.iter().filter(|cell| wanted(&cell.ending)).count();
    let failed = count(|ending| matches!(ending, Ending::Failed(_)));
    let passed = count(|ending| matches!(ending, Ending::Passed));
    let skipped = count(|ending| matches!(ending, Ending::Skipped(_)));
    (failed, format!("{passed} passed, {failed} failed, {skipped} skipped"))
}
