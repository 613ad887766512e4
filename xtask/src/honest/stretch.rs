//! The files that hold the stretches, and how shorter forms of a stretch are written out.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::host::Host;
use crate::Fault;

/// The look at which a thing that is waited for is ready.
const READY_AT: usize = 6;

/// One file of stretches.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Book {
    #[serde(default)]
    stretch: Vec<Stretch>,
    #[serde(default)]
    mended: Vec<Mended>,
    #[serde(default)]
    awaited: Vec<Awaited>,
    #[serde(default)]
    printed: Vec<Printed>,
    #[serde(default)]
    committed: Vec<Committed>,
}

/// A piece of honest work: what lies in the folder, and what is done there.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stretch {
    /// Its name.
    pub name: String,
    /// The agents that do it, each for itself.
    #[serde(default = "claude_alone")]
    pub hosts: Vec<Host>,
    /// Programs without which it cannot be played.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Is the folder a repository with a first commit?
    #[serde(default)]
    pub git: bool,
    /// Files of the folder, by their names.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Shell scripts that stand for programs which need not be installed.
    #[serde(default)]
    pub programs: BTreeMap<String, String>,
    /// What is done, in order.
    pub steps: Vec<Step>,
}

fn claude_alone() -> Vec<Host> {
    vec![Host::Claude]
}

/// One step, or the command line of one that works.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Step {
    /// A command line of the agent that works.
    Line(String),
    /// All that can be said of a step.
    Full(Box<FullStep>),
}

/// One step.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FullStep {
    /// A command line of the agent.
    pub call: Option<String>,
    /// A file that the agent edits with its own tool, `old` into `new`.
    pub edit: Option<String>,
    /// What is replaced.
    pub old: Option<String>,
    /// What takes its place.
    pub new: Option<String>,
    /// A file that the agent writes with its own tool, with `text`.
    pub write: Option<String>,
    /// The new content.
    pub text: Option<String>,
    /// A file that the agent reads with its own tool.
    pub read: Option<String>,
    /// Another tool of the agent, with `input`, that answers `says`.
    pub tool: Option<String>,
    /// The arguments of that tool.
    pub input: Option<serde_json::Value>,
    /// Its answer.
    pub says: Option<String>,
    /// A command line of a person or of another program, of which no hook tells.
    pub outside: Option<String>,
    /// What a person says to the agent.
    pub prompt: Option<String>,
    /// So many milliseconds pass.
    pub wait: Option<u64>,
    /// Waits until something accepts on the port of the stretch.
    #[serde(default)]
    pub listens: bool,
    /// Did the call fail, in truth?
    #[serde(default)]
    pub fails: bool,
    /// Does its exit code hide that it failed?
    #[serde(default)]
    pub hidden: bool,
    /// Is its exit code an answer, and no failure?
    #[serde(default)]
    pub answers: bool,
    /// Does its exit code alone tell whether it failed? A host may make a call more often than the agent.
    #[serde(default)]
    pub by_code: bool,
    /// Does it go on in the background?
    #[serde(default)]
    pub background: bool,
    /// May it be refused, because it fails again?
    #[serde(default)]
    pub may_refuse: bool,
    /// Words that may be said of it although it works.
    pub may_say: Option<String>,
    /// How often it is done in a row.
    pub times: Option<usize>,
    /// The sub-agent that does it.
    pub agent: Option<String>,
    /// Another session of the same agent in the same folder.
    pub session: Option<String>,
    /// Another agent in the same folder.
    pub host: Option<Host>,
    /// The folder in which it is done.
    pub cwd: Option<String>,
}

impl Step {
    /// The step in its full form.
    pub fn full(&self) -> FullStep {
        match self {
            Step::Line(line) => FullStep { call: Some(line.clone()), ..FullStep::default() },
            Step::Full(step) => (**step).clone(),
        }
    }
}

/// A call that fails so many times in a row; all but the first may be refused, because nothing was done.
fn failures(line: &str, times: usize) -> [Step; 2] {
    [(1, false), (times - 1, true)].map(|(times, may_refuse)| {
        let call = Some(line.to_owned());
        let step = FullStep { call, times: Some(times), fails: true, may_refuse, ..FullStep::default() };
        Step::Full(Box::new(step))
    })
}

/// A call that fails, a step that mends it, and the same call, which works.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mended {
    name: String,
    #[serde(default = "claude_alone")]
    hosts: Vec<Host>,
    #[serde(default)]
    needs: Vec<String>,
    #[serde(default)]
    git: bool,
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    programs: BTreeMap<String, String>,
    call: String,
    /// What was done before anything was asked.
    #[serde(default)]
    before: Vec<Step>,
    /// How often it fails.
    #[serde(default = "two")]
    fails: usize,
    /// What is done then.
    by: Vec<Step>,
    /// The call that works then, where it is not the same.
    then: Option<String>,
}

fn two() -> usize {
    2
}

impl Mended {
    fn written_out(self) -> Stretch {
        let then = self.then.clone().unwrap_or_else(|| self.call.clone());
        let mut steps = self.before;
        steps.push(Step::Line("ls".to_owned()));
        steps.extend(failures(&self.call, self.fails));
        steps.extend(self.by);
        steps.push(Step::Line(then));
        Stretch {
            name: self.name,
            hosts: self.hosts,
            needs: self.needs,
            git: self.git,
            files: self.files,
            programs: self.programs,
            steps,
        }
    }
}

/// Something that is asked again and again until it is ready.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Awaited {
    name: String,
    call: String,
    program: String,
    /// What it prints until it is ready.
    prints: String,
    /// Its exit code until then.
    code: i32,
    /// What it prints when it is ready.
    ready: String,
    /// The agent that asks, beside Claude Code.
    host: Host,
}

