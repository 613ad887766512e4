//! Where a session stands: what is known to fail, which answers stay the same, what moved. Plain data of bounded size,
//! every field open, so that it can be stored and read back by whoever keeps it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use super::Rung;
use super::sight::{Change, Dir, Firmness, Moment, Print, Sight, State};
use crate::condition::Condition;
use crate::kind::Kind;

/// How many things of one sort a session remembers. What was used longest ago goes first.
pub const CAPACITY: usize = 16_384;
const AGENTS: usize = 64;
const TOOLS: usize = 64;
const RECENT_CHANGES: usize = 64;
const HISTORY: usize = 20;

/// The answer of an action that does not show what it did.
pub const UNSHOWN: Print = Print(0);

/// A place in the order of a session's calls; 0 is before the first.
pub type Tick = u32;

/// A map of bounded size that forgets what was used longest ago.
#[derive(Debug, Clone, PartialEq)]
pub struct Memory<T> {
    /// What is remembered, with the tick of its last use.
    pub items: BTreeMap<Print, (Tick, T)>,
    /// How much of it at most.
    pub capacity: usize,
    /// What was looked for in vain, where this is only an excerpt of what somebody keeps elsewhere.
    wanted: Option<RefCell<BTreeSet<Print>>>,
}

impl<T> Memory<T> {
    fn new(capacity: usize) -> Memory<T> {
        Memory { items: BTreeMap::new(), capacity, wanted: None }
    }

    /// An excerpt of a memory that is kept elsewhere, with nothing in it so far. It notes what is looked for in vain and
    /// forgets nothing: both are its keeper's business.
    fn excerpt() -> Memory<T> {
        Memory { items: BTreeMap::new(), capacity: usize::MAX, wanted: Some(RefCell::default()) }
    }

    /// What was looked for in vain since this excerpt was made.
    pub fn wanted(&self) -> BTreeSet<Print> {
        self.wanted.as_ref().map(|wanted| wanted.borrow().clone()).unwrap_or_default()
    }

    fn seek(&self, print: Print) {
        if let Some(wanted) = self.wanted.as_ref().filter(|_| !self.items.contains_key(&print)) {
            wanted.borrow_mut().insert(print);
        }
    }

    /// What is remembered under `print`.
    pub fn get(&self, print: Print) -> Option<&T> {
        self.seek(print);
        self.items.get(&print).map(|(_, item)| item)
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, print: Print) -> Option<&mut T> {
        self.seek(print);
        self.items.get_mut(&print).map(|(_, item)| item)
    }

    /// Remembers `item`, used at `tick`.
    pub fn put(&mut self, print: Print, tick: Tick, item: T) {
        self.items.insert(print, (tick, item));
        if self.items.len() > self.capacity {
            self.forget_older_half();
        }
    }

    /// Forgets what is under `print`.
    pub fn remove(&mut self, print: Print) {
        self.seek(print);
        self.items.remove(&print);
    }

    /// All that is remembered.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.values().map(|(_, item)| item)
    }

    /// How much is remembered.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Is nothing remembered?
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Half at once, so that a full memory pays for sorting once in thousands of steps.
    fn forget_older_half(&mut self) {
        let mut ticks: Vec<Tick> = self.items.values().map(|(tick, _)| *tick).collect();
        ticks.sort_unstable();
        let cut = ticks[ticks.len() / 2];
        let newest = ticks.last().copied().unwrap_or_default();
        self.items.retain(|_, (tick, _)| *tick > cut || *tick == newest);
    }
}

/// What an agent has heard about one thing that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Said {
    /// The strongest word that came with a result.
    pub told: Rung,
    /// How often a call was refused because of it.
    pub denials: u32,
}

impl Said {
    /// Not a word so far.
    pub const NOTHING: Said = Said { told: Rung::Observe, denials: 0 };

    /// The same after another word.
    pub fn and(self, rung: Rung) -> Said {
        Said { told: self.told.max(rung), ..self }
    }
}

/// Something that is known to fail.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    /// How often it failed with this cause.
    pub strikes: u32,
    /// The cause.
    pub kind: Kind,
    /// How firmly it stands.
    pub firmness: Firmness,
    /// The cause with its error line.
    pub cause: Print,
    /// When it failed last.
    pub at: Tick,
    /// In which turn of the user.
    pub turn: u32,
    /// Who failed last, and in which message.
    pub by: Moment,
    /// Where it ran.
    pub dir: Dir,
    /// What the failed call wanted to touch.
    pub targets: Vec<Print>,
    /// What the error names.
    pub names: Vec<Print>,
    /// The failed call wanted to change something.
    pub changes: bool,
    /// It went through a shell.
    pub shell: bool,
    /// What failed was only looked at while it is on its way.
    pub state: State,
    /// What was said of it.
    pub said: Said,
    /// The line that shows the cause.
    pub line: String,
    /// The rule that named it.
    pub rule: String,
    /// The call in one line.
    pub attempt: String,
    /// How often it failed in a row, with whatever cause.
    pub failures: u32,
    /// The causes it failed with in a row, the latest last; under a cause that stops different calls, those calls.
    pub causes: Vec<Print>,
    /// The host itself said that it failed.
    pub proven: bool,
    /// What can be looked at to see whether it would fail again.
    pub condition: Condition,
}

