//! The scenarios, as data: what is wrong with the service, and what that is meant to show.

use super::failure::Failure;
use super::service::Trouble;

/// One scenario.
#[derive(Debug)]
pub struct Scenario {
    /// A key for `--json`, and for who wants only this one.
    pub name: &'static str,
    /// The heading.
    pub title: &'static str,
    /// What happens, in one sentence.
    pub told: &'static str,
    /// Of a hundred calls, so many must not be carried out twice.
    pub writing: u64,
    /// What is wrong with the service; what stands first decides first.
    pub troubles: &'static [Trouble],
}

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;

/// What comes and goes.
const PASSING: &[Failure] = &[Failure::Reset, Failure::Refused, Failure::Unavailable, Failure::Internal];
/// A service that is away.
const AWAY: &[Failure] = &[Failure::Refused, Failure::Unavailable];
/// What is broken for good: half says so, a quarter looks as if it would pass, a quarter says nothing.
const FOR_GOOD: &[Failure] = &[
    Failure::NotFound,
    Failure::Unauthorised,
    Failure::NotFound,
    Failure::Unauthorised,
    Failure::Internal,
    Failure::NoSuchHost,
    Failure::Unexplained,
    Failure::Unexplained,
];
const UNAVAILABLE: &[Failure] = &[Failure::Unavailable];

const fn chance(per_mille: u64) -> Trouble {
    Trouble::Chance { per_mille, faces: PASSING }
}

/// One attempt in ten, by chance.
const RARELY: Trouble = Trouble::Chance { per_mille: 100, faces: UNAVAILABLE };

const fn outages(lasts: u64, every: u64) -> Trouble {
    Trouble::Outages { lasts, every, faces: AWAY }
}

const MIXTURE: &[Trouble] = &[
    outages(MINUTE, 10 * MINUTE),
    Trouble::Throttled { calls: 12, window: MINUTE, tells: true },
    Trouble::Broken { per_mille: 50, faces: FOR_GOOD },
    chance(50),
    Trouble::Slow { per_mille: 10, least: 8 * SECOND, most: 20 * SECOND },
    Trouble::Hangs { per_mille: 10 },
];

