//! What the server asks the client. A server that was started again knows nothing of what the one before asked, and may give the
//! same names anew: the client must not answer the one when it was asked by the other.

use std::collections::{HashMap, HashSet};

use unstuck_wire::mcp::Id;

/// So many questions that nobody waits for are remembered. Of very many all are forgotten.
const STALE: usize = 10_000;

/// The requests of the server that the client has not answered.
#[derive(Debug, Default)]
pub(super) struct Questions {
    /// Under the name by which the client knows it, what the server calls it.
    open: HashMap<Id, Id>,
    /// Nobody waits for these any more, but the client may still answer.
    stale: HashSet<Id>,
}

impl Questions {
    /// Can the client be asked something under this name, and nobody takes it for something else?
    pub(super) fn is_free(&self, name: &Id) -> bool {
        !self.open.contains_key(name) && !self.stale.contains(name)
    }

    /// The client is asked, under this name, what the server calls so.
    pub(super) fn ask(&mut self, name: Id, servers: Id) {
        self.open.insert(name, servers);
    }

    /// The client has answered. Tells what the server calls it, where the server waits for it.
    pub(super) fn answer(&mut self, name: &Id) -> Option<Id> {
        self.stale.remove(name);
        self.open.remove(name)
    }

    /// The server takes back what it asked. Tells by which name the client knows it.
    pub(super) fn withdraw(&mut self, servers: &Id) -> Option<Id> {
        let name = match self.open.get(servers) == Some(servers) {
            true => servers.clone(),
            false => self.open.iter().find(|(_, asked)| *asked == servers)?.0.clone(),
        };
        self.open.remove(&name);
        self.outdate(name.clone());
        Some(name)
    }

    /// The server is gone. Tells what the client need not answer any more.
    pub(super) fn abandon(&mut self) -> Vec<Id> {
        let names: Vec<Id> = self.open.drain().map(|(name, _)| name).collect();
        names.iter().cloned().for_each(|name| self.outdate(name));
        names
    }

    fn outdate(&mut self, name: Id) {
        if self.stale.len() >= STALE {
            self.stale.clear();
        }
        self.stale.insert(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u32) -> Id {
        Id::of(&number.to_string()).expect("a number is a name")
    }

    #[test]
    fn an_answer_goes_back_under_the_name_that_the_server_gave() {
        let mut questions = Questions::default();
        questions.ask(id(1), id(1));
        questions.ask(Id::text("other"), id(1));
        assert_eq!(questions.answer(&Id::text("other")), Some(id(1)));
        assert_eq!(questions.answer(&id(1)), Some(id(1)));
        assert_eq!(questions.answer(&id(1)), None, "it is answered");
    }

    #[test]
    fn what_a_dead_server_asked_is_answered_to_nobody() {
        let mut questions = Questions::default();
        questions.ask(id(1), id(1));
        assert_eq!(questions.abandon(), [id(1)]);
        assert!(!questions.is_free(&id(1)), "the client may still answer it");
        assert_eq!(questions.answer(&id(1)), None);
        assert!(questions.is_free(&id(1)), "it has answered");
    }

    #[test]
    fn what_the_server_takes_back_is_known_by_the_clients_name() {
        let mut questions = Questions::default();
        questions.ask(Id::text("other"), id(1));
        assert_eq!(questions.withdraw(&id(1)), Some(Id::text("other")));
        assert_eq!(questions.withdraw(&id(1)), None);
        assert_eq!(questions.answer(&Id::text("other")), None);
    }

    #[test]
    fn of_very_many_stale_questions_few_are_remembered() {
        let mut questions = Questions::default();
        for number in 0..25_000 {
            questions.ask(id(number), id(number));
            questions.withdraw(&id(number));
        }
        assert!(questions.stale.len() <= STALE && questions.open.is_empty());
    }
}
