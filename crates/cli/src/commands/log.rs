//! `unstuck log`: the timeline, from any bookmark on, once or for as long as somebody reads.

use std::time::Duration;

use unstuck_judge::Lang;
use unstuck_store::{Bookmark, Channel, FileMark, Store, StoreError, StoredSession, Wanted};
use unstuck_wire::clean::Cleaner;

use crate::cellar::Cellar;
use crate::event_line::{self, WireEvent};
use crate::exit::{CommandError, ExitStatus};
use crate::find_server::{Heard, heard_of};
use crate::find_session::find_session;
use crate::plain;
use crate::reader::{self, Pause};
use crate::server_line;
use crate::ui::Ui;

/// How many events are shown where nobody says how many.
const LAST: u64 = 50;
/// How many of the past a follower is shown, who came for the present.
const LAST_BEFORE_FOLLOWING: u64 = 10;
/// How often a follower looks for more.
const LOOK: Duration = Duration::from_millis(250);

/// Show what happened, event by event
///
/// Without options the last 50 events; with --json all of them, one object per line; with --follow the last 10 and what comes.
/// Every event has a number that serves as a bookmark: --since N goes on right after it, without a gap and without showing
/// anything twice.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  unstuck log                                  the last 50 events
  unstuck log --follow                         the last 10, and everything that happens from now on, until Ctrl-C
  unstuck log --follow --session 3f9c          one session; if it has not begun yet, from its beginning
  unstuck log --session 3f9c --channel control what needed a person in one session
  unstuck log --server files                   calls of one MCP server, and what happened to the server itself
  unstuck log --since 1200 --json              everything after bookmark 1200, machine-readable")]
pub(crate) struct LogArgs {
    /// Go on showing what happens, until Ctrl-C; a session that has not begun yet is waited for
    #[arg(long, short)]
    follow: bool,
    /// Only this session: its name, or enough of its beginning
    #[arg(long, value_name = "S")]
    session: Option<String>,
    /// Only this MCP server: calls of its tools, its starts and ends, what it wrote to standard error
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    /// Everything after this bookmark (0 = from the beginning)
    #[arg(long, value_name = "BOOKMARK")]
    since: Option<u64>,
    /// Only this channel: progress, monitor (operations) or control (needs a person)
    #[arg(long, value_parser = ["progress", "monitor", "control"])]
    channel: Option<String>,
    /// Not more than the last N events
    #[arg(long, value_name = "N")]
    last: Option<u64>,
    /// One JSON object per line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(ui: &mut Ui, cellar: &Cellar, args: &LogArgs) -> Result<ExitStatus, CommandError> {
    let store = cellar.to_read()?;
    let channel = args.channel.as_deref().and_then(|word| word.parse::<Channel>().ok());
    let whose = whose(ui, cellar, &store, args)?;
    let wanted = Wanted { session: whose.id(), channel, from: None, server: args.server.as_deref() };
    let newest = store.newest()?;
    if let Some(since) = args.since.filter(|since| *since > newest.0) {
        ui.remark(&from_the_future(since, newest, ui.lang()))?;
    }
    if let Whose::Awaited { .. } = &whose {
        // It may have begun since it was looked for, so the first look of the follower is at everything.
        let seen = Bookmark(0);
        return follow(ui, cellar, args, Place { mark: store.file_mark(), store, whose, channel, seen });
    }
    let begin = begin(&store, &wanted, args)?;
    let any = show(ui, &store, &wanted, args, begin, begin.max(newest))?;
    if let (false, false, Some(server)) = (any, args.json, &args.server)
        && let Heard::Never { nearest } = heard_of(&store, server)?
    {
        ui.remark(&unheard_of(server, nearest.as_deref(), ui.lang()))?;
    }
    if args.follow {
        let seen = begin.max(newest);
        return follow(ui, cellar, args, Place { mark: store.file_mark(), store, whose, channel, seen });
    }
    if !args.json {
        ui.remark(&farewell(any, newest, ui.lang()))?;
    }
    Ok(ExitStatus::Success)
}

/// Whose events are shown.
enum Whose {
    Everybodys,
    Of(StoredSession),
    /// Those of a session that has not begun, from a bookmark on.
    Awaited {
        name: String,
        /// Whether it has to be its full name.
        exactly: bool,
        since: Bookmark,
    },
}

