//! The answer that is owed to the client for a call. It is given also where we ourselves fail in the middle.

use std::sync::Arc;

use unstuck_wire::mcp::{self, ErrorCode, Id};

use super::switchboard::{Switchboard, Withdrawal};

/// An answer that is owed.
pub(super) struct Owed {
    board: Arc<Switchboard>,
    id: Id,
    call: Arc<Withdrawal>,
}

impl Owed {
    pub(super) fn new(board: &Arc<Switchboard>, id: &Id, call: &Arc<Withdrawal>) -> Owed {
        Owed { board: Arc::clone(board), id: id.clone(), call: Arc::clone(call) }
    }
}

impl Drop for Owed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let words =
                "unstuck failed while it looked after this call; whether the server has done it nobody knows";
            self.board.end_call(&self.id, None, &self.call);
            self.board.say(mcp::failed(Some(&self.id), ErrorCode::ServerGone, words, None));
        }
        self.board.leave_call();
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{BufRead, BufReader};

    use super::*;
    use crate::mcp::notes::Notes;
    use crate::mcp::outlet::Outlet;

    #[tokio::test]
    async fn a_call_in_which_we_fail_is_answered_all_the_same() {
        let (from, to) = std::io::pipe().unwrap();
        let outlet = Outlet::new(File::from(std::os::fd::OwnedFd::from(to))).unwrap();
        let board = Switchboard::new(outlet, Notes::new().0, "mark".to_owned());
        let id = Id::of("7").unwrap();
        let begun = board.begin_call(&id, None);
        let owed = Owed::new(&board, &id, &begun.withdrawal);
        let carried = tokio::spawn(async move {
            let _owed = owed;
            tokio::task::yield_now().await;
            panic!("a defect of ours");
        });
        assert!(carried.await.is_err());
        board.settled().await;
        let mut line = String::new();
        BufReader::new(from).read_line(&mut line).unwrap();
        assert!(line.contains(r#""id":7"#) && line.contains("unstuck failed"), "{line}");
    }
}
