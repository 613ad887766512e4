//! What the commands of a line put at risk.

use memchr::memmem;

use super::found::{Found, Manner};
use super::invocation::{Invocation, runs_each, start_paths};
use super::names::{Meaning, Names};
use super::row::{ELSEWHERE, REDIRECT_APPEND, REDIRECT_WRITE, Row, Takes};
use super::target::{At, Folder, is_absolute};
use super::whereabouts::{Place, Whereabouts};
use crate::nature::patched_files;
use crate::nature::script::only_asks;
use crate::shell::{Command, Flow, Join, Role, Script, assignment};

/// How much of a text is searched; code that writes files says so before that.
const SAID_MAX: usize = 256 << 10;

/// How far around a command whoever feeds it is looked for.
const NEARBY: usize = 64;

/// Adds what a script puts at risk that starts in `start`.
pub(super) fn look(script: &Script, start: Folder, found: &mut Found) {
    let commands = script.commands();
    // Most lines only look or build; they are done here.
    if !commands.iter().any(may_risk) {
        return;
    }
    let mut names = Names::default();
    let mut whereabouts = Whereabouts::new(start);
    let mut away: Option<u16> = None;
    found.hidden = commands.iter().any(shows_hidden);
    for (at, command) in commands.iter().enumerate() {
        whereabouts.enter(command);
        away = away.filter(|depth| command.depth > *depth);
        for (name, words) in &command.loops {
            names.set_each(name, words);
        }
        if away.is_none() {
            let scene = Scene { commands, at, command, names: &names, places: whereabouts.now() };
            scene.look(found);
            let wraps = command.then == Join::Wraps;
            away = (wraps && ELSEWHERE.contains(&command.program.as_str())).then_some(command.depth);
        }
        note_names(command, &mut names);
        whereabouts.leave(command, &names);
    }
}

fn may_risk(command: &Command) -> bool {
    command.redirections.iter().any(|to| to.writes_file()) || Invocation::is_known(command)
}

/// Whether patterns match hidden names from here on: bash and zsh have a word for it each.
fn shows_hidden(command: &Command) -> bool {
    let is_it = |word: &String| ["dotglob", "globdots"].contains(&&*word.to_lowercase().replace('_', ""));
    matches!(command.program.as_str(), "shopt" | "setopt") && command.args().iter().any(is_it)
}

/// Variables that the shell keeps. `NAME=value program` sets one for the program only.
fn note_names<'c>(command: &'c Command, names: &mut Names<'c>) {
    if command.words.is_empty() {
        command.assignments.iter().for_each(|(name, value)| names.set(name, value));
    } else if matches!(command.program.as_str(), "export" | "local" | "declare" | "readonly" | "typeset") {
        command
            .args()
            .iter()
            .filter_map(|word| assignment(word))
            .for_each(|(name, value)| names.set(name, value));
    }
}

/// Variables that tell git where its work tree is, and its own folder.
const GIT_FOLDERS: [&str; 2] = ["GIT_WORK_TREE", "GIT_DIR"];

/// What a command is fed with besides its words.
enum Feed<'c> {
    /// Nothing.
    Nothing,
    /// What `find` finds below these.
    Below(Vec<&'c str>),
    /// Nobody can tell.
    Unknown,
}

/// One command where it stands.
struct Scene<'c, 's> {
    commands: &'c [Command],
    at: usize,
    command: &'c Command,
    names: &'s Names<'c>,
    places: &'s [Place],
}

