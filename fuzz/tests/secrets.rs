//! Scores of the redactor: which planted secrets it keeps, and which harmless lines it cuts.
//!
//! `SECRETS=FOLDER` scores another corpus of the same form, so that one can be kept back.

use std::{env, fs};

use unstuck_fuzz::planted::{CARRIERS, CODES, Corpus, Roll, Secret, cleaned};
use unstuck_wire::clean::Cleaner;
use unstuck_wire::redact::redact;

fn corpus() -> Corpus {
    match env::var_os("SECRETS") {
        Some(folder) => Corpus::read(folder.as_ref()).expect("a corpus"),
        None => Corpus::own(),
    }
}

/// Fails if more than `most` in a thousand of `all` are among `failed`.
#[track_caller]
#[expect(clippy::print_stderr, reason = "what was measured is told")]
fn score(failed: &[String], all: usize, most: usize) {
    eprintln!("{} of {all}", failed.len());
    let list = failed.join("\n");
    assert!(failed.len() * 1000 <= all * most, "{} of {all}, at most {most} ‰:\n{list}", failed.len());
}

#[track_caller]
fn is_large(count: usize, least: usize) {
    assert!(env::var_os("SECRETS").is_some() || count >= least, "only {count} of {least}");
}

#[test]
fn no_token_of_a_known_shape_is_kept_wherever_it_stands() {
    let corpus = corpus();
    let mut roll = Roll(20_261_119);
    let (mut kept, mut all, mut shapes) = (Vec::new(), 0, 0);
    for (name, shape) in corpus.shapes() {
        shapes += 1;
        for carrier in CARRIERS {
            all += 1;
            let secret = Secret::of_shape(shape, &mut roll);
            let clean = redact(&carrier.replace('§', &secret.text)).into_owned();
            if secret.kept_in(clean.as_bytes()).is_some() {
                kept.push(format!("{name}: {clean:?}"));
            }
        }
    }
    is_large(shapes, 84);
    score(&kept, all, 0);
}

#[test]
fn no_token_of_a_known_shape_is_kept_in_another_code() {
    let corpus = corpus();
    let mut roll = Roll(19_112_026);
    let (mut kept, mut all) = (Vec::new(), 0);
    for (name, shape) in corpus.shapes() {
        for (code, written) in CODES {
            all += 1;
            let secret = Secret::of_shape(shape, &mut roll);
            let clean = redact(&format!("got {} back", written.write(&secret.text))).into_owned();
            if written.is_kept(&secret, &clean) {
                kept.push(format!("{name} as {code}: {clean:.300?}"));
            }
        }
    }
    score(&kept, all, 20);
}

#[test]
fn a_value_is_cut_where_its_place_says_that_it_is_secret() {
    let corpus = corpus();
    let cleaner = Cleaner::new(None, []);
    let mut roll = Roll(20_261_119);
    let (mut kept, mut all) = (Vec::new(), 0);
    for (group, place) in corpus.places() {
        all += 1;
        let texts = (0..5).find_map(|_| {
            let secret = Secret::value(20, &mut roll);
            let clean = cleaned(&cleaner, group, &place.replace('§', &secret.text));
            secret.kept_in(clean.as_bytes()).is_some().then_some(clean)
        });
        kept.extend(texts.map(|clean| format!("{group}: {clean:?}")));
    }
    is_large(all, 300);
    score(&kept, all, 20);
}

#[test]
fn harmless_lines_stay_as_they_are() {
    let lines: Vec<String> = corpus().harmless(&mut Roll(20_261_119)).collect();
    is_large(lines.len(), 1_500);
    score(&touched(&lines), lines.len(), 10);
}

#[test]
fn the_lines_that_show_a_cause_stay_readable() {
    let mut lines = Vec::new();
    for file in ["dev", "wider"] {
        let file = format!("{}/../corpus/{file}.jsonl", env!("CARGO_MANIFEST_DIR"));
        for line in fs::read_to_string(file).unwrap().lines() {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            lines.extend(row["root_line"].as_str().filter(|line| !line.is_empty()).map(str::to_owned));
        }
    }
    assert!(lines.len() >= 2_000, "{}", lines.len());
    score(&touched(&lines), lines.len(), 10);
}

fn touched(lines: &[String]) -> Vec<String> {
    let changed = |line: &String| {
        let clean = redact(line);
        (*clean != **line).then(|| format!("{line:?} → {clean:?}"))
    };
    lines.iter().filter_map(changed).collect()
}
