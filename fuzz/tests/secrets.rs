//! Planted secrets against the redactor, by shape, by place, and lines that must stay.
use std::env;
use unstuck_fuzz::planted::{self, CARRIERS, Roll, Secret};
use unstuck_wire::clean::Cleaner;
use unstuck_wire::redact::redact;

#[test]
fn scratch_score() {
    let cleaner = Cleaner::new(None, []);
    let show = env::var("SHOW").unwrap_or_default();
    let mut roll = Roll(20_261_119);
    let (mut all, mut kept) = (0, 0);
    for (name, shape) in planted::shapes() {
        let mut missed = Vec::new();
        for carrier in CARRIERS {
            all += 1;
            let secret = Secret::of_shape(shape, &mut roll);
            let text = carrier.replace('§', &secret.text);
            let clean = redact(&text);
            if secret.kept_in(clean.as_bytes()).is_some() {
                kept += 1;
                missed.push((carrier, clean.into_owned()));
            }
        }
        if !missed.is_empty() && show.contains("shapes") {
            println!("SHAPE {name} {} of {}: {:?}", missed.len(), CARRIERS.len(), missed[0]);
        }
    }
    println!("shapes kept {kept} of {all}");
    let mut counts = [[0; 2]; 2];
    for (at, (group, place)) in planted::places().enumerate() {
        let blind = usize::from(at % 3 == 2);
        let mut missed = None;
        for _ in 0..5 {
            let secret = Secret::value(20, &mut roll);
            let text = place.replace('§', &secret.text);
            let clean = if group == "arguments" {
                cleaner.json(&serde_json::from_str(&text).unwrap(), 4096).to_string()
            } else {
                redact(&text).into_owned()
            };
            if secret.kept_in(clean.as_bytes()).is_some() {
                missed = Some(clean);
            }
        }
        counts[blind][0] += 1;
        if let Some(clean) = missed {
            counts[blind][1] += 1;
            if (blind == 0 && show.contains("places")) || show.contains("blind") {
                println!("PLACE {group}: {clean}");
            }
        }
    }
    println!("places kept: seen {:?}, blind {:?}", counts[0], counts[1]);
    let mut lines: Vec<String> = planted::harmless(&mut roll).collect();
    let own = lines.len();
    for file in ["dev", "wider"] {
        let text = std::fs::read_to_string(format!("{}/../corpus/{file}.jsonl", env!("CARGO_MANIFEST_DIR")))
            .unwrap();
        for line in text.lines() {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            lines.extend(row["root_line"].as_str().filter(|line| !line.is_empty()).map(str::to_owned));
        }
    }
    if let Ok(more) = env::var("MORE") {
        lines = std::fs::read(more)
            .unwrap()
            .split(|b| *b == b'\n')
            .map(|l| String::from_utf8_lossy(l).into_owned())
            .filter(|l| l.len() < 2000)
            .collect();
    }
    let mut counts = [[0; 2]; 3];
    for (at, line) in lines.iter().enumerate() {
        let part = if at >= own { 2 } else { usize::from(at % 3 == 2) };
        counts[part][0] += 1;
        let clean = redact(line);
        if clean != *line {
            counts[part][1] += 1;
            if (part != 1 && show.contains("harmless")) || show.contains("blind") {
                println!("HARMLESS {} :: {line:.300} => {clean:.300}", part);
            }
        }
    }
    println!("harmless touched: seen {:?}, blind {:?}, evidence {:?}", counts[0], counts[1], counts[2]);
}
