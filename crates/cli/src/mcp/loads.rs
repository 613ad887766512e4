//! How much is under way in one direction, in bytes: whoever does not read holds up the other side, not our memory.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// All that is under way in one direction.
#[derive(Debug)]
pub(crate) struct Loads {
    /// When so much is under way, nothing more is taken.
    enough: usize,
    weight: Mutex<Weight>,
    lighter: Notify,
    /// Where there is no room for all that has begun to come, one of it goes on.
    pass: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct Weight {
    all: usize,
    /// What is complete, and only waits to be taken.
    whole: usize,
    /// How often there was room again after there was none.
    reliefs: u64,
}

/// Something complete that is under way, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Load {
    bytes: usize,
    all: Arc<Loads>,
}

/// Something that comes piece by piece.
#[derive(Debug)]
pub(crate) struct Growing {
    bytes: usize,
    all: Arc<Loads>,
    pass: Option<OwnedSemaphorePermit>,
}

impl Loads {
    /// What goes to the server.
    pub(crate) fn to_server() -> Arc<Loads> {
        Loads::new(64 << 20)
    }

    /// What comes from the server, up to where the client has it.
    pub(crate) fn from_server() -> Arc<Loads> {
        Loads::new(32 << 20)
    }

    fn new(enough: usize) -> Arc<Loads> {
        Arc::new(Loads {
            enough,
            weight: Mutex::default(),
            lighter: Notify::new(),
            pass: Arc::new(Semaphore::new(1)),
        })
    }

    /// Something complete is under way.
    pub(crate) fn load(self: &Arc<Loads>, bytes: usize) -> Load {
        let mut weight = self.lock();
        weight.all += bytes;
        weight.whole += bytes;
        Load { bytes, all: Arc::clone(self) }
    }

    /// Something begins to come.
    pub(crate) fn growing(self: &Arc<Loads>) -> Growing {
        Growing { bytes: 0, all: Arc::clone(self), pass: None }
    }

    /// Comes back when there is room for more.
    pub(crate) async fn room(&self) {
        loop {
            let lighter = self.lighter.notified();
            if self.lock().all < self.enough {
                return;
            }
            lighter.await;
        }
    }

    /// How often there was room again after there was none.
    pub(crate) fn reliefs(&self) -> u64 {
        self.lock().reliefs
    }

    /// Was there room all the time since there had been so many reliefs?
    pub(crate) fn had_room_since(&self, reliefs: u64) -> bool {
        let weight = self.lock();
        weight.all < self.enough && weight.reliefs == reliefs
    }

    fn lighten(&self, bytes: usize, whole: usize) {
        if bytes == 0 {
            return;
        }
        {
            let mut weight = self.lock();
            let was_full = weight.all >= self.enough;
            weight.all -= bytes;
            weight.whole -= whole;
            weight.reliefs += u64::from(was_full && weight.all < self.enough);
        }
        self.lighter.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, Weight> {
        self.weight.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.all.lighten(self.bytes, self.bytes);
    }
}

impl Growing {
    /// Comes back when the next piece may come. Where there is no room, all that is complete has to be gone first; then one
    /// goes on, however long it becomes.
    pub(crate) async fn room(&mut self) {
        loop {
            let lighter = self.all.lighter.notified();
            let (has_room, waits) = {
                let weight = self.all.lock();
                (weight.all < self.all.enough, weight.whole > 0)
            };
            match (has_room, waits, &self.pass) {
                (true, _, _) => {
                    self.pass = None;
                    return;
                }
                (false, false, Some(_)) => return,
                (false, false, None) => tokio::select! {
                    pass = Arc::clone(&self.all.pass).acquire_owned() => self.pass = pass.ok(),
                    () = lighter => {}
                },
                (false, true, _) => lighter.await,
            }
        }
    }

    /// So much of it is there.
    pub(crate) fn holds(&mut self, bytes: usize) {
        match bytes.checked_sub(self.bytes) {
            Some(more) => self.all.lock().all += more,
            None => self.all.lighten(self.bytes - bytes, 0),
        }
        self.bytes = bytes;
    }

    /// Another one may go on: this one does not, or has come to an end.
    pub(crate) fn give_way(&mut self) {
        self.pass = None;
    }
}

impl Drop for Growing {
    fn drop(&mut self) {
        self.all.lighten(self.bytes, 0);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    async fn may_go_on(growing: &mut Growing) -> bool {
        timeout(Duration::from_millis(20), growing.room()).await.is_ok()
    }

    #[tokio::test]
    async fn what_is_complete_is_taken_before_more_comes() {
        let loads = Loads::new(100);
        let mut growing = loads.growing();
        let (first, second) = (loads.load(60), loads.load(39));
        assert!(may_go_on(&mut growing).await);
        growing.holds(1);
        assert!(!may_go_on(&mut growing).await && !loads.had_room_since(0));
        drop(first);
        assert!(may_go_on(&mut growing).await && !loads.had_room_since(0) && loads.had_room_since(1));
        drop(second);
        growing.holds(0);
        assert_eq!(loads.lock().all, 0);
    }

    #[tokio::test]
    async fn one_that_is_too_large_goes_on_when_nothing_waits() {
        let loads = Loads::new(100);
        let mut growing = loads.growing();
        growing.holds(1000);
        assert!(may_go_on(&mut growing).await);
        let small = loads.load(1);
        assert!(!may_go_on(&mut growing).await);
        drop(small);
        assert!(may_go_on(&mut growing).await);
    }

    #[tokio::test]
    async fn of_several_that_are_too_large_together_one_goes_on_at_a_time() {
        let loads = Loads::new(100);
        let [mut first, mut second, mut third] = [(); 3].map(|()| loads.growing());
        first.holds(50);
        second.holds(60);
        assert!(may_go_on(&mut first).await && !may_go_on(&mut second).await && !may_go_on(&mut third).await);
        // One that does not go on holds up nobody.
        first.give_way();
        assert!(may_go_on(&mut second).await && !may_go_on(&mut first).await);
        drop(second);
        assert!(may_go_on(&mut first).await && may_go_on(&mut third).await);
    }
}
