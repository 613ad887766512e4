//! Calls of an agent that change files, with what was saved before them: the safe is asked as the hook asks it.

use std::time::SystemTime;

use unstuck_vault::{Origin, Rebuildable, Reserve, SnapshotId, Unwatched, Vault, Wish};

use crate::world::World;

const RESERVE: Reserve = Reserve { max_size: 1 << 30, min_free: 0 };

impl World {
    /// The safe of this machine.
    pub(crate) fn vault(&self) -> Vault {
        std::fs::create_dir_all(self.path(".local/state/unstuck")).unwrap();
        Vault::open(&self.path(".local/state/unstuck/vault")).unwrap()
    }

    /// A call that begins: what lies at `scope` is saved.
    pub(crate) fn before_call(&self, key: &str, call: Option<i64>, scope: &str) -> SnapshotId {
        let scopes = vec![self.path(scope).canonicalize().unwrap_or_else(|_| self.path(scope))];
        let origin = Origin::Call {
            call,
            key: key.to_owned(),
            session: "sitting".to_owned(),
            row: "rm".to_owned(),
            label: format!("rm -r {scope}"),
        };
        let wish = Wish {
            scopes,
            rebuildable: Rebuildable::LeftOut,
            never: Vec::new(),
            origin,
            note: String::new(),
            reserve: RESERVE,
            now: SystemTime::now(),
        };
        self.vault().take(&wish, &Unwatched).unwrap().id
    }

    /// It ends: how it left things is recorded.
    pub(crate) fn after_call(&self, id: SnapshotId) {
        self.vault().conclude(id, SystemTime::now(), RESERVE, &Unwatched).unwrap();
    }

    /// A whole call, which does something in between.
    pub(crate) fn protected(&self, key: &str, scope: &str, deed: impl FnOnce(&World)) -> String {
        let id = self.before_call(key, None, scope);
        deed(self);
        self.after_call(id);
        id.to_string()
    }
}
