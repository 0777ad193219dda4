//! Commits in Postgres's protocol: which exchange of a connection writes bought orders for good.
//!
//! An exchange ends with a `Sync` or is a simple query; Postgres ends its answer with a
//! `ReadyForQuery`. The exchanges of a connection are numbered, and answers come in their order.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The statement whose commits are looked for.
const STATEMENT: &str = "insert into buy_order";
/// Bytes of a message's type and length.
const HEAD: usize = 5;
/// Status of a `ReadyForQuery` outside a transaction.
const IDLE: u8 = b'I';
/// Stands for no exchange.
const NONE: u64 = u64::MAX;

/// The part of a connection that both directions know.
pub(super) struct Lane {
    /// Number of the exchange whose answer is to be lost.
    lost: AtomicU64,
    /// The last answer left no transaction open.
    idle: AtomicBool,
}

impl Default for Lane {
    fn default() -> Self {
        Self { lost: AtomicU64::new(NONE), idle: AtomicBool::new(true) }
    }
}

/// A stream of messages, put together from pieces.
#[derive(Default)]
struct Messages {
    held: Vec<u8>,
}

impl Messages {
    /// Every message that is whole with these bytes: type and body.
    fn whole(&mut self, bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
        self.held.extend_from_slice(bytes);
        let mut messages = Vec::new();
        while let Some(length) = self.held.get(1..HEAD) {
            let length = u32::from_be_bytes(length.try_into().unwrap()) as usize;
            if self.held.len() <= length {
                break;
            }
            let message: Vec<u8> = self.held.drain(..=length).collect();
            messages.push((message[0], message[HEAD..].to_vec()));
        }
        messages
    }
}

/// The direction from the edge.
pub(super) struct Frontend {
    lane: Arc<Lane>,
    /// The first message has no type.
    started: bool,
    messages: Messages,
    /// Prepared statements by name: `true` for the one that is looked for.
    statements: HashMap<Vec<u8>, bool>,
    /// Exchanges so far.
    exchanges: u64,
    /// The transaction that is open has written orders.
    wrote: bool,
    /// The exchange that is being sent writes orders for good.
    commits: bool,
}

impl Frontend {
    pub(super) fn new(lane: Arc<Lane>) -> Self {
        Self {
            lane,
            started: false,
            messages: Messages::default(),
            statements: HashMap::new(),
            exchanges: 0,
            wrote: false,
            commits: false,
        }
    }

    /// Reads what the edge sent. `take` is asked at each commit whether to lose its answer.
    pub(super) fn read(&mut self, bytes: &[u8], take: impl Fn() -> bool) {
        let mut bytes = bytes.to_vec();
        if !self.started {
            // The message of a start has a length and no type: it is given one.
            bytes.insert(0, 0);
            self.started = true;
        }
        for (kind, body) in self.messages.whole(&bytes) {
            let ends = match kind {
                b'P' => {
                    let mut texts = body.split(|byte| *byte == 0);
                    let name = texts.next().unwrap_or_default().to_vec();
                    let text = String::from_utf8_lossy(texts.next().unwrap_or_default());
                    self.statements.insert(name, text.contains(STATEMENT));
                    false
                }
                b'B' => {
                    let name = body.split(|byte| *byte == 0).nth(1).unwrap_or_default();
                    let writes = self.statements.get(name).is_some_and(|writes| *writes);
                    self.wrote |= writes;
                    self.commits |= writes && self.lane.idle.load(Ordering::Acquire);
                    false
                }
                b'Q' => {
                    self.commits = self.wrote && body.to_ascii_lowercase().starts_with(b"commit");
                    true
                }
                b'S' => true,
                _ => false,
            };
            if ends {
                self.end_exchange(&take);
            }
        }
    }

    fn end_exchange(&mut self, take: impl Fn() -> bool) {
        if std::mem::take(&mut self.commits) {
            self.wrote = false;
            if take() {
                self.lane.lost.store(self.exchanges, Ordering::Release);
            }
        }
        self.exchanges += 1;
    }
}

