//! One command of a step, and what speaks against telling it.

use super::*;

/// One command of a step, as it is looked at.
pub(super) struct Step<'a> {
    pub(super) command: &'a Command,
    pub(super) program: &'a str,
    /// Without the version behind it: `python3.12` is `python`.
    name: &'a str,
    pub(super) args: &'a [String],
    pub(super) whose: Whose,
    reads_pipe: bool,
    /// Whoever starts it fetches it first.
    is_fetched: bool,
}

impl<'a> Step<'a> {
    pub(super) fn new(command: &'a Command, whose: Whose, before: Option<&Command>) -> Step<'a> {
        let program = command.program.as_str();
        let name = program.trim_end_matches(|sign: char| sign.is_ascii_digit() || sign == '.');
        // Whoever starts another program answers for what it starts, not for the words of that.
        let args = match command.role {
            Role::Wrapper => {
                let last = command.args().iter().position(|word| !word.starts_with('-'));
                &command.args()[..last.map_or(command.args().len(), |at| at + 1)]
            }
            Role::Plain | Role::Inner | Role::Defined => command.args(),
        };
        let reads_pipe = before.is_some_and(|before| before.then == Join::Pipe);
        let is_fetched = before.is_some_and(|before| {
            before.then == Join::Wraps && FETCHING_STARTERS.contains(&before.program.as_str())
        });
        Step { command, program, name, args, whose, reads_pipe, is_fetched }
    }

    /// What speaks against it.
    pub(super) fn caution(&self) -> Option<Caution> {
        let found = [
            (Caution::RunsForeign, self.runs_code_at_hand()),
            (Caution::Unclear, self.reads_pipe && !commands::known(self.command).found),
            (
                Caution::Unclear,
                self.reads_pipe && self.program == "tee" && !self.command.operands().all(is_telling),
            ),
            (Caution::SendsAway, self.sends_away()),
            (Caution::RunsForeign, self.starts_foreign()),
            (Caution::Destroys, self.takes_away()),
            (Caution::SendsAway, self.is(AFAR) || self.is_about_what_is_in_use()),
            // What is fetched is code sooner or later, unless it is only looked at.
            (Caution::RunsForeign, self.is(FETCHERS)),
            (Caution::OddSource, self.takes_from_elsewhere() || self.has_flag_in(LEADING_FLAGS)),
            (Caution::Unclear, !self.program.is_ascii()),
            (Caution::Weakens, self.weakens() || self.writes_where_others_trust()),
        ];
        found.into_iter().find(|(_, holds)| *holds).map(|(caution, _)| caution)
    }

    /// Is it known to do no harm, whatever is thought of its program? Nothing of it may lead elsewhere.
    pub(super) fn is_fine(&self) -> bool {
        let is_near = |word: &String| {
            is_plain(word) && !word.contains("://") && !OPEN_PLACES.iter().any(|place| word.contains(place))
        };
        let is_own = |word: &str| !word.starts_with(['/', '~']) && !word.contains("..");
        let is_known =
            FINE.iter().any(|row| self.is_told(row)) && (self.program != "git" || !self.has_flags());
        let reads_in = matches!(self.program, "source" | ".")
            && self
                .first_operand()
                .is_some_and(|file| SOURCED.iter().any(|end| file.ends_with(end)) && !file.starts_with('/'));
        let may_run = self.program == "chmod"
            && self.first_operand().is_some_and(|mode| matches!(mode, "+x" | "u+x" | "a+x"))
            && self.command.operands().skip(1).all(is_own);
        let is_alone =
            self.command.assignments.is_empty() && !self.reads_pipe && self.command.redirections.is_empty();
        let is_led = self.has_flag_in(LEADING_FLAGS)
            || self.writes_where_others_trust()
            || self.is_about_what_is_in_use();
        is_alone && !is_led && self.args.iter().all(is_near) && (is_known || reads_in || may_run)
    }

    /// Is it a task that a project has a name for, and does the name say nothing of what is risky?
    pub(super) fn is_harmless_task(&self) -> bool {
        let is_file = |word: &String| word.contains('/') && !word.starts_with('@');
        self.is_task() && !self.names_risk() && !self.args.iter().any(is_file)
    }

    fn names_risk(&self) -> bool {
        // A long one may be part of another word (`flywayClean`), and a letter behind a dash is something else.
        let is_risky = |word: &str| {
            let word = word.to_lowercase();
            let is_own = word == "install" && matches!(self.program, "mvn" | "mvnw");
            let is_in = |risky: &str| word == risky || risky.len() >= RISKY_WITHIN && word.contains(risky);
            !is_own && RISKY_TASKS.iter().any(|risky| is_in(risky))
        };
        let is_letter = |word: &&String| word.starts_with('-') && word.len() == 2;
        let words = self.args.iter().filter(|word| !is_letter(word));
        words.flat_map(|word| word.split(|sign: char| !sign.is_alphanumeric())).any(is_risky)
    }

    fn is_task(&self) -> bool {
        TASKS.iter().any(|row| self.is_told(row))
    }

    /// Is it known what may be told of its program, and is this something else?
    pub(super) fn is_beyond_what_is_told(&self) -> bool {
        match ONLY.iter().find(|(program, _)| *program == self.program) {
            Some((_, words)) if self.has_word_of(words, 3) => false,
            Some(_) => self.has_operands() && !self.is_harmless_task() || !self.is_task() && self.has_flags(),
            None => self.is_task() && self.names_risk(),
        }
    }

    fn has_operands(&self) -> bool {
        self.first_operand().is_some()
    }

    /// Does it name what others use?
    fn is_about_what_is_in_use(&self) -> bool {
        let is_named = |word: &str| {
            word.split(|sign: char| !sign.is_alphanumeric())
                .any(|part| IN_USE.contains(&part.to_lowercase().as_str()))
        };
        let is_left_out = |word: &str| self.is(INSTALLERS) && word.starts_with("--");
        let set = self.command.assignments.iter().map(|(_, value)| value.as_str());
        let told = self.args.iter().map(String::as_str).filter(|word| !is_left_out(word));
        set.chain(told).any(is_named)
    }

    /// Does a program of which nothing is known bring something in that has a name? They all do it alike.
    pub(super) fn brings_in_by_name(&self) -> bool {
        let is_name = |word: &String| !word.starts_with('-') && !word.contains(['/', '@', '=', '%', '~']);
        let is_bare = !self.command.words.first().is_some_and(|word| word.contains('/'));
        let is_installer = is_bare && !self.is(INTERPRETERS) && !self.program.contains('.');
        is_installer
            && !self.reads_pipe
            && !self.is_fetched
            && self.has_word_of(BRINGING_IN, 2)
            && self.args.iter().all(is_name)
    }

    fn has_flags(&self) -> bool {
        self.args.iter().any(|word| word.starts_with('-'))
    }

    /// Is it this program with one of these words behind it? A row without words is about all of it.
    fn is_told(&self, (program, words): &(&str, &[&str])) -> bool {
        let is_first = |words: &&str| {
            let mut operands = self.command.operands();
            words.split(' ').all(|word| operands.next() == Some(word))
        };
        (self.program == *program || self.name == *program)
            && (words.is_empty() || words.iter().any(is_first))
    }

    fn is(&self, programs: &[&str]) -> bool {
        programs.contains(&self.program) || programs.contains(&self.name)
    }

    fn has_flag_of(&self, flags: &[&str]) -> bool {
        self.args.iter().any(|word| flags.contains(&word.split('=').next().unwrap_or(word)))
    }

    /// Is one of its flags among those of its program?
    fn has_flag_in(&self, rows: &[(&str, &[&str])]) -> bool {
        let is_among =
            |word: &String, flags: &[&str]| flags.contains(&word.split(['=', ':']).next().unwrap_or(word));
        rows.iter()
            .filter(|(program, _)| *program == self.program || *program == self.name)
            .any(|(_, flags)| self.args.iter().any(|word| is_among(word, flags)))
    }

    /// Is one of these words, or all words of one of them, behind the program?
    fn is_behind(&self, (program, words): &(&str, &[&str])) -> bool {
        let is_met = |row: &&str| match row.contains(' ') {
            true => self.is_told(&(program, &[row])),
            false => self.has_word_of(&[row], 2),
        };
        *program == self.program && words.iter().any(is_met)
    }

    /// Is one of its first operands among these?
    fn has_word_of(&self, words: &[&str], first: usize) -> bool {
        self.command.operands().take(first).any(|word| words.contains(&word))
    }

    fn first_operand(&self) -> Option<&str> {
        self.command.operands().next()
    }

    fn runs_code_at_hand(&self) -> bool {
        let gets_code = || self.reads_pipe || self.command.has_flag(&["-c", "-e", "--eval", "-p", "-r"]);
        // The file is one that the call was about anyway.
        let runs_own = || {
            self.whose == Whose::TheCall
                && !matches!(self.program, "source" | ".")
                && self
                    .args
                    .first()
                    .is_some_and(|file| !file.starts_with(['-', '/', '~']) && !file.contains(".."))
        };
        // Modules and code stand behind the letter itself there.
        let is_glued =
            |word: &String| ["-r", "-e", "-M", "-I", "-m"].iter().any(|flag| word.starts_with(flag));
        let loads = || matches!(self.name, "ruby" | "perl") && self.args.iter().any(is_glued);
        self.is(SHELLS) && !runs_own() || self.is(INTERPRETERS) && gets_code() || loads()
    }

    fn sends_away(&self) -> bool {
        let fetcher_sends =
            || self.has_flag_of(SENDING) || self.args.iter().any(|word| word.starts_with("-d"));
        self.is(SENDERS)
            || self.is(FETCHERS) && fetcher_sends()
            || SENDING_WORDS.iter().any(|row| self.is_behind(row))
    }

    fn starts_foreign(&self) -> bool {
        let starts = |(starter, words): &(&str, &[&str])| {
            *starter == self.program && words.is_empty() || self.is_behind(&(*starter, *words))
        };
        let is_open = |word: &String| OPEN_PLACES.iter().any(|place| word.contains(place));
        let words = || self.args.iter().chain(&self.command.words).chain([&self.command.program]);
        let is_own = self.program == "go"
            && self.first_operand() == Some("install")
            && self
                .command
                .operands()
                .skip(1)
                .all(|word| OWN_MODULES.iter().any(|host| word.starts_with(host)));
        FOREIGN_WORDS.iter().any(starts) && !is_own || words().any(is_open)
    }

    fn takes_away(&self) -> bool {
        let says = |word: &str, signs: &[char]| word.split(signs).any(|part| TAKING_AWAY.contains(&part));
        let is_told = self.command.operands().take(3).any(|word| says(word, &[':']))
            || self.first_operand().is_some_and(|word| says(word, &['-', ':', '.']));
        // What git forgets of others comes back with them.
        let is_flagged = || {
            let is_flag = |word: &&String| word.starts_with('-') && self.program != "git";
            self.args.iter().filter(is_flag).any(|word| says(word, &['-', '=']))
        };
        let is_forced = || self.has_flag_of(OVERRIDING) && !self.installs();
        // An installer takes away what has such a sign behind it, and git moves what has one before it.
        let is_signed = |word: &String| match self.name {
            "apt" | "apt-get" | "aptitude" => !word.starts_with('-') && word.ends_with(['-', '_']),
            "git" => word.starts_with('+'),
            _ => false,
        };
        is_told
            || is_flagged()
            || is_forced()
            || self.has_flag_in(REMOVING_FLAGS)
            || self.args.iter().any(is_signed)
    }

    fn takes_from_elsewhere(&self) -> bool {
        let is_address =
            |word: &String| word.contains("://") || word.starts_with("git@") || word.starts_with("git+");
        let is_usual = |word: &str| match self.program {
            "go" => MODULE_HOSTS.iter().any(|host| word.starts_with(host)),
            _ => word.starts_with(['@', '-']),
        };
        // Packages have an architecture behind a colon there.
        let has_colon =
            |word: &str| word.replace("::", "").contains(':') && !matches!(self.name, "apt" | "apt-get");
        let is_project = |word: &str| word == "." || word == "./" || word.starts_with(".[");
        // A list of packages may lie in a folder of the project.
        let is_list = |word: &str| word.ends_with(".txt") && !word.starts_with(['/', '~', '.']);
        let is_file = |word: &String| {
            word.starts_with(['/', '~', '.']) && !is_project(word)
                || has_colon(word)
                || word.contains('/') && !is_usual(word) && !is_list(word)
                || PACKED.iter().any(|ending| word.ends_with(ending))
        };
        // The project itself is no odd place, and environments are described in files.
        let is_odd_flag = |(at, word): (usize, &String)| {
            let is_own = || self.args.get(at + 1).is_some_and(|next| is_project(next));
            let describes =
                || matches!(self.name, "conda" | "mamba") && matches!(word.as_str(), "-f" | "--file");
            ODD_FLAGS.contains(&word.split('=').next().unwrap_or(word)) && !is_own() && !describes()
        };
        let is_odd = || {
            self.args.iter().enumerate().any(is_odd_flag)
                || self.args.iter().any(is_file)
                || matches!(self.first_operand(), Some("config"))
                || self.is_told(&("npm", &["set"]))
                || self.program == "add-apt-repository"
        };
        let is_pulled = |word: &String| word.starts_with(['/', '~', '.']) || word.contains("::");
        let pulls = || {
            self.program == "git"
                && self.has_word_of(&["clone", "fetch", "pull", "submodule"], 1)
                && self.command.operands().any(|word| is_pulled(&word.to_owned()))
        };
        self.args.iter().any(is_address) || self.installs() && is_odd() || pulls()
    }

    fn installs(&self) -> bool {
        self.is(INSTALLERS) && (self.has_word_of(INSTALLING, 2) || self.is(ONLY_INSTALLING))
    }

    fn weakens(&self) -> bool {
        // A variable that names a file, an address or flags changes what is run, whatever its name is.
        let is_weak = |(name, value): &(String, String)| {
            let is_heap = value.starts_with("--max-old-space-size=") && !value.contains(' ');
            let is_installed =
                HOMES.contains(&name.as_str()) && HOME_PLACES.iter().any(|at| value.starts_with(at));
            // What lies in the project, or runs here, is nobody else's.
            let is_inside = !value.starts_with(['/', '~', '-', '.']) && !value.contains([':', ' ']);
            let is_path = matches!(name.as_str(), "PYTHONPATH" | "NODE_PATH") && is_inside;
            let is_local = name.ends_with("_URL") && LOCAL_ADDRESSES.iter().any(|at| value.starts_with(at));
            let is_switch = value.parse::<u32>().is_ok() || matches!(value.as_str(), "true" | "false");
            let is_meddling =
                || WEAKENING_BEGINNINGS.iter().any(|start| name.starts_with(start)) && !is_switch;
            let is_weakening = WEAKENING_VARIABLES.contains(&name.as_str()) || is_meddling();
            let compiler = value.trim_end_matches(|sign: char| sign.is_ascii_digit() || sign == '-');
            let is_compiler = matches!(name.as_str(), "CC" | "CXX") && COMPILERS.contains(&compiler);
            let is_fine = is_heap || is_installed || is_path || is_local || is_compiler;
            !is_fine && (is_weakening || value.starts_with('-') || value.contains(['/', ':']))
        };
        let sets_weak = |word: &String| {
            let set = word.split_once('=').filter(|(name, _)| !name.starts_with('-'));
            set.is_some_and(|(name, value)| is_weak(&(name.to_owned(), value.to_owned())))
        };
        let sets_up_git = || {
            let is_for_once = |word: &String| word == "-c" || word.starts_with("--config");
            self.first_operand() == Some("config") || self.args.iter().any(is_for_once)
        };
        self.is(WEAKENING_PROGRAMS)
            || self.has_flag_of(WEAKENING_FLAGS)
            || (matches!(self.program, "export" | "env" | "setx") || self.is_task())
                && self.args.iter().any(sets_weak)
            || self.args.iter().any(|word| word.contains("insecure"))
            || self.program == "git" && self.first_operand() == Some("commit") && self.has_flag_of(&["-n"])
            || self.program == "git" && sets_up_git()
            || self.command.assignments.iter().any(is_weak)
    }

    fn writes_where_others_trust(&self) -> bool {
        let is_trusted = |word: &str| TRUSTED_PLACES.iter().any(|place| word.contains(place));
        let into =
            self.command.redirections.iter().filter(|to| to.writes_file()).map(|to| to.target.as_str());
        let named = self.args.iter().map(String::as_str).filter(|_| self.is(WRITERS));
        into.chain(named).any(is_trusted)
    }
}
