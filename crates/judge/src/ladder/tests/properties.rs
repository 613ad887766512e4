//! What holds on any run, made up from few calls, answers and agents so that they meet again and again.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::json;

use super::{Ran, edit, ending_of, moment_of, sh, sight_of, tool};
use crate::Rules;
use crate::ladder::replay::Replay;
use crate::ladder::sight::{Dir, Ending, Moment, Print, Round, Sight, Upshot};
use crate::ladder::standing::{CAPACITY, Said};
use crate::ladder::{Decision, Event, Preset, Rung, Settings, Standing, Track, step};

/// A made-up call and its ending.
#[derive(Debug, Clone)]
struct Made {
    sight: Sight,
    ending: Ending,
    moment: Moment,
    user_spoke: bool,
}

prop_compose! {
    fn call()(
        number in 0..6_u64, root in 0..7_u64, manner in 0..5_u64, verdict in 0..5_u64, answer in 0..4_u64,
        agent in 0..2_u64, round in 0..4_u64, dir in 0..3_u64, spoke in 0..12_u64,
    ) -> Made {
        let dir = if dir == 0 { Dir::Unsaid } else { Dir::Named(Print(dir)) };
        let round = if round == 0 { Round::Numbered(number) } else { Round::Unsaid };
        Made {
            sight: Sight { dir, ..sight_of(number, root, manner) },
            ending: ending_of(verdict, answer),
            moment: Moment { round, ..moment_of(agent) },
            user_spoke: spoke == 0,
        }
    }
}

fn calls() -> impl Strategy<Value = Vec<Made>> {
    prop::collection::vec(call(), 1..150)
}

fn preset() -> impl Strategy<Value = Preset> {
    prop::sample::select(Preset::ALL)
}

/// Plays made-up calls; `watch` sees the standing before and after each step, and what was said.
fn play(
    preset: Preset,
    calls: &[Made],
    mut watch: impl FnMut(&Made, &Standing, &Decision, &Standing),
) -> Standing {
    let settings = Settings::of(preset);
    let mut standing = Standing::new();
    for made in calls {
        if made.user_spoke {
            let _ = step(&settings, &mut standing, Event::UserSpoke);
        }
        for event in
            [Event::Asked(&made.sight, made.moment), Event::Ended(&made.sight, &made.ending, made.moment)]
        {
            let before = standing.clone();
            let decision = step(&settings, &mut standing, event);
            watch(made, &before, &decision, &standing);
        }
    }
    standing
}

/// What was said of every key there is. A call that fails with several causes in turn is one key.
fn said(standing: &Standing) -> BTreeMap<String, Said> {
    let known =
        standing.known.items.iter().map(|(print, (_, known))| (format!("known {print:?}"), known.said));
    let looks = standing
        .looks
        .items
        .iter()
        .map(|(print, (_, look))| (format!("look {print:?} {:?}", look.answer), look.said));
    let laps = standing
        .laps
        .items
        .iter()
        .map(|(print, (_, lap))| (format!("lap {print:?} {:?}", lap.answer), lap.said));
    let agents = standing.agents.iter().flat_map(|(name, agent)| {
        let streaks = agent.streaks.items.iter();
        let streaks = streaks.map(move |(tool, (_, streak))| {
            (format!("streak {name:?} {tool:?} {:?}", streak.answer), streak.said)
        });
        let own = [
            (format!("silence {name:?}"), agent.silence_said),
            (format!("cycle {name:?}"), agent.cycle_said),
        ];
        streaks.chain(own)
    });
    known.chain(looks).chain(laps).chain(agents).collect()
}

/// How far a word goes in stepping in. A note only explains.
fn height(told: Rung) -> u32 {
    match told {
        Rung::Observe | Rung::Note => 0,
        Rung::Hint => 1,
        Rung::Insist => 2,
        Rung::Deny => 3,
        Rung::Halt => 4,
    }
}