/// The fate of bytes from Postgres.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reached {
    /// They go to the edge.
    Forward,
    /// They are part of the answer that is lost.
    Withhold,
    /// The whole answer was withheld: Postgres has committed.
    Committed,
}

/// The direction from Postgres.
pub(super) struct Backend {
    lane: Arc<Lane>,
    messages: Messages,
    /// Answers so far; the one at the start is no exchange's.
    answers: Option<u64>,
}

impl Backend {
    pub(super) fn new(lane: Arc<Lane>) -> Self {
        Self { lane, messages: Messages::default(), answers: None }
    }

    /// Reads what Postgres sent.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Reached {
        let lost = self.lane.lost.load(Ordering::Acquire);
        for (kind, body) in self.messages.whole(bytes) {
            if kind == b'Z' {
                if self.answers == Some(lost) {
                    return Reached::Committed;
                }
                self.lane.idle.store(body == [IDLE], Ordering::Release);
                self.answers = Some(self.answers.map_or(0, |answers| answers + 1));
            }
        }
        if self.answers == Some(lost) { Reached::Withhold } else { Reached::Forward }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap();
        [&[kind][..], &length.to_be_bytes(), body].concat()
    }

    /// Both directions of a connection that has started.
    fn started() -> (Frontend, Backend) {
        let lane = Arc::new(Lane::default());
        let (mut frontend, mut backend) = (Frontend::new(Arc::clone(&lane)), Backend::new(lane));
        frontend.read(&message(0, b"start")[1..], || false);
        let greeting = [message(b'R', b"ok"), message(b'Z', b"I")].concat();
        assert_eq!(backend.read(&greeting), Reached::Forward);
        (frontend, backend)
    }

    fn prepare(frontend: &mut Frontend, backend: &mut Backend) {
        let text = format!("s1\0with x as ({STATEMENT} default values) select 1\0\0\0");
        let sent = [message(b'P', text.as_bytes()), message(b'S', b"")].concat();
        // In two pieces, as it may come.
        frontend.read(&sent[..7], || true);
        frontend.read(&sent[7..], || true);
        assert_eq!(backend.read(&message(b'Z', b"I")), Reached::Forward);
    }

    fn run() -> Vec<u8> {
        [message(b'B', b"\0s1\0"), message(b'E', b"\0"), message(b'S', b"")].concat()
    }

    #[test]
    fn the_answer_of_a_statement_that_commits_by_itself_is_lost() {
        let (mut frontend, mut backend) = started();
        prepare(&mut frontend, &mut backend);
        frontend.read(&run(), || true);
        assert_eq!(backend.read(&message(b'C', b"INSERT 0 1\0")), Reached::Withhold);
        assert_eq!(backend.read(&message(b'Z', b"I")), Reached::Committed);
    }

    #[test]
    fn within_a_transaction_it_is_the_answer_of_its_commit() {
        let (mut frontend, mut backend) = started();
        prepare(&mut frontend, &mut backend);
        frontend.read(&message(b'Q', b"BEGIN\0"), || true);
        assert_eq!(backend.read(&message(b'Z', b"T")), Reached::Forward);
        frontend.read(&run(), || true);
        assert_eq!(backend.read(&message(b'Z', b"T")), Reached::Forward);
        frontend.read(&message(b'Q', b"COMMIT\0"), || true);
        assert_eq!(backend.read(&message(b'Z', b"I")), Reached::Committed);
    }

    #[test]
    fn other_commits_and_those_that_are_not_to_be_lost_get_through() {
        let (mut frontend, mut backend) = started();
        prepare(&mut frontend, &mut backend);
        frontend.read(&message(b'Q', b"COMMIT\0"), || true);
        assert_eq!(backend.read(&message(b'Z', b"I")), Reached::Forward);
        frontend.read(&run(), || false);
        assert_eq!(backend.read(&message(b'Z', b"I")), Reached::Forward);
    }
}
