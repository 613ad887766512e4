//! The simulation in short, and what must not become worse.

use std::time::Duration;

use unstuck_judge::Kind;
use unstuck_judge::retry::MayRepeat;

use super::caller::Contender;
use super::contest;
use super::demand::Size;
use super::failure::{Failure, Reader};
use super::play::Measured;
use super::scenario;
use super::table::{self, Played};

/// Few machines that live long: past yield needs its time.
const SHORT: Size = Size { clients: 10, calls: 600, pace: 10_000 };
const PEERS: [Contender<'_>; 4] =
    [Contender::Fixed, Contender::Exponential, Contender::Tenacity, Contender::Aws];

fn played(name: &str, contenders: &[Contender<'static>], seed: u64) -> Played<'static> {
    let scenario = scenario::ALL.iter().find(|scenario| scenario.name == name).expect(name);
    contest(scenario, contenders, SHORT, seed)
}

/// Checks what must hold between us and each of the others in a scenario, with three seeds.
#[track_caller]
fn check(scenario: &str, others: &[Contender<'static>], holds: impl Fn(&Measured, &Measured) -> bool) {
    let contenders: Vec<Contender<'_>> = [Contender::Ours].iter().chain(others).copied().collect();
    for seed in [1, 2, 3] {
        let rows = played(scenario, &contenders, seed).rows;
        let told = |measured: &Measured| {
            let figures = (measured.success(), measured.waste(), measured.load(), measured.twice);
            format!("{:.2} %, waste {:.2}, load {:.3}, twice {}", figures.0, figures.1, figures.2, figures.3)
        };
        let (ours, rest) = rows.split_first().expect("we played");
        for (other, its) in rest {
            let (name, ours) = (other.name(), &ours.1);
            assert!(
                holds(ours, its),
                "{scenario}, seed {seed}: {} against {name}: {}",
                told(ours),
                told(its)
            );
        }
    }
}

#[test]
fn the_judge_reads_the_failures_as_they_are_meant() {
    let mut reader = Reader::new();
    for (failure, kind) in [
        (Failure::Reset, Kind::Network),
        (Failure::Refused, Kind::Network),
        (Failure::NoSuchHost, Kind::Network),
        (Failure::Unavailable, Kind::ServerError),
        (Failure::Internal, Kind::ServerError),
        (Failure::TooMany { after: None }, Kind::RateLimited),
        (Failure::TimedOut, Kind::Timeout),
        (Failure::NotFound, Kind::PathNotFound),
        (Failure::Unauthorised, Kind::Auth),
        (Failure::Unexplained, Kind::Unknown),
    ] {
        assert_eq!(reader.read(failure, false).kind, kind, "{failure:?}");
    }
    let told = reader.read(Failure::TooMany { after: Some(7) }, false);
    assert_eq!((told.kind, told.may_repeat), (Kind::RateLimited, MayRepeat::After(Duration::from_secs(7))));
    assert_eq!(reader.read(Failure::Reset, true).may_repeat, MayRepeat::Uncertain);
}

#[test]
fn the_same_seed_gives_the_same_figures_and_another_gives_others() {
    let figures = |seed| table::json(&[played("mixture", &Contender::ALL, seed)], 0).to_string();
    assert_eq!(figures(1), figures(1));
    assert_ne!(figures(1), figures(2));
}

#[test]
fn rare_faults_by_chance_are_healed_as_well_as_anybody_heals_them() {
    check("chance-5", &PEERS, |ours, its| ours.success() + 0.2 >= its.success() && ours.load() < 1.07);
}

#[test]
fn frequent_faults_by_chance_are_mostly_healed() {
    check("chance-20", &[Contender::NoRetry], |ours, plain| ours.success() > plain.success() + 18.0);
}

#[test]
fn short_outages_are_outlived_with_less_waste_than_others_have() {
    for scenario in ["outage-2s", "outage-10s"] {
        check(scenario, &PEERS, |ours, its| {
            ours.success() + 1.5 >= its.success() && ours.waste() < its.waste()
        });
    }
}

#[test]
fn a_long_outage_is_left_alone() {
    check("outage-10m", &PEERS, |ours, its| ours.waste() * 5.0 < its.waste() && ours.load() < 1.1);
}

#[test]
fn an_overload_is_not_fed() {
    for (scenario, load) in [("overload", 1.05), ("congestion", 1.3)] {
        check(scenario, &[Contender::NoRetry], |ours, plain| {
            ours.load() < load && ours.success() + 6.0 >= plain.success()
        });
        check(scenario, &PEERS, |ours, its| ours.success() > its.success());
    }
}

#[test]
fn who_is_told_when_to_come_back_comes_back_then_and_not_before() {
    check("throttled-told", &PEERS, |ours, its| ours.success() > its.success() && ours.waste() < 0.5);
}

#[test]
fn slow_calls_get_more_time() {
    check("slow", &PEERS, |ours, its| ours.success() >= its.success() && ours.waste() < its.waste());
}

#[test]
fn nothing_is_done_twice_that_must_not_be() {
    check("mixture-writes", &PEERS, |ours, its| ours.twice == 0 && its.twice > 0);
}

#[test]
fn retries_that_never_help_become_fewer_with_experience() {
    for scenario in ["in-vain", "one-program"] {
        check(scenario, &[Contender::Forgetful], |ours, forgetful| {
            ours.waste() < 0.75 * forgetful.waste() && ours.success() >= forgetful.success()
        });
    }
}

#[test]
fn waits_that_were_too_short_become_longer_with_experience() {
    for (scenario, gain) in [("heals-8s", 1.0), ("late", 5.0), ("half-late", 2.0)] {
        check(scenario, &[Contender::Forgetful], |ours, forgetful| {
            ours.success() > forgetful.success() + gain && ours.waste() < forgetful.waste()
        });
    }
}

#[test]
fn where_there_is_nothing_to_learn_experience_changes_nothing_for_the_worse() {
    for scenario in
        ["chance-5", "chance-20", "outage-10s", "outage-10m", "overload", "mixture", "after-outage"]
    {
        check(scenario, &[Contender::Forgetful], |ours, forgetful| {
            ours.success() + 0.3 >= forgetful.success() && ours.waste() < forgetful.waste() + 0.5
        });
    }
}