proptest! {
    #[test]
    fn no_key_moves_up_two_rungs_at_once(preset in preset(), calls in calls()) {
        play(preset, &calls, |_, before, decision, after| {
            let was = said(before);
            for (key, now) in said(after) {
                let was = was.get(&key).copied().unwrap_or(Said::NOTHING);
                assert!(height(now.told) <= height(was.told) + 1, "{key}: {was:?} then {now:?}");
                // What counts as told was really heard: the decision that was given is as strong.
                assert!(now.told <= was.told || now.told <= decision.rung, "{key}: {now:?} but {decision:?}");
                if now.denials > was.denials {
                    let least = if preset == Preset::Classic { Rung::Insist } else { Rung::Note };
                    assert!(was.told >= least, "{key} refused after {was:?}");
                    assert!(decision.rung == Rung::Deny || was.denials > 0, "{key} stopped without a refusal");
                }
            }
        });
    }

    #[test]
    fn every_refusal_is_written_down_where_its_cause_was_told(preset in preset(), calls in calls()) {
        play(preset, &calls, |_, before, decision, after| {
            let denials = |standing: &Standing| said(standing).values().map(|said| said.denials).sum::<u32>();
            if decision.rung >= Rung::Deny {
                assert_eq!(denials(after), denials(before) + 1, "{decision:?}");
            }
        });
    }

    #[test]
    fn a_likely_cause_is_hinted_at_before_it_stops_anything(calls in calls()) {
        play(Preset::Adaptive, &calls, |made, before, decision, _| {
            let track = decision.reason.as_ref().map(|reason| reason.track);
            if decision.rung == Rung::Deny && track == Some(Track::Repeat) {
                let heard = [made.sight.exact, made.sight.intent].into_iter().filter_map(|print| before.known.get(print));
                let least = |firmness| if firmness == super::Firmness::Certain { Rung::Note } else { Rung::Hint };
                assert!(heard.into_iter().any(|known| known.said.told >= least(known.firmness)), "{decision:?}");
            }
        });
    }

    #[test]
    fn a_word_of_the_user_keeps_all_that_is_known_and_lowers_the_action(calls in calls(), next in call()) {
        let settings = Settings::of(Preset::Adaptive);
        let silent = play(Preset::Adaptive, &calls, |_, _, _, _| {});
        let mut spoken = silent.clone();
        let _ = step(&settings, &mut spoken, Event::UserSpoke);
        prop_assert_eq!(&Standing { turn: silent.turn, ..spoken.clone() }, &silent);
        let ask = |mut standing: Standing| step(&settings, &mut standing, Event::Asked(&next.sight, next.moment)).rung;
        let (with, without) = (ask(spoken), ask(silent));
        prop_assert!(with < Rung::Deny && with <= without, "{} after a word, {} without", with, without);
    }

    #[test]
    fn success_clears_what_was_held_against_the_call(calls in calls(), next in call()) {
        let settings = Settings::of(Preset::Adaptive);
        let mut standing = play(Preset::Adaptive, &calls, |_, _, _, _| {});
        let fine = Ending { upshot: Upshot::Fine, ..next.ending };
        let _ = step(&settings, &mut standing, Event::Ended(&next.sight, &fine, next.moment));
        for print in [next.sight.exact, next.sight.intent, next.sight.approach] {
            prop_assert!(standing.known.get(print).is_none());
        }
        let asked = step(&settings, &mut standing, Event::Asked(&next.sight, next.moment));
        let track = asked.reason.map(|reason| reason.track);
        let own = [Track::Repeat, Track::Variant, Track::Approach, Track::Opaque];
        prop_assert!(!track.is_some_and(|track| own.contains(&track)), "{:?}", track);
    }

    #[test]
    fn our_refusals_leave_no_trace(calls in calls(), next in call()) {
        let settings = Settings::of(Preset::Adaptive);
        let mut standing = play(Preset::Adaptive, &calls, |_, _, _, _| {});
        let before = standing.clone();
        let refused = Ending { upshot: Upshot::OurDenial, ..next.ending };
        let _ = step(&settings, &mut standing, Event::Ended(&next.sight, &refused, next.moment));
        prop_assert_eq!(before, standing);
    }

    #[test]
    fn twins_of_one_message_count_once(calls in calls(), next in call()) {
        let settings = Settings::of(Preset::Adaptive);
        let mut standing = play(Preset::Adaptive, &calls, |_, _, _, _| {});
        let moment = Moment { round: Round::Numbered(u64::MAX), ..next.moment };
        let end = |standing: &mut Standing| {
            let _ = step(&settings, standing, Event::Ended(&next.sight, &next.ending, moment));
        };
        end(&mut standing);
        let mut alone = standing.clone();
        end(&mut standing);
        prop_assert_eq!(counts(&alone), counts(&standing));
        let ask = |standing: &mut Standing| step(&settings, standing, Event::Asked(&next.sight, moment)).rung;
        prop_assert_eq!(ask(&mut alone), ask(&mut standing));
    }

    #[test]
    fn the_same_run_is_judged_the_same(preset in preset(), calls in calls()) {
        let judge = || {
            let mut heard = Vec::new();
            let standing = play(preset, &calls, |_, _, decision, _| heard.push(decision.clone()));
            (heard, standing)
        };
        prop_assert_eq!(judge(), judge());
    }

    #[test]
    fn nothing_is_refused_with_a_result(preset in preset(), calls in calls()) {
        let mut is_result = false;
        play(preset, &calls, |_, _, decision, _| {
            assert!(!is_result || decision.rung < Rung::Deny);
            is_result = !is_result;
        });
    }
}