impl<'c> Scene<'c, '_> {
    fn look(&self, found: &mut Found) {
        if let Some(invocation) = Invocation::of(self.command).filter(|_| !only_asks(self.command))
            && let Some((at, row)) = invocation.row(|text| self.says(text))
        {
            let places = self.places_of(&invocation);
            row.takes.iter().for_each(|takes| self.take(*takes, at, row, &invocation, &places, found));
        }
        for to in self.command.redirections.iter().filter(|to| to.writes_file()) {
            let row = if to.flow == Flow::Append { REDIRECT_APPEND } else { REDIRECT_WRITE };
            self.add(&to.target, self.places, Manner::surely(row), found);
        }
    }

    /// The places in which the program works: a flag may name another folder.
    fn places_of(&self, invocation: &Invocation<'c>) -> Vec<Place> {
        let step = |places: Vec<Place>, folder: &str| -> Vec<Place> {
            places.iter().flat_map(|place| place.then(folder, self.names)).collect()
        };
        let here = invocation.folders().into_iter().fold(self.places.to_vec(), step);
        let named = if invocation.program == "git" { self.named_to_git(invocation) } else { Vec::new() };
        let elsewhere = named.iter().flat_map(|folder| step(here.clone(), folder));
        here.iter().cloned().chain(elsewhere).collect()
    }

    /// Where git is told to work, and to keep what it keeps, in other words than its folder.
    fn named_to_git(&self, invocation: &Invocation<'c>) -> Vec<String> {
        let wrappers =
            self.commands[..self.at].iter().rev().take_while(|command| command.then == Join::Wraps);
        let of_wrappers = wrappers.flat_map(|command| {
            let own = command.assignments.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            own.chain(command.args().iter().filter_map(|word| assignment(word)))
        });
        let own = self.command.assignments.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let by_variable = own.chain(of_wrappers).filter(|(name, _)| GIT_FOLDERS.contains(name));
        let mut named = invocation.named_to_git();
        named.extend(by_variable.map(|(_, value)| value.to_owned()));
        named.extend(GIT_FOLDERS.iter().flat_map(|name| self.names.texts_of(name)).cloned());
        named.sort();
        named.dedup();
        named
    }

    fn take(
        &self,
        takes: Takes,
        at: usize,
        row: &'static Row,
        invocation: &Invocation<'c>,
        places: &[Place],
        found: &mut Found,
    ) {
        let perhaps = Manner::perhaps(at);
        let paths = |words: &mut dyn Iterator<Item = &'c str>, found: &mut Found| {
            let mut any = false;
            for word in words {
                any = true;
                self.add(word, places, perhaps, found);
            }
            any
        };
        match takes {
            Takes::Operands => {
                paths(&mut invocation.operands(), found);
                self.add_feed(places, perhaps, found);
            }
            Takes::OperandsOrFolder => {
                if !paths(&mut invocation.operands(), found) {
                    found.add_text(".", places, perhaps);
                }
                self.add_feed(places, perhaps, found);
            }
            Takes::AfterFirst => {
                paths(&mut invocation.operands_after_first(), found);
                self.add_feed(places, perhaps, found);
            }
            Takes::Last => {
                let is_here = |word: &&str| !word.split('/').next().unwrap_or_default().contains(':');
                paths(&mut invocation.operands().last().into_iter().filter(is_here), found);
            }
            Takes::Over => self.take_over(false, at, invocation, places, found),
            Takes::Move => self.take_over(true, at, invocation, places, found),
            Takes::StartPaths => {
                paths(&mut invocation.start_paths(), found);
            }
            Takes::Values => {
                for value in invocation.values(row.values) {
                    self.add(value, places, Manner::surely(at), found);
                }
            }
            Takes::UrlNames => {
                let urls = invocation.operands().filter_map(|word| word.split_once("://"));
                for name in urls.filter_map(|(_, url)| url.split(['?', '#']).next()?.split('/').next_back()) {
                    self.add(name, places, Manner::surely(at), found);
                }
            }
            Takes::Patched => {
                let files: Vec<String> = self.texts().flat_map(patched_files).collect();
                if files.is_empty() {
                    found.add_from(places, at, |from| At::Workspace { from });
                }
                for file in files {
                    found.add_text(&file, places, Manner::surely(at));
                }
            }
            Takes::Folder => found.add_text(".", places, perhaps),
            Takes::Repository => found.add_from(places, at, |from| At::Repository { from }),
            Takes::GitFolder => found.add_from(places, at, |from| At::GitFolder { from }),
            Takes::GitState => found.add_from(places, at, |from| At::GitState { from }),
            Takes::GitIndex => found.add_from(places, at, |from| At::GitIndex { from, beside: false }),
            Takes::GitIndexToo => found.add_from(places, at, |from| At::GitIndex { from, beside: true }),
            Takes::Suffixed => {
                let files: Vec<&str> = match row.takes.contains(&Takes::AfterFirst) {
                    true => invocation.operands_after_first().collect(),
                    false => invocation.operands().collect(),
                };
                for word in invocation.suffixed(files.into_iter(), row.suffixes) {
                    self.add(&word, places, Manner::surely(at), found);
                }
            }
            Takes::Named => found.add_from(places, at, |from| At::Named { from, names: row.names }),
            Takes::Workspace => found.add_from(places, at, |from| At::Workspace { from }),
            // Only tools have fields.
            Takes::Fields | Takes::Patches => {}
        }
    }

    /// `cp a b c/`, `mv -t c a b`.
    fn take_over(
        &self,
        moves: bool,
        row: usize,
        invocation: &Invocation<'c>,
        places: &[Place],
        found: &mut Found,
    ) {
        // `cp a{,.bak}` is two words.
        let words = |word: &'c str| match self.names.meaning(word) {
            Meaning::Texts(texts) if !word.contains('$') => texts,
            Meaning::Texts(_) | Meaning::New | Meaning::Unknown => vec![word.to_owned()],
        };
        let mut sources: Vec<String> = invocation.operands().flat_map(words).collect();
        let folder = invocation.values(&["-t", "--target-directory"]).first().map(|to| (*to).to_owned());
        let Some(to) = folder.or_else(|| sources.pop()) else { return };
        let manner = Manner::surely(row);
        let fed = !matches!(self.feed(), Feed::Nothing);
        let names_all = sources.iter().all(|source| matches!(self.names.meaning(source), Meaning::Texts(_)));
        let targets = match self.names.meaning(&to) {
            Meaning::Texts(targets) => targets,
            Meaning::New => return,
            Meaning::Unknown => return self.add(&to, places, manner, found),
        };
        // What is called like something that nobody knows may be anything in there.
        let may_be_deeper = targets.iter().any(|to| to.contains("**"));
        if fed
            || !names_all
            || may_be_deeper
            || invocation.gives("-T")
            || invocation.gives("--no-target-directory")
        {
            targets.iter().for_each(|to| found.add_text(to, places, manner));
            let known = |source: &&String| matches!(self.names.meaning(source), Meaning::Texts(_));
            let known = sources.iter().filter(known);
            return match (moves, fed) {
                (false, _) => {}
                (true, true) => self.add_feed(places, manner, found),
                (true, false) => known.for_each(|each| self.add(each, places, Manner::perhaps(row), found)),
            };
        }
        let texts = |source: &String| match self.names.meaning(source) {
            Meaning::Texts(texts) => texts,
            Meaning::New | Meaning::Unknown => Vec::new(),
        };
        let sources: Vec<String> = sources.iter().flat_map(texts).collect();
        for place in places.iter().filter(|_| !sources.is_empty()) {
            for to in &targets {
                let at = |from| At::Over { from, sources: sources.clone(), to: to.clone(), moves };
                match place {
                    Place::Known(from) => found.add(at(from.clone()), manner),
                    Place::New | Place::Unknown
                        if sources.iter().chain([to]).all(|path| is_absolute(path)) =>
                    {
                        found.add(at(Folder::default()), manner);
                    }
                    Place::New => found.add_text(to, places, manner),
                    Place::Unknown => found.add(At::Workspace { from: Folder::default() }, manner),
                }
            }
        }
    }

    fn add(&self, word: &str, places: &[Place], manner: Manner, found: &mut Found) {
        if word.contains("{}") && !matches!(self.feed(), Feed::Nothing) {
            return self.add_feed(places, manner, found);
        }
        found.add_word(word, self.names, places, manner, |found| match self.feed() {
            Feed::Nothing => found.add_from(places, manner.row, |from| At::Workspace { from }),
            Feed::Below(_) | Feed::Unknown => self.add_feed(places, manner, found),
        });
    }

    /// Adds what the command is fed with.
    fn add_feed(&self, places: &[Place], manner: Manner, found: &mut Found) {
        match self.feed() {
            Feed::Nothing => {}
            Feed::Below(paths) => {
                for path in paths {
                    found.add_word(path, self.names, places, manner, |found| {
                        found.add_from(places, manner.row, |from| At::Workspace { from });
                    });
                }
            }
            Feed::Unknown => found.add_from(places, manner.row, |from| At::Workspace { from }),
        }
    }

    /// What `find -exec` or `xargs` hands to the command.
    fn feed(&self) -> Feed<'c> {
        if self.command.role == Role::Inner {
            let mut depth = self.command.depth;
            for after in self.commands.iter().skip(self.at + 1).take(NEARBY) {
                if after.depth < depth {
                    depth = after.depth;
                    if is_finder(after) && after.args().iter().any(|word| runs_each(word)) {
                        return Feed::Below(start_paths(&after.program, after.args()).collect());
                    }
                }
            }
        }
        let feeder = self
            .wrappers()
            .find(|at| matches!(self.commands[*at].program.as_str(), "xargs" | "gxargs" | "parallel"));
        let Some(feeder) = feeder else { return Feed::Nothing };
        let pipe =
            self.commands[..feeder].iter().rev().take(NEARBY).take_while(|each| each.then == Join::Pipe);
        match pipe.into_iter().find(|each| is_finder(each)) {
            Some(finder) => Feed::Below(start_paths(&finder.program, finder.args()).collect()),
            None => Feed::Unknown,
        }
    }

    /// The commands that only start this one, innermost first.
    fn wrappers(&self) -> impl Iterator<Item = usize> {
        let mut inner = self.command;
        let mut open = true;
        let mut steps = 0;
        std::iter::from_fn(move || {
            while open && steps < NEARBY {
                steps += 1;
                let start = inner.group.start;
                let outer = start.checked_sub(1).map(|at| (at, &self.commands[at]));
                if let Some((at, outer)) = outer.filter(|(_, outer)| outer.then == Join::Wraps)
                    && outer.depth + 1 == inner.depth
                {
                    inner = outer;
                    return Some(at);
                }
                // Brackets: whoever stands before them may be in the group around them.
                let around = self.commands[..start].iter().rev().take(NEARBY);
                match around.into_iter().find(|each| each.depth < inner.depth) {
                    Some(each) => inner = each,
                    None => open = false,
                }
            }
            None
        })
    }

    /// Whether a text stands in what the command is told.
    fn says(&self, text: &str) -> bool {
        let start = |said: &'c str| &said.as_bytes()[..said.len().min(SAID_MAX)];
        self.texts().any(|said| memmem::find(start(said), text.as_bytes()).is_some())
    }

    /// All that the command is told: its words, the documents it or its wrappers read, and those that the line wrote before
    /// into a file that it names: `cat > fix.py <<EOF`, `python fix.py`.
    fn texts(&self) -> impl Iterator<Item = &'c str> {
        let own = self.command.args().iter().map(String::as_str);
        let documents = |command: &'c Command| {
            let documents = command.redirections.iter().filter(|each| each.flow == Flow::Document);
            documents.map(|each| each.target.as_str())
        };
        let of_wrappers = self.wrappers().flat_map(move |at| documents(&self.commands[at]));
        let is_named = |file: &str| self.command.args().iter().any(|word| name_of(word) == name_of(file));
        let writes_named = move |before: &&Command| {
            before.redirections.iter().any(|to| to.writes_file() && is_named(&to.target))
        };
        let written = self.commands[..self.at].iter().rev().take(NEARBY).filter(writes_named);
        own.chain(documents(self.command)).chain(of_wrappers).chain(written.flat_map(documents))
    }
}

/// The last part of a path.
fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn is_finder(command: &Command) -> bool {
    matches!(command.program.as_str(), "find" | "gfind" | "fd" | "fdfind")
}