/// An answer that was given before.
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    /// The answer.
    pub answer: Print,
    /// How often it was given while nothing changed.
    pub seen: u32,
    /// When it was given last.
    pub at: Tick,
    /// Where the world stood.
    pub world: u32,
    /// In which turn of the user.
    pub turn: u32,
    /// Who asked last, and in which message.
    pub by: Moment,
    /// What the answer says of the thing looked at.
    pub state: State,
    /// What was said of it.
    pub said: Said,
}

/// A run between changes whose output stays the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Lap {
    /// The output, byte for byte.
    pub answer: Print,
    /// How often it came, each time after another change.
    pub laps: u32,
    /// The cause, `NotAnError` where the run went well.
    pub kind: Kind,
    /// Where the world stood at the last one.
    pub world: u32,
    /// In which turn of the user.
    pub turn: u32,
    /// What was said of it.
    pub said: Said,
}

/// The failures of one tool in a row.
#[derive(Debug, Clone, PartialEq)]
pub struct Streak {
    /// The answer that stays the same.
    pub answer: Print,
    /// How often.
    pub length: u32,
    /// The cause.
    pub kind: Kind,
    /// In which turn of the user.
    pub turn: u32,
    /// The last one's message.
    pub by: Moment,
    /// What was said of it.
    pub said: Said,
    /// The line that shows the cause.
    pub line: String,
}

/// What one agent did lately. Agents share what is known to fail, not these counters.
#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    /// Its last call.
    pub last: Print,
    /// In which turn of the user that was.
    pub turn: u32,
    /// How many shell commands in a row failed alike, and how many of them could not have failed.
    pub silence: (u32, u32),
    /// What the last one of them said.
    pub refrain: Print,
    /// What was said of the silence.
    pub silence_said: Said,
    /// How many looks in a row were answered before.
    pub reruns: u32,
    /// When the first of them was made.
    pub reruns_since: u64,
    /// How many of its calls in a row were refused.
    pub denied: u32,
    /// The last calls with their answers, since the world moved.
    pub history: Vec<(Print, Print)>,
    /// What was said of the cycle they end with.
    pub cycle_said: Said,
    /// Failures in a row, by tool.
    pub streaks: Memory<Streak>,
}

impl Default for Agent {
    /// An agent that has done nothing so far.
    fn default() -> Agent {
        Agent {
            last: Print(0),
            turn: 0,
            silence: (0, 0),
            refrain: Print(0),
            silence_said: Said::NOTHING,
            reruns: 0,
            reruns_since: 0,
            denied: 0,
            history: Vec::new(),
            cycle_said: Said::NOTHING,
            streaks: Memory::new(TOOLS),
        }
    }
}

impl Agent {
    /// Adds a call and its answer to the history.
    pub fn remember(&mut self, call: Print, answer: Print) {
        self.last = call;
        if self.history.len() == HISTORY {
            self.history.remove(0);
        }
        self.history.push((call, answer));
    }

    /// Forgets the history, because the same calls may get other answers now.
    pub fn start_over(&mut self) {
        self.history.clear();
        self.reruns = 0;
        self.cycle_said = Said::NOTHING;
    }
}

/// What moved, and when.
#[derive(Debug, Clone, PartialEq)]
pub struct World {
    /// Goes up whenever an answer could have changed.
    pub count: u32,
    /// Goes up whenever something was changed on purpose.
    pub changes: u32,
    /// When something was last changed, by sort of change.
    pub last: [Tick; Change::ALL.len()],
    /// The names that the last changes touched.
    pub recent: Vec<(Tick, Vec<Print>)>,
    /// When a target was last changed.
    pub touched: Memory<Tick>,
    /// When a target was last looked at.
    pub looked_at: Memory<Tick>,
    /// When something was last done of which nobody knows what it changed.
    pub stirred: Tick,
    /// When somebody last let time pass.
    pub waited: Tick,
}

impl World {
    fn new() -> World {
        World {
            count: 0,
            changes: 0,
            last: [0; Change::ALL.len()],
            recent: Vec::new(),
            touched: Memory::new(CAPACITY),
            looked_at: Memory::new(CAPACITY),
            stirred: 0,
            waited: 0,
        }
    }

