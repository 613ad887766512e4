//! When and why a snapshot went, for a person who asks for it.

use unstuck_judge::Lang;
use unstuck_store::Removal;
use unstuck_vault::{SnapshotId, VaultError};

use crate::cellar::{self, Cellar};
use crate::exit::CommandError;
use crate::moment;

/// A snapshot that was there once.
#[derive(Debug)]
pub(crate) struct GoneSnapshot {
    id: SnapshotId,
    removal: Removal,
    now: u64,
}

impl GoneSnapshot {
    /// Tells of a snapshot that is asked for and not there when it went, where the timeline still knows.
    pub(crate) fn explain(error: CommandError, cellar: &Cellar) -> CommandError {
        let CommandError::Vault(VaultError::NoSuchSnapshot { id }) = &error else { return error };
        let id = *id;
        let found = cellar.to_read().ok().and_then(|store| store.removal_of(&id.to_string()).ok().flatten());
        match found {
            Some(removal) => {
                let removal = Box::new(GoneSnapshot { id, removal, now: cellar::now() });
                CommandError::SnapshotGone { removal }
            }
            None => error,
        }
    }

    pub(crate) fn in_words(&self, lang: Lang) -> String {
        let GoneSnapshot { id, removal, now } = self;
        let when = moment::ago(removal.at, *now, lang);
        let why = match (&*removal.why, &*removal.over, lang) {
            ("expired", "count", Lang::En) => {
                "there were enough newer ones of the same paths (`vault.per-target`)"
            }
            ("expired", "count", Lang::Zh) => "同一路径已有足够多更新的快照（`vault.per-target`）",
            ("expired", "age", Lang::En) => "it was older than `vault.max-age`",
            ("expired", "age", Lang::Zh) => "它已超过 `vault.max-age`",
            ("expired", "size", Lang::En) => "the snapshots held more than `vault.max-size`",
            ("expired", "size", Lang::Zh) => "快照总量超过了 `vault.max-size`",
            ("drop", _, Lang::En) => "it was dropped",
            ("drop", _, Lang::Zh) => "它已被删除",
            ("purge", _, Lang::En) => "it was purged",
            ("purge", _, Lang::Zh) => "它已被清除",
            (_, _, Lang::En) => "it had expired",
            (_, _, Lang::Zh) => "它已过期",
        };
        let note = match (&*removal.note, lang) {
            ("", _) => String::new(),
            (note, Lang::En) => format!(" ({note})"),
            (note, Lang::Zh) => format!("（{note}）"),
        };
        match lang {
            Lang::En => format!("snapshot {id}{note} was removed {when}: {why}"),
            Lang::Zh => format!("快照 {id}{note} 已移除（{when}）：{why}"),
        }
    }
}