/// All of them.
pub const ALL: &[Scenario] = &[
    Scenario {
        name: "chance-5",
        title: "5 % of all attempts fail by chance",
        told: "Connections break or are refused, servers answer 500 or 503, each time anew.",
        writing: 0,
        troubles: &[chance(50)],
    },
    Scenario {
        name: "chance-20",
        title: "20 % of all attempts fail by chance",
        told: "The same, more often.",
        writing: 0,
        troubles: &[chance(200)],
    },
    Scenario {
        name: "chance-50",
        title: "50 % of all attempts fail by chance",
        told: "The same, half of the time; to a caller this looks much like a service that is going down.",
        writing: 0,
        troubles: &[chance(500)],
    },
    Scenario {
        name: "outage-2s",
        title: "Outages of 2 seconds",
        told: "Once a minute nothing listens, or everything is answered with 503.",
        writing: 0,
        troubles: &[outages(2 * SECOND, MINUTE)],
    },
    Scenario {
        name: "outage-10s",
        title: "Outages of 10 seconds",
        told: "Once in 3 minutes.",
        writing: 0,
        troubles: &[outages(10 * SECOND, 3 * MINUTE)],
    },
    Scenario {
        name: "outage-60s",
        title: "Outages of a minute",
        told: "Once in 10 minutes: longer than anybody here waits.",
        writing: 0,
        troubles: &[outages(MINUTE, 10 * MINUTE)],
    },
    Scenario {
        name: "outage-10m",
        title: "An outage of 10 minutes",
        told: "Once in half an hour.",
        writing: 0,
        troubles: &[outages(10 * MINUTE, 33 * MINUTE)],
    },
    Scenario {
        name: "overload",
        title: "An overload that feeds itself",
        told: "The service can do 125 % of what is wanted, one call after another, and for 30 seconds only 30 %. Who waits for \
               more than 10 seconds leaves, but the work is done all the same. Once the queue is long, retries keep it long.",
        writing: 0,
        troubles: &[Trouble::Queue {
            percent: 125,
            dip: 30,
            dip_at: 5 * MINUTE,
            dip_lasts: 30 * SECOND,
            longest_queue: 30 * SECOND,
            refusal: 5,
        }],
    },
    Scenario {
        name: "shedding",
        title: "More is wanted than can be served",
        told: "The service can do 80 % of what is wanted on the mean and turns the rest away with 503, which costs it nothing.",
        writing: 0,
        troubles: &[Trouble::Queue {
            percent: 80,
            dip: 80,
            dip_at: 0,
            dip_lasts: 0,
            longest_queue: SECOND,
            refusal: 0,
        }],
    },
    Scenario {
        name: "congestion",
        title: "Turning calls away costs something",
        told: "The service can do 115 % of what is wanted, for a minute only half, and turns the rest away with 503, which costs a \
               third of serving it: the more is sent, the less is served.",
        writing: 0,
        troubles: &[Trouble::Queue {
            percent: 115,
            dip: 50,
            dip_at: 5 * MINUTE,
            dip_lasts: MINUTE,
            longest_queue: SECOND,
            refusal: 33,
        }],
    },
    Scenario {
        name: "throttled-told",
        title: "Rate limits, with Retry-After",
        told: "Each client has 8 calls a minute and wants 6 on the mean; 429 says when the minute is over.",
        writing: 0,
        troubles: &[Trouble::Throttled { calls: 8, window: MINUTE, tells: true }],
    },
    Scenario {
        name: "throttled",
        title: "Rate limits, without a word",
        told: "The same, and 429 says nothing else.",
        writing: 0,
        troubles: &[Trouble::Throttled { calls: 8, window: MINUTE, tells: false }],
    },
    Scenario {
        name: "for-good",
        title: "Calls that can never work",
        told: "One in five. Half of them say so (404, 401), a quarter looks as if it would pass (500, an unknown host), a quarter \
               says nothing. The rest works.",
        writing: 0,
        troubles: &[Trouble::Broken { per_mille: 200, faces: FOR_GOOD }],
    },
    Scenario {
        name: "slow",
        title: "Slow calls",
        told: "The limit is 10 seconds. One call in twenty needs 8 to 20, each time; one attempt in twenty is never answered.",
        writing: 0,
        troubles: &[
            Trouble::Slow { per_mille: 50, least: 8 * SECOND, most: 20 * SECOND },
            Trouble::Hangs { per_mille: 50 },
        ],
    },
    Scenario {
        name: "mixture",
        title: "A mixture",
        told: "An outage of a minute in ten, 12 calls a minute for each client with Retry-After, 5 % broken for good, 5 % by \
               chance, 1 % slow, 1 % never answered.",
        writing: 0,
        troubles: MIXTURE,
    },
    Scenario {
        name: "mixture-writes",
        title: "The same mixture, where one call in four must not be carried out twice",
        told: "A connection that broke on the way leaves it open whether the call was carried out (every other one was), and a \
               call that nobody waited for was.",
        writing: 25,
        troubles: MIXTURE,
    },
    Scenario {
        name: "in-vain",
        title: "Retries that never help",
        told: "One call in ten is answered with 503 however often it is sent. Nothing but experience tells.",
        writing: 0,
        troubles: &[Trouble::Broken { per_mille: 100, faces: UNAVAILABLE }],
    },
    Scenario {
        name: "late",
        title: "Retries that help late",
        told: "One call in ten is answered with 503 until 15 to 25 seconds have passed since it was first sent.",
        writing: 0,
        troubles: &[Trouble::HealsAfter {
            per_mille: 100,
            least: 15 * SECOND,
            most: 25 * SECOND,
            faces: UNAVAILABLE,
        }],
    },
    Scenario {
        name: "heals-8s",
        title: "Failures that pass after 8 seconds",
        told: "One call in ten is answered with 503 until 7 to 9 seconds have passed since it was first sent; the table waits for a \
               second first.",
        writing: 0,
        troubles: &[Trouble::HealsAfter {
            per_mille: 100,
            least: 7 * SECOND,
            most: 9 * SECOND,
            faces: UNAVAILABLE,
        }],
    },
    Scenario {
        name: "one-program",
        title: "One program that never heals",
        told: "Of one program in four every third call is answered with 503 however often it is sent; of all attempts of the others one in ten is, by chance.",
        writing: 0,
        troubles: &[
            Trouble::Of { program: 0, trouble: &Trouble::Broken { per_mille: 333, faces: UNAVAILABLE } },
            Trouble::Of { program: 1, trouble: &RARELY },
            Trouble::Of { program: 2, trouble: &RARELY },
            Trouble::Of { program: 3, trouble: &RARELY },
        ],
    },
    Scenario {
        name: "half-late",
        title: "Two programs, one of which needs half a minute",
        told: "Calls of one program fail with 503, one in five, and pass after 25 to 35 seconds; those of another fail for 2 seconds; the \
               others work.",
        writing: 0,
        troubles: &[
            Trouble::Of {
                program: 0,
                trouble: &Trouble::HealsAfter {
                    per_mille: 200,
                    least: 25 * SECOND,
                    most: 35 * SECOND,
                    faces: UNAVAILABLE,
                },
            },
            Trouble::Of {
                program: 1,
                trouble: &Trouble::HealsAfter {
                    per_mille: 200,
                    least: SECOND,
                    most: 2 * SECOND,
                    faces: UNAVAILABLE,
                },
            },
        ],
    },
    Scenario {
        name: "after-outage",
        title: "Retries that were in vain, and then help",
        told: "An outage of 10 minutes in half an hour, and 2 % of all other attempts fail by chance: what was learned in the \
               outages is wrong between them.",
        writing: 0,
        troubles: &[outages(10 * MINUTE, 33 * MINUTE), chance(20)],
    },
];