impl Whose {
    fn id(&self) -> Option<i64> {
        match self {
            Whose::Everybodys | Whose::Awaited { .. } => None,
            Whose::Of(session) => Some(session.id),
        }
    }
}

/// Whose events are asked for. Only a follower has the time to wait for a session that nobody has heard of.
fn whose(ui: &mut Ui, cellar: &Cellar, store: &Store, args: &LogArgs) -> Result<Whose, CommandError> {
    let Some(name) = args.session.as_deref() else { return Ok(Whose::Everybodys) };
    match find_session(store, &cellar.cleaner(), name) {
        Ok(session) => Ok(Whose::Of(session)),
        Err(CommandError::NoSuchSession { nearest, .. }) if args.follow && !name.is_empty() => {
            ui.remark(&waiting(name, nearest.as_deref(), ui.lang()))?;
            let since = Bookmark(args.since.unwrap_or(0));
            Ok(Whose::Awaited { name: name.to_owned(), exactly: false, since })
        }
        Err(error) => Err(error),
    }
}

/// Where a follower stands.
struct Place {
    store: Store,
    /// Which file it reads.
    mark: Option<FileMark>,
    whose: Whose,
    channel: Option<Channel>,
    seen: Bookmark,
}

impl Place {
    /// Looks whether the session that is waited for has begun, and goes back to where its events are to be shown from.
    /// Tells whether there is anybody to show events of.
    fn has_begun(&mut self, cleaner: &Cleaner, newest: Bookmark) -> Result<bool, CommandError> {
        let Whose::Awaited { name, exactly, since } = &self.whose else { return Ok(true) };
        match find_session(&self.store, cleaner, name) {
            Ok(session) if *exactly && session.name != *name => {
                self.seen = newest;
                Ok(false)
            }
            Ok(session) => {
                self.seen = *since;
                self.whose = Whose::Of(session);
                Ok(true)
            }
            Err(CommandError::NoSuchSession { .. }) => {
                self.seen = newest;
                Ok(false)
            }
            Err(CommandError::Store(StoreError::Busy { .. })) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Shows what happens until nobody reads any more.
fn follow(
    ui: &mut Ui,
    cellar: &Cellar,
    args: &LogArgs,
    mut place: Place,
) -> Result<ExitStatus, CommandError> {
    let cleaner = cellar.cleaner();
    loop {
        ui.finish()?;
        if reader::pause(LOOK) == Pause::ReaderGone {
            return Ok(ExitStatus::Success);
        }
        if place.store.file_mark() != place.mark {
            match begun_anew(cellar, &place)? {
                Some(new) => place = new,
                None => continue,
            }
        }
        let newest = match place.store.newest() {
            Ok(newest) => newest,
            // Whoever holds it lets go of it; a follower has time.
            Err(StoreError::Busy { .. }) => continue,
            Err(error) => return Err(error.into()),
        };
        // A purge can take the newest events away; what comes next has a higher number all the same.
        if newest > place.seen && place.has_begun(&cleaner, newest)? {
            let (session, server) = (place.whose.id(), args.server.as_deref());
            let wanted = Wanted { session, channel: place.channel, from: None, server };
            show(ui, &place.store, &wanted, args, place.seen, newest)?;
            place.seen = newest;
        }
    }
}

/// The beginning of the store that stands where another stood: a damaged one is set aside, and its successor counts from 1.
/// Nothing as long as there is none.
fn begun_anew(cellar: &Cellar, old: &Place) -> Result<Option<Place>, CommandError> {
    let store = match cellar.to_read() {
        Ok(store) => store,
        Err(CommandError::Store(StoreError::Missing { .. } | StoreError::Busy { .. })) => return Ok(None),
        Err(error) => return Err(error),
    };
    let seen = Bookmark(0);
    let whose = match &old.whose {
        Whose::Everybodys => Whose::Everybodys,
        // The new store has other numbers, so whoever was found is looked for again.
        Whose::Of(session) => Whose::Awaited { name: session.name.clone(), exactly: true, since: seen },
        Whose::Awaited { name, exactly, .. } => {
            Whose::Awaited { name: name.clone(), exactly: *exactly, since: seen }
        }
    };
    Ok(Some(Place { mark: store.file_mark(), store, whose, channel: old.channel, seen }))
}

/// Where to begin: after the bookmark, but not before the last few.
fn begin(store: &Store, wanted: &Wanted<'_>, args: &LogArgs) -> Result<Bookmark, CommandError> {
    let since = Bookmark(args.since.unwrap_or(0));
    let last = match (args.last, args.since, args.follow, args.json) {
        (Some(last), _, _, _) => Some(last),
        (None, None, true, _) => Some(LAST_BEFORE_FOLLOWING),
        (None, None, false, false) => Some(LAST),
        (None, Some(_), _, _) | (None, None, false, true) => None,
    };
    Ok(match last {
        Some(0) => since.max(store.newest()?),
        Some(last) => since.max(store.before_last(wanted, last)?),
        None => since,
    })
}

/// Shows the events between two places, and tells whether there were any. An event is written whole or not at all.
fn show(
    ui: &mut Ui,
    store: &Store,
    wanted: &Wanted<'_>,
    args: &LogArgs,
    after: Bookmark,
    up_to: Bookmark,
) -> Result<bool, CommandError> {
    let (mut any, lang) = (false, ui.lang());
    store.events(wanted, after, up_to, |event| {
        any = true;
        match (args.json, &args.server) {
            (true, _) => ui.json(&WireEvent::new(&event)),
            (false, None) => ui.say(&event_line::of_timeline(&event, lang)),
            // Whoever looks at one server wants to read what it said.
            (false, Some(_)) => {
                ui.say(&(event_line::of_timeline(&event, lang) + &server_line::all_it_said(&event)))
            }
        }
    })?;
    Ok(any)
}

fn farewell(any: bool, seen: Bookmark, lang: Lang) -> String {
    let nothing = match (any, lang) {
        (true, _) => "",
        (false, Lang::En) => "no events; ",
        (false, Lang::Zh) => "没有事件；",
    };
    match lang {
        Lang::En => format!("{nothing}resume with --since {}\n", seen.0),
        Lang::Zh => format!("{nothing}用 --since {} 继续\n", seen.0),
    }
}

/// What is told of a bookmark that no event has reached yet.
fn from_the_future(since: u64, newest: Bookmark, lang: Lang) -> String {
    let newest = newest.0;
    match lang {
        Lang::En => format!(
            "--since {since} lies beyond the newest event, {newest}: is the bookmark from another store?\n"
        ),
        Lang::Zh => format!("--since {since} 超出了最新的事件 {newest}：这个书签是否来自另一个存储？\n"),
    }
}

/// What is told of a server that nobody has heard of, in case that it is a slip of the pen.
fn unheard_of(server: &str, nearest: Option<&str>, lang: Lang) -> String {
    let server = plain::short(server, 80);
    let nearest = nearest.map(|nearest| plain::short(nearest, 80));
    match (nearest, lang) {
        (Some(nearest), Lang::En) => {
            format!("no server called {server} was ever heard of; did you mean {nearest}?\n")
        }
        (None, Lang::En) => format!("no server called {server} was ever heard of\n"),
        (Some(nearest), Lang::Zh) => format!("从未见过名为 {server} 的服务器；您指的是 {nearest} 吗？\n"),
        (None, Lang::Zh) => format!("从未见过名为 {server} 的服务器\n"),
    }
}

/// What is told of a session that has not begun, in case that it is a slip of the pen.
fn waiting(name: &str, nearest: Option<&str>, lang: Lang) -> String {
    let name = plain::short(name, 80);
    let nearest = nearest.map(|nearest| plain::short(nearest, 80));
    match (nearest, lang) {
        (Some(nearest), Lang::En) => {
            format!("waiting for a session called {name} to begin; did you mean {nearest}?\n")
        }
        (None, Lang::En) => format!("waiting for a session called {name} to begin\n"),
        (Some(nearest), Lang::Zh) => format!("正在等待会话 {name} 开始；您指的是 {nearest} 吗？\n"),
        (None, Lang::Zh) => format!("正在等待会话 {name} 开始\n"),
    }
}
