//! `unstuck log`: the timeline, from any bookmark on, once or for as long as somebody reads.

use std::time::Duration;

use unstuck_judge::Lang;
use unstuck_store::{Bookmark, Channel, FileMark, Store, StoreError, StoredSession, Wanted};

use crate::cellar::Cellar;
use crate::event_line::{self, WireEvent};
use crate::exit::{CommandError, ExitStatus};
use crate::find_session::find_session;
use crate::lines;
use crate::reader::{self, Pause};
use crate::ui::Ui;

/// How many events are shown where nobody says how many.
const LAST: u64 = 50;
/// How often a follower looks for more.
const LOOK: Duration = Duration::from_millis(250);

/// Show what happened, event by event
///
/// Without options the last 50 events; with --json all of them, one object per line. Every event has a number that serves as
/// a bookmark: --since N goes on right after it, without a gap and without showing anything twice.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  unstuck log                                  the last 50 events
  unstuck log --follow                         and everything that happens from now on, until Ctrl-C
  unstuck log --session 3f9c --channel control what needed a person in one session
  unstuck log --since 1200 --json              everything after bookmark 1200, machine-readable")]
pub(crate) struct LogArgs {
    /// Go on showing what happens, until Ctrl-C
    #[arg(long, short)]
    follow: bool,
    /// Only this session: its name, or enough of its beginning
    #[arg(long, value_name = "S")]
    session: Option<String>,
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
    let wanted = Wanted {
        session: args.session.as_deref().map(|name| find_session(&store, name)).transpose()?.map(|it| it.id),
        channel: args.channel.as_deref().and_then(|word| word.parse::<Channel>().ok()),
        from: None,
    };
    let begin = begin(&store, &wanted, args)?;
    let seen = begin.max(store.newest()?);
    let any = show(ui, &store, &wanted, args.json, begin, seen)?;
    if args.follow {
        return follow(ui, cellar, args, Place { mark: store.file_mark(), store, wanted, seen });
    }
    if !args.json {
        ui.remark(&farewell(any, seen, ui.lang()))?;
    }
    Ok(ExitStatus::Success)
}

/// Where a follower stands.
struct Place {
    store: Store,
    /// Which file it reads.
    mark: Option<FileMark>,
    wanted: Wanted,
    seen: Bookmark,
}

/// Shows what happens until nobody reads any more.
fn follow(
    ui: &mut Ui,
    cellar: &Cellar,
    args: &LogArgs,
    mut place: Place,
) -> Result<ExitStatus, CommandError> {
    let session = args.session.as_deref().map(|name| find_session(&place.store, name)).transpose()?;
    loop {
        ui.finish()?;
        if reader::pause(LOOK) == Pause::ReaderGone {
            return Ok(ExitStatus::Success);
        }
        if place.store.file_mark() != place.mark {
            match begun_anew(cellar, session.as_ref(), place.wanted)? {
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
        if newest > place.seen {
            show(ui, &place.store, &place.wanted, args.json, place.seen, newest)?;
            place.seen = newest;
        }
    }
}

/// The beginning of the store that stands where another stood: a damaged one is set aside, and its successor counts from 1.
/// Nothing as long as there is none, or none that knows the session.
fn begun_anew(
    cellar: &Cellar,
    session: Option<&StoredSession>,
    wanted: Wanted,
) -> Result<Option<Place>, CommandError> {
    let store = match cellar.to_read() {
        Ok(store) => store,
        Err(CommandError::Store(StoreError::Missing { .. } | StoreError::Busy { .. })) => return Ok(None),
        Err(error) => return Err(error),
    };
    let session = match session {
        None => None,
        Some(known) => match store.session(&known.name)? {
            Some(session) => Some(session.id),
            None => return Ok(None),
        },
    };
    let wanted = Wanted { session, ..wanted };
    Ok(Some(Place { mark: store.file_mark(), store, wanted, seen: Bookmark(0) }))
}

/// Where to begin: after the bookmark, but not before the last few.
fn begin(store: &Store, wanted: &Wanted, args: &LogArgs) -> Result<Bookmark, CommandError> {
    let since = Bookmark(args.since.unwrap_or(0));
    let last = match (args.last, args.since, args.json) {
        (Some(last), _, _) => Some(last),
        (None, None, false) => Some(LAST),
        (None, Some(_), _) | (None, None, true) => None,
    };
    Ok(match last {
        Some(0) => since.max(store.newest()?),
        Some(last) => since.max(store.before_last(wanted, last)?),
        None => since,
    })
}

/// Shows the events between two places, and tells whether there were any. A line is written whole or not at all.
fn show(
    ui: &mut Ui,
    store: &Store,
    wanted: &Wanted,
    json: bool,
    after: Bookmark,
    up_to: Bookmark,
) -> Result<bool, CommandError> {
    let (mut any, lang) = (false, ui.lang());
    store.events(wanted, after, up_to, |event| {
        any = true;
        match json {
            true => ui.say(&lines::json(&WireEvent::new(&event))),
            false => ui.say(&event_line::of_timeline(&event, lang)),
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
