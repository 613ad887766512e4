//! An open database, for those who look things up and for those who tidy.

use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};

use crate::database::{self, Access, Durability};
use crate::error::StoreError;
use crate::root::Root;
use crate::timeline::FileMark;

/// The database of one folder, open.
#[derive(Debug)]
pub struct Store {
    root: Root,
    pub(crate) patience: Duration,
    /// Which file it was when it was opened.
    mark: Option<FileMark>,
    pub(crate) connection: Connection,
}

impl Store {
    /// Opens it to look things up. What a newer version wrote can be read.
    pub fn to_read(root: &Root, patience: Duration, now: u64) -> Result<Store, StoreError> {
        let connection = database::open(root, Access::Read, patience, now)?;
        Ok(Store { root: root.clone(), patience, mark: FileMark::at(&root.timeline()), connection })
    }

    /// Opens it to write; it is made if it is not there.
    pub fn to_write(root: &Root, patience: Duration, now: u64) -> Result<Store, StoreError> {
        let connection = database::open(root, Access::Write, patience, now)?;
        Ok(Store { root: root.clone(), patience, mark: FileMark::at(&root.timeline()), connection })
    }

    /// A store that lies nowhere and is gone when it is dropped.
    pub(crate) fn in_memory(root: &Root) -> Result<Store, StoreError> {
        let connection = database::in_memory().map_err(StoreError::sql(&root.timeline()))?;
        Ok(Store { root: root.clone(), patience: Duration::ZERO, mark: None, connection })
    }

    /// Writes something and removes it again, to prove that this can be done.
    pub fn probe(&mut self) -> Result<(), StoreError> {
        self.write(|connection| {
            connection.execute("INSERT OR REPLACE INTO taken (id, at) VALUES ('probe', 0)", [])?;
            connection.execute("DELETE FROM taken WHERE id = 'probe'", []).map(|_| ())
        })
    }

    /// Is it still the one that stands in its place?
    pub(crate) fn is_in_place(&self) -> bool {
        self.mark == FileMark::at(&self.root.timeline())
    }

    /// Changes how long other processes are waited for.
    pub(crate) fn wait_at_most(&mut self, patience: Duration) -> Result<(), StoreError> {
        self.patience = patience;
        self.connection.busy_timeout(patience).map_err(self.wrong())
    }

    /// The folder it lies in.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// What an error of SQLite means for this database.
    pub(crate) fn wrong(&self) -> impl Fn(rusqlite::Error) -> StoreError + use<> {
        StoreError::sql(&self.root.timeline())
    }

    /// Does some work under the write lock: all of it, or none.
    pub(crate) fn write<T>(
        &mut self,
        work: impl FnOnce(&Connection) -> Result<T, rusqlite::Error>,
    ) -> Result<T, StoreError> {
        self.write_with(database::LONGEST_LOG, Durability::Process, work)
    }

    /// The same for what a person decided: it survives a power cut.
    pub(crate) fn write_durably<T>(
        &mut self,
        work: impl FnOnce(&Connection) -> Result<T, rusqlite::Error>,
    ) -> Result<T, StoreError> {
        self.write_with(database::LONGEST_LOG, Durability::Power, work)
    }

    /// The same with a log that may become as long as this.
    pub(crate) fn write_with<T>(
        &mut self,
        longest_log: u64,
        durability: Durability,
        work: impl FnOnce(&Connection) -> Result<T, rusqlite::Error>,
    ) -> Result<T, StoreError> {
        let done = match durability {
            Durability::Process => self.commit(work)?,
            Durability::Power => {
                database::flush_commits(&self.connection, true).map_err(self.wrong())?;
                let done = self.commit(work);
                // Where this fails, later commits are merely slower.
                database::flush_commits(&self.connection, false).ok();
                // The log's name in its folder is as new as the log.
                self.root.flush();
                done?
            }
        };
        database::fold_if_long(&self.connection, &self.root.timeline(), self.patience, longest_log);
        Ok(done)
    }

    fn commit<T>(
        &mut self,
        work: impl FnOnce(&Connection) -> Result<T, rusqlite::Error>,
    ) -> Result<T, StoreError> {
        let wrong = self.wrong();
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&wrong)?;
        let done = work(&transaction).map_err(&wrong)?;
        transaction.commit().map_err(&wrong)?;
        Ok(done)
    }
}