    /// Something was changed.
    pub fn change(&mut self, tick: Tick, change: Change, sight: &Sight) {
        self.count += 1;
        self.changes += 1;
        self.last[change as usize] = tick;
        if self.recent.len() == RECENT_CHANGES {
            self.recent.remove(0);
        }
        self.recent.push((tick, sight.names.clone()));
        // To touch a file is not to change what is in it.
        let changed: &[Print] = if change == Change::Touch { &[] } else { &sight.targets };
        for target in changed {
            self.touched.put(*target, tick, tick);
        }
    }

    /// Something ran: it may have left anything behind.
    pub fn run(&mut self, tick: Tick) {
        self.count += 1;
        self.last[Change::Script as usize] = tick;
    }

    /// Something was done that may write: an answer could have changed.
    pub fn step(&mut self) {
        self.count += 1;
    }

    /// A tool did something of which nobody knows what it changed.
    pub fn stir(&mut self, tick: Tick) {
        self.stirred = tick;
    }

    /// Something was looked at.
    pub fn look(&mut self, tick: Tick, sight: &Sight) {
        for target in &sight.targets {
            self.looked_at.put(*target, tick, tick);
        }
    }

    /// Was anything at all changed since `known` failed that could make it work now? `matters` are the sorts of change that could.
    pub fn may_have_helped(&self, known: &Known, matters: &[Change]) -> bool {
        [Change::Trifle, Change::Touch].iter().any(|change| self.last[*change as usize] > known.at)
            || self.could_help(known, matters)
    }

    /// Could what moved since it failed make `known` work now, as far as one would expect? `matters` are the sorts of change that
    /// could.
    pub fn could_help(&self, known: &Known, matters: &[Change]) -> bool {
        let after = |tick: &Tick| *tick > known.at;
        matters.iter().any(|change| after(&self.last[*change as usize]))
            // What an unknown tool did may help a shell; that it helps another tool shows in what it names.
            || known.shell && after(&self.stirred)
            || self.recent.iter().any(|(tick, names)| after(tick) && names.iter().any(|name| known.names.contains(name)))
            || known.targets.iter().any(|target| self.touched.get(*target).is_some_and(after))
            // An edit that failed for want of reading is repaired by a look at its file.
            || known.changes && known.targets.iter().any(|target| self.looked_at.get(*target).is_some_and(after))
    }
}

/// Where one session stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// How many calls have ended.
    pub tick: Tick,
    /// How often the user spoke.
    pub turn: u32,
    /// What is known to fail, under exact, intent, approach and root prints alike.
    pub known: Memory<Known>,
    /// Answers that were given before, by agent and exact call.
    pub looks: Memory<Look>,
    /// Runs between changes, by intent.
    pub laps: Memory<Lap>,
    /// What each agent did lately.
    pub agents: BTreeMap<Print, Agent>,
    /// What moved.
    pub world: World,
}

impl Default for Standing {
    fn default() -> Standing {
        Standing::new()
    }
}

impl Standing {
    /// A session in which nothing has happened.
    pub fn new() -> Standing {
        Standing {
            tick: 0,
            turn: 0,
            known: Memory::new(CAPACITY),
            looks: Memory::new(CAPACITY),
            laps: Memory::new(CAPACITY),
            agents: BTreeMap::new(),
            world: World::new(),
        }
    }

    /// A session of which only what is needed was fetched: see [`Memory::wanted`]. Its agents are all there.
    ///
    /// A step is pure, so whoever keeps the session runs it on an excerpt, fetches what was looked for in vain, and runs it
    /// again from the start, until nothing is missing.
    pub fn excerpt() -> Standing {
        let mut standing = Standing::new();
        standing.known = Memory::excerpt();
        standing.looks = Memory::excerpt();
        standing.laps = Memory::excerpt();
        standing.world.touched = Memory::excerpt();
        standing.world.looked_at = Memory::excerpt();
        standing
    }

    /// What is known of an agent's last calls.
    pub fn agent(&self, agent: Print) -> Option<&Agent> {
        self.agents.get(&agent)
    }

    /// The same, to be changed. A session with more agents than anyone can follow forgets the one that sorts first.
    pub fn agent_mut(&mut self, agent: Print) -> &mut Agent {
        if self.agents.len() >= AGENTS && !self.agents.contains_key(&agent) {
            self.agents.pop_first();
        }
        self.agents.entry(agent).or_default()
    }

    /// All agents start over, because the world they share moved.
    pub fn start_over(&mut self) {
        for agent in self.agents.values_mut() {
            agent.start_over();
        }
    }

    /// How many things are remembered in all.
    pub fn size(&self) -> usize {
        let streaks: usize = self.agents.values().map(|agent| agent.streaks.len()).sum();
        let world = self.world.touched.len() + self.world.looked_at.len() + self.world.recent.len();
        self.known.len() + self.looks.len() + self.laps.len() + self.agents.len() + streaks + world
    }
}
