//! Writes down what happens to a server, beside the calls of its tools.

use std::collections::BTreeMap;
use std::env;

use unstuck_exec::alive;
use unstuck_judge::Lang;
use unstuck_judge::ladder::Round;
use unstuck_store::{Entry, Hears, NAME_MAX, OfferedTool, ServerNote, ServerWhat, ToolChanges, Who};
use unstuck_wire::clean::{Clean, Cleaner};
use unstuck_wire::time;

use super::notes::Happened;
use super::proxy::Terms;
use crate::cellar::{self, Cellar};
use crate::exit::CommandError;
use crate::{provenance, whereabouts};

/// The longest folder name that is kept.
const FOLDER_MAX: usize = 1024;

/// The record of one server.
pub(crate) struct Chronicle<'a> {
    cellar: &'a Cellar,
    cleaner: &'a Cleaner,
    /// Whose server it is, but for the time.
    who: Who,
    server: String,
    /// The command, or the address.
    shown: String,
    /// A list of tools that could not be compared with the one before, because somebody held the store.
    uncompared: Option<BTreeMap<String, String>>,
    /// Somebody was told that nothing can be written down.
    has_warned: bool,
}

impl<'a> Chronicle<'a> {
    pub(crate) fn new(
        cellar: &'a Cellar,
        cleaner: &'a Cleaner,
        terms: &Terms,
        shown: String,
    ) -> Chronicle<'a> {
        let folder =
            env::current_dir().map(|folder| folder.to_string_lossy().into_owned()).unwrap_or_default();
        let who = Who {
            host: Clean::from("mcp"),
            hook: Clean::default(),
            session: cleaner.name(&terms.session, NAME_MAX),
            agent: Clean::from("main"),
            cwd: cleaner.line(&folder, FOLDER_MAX),
            place: whereabouts::place(&folder, cellar.home(), cleaner),
            owner: cleaner.line(&alive::owner(std::process::id()), 64),
            source: provenance::of_proxy(),
            hears: Hears::Memory,
            round: Round::Unsaid,
            at: 0,
        };
        Chronicle {
            cellar,
            cleaner,
            who,
            server: terms.name.clone(),
            shown,
            uncompared: None,
            has_warned: false,
        }
    }

    /// Writes it down. Tells what a person should see at once.
    pub(crate) fn write(&mut self, happened: Happened, lang: Lang) -> Option<String> {
        if matches!(happened, Happened::Started { .. }) {
            // Of calls whose proxy was killed nobody else tells what became of them.
            let _done_by_the_next_one = self.cellar.tend_soon(self.cleaner);
        }
        let lost = self.what(happened).and_then(|what| self.put(what));
        let warning = self.compare(lang);
        let lost = lost.filter(|_| !std::mem::replace(&mut self.has_warned, true));
        warning.or_else(|| lost.map(|why| unwritten(&why, lang)))
    }

    /// What is written down of it; nothing where that has to be compared first.
    fn what(&mut self, happened: Happened) -> Option<ServerWhat> {
        let cleaner = self.cleaner;
        let lines = |lines: &[String]| lines.join("\n").into_bytes();
        Some(match happened {
            Happened::Started { pid } => ServerWhat::started(cleaner, pid, &self.shown),
            Happened::Exited { words, code, remarks } => {
                ServerWhat::exited(cleaner, &words, code, &lines(&remarks))
            }
            Happened::Restarted { attempt, waited } => {
                ServerWhat::Restarted { attempt, waited_ms: time::span_ms(waited) }
            }
            Happened::Shut { why, lasts } => ServerWhat::gave_up(cleaner, &why, Some(time::span_ms(lasts))),
            Happened::Recovered => ServerWhat::Recovered,
            Happened::Unresponsive { silent_for } => {
                ServerWhat::unresponsive(cleaner, "a sign of life", time::span_ms(silent_for))
            }
            Happened::Noise { begins, why, more: 0 } => ServerWhat::noise(cleaner, begins.as_bytes(), &why),
            Happened::Noise { begins, why, more } => {
                ServerWhat::noise(cleaner, begins.as_bytes(), &format!("{why}, and {more} more like it"))
            }
            Happened::Remarks(remarks) => ServerWhat::remark(cleaner, &lines(&remarks)),
            Happened::Listed(digests) => {
                self.uncompared = Some(digests);
                return None;
            }
        })
    }

    /// Writes it down. Tells why it is lost, where it is.
    fn put(&self, what: ServerWhat) -> Option<String> {
        let who = Who { at: cellar::now(), ..self.who.clone() };
        let note = ServerNote::new(self.cleaner, who, &self.server, what);
        self.cellar.note(self.cleaner, &[Entry::Server(note)])
    }

    /// Compares the last list of tools with the one before, as soon as that can be done. Tells how they differ.
    fn compare(&mut self, lang: Lang) -> Option<String> {
        let digests = self.uncompared.take()?;
        match self.changes(&digests) {
            Ok(changes) if changes.is_empty() => None,
            Ok(changes) => {
                let warning = self.warning(&changes, lang);
                let _whoever_reads_this_knows_of_it = self.put(ServerWhat::ToolsChanged(changes));
                Some(warning)
            }
            Err(_) => {
                self.uncompared = Some(digests);
                None
            }
        }
    }

    /// How the tools differ from those that were seen last.
    fn changes(&self, digests: &BTreeMap<String, String>) -> Result<ToolChanges, CommandError> {
        let offered = digests.iter().map(|(name, digest)| OfferedTool {
            name: self.cleaner.name(name, NAME_MAX),
            digest: digest.clone(),
        });
        let offered: Vec<OfferedTool> = offered.collect();
        let server = self.cleaner.name(&self.server, NAME_MAX);
        let mut store = self.cellar.to_write_soon()?;
        Ok(store.tools_seen(&server, &offered, cellar::now())?)
    }

    fn warning(&self, changes: &ToolChanges, lang: Lang) -> String {
        let named =
            |names: &[Clean]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>().join(", ");
        let parts = [
            (&changes.changed, "changed", "改变"),
            (&changes.added, "new", "新增"),
            (&changes.removed, "gone", "消失"),
        ];
        let parts =
            parts.iter().filter(|(names, _, _)| !names.is_empty()).map(|(names, en, zh)| match lang {
                Lang::En => format!("{en}: {}", named(names)),
                Lang::Zh => format!("{zh}：{}", named(names)),
            });
        let parts = parts.collect::<Vec<_>>().join("; ");
        match lang {
            Lang::En => format!("the tools of {} are not those that were seen last ({parts})", self.server),
            Lang::Zh => format!("{} 的工具与上次所见不同（{parts}）", self.server),
        }
    }
}

/// What happens cannot be written down.
fn unwritten(why: &str, lang: Lang) -> String {
    match lang {
        Lang::En => format!("calls go on, but what happens cannot be written down: {why}"),
        Lang::Zh => format!("调用照常进行，但无法记录所发生的事：{why}"),
    }
}