/// All that is counted.
fn counts(standing: &Standing) -> Vec<u32> {
    let known = standing.known.iter().map(|known| known.strikes);
    let looks = standing.looks.iter().map(|look| look.seen);
    let laps = standing.laps.iter().map(|lap| lap.laps);
    let streaks = standing.agents.values().flat_map(|agent| agent.streaks.iter().map(|streak| streak.length));
    known.chain(looks).chain(laps).chain(streaks).collect()
}

static RULES: LazyLock<Rules> = LazyLock::new(Rules::built_in);

/// One piece of honest work: what it is varies, that it gets somewhere does not.
fn piece() -> impl Strategy<Value = Vec<Ran>> {
    let word = prop::sample::select(
        &["pending", "queued", "in_progress", "running", "ContainerCreating", "deploying"][..],
    );
    let poll = prop::sample::select(
        &["gh run view 7", "kubectl get pod web", "docker compose ps", "sleep 5; cat job.state"][..],
    );
    prop_oneof![
        (poll, word, 1..6_usize).prop_map(|(poll, word, times)| vec![sh(poll, 0, word); times]),
        prop::collection::vec(any::<u16>(), 1..6)
            .prop_map(|texts| { texts.iter().map(|text| edit("/w/a.rs", &text.to_string())).collect() }),
        any::<u32>().prop_map(|seed| {
            vec![
                sh("pytest -q", 1, &format!("FAILED test_a.py - assert f({seed}) == {}\n1 failed", seed / 2)),
                edit("/w/a.py", &seed.to_string()),
            ]
        }),
        "[a-z]{8}".prop_map(|word| vec![sh(&format!("grep -rn {word} src"), 1, "")]),
        prop::collection::vec(1..500_u32, 1..8).prop_map(|lines| {
            lines
                .iter()
                .map(|line| tool("gdb", json!({ "command": "next" }), true, &format!("{line}\t  x = f(x);")))
                .collect()
        }),
        (0..40_u32).prop_map(|page| vec![
            tool(
                "read_file",
                json!({ "path": "/w/big", "offset": page * 100 }),
                true,
                &format!("page {page}")
            ),
            edit("/w/b.rs", &page.to_string())
        ]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn honest_work_is_never_refused(pieces in prop::collection::vec(piece(), 1..12)) {
        let settings = Settings::of(Preset::Adaptive);
        let mut replay = Replay::new(&RULES, &settings);
        for ran in pieces.iter().flatten() {
            let judged = replay.judge(&ran.recorded());
            prop_assert!(judged.before.rung < Rung::Deny, "{:?}: {:?}", ran.call, judged.before);
        }
    }
}

#[test]
fn a_long_session_stays_small() {
    let settings = Settings::of(Preset::Adaptive);
    let mut standing = Standing::new();
    for number in 0..60_000 {
        let sight = sight_of(number, number % 7, number % 5);
        let ending = ending_of(number % 3 + 1, number % 11);
        let _ = step(&settings, &mut standing, Event::Asked(&sight, moment_of(number % 90)));
        let _ = step(&settings, &mut standing, Event::Ended(&sight, &ending, moment_of(number % 90)));
    }
    let memories = [standing.known.len(), standing.looks.len(), standing.laps.len()];
    assert!(memories.iter().all(|len| *len <= CAPACITY), "{memories:?}");
    assert!(standing.size() <= 6 * CAPACITY, "{}", standing.size());
    assert!(standing.agents.values().all(|agent| agent.history.len() <= 20));
}