impl Awaited {
    fn written_out(self) -> Vec<Stretch> {
        let script = format!(
            "if [ \"$(look ready)\" -lt {READY_AT} ]; then\ncat <<'END' >&{out}\n{prints}\nEND\nexit {code}\nfi\ncat <<'END'\n{ready}\nEND\n",
            out = if self.code == 0 { 1 } else { 2 },
            prints = self.prints.trim_end(),
            code = self.code,
            ready = self.ready.trim_end(),
        );
        let programs = BTreeMap::from([(self.program.clone(), script)]);
        let fails = self.code != 0;
        let look = |line: String| {
            let may_say = (!fails).then(|| SAME_ANSWER.to_owned());
            let step = FullStep { call: Some(line), may_say, by_code: fails, ..FullStep::default() };
            Step::Full(Box::new(step))
        };
        let stretch = |way: &str, host: Host, steps: Vec<Step>| Stretch {
            name: format!("{} {way}", self.name),
            hosts: vec![host],
            needs: Vec::new(),
            git: false,
            files: BTreeMap::from([("README.md".to_owned(), "# shop\n".to_owned())]),
            programs: programs.clone(),
            steps,
        };
        let first = Step::Line("ls".to_owned());
        let at_once = || {
            let looks = (1..READY_AT).map(|_| look(self.call.clone()));
            [first.clone()].into_iter().chain(looks).chain([Step::Line(self.call.clone())]).collect()
        };
        let slept = |line: &str| format!("sleep 0.2; {line}");
        let with_sleep = [first.clone()]
            .into_iter()
            .chain((1..READY_AT).map(|at| look(if at == 1 { self.call.clone() } else { slept(&self.call) })))
            .chain([Step::Line(slept(&self.call))])
            .collect();
        vec![
            stretch("at once", Host::Claude, at_once()),
            stretch("at once", self.host, at_once()),
            stretch("with a sleep", Host::Claude, with_sleep),
        ]
    }
}

/// What the same answer to the same question may be called.
pub const SAME_ANSWER: &str = "same";

/// A command that goes well, and what it prints.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Printed {
    call: String,
    prints: String,
    /// The program, where it is not the first word.
    program: Option<String>,
    #[serde(default = "claude_alone")]
    hosts: Vec<Host>,
}

impl Printed {
    fn written_out(self) -> Stretch {
        let first = self.call.split_whitespace().next().unwrap_or_default().to_owned();
        let program = self.program.unwrap_or(first);
        let script = format!("cat <<'END'\n{}\nEND\n", self.prints.trim_end());
        let call = &self.call;
        let lines = [
            format!("{call} 2>&1 | tail -5"),
            format!("{call} 2>&1 | tail -5"),
            format!("{call} 2>&1 | head -3"),
            format!("{call} || true"),
            format!("{call}; echo done"),
            format!("cd . && {call} 2>&1 | tail -20"),
            format!("{call} 2>&1 | tail -5"),
            call.clone(),
        ];
        let line = |line: String| {
            let may_say = Some(SAME_ANSWER.to_owned());
            Step::Full(Box::new(FullStep { call: Some(line), may_say, ..FullStep::default() }))
        };
        Stretch {
            name: format!("{call} goes well behind pipes"),
            hosts: self.hosts,
            needs: Vec::new(),
            git: false,
            files: BTreeMap::from([("README.md".to_owned(), "# shop\n".to_owned())]),
            programs: BTreeMap::from([(program, script)]),
            steps: [Step::Line("ls".to_owned())].into_iter().chain(lines.map(line)).collect(),
        }
    }
}

/// Subjects of commits that are made and shown.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Committed {
    name: String,
    subjects: Vec<String>,
}

impl Committed {
    fn written_out(self) -> Stretch {
        let commit = |(number, subject): (usize, &String)| {
            let quoted = subject.replace('\'', "'\\''");
            let commit = format!(
                "echo {number} > f.txt && git add -A && git commit -qm '{quoted}' && git log --oneline | head -1"
            );
            [
                Step::Line(commit),
                Step::Line("git status && git branch -a && git log --oneline | head -3".to_owned()),
            ]
        };
        Stretch {
            name: self.name,
            hosts: claude_alone(),
            needs: vec!["git".to_owned()],
            git: true,
            files: BTreeMap::new(),
            programs: BTreeMap::new(),
            steps: self.subjects.iter().enumerate().flat_map(commit).collect(),
        }
    }
}

/// One stretch, as one agent does it.
#[derive(Debug, Clone)]
pub struct Played {
    /// The stretch.
    pub stretch: Stretch,
    /// The agent.
    pub host: Host,
    /// Its name and the agent's.
    pub name: String,
}

/// Reads every stretch below a folder.
pub fn read_all(folder: &Path) -> Result<Vec<Played>, Fault> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .map_err(|error| format!("{}: {error}", folder.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    let mut all: Vec<Played> = Vec::new();
    for path in files {
        let subject = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
        let book: Book = toml::from_str(&fs::read_to_string(&path)?)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        let mut stretches = book.stretch;
        stretches.extend(book.mended.into_iter().map(Mended::written_out));
        stretches.extend(book.awaited.into_iter().flat_map(Awaited::written_out));
        stretches.extend(book.printed.into_iter().map(Printed::written_out));
        stretches.extend(book.committed.into_iter().map(Committed::written_out));
        for stretch in stretches {
            for host in stretch.hosts.clone() {
                let name = format!("{subject}: {} ({})", stretch.name, host.word());
                if all.iter().any(|played| played.name == name) {
                    return Err(format!("two stretches are called {name:?}").into());
                }
                all.push(Played { stretch: stretch.clone(), host, name });
            }
        }
    }
    Ok(all)
}
