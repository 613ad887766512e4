//! How long one step of the ladder takes in a session that remembers many calls, and how long it takes to read a call.
//!
//! `cargo run --release --example bench_ladder -- 10000`

#![allow(clippy::print_stdout, reason = "an example shows its result")]
#![allow(clippy::disallowed_methods, reason = "the judge is measured from outside, and the clock stays here")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use unstuck_judge::ladder::{Event, Moment, Preset, Print, Round, Settings, Standing, see, step};
use unstuck_judge::{Call, Observation, Outcome, Rules};

/// How often each thing is measured.
const ROUNDS: usize = 2_001;

fn main() {
    let keys = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(10_000_u32);
    let (rules, settings) = (Rules::built_in(), Settings::of(Preset::Adaptive));
    let mut standing = Standing::new();
    let moment = Moment { agent: Print::of(&["agent", ""]), round: Round::Unsaid, at: 0 };
    let call = |number: u32| {
        Call::shell(format!("cd /srv/app && cargo test -p part-{number} --quiet 2>&1 | tail -20"))
    };
    let failure = |number: u32| Observation {
        call: call(number),
        outcome: Outcome::Exited { code: 101 },
        http_status: None,
        stdout: Vec::new(),
        stderr: Vec::new(),
        merged: format!("error[E0425]: cannot find value `x{number}` in this scope").into_bytes(),
    };
    let mut number = 0;
    while standing.known.len() < keys as usize && number < keys {
        let seen = failure(number);
        let sight = see::sight(&seen.call);
        let ending = see::ending(&sight, &seen, &rules.diagnose(&seen), None);
        let _ = step(&settings, &mut standing, Event::Ended(&sight, &ending, moment));
        number += 1;
    }

    let seen = failure(number / 2);
    let sight = see::sight(&seen.call);
    let ending = see::ending(&sight, &seen, &rules.diagnose(&seen), None);
    let asked = median(|| {
        let _ = black_box(step(&settings, &mut standing, Event::Asked(&sight, moment)));
    });
    let ended = median(|| {
        let _ = black_box(step(&settings, &mut standing, Event::Ended(&sight, &ending, moment)));
    });
    let reading = median(|| {
        black_box(see::sight(black_box(&seen.call)));
    });
    let known = standing.known.len();
    println!("ladder, {known} keys known: one step before a call takes {}", shown(asked));
    println!("ladder, {known} keys known: one step after a call takes {}", shown(ended));
    println!("ladder: reading a call takes {}", shown(reading));
}

fn median(mut once: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            once();
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[ROUNDS / 2]
}

fn shown(time: Duration) -> String {
    format!("{:.1} µs", time.as_nanos() as f64 / 1_000.0)
}
