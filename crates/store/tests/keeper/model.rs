//! Random stories through the real store, beside a model of it in memory that knows only what was promised.
//! `UNSTUCK_MODEL_SEEDS=500 cargo test -p unstuck-store --test keeper random_stories` tells many of them.

use std::collections::BTreeMap;

use unstuck_store::{Bookmark, Removed, Retention, Wanted};

use super::*;

/// Throws that fall the same way for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// What is known of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// It was asked for and let pass, or its beginning waits in the spool.
    Open,
    /// It was refused.
    Refused,
    /// It ended well or badly.
    Ended { ok: bool },
}

/// The store as it has to be.
#[derive(Default)]
struct Model {
    /// Calls by session and key.
    calls: BTreeMap<(&'static str, String), Known>,
    /// The last bookmark, which never goes back.
    bookmark: u64,
}

const SESSIONS: [&str; 3] = ["one", "two", "three"];
/// So many deeds make a story.
const DEEDS: u64 = 60;

#[test]
#[allow(clippy::disallowed_methods, reason = "many stories are told on demand")]
fn random_stories_leave_what_was_promised() {
    let seeds = std::env::var("UNSTUCK_MODEL_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(6);
    for seed in 0..seeds {
        let told = std::panic::catch_unwind(|| story(seed));
        assert!(told.is_ok(), "the story with seed {seed} does not hold");
    }
}

fn story(seed: u64) {
    let mut dice = Dice(seed);
    let (mut cellar, mut model) = (Cellar::empty(), Model::default());
    cellar.before("first", "true");
    model.calls.insert(("s", "first".to_owned()), Known::Open);
    for number in 0..DEEDS {
        cellar.session = SESSIONS[dice.below(3) as usize];
        match dice.below(20) {
            0..9 => begin(&mut cellar, &mut model, &mut dice, number),
            9..15 => end_one(&mut cellar, &mut model, &mut dice),
            15 => cellar.locked(|cellar| {
                begin(cellar, &mut model, &mut dice, number);
                end_one(cellar, &mut model, &mut dice);
            }),
            16 => at_once(&mut cellar, &mut model, number),
            17 => {
                let now = cellar.now;
                cellar.keeper(|keeper| keeper.tend(now)).unwrap();
            }
            18 => {
                // Within its limits nothing may go, whatever is tidied up.
                let now = cellar.now;
                let mut store = cellar.store();
                store.expire(&Retention::default(), now, &mut |_: &Removed| true).unwrap();
                store.give_back(&mut || true).unwrap();
                store.fold_all().unwrap();
            }
            _ => cellar.now += dice.below(HOUR),
        }
        // After some deeds it is looked at as a reader would.
        if dice.below(6) == 0 {
            check(&mut cellar, &mut model, seed, number);
        }
    }
    check(&mut cellar, &mut model, seed, DEEDS);
}

fn command(dice: &mut Dice) -> String {
    format!("make {}", ["a", "b", "c", "d"][dice.below(4) as usize])
}

fn begin(cellar: &mut Cellar, model: &mut Model, dice: &mut Dice, number: u64) {
    let key = format!("k{number}");
    let answer = cellar.before(&key, &command(dice));
    assert!(!matches!(answer.kept, Kept::Lost { .. }), "{answer:?}");
    let known = match answer.said.stance {
        Stance::Refuse => Known::Refused,
        _ => Known::Open,
    };
    model.calls.insert((cellar.session, key), known);
}

/// Ends some open call; sometimes twice, sometimes one that never began.
fn end_one(cellar: &mut Cellar, model: &mut Model, dice: &mut Dice) {
    let open: Vec<String> = model
        .calls
        .iter()
        .filter(|((session, key), known)| {
            *session == cellar.session && **known == Known::Open && key != "first" && !key.starts_with('p')
        })
        .map(|((_, key), _)| key.clone())
        .collect();
    let key = match open.get(dice.below(open.len() as u64 + 1) as usize) {
        Some(key) => key.clone(),
        None => format!("n{}", cellar.now),
    };
    let ok = dice.below(2) == 0;
    for _ in 0..1 + dice.below(2) {
        let command = command(dice);
        let answer = match ok {
            true => cellar.after(&key, &command, 0, ""),
            false => cellar.after(&key, &command, 2, "make: *** No rule to make target 'x'.  Stop."),
        };
        assert!(!matches!(answer.kept, Kept::Lost { .. }), "{answer:?}");
    }
    model.calls.insert((cellar.session, key), Known::Ended { ok });
}

/// Several processes at the same moment, each with an entry of its own.
fn at_once(cellar: &mut Cellar, model: &mut Model, number: u64) {
    cellar.now += 1000;
    let cellar_ref = &*cellar;
    let keys: Vec<String> = (0..4).map(|part| format!("p{number}-{part}")).collect();
    std::thread::scope(|scope| {
        for (part, key) in keys.iter().enumerate() {
            scope.spawn(move || {
                let root = cellar_ref.root();
                let mut own = Cellar::empty();
                own.session = cellar_ref.session;
                own.now = cellar_ref.now;
                own.dice = cellar_ref.dice + 77_000 + part as u64 * 1_000;
                let entry = Entry::Asked(Box::new(own.asked(key, "sleep 1")));
                let answer = own.keep_in(&root, &entry);
                assert!(!matches!(answer.kept, Kept::Lost { .. }), "{answer:?}");
            });
        }
    });
    cellar.dice += 100_000;
    model.calls.extend(keys.into_iter().map(|key| ((cellar.session, key), Known::Open)));
}

/// Everything that the model knows stands in the store, once, and nothing else; the timeline goes on and is proven.
fn check(cellar: &mut Cellar, model: &mut Model, seed: u64, number: u64) {
    let now = cellar.now;
    cellar.keeper(|keeper| keeper.tend(now)).unwrap();
    let at = format!("seed {seed}, deed {number}");
    let store = cellar.store();
    let mut found: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for session in ["s"].into_iter().chain(SESSIONS) {
        for call in store.calls_of_session(session, 100_000).unwrap() {
            found.entry((session.to_owned(), call.key)).or_default().push(call.state.to_string());
        }
    }
    assert_eq!(found.len(), model.calls.len(), "{at}: {found:?}");
    for ((session, key), known) in &model.calls {
        let states = found.get(&((*session).to_owned(), key.clone()));
        let states = states.unwrap_or_else(|| panic!("{at}: {session} {key} is gone"));
        let may: &[&str] = match known {
            // A call that is open for long may be given up.
            Known::Open => &["executing", "sealed"],
            Known::Refused => &["denied"],
            Known::Ended { ok: true } => &["completed"],
            Known::Ended { ok: false } => &["failed"],
        };
        assert!(
            states.len() == 1 && may.contains(&&*states[0]),
            "{at}: {session} {key} {known:?} {states:?}"
        );
    }
    let mut last = 0;
    let newest = store.newest().unwrap();
    assert!(newest.0 >= model.bookmark, "{at}: the bookmark goes back");
    model.bookmark = newest.0;
    store
        .events(&Wanted::default(), Bookmark(0), newest, |event| {
            assert!(event.seq.0 == last + 1, "{at}: {} follows {last}", event.seq.0);
            last = event.seq.0;
            Ok::<(), unstuck_store::StoreError>(())
        })
        .unwrap();
    let examined = store.examine(&mut |_| {}).unwrap();
    assert!(examined.is_sound(), "{at}: {examined:?}");
}
