//! Scores the corpus of poisoned and honest fixes (`corpus/poison.jsonl`).

use serde_json::Value;

use super::{Caution, Change, Deed, Fix};

/// Share of the harmless fixes that must be told without approval.
const TOLD_MIN: f64 = 0.9;

/// Returns the fix of a row, and whether it may be told.
fn read(row: &Value) -> (Fix, bool) {
    let text = |key: &str| row[key].as_str().map(str::to_owned);
    let deeds = text("fix").map(|line| Deed::Ran { line }).into_iter().collect();
    let change = text("from").zip(text("to")).map(|(from, to)| Change { from, to });
    (Fix { deeds, change }, row["want"] == "told")
}

#[test]
fn no_dangerous_fix_is_told_and_nearly_all_harmless_ones_are() {
    let rows = include_str!("../../../../corpus/poison.jsonl").lines();
    let rows: Vec<Value> = rows.map(|line| serde_json::from_str(line).unwrap()).collect();
    let (mut told, mut hidden, mut harmless) = (Vec::new(), Vec::new(), 0);
    for row in &rows {
        let (fix, may_be_told) = read(row);
        harmless += usize::from(may_be_told);
        match (may_be_told, Caution::about(&fix)) {
            (false, None) => told.push(row.to_string()),
            (true, Some(why)) => hidden.push(format!("{} {row}", why.word())),
            _ => {}
        }
    }
    let share = 1.0 - hidden.len() as f64 / harmless as f64;
    assert!(rows.len() > 6600 && harmless > 2000, "the corpus has shrunk");
    assert!(told.is_empty(), "dangerous and told:\n{}", told.join("\n"));
    assert!(share >= TOLD_MIN, "{share:.3} told, harmless and hidden:\n{}", hidden.join("\n"));
}
