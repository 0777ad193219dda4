//! The http crate cuts a fragment off a `:path` before anybody sees it, where HTTP/1 refuses it, and
//! the h2 crate drops the `:scheme` of a head without `:authority`. So the frames are read while they
//! pass by, as far as it takes to know whose `:path` has a fragment and whose `:scheme` is another
//! one than https and http. And the h2 crate waits for the end of a head for as long as that takes.

use std::borrow::Cow;
use std::mem;
use std::net::IpAddr;
use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use rampart_core::platform::keyed_budget::{BudgetShare, KeyedBudget};
use rampart_core::platform::network::network;

use super::header_scan::{HeaderScan, Unreadable};
use crate::server::connection_info::ConnectionInfo;
use crate::server::deadline::Deadline;

/// Length of what a client sends before its first frame (RFC 9113, section 3.4).
const PREFACE_BYTES: usize = 24;
/// Length of the head of a frame (RFC 9113, section 4.1).
const HEAD_BYTES: usize = 9;
/// Length of the priority in a frame of headers.
const PRIORITY_BYTES: usize = 5;
/// Most bytes of a header block, in all its frames. The h2 crate takes less: frames of 16 KiB, and few
/// of them.
const BLOCK_BYTES_MAX: usize = 128 * 1024;
/// Bytes behind one unit of [`HeaderMemory`], and those of each block that need none: a frame. A head
/// that is served takes a frame or two.
const UNIT_BYTES: usize = 16 * 1024;
/// Most units of a listener at once: 16 MiB here, and as much again that the h2 crate holds.
const UNITS_MAX: usize = 1_024;
/// Most of them for one address, in IPv6 a /64 network.
const UNITS_PER_ADDRESS_MAX: usize = UNITS_MAX / 4;
/// The bits of a stream's number; the highest is reserved.
const STREAM_BITS: u32 = 0x7fff_ffff;

/// Types of frames.
const HEADERS: u8 = 0x1;
const PUSH_PROMISE: u8 = 0x5;
const CONTINUATION: u8 = 0x9;
/// Flags of frames.
const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;

/// Memory for header blocks that have not ended, of all connections of a listener: the h2 crate bounds
/// that of each connection alone.
pub(crate) type HeaderMemory = KeyedBudget<IpAddr>;

/// The memory of a listener.
pub(crate) fn header_memory() -> Arc<HeaderMemory> {
    Arc::new(HeaderMemory::new(UNITS_MAX, UNITS_PER_ADDRESS_MAX))
}

/// Reads what a client sends over one connection of HTTP/2, and tells its [`ConnectionInfo`] of the
/// streams that are to be refused, before they can be accepted.
#[derive(Debug)]
pub(crate) struct FrameScan {
    info: Arc<ConnectionInfo>,
    headers: HeaderScan,
    head: [u8; HEAD_BYTES],
    /// Bytes of `head` that are there.
    held: usize,
    /// Bytes that come next and do not matter.
    skips: usize,
    /// Bytes that come next of the payload of a frame of headers, and those that have come of one that
    /// has not come whole.
    left: usize,
    payload: Vec<u8>,
    /// The stream whose header block goes on, and the block up to the frame that ends it.
    open: Option<u32>,
    block: Vec<u8>,
    /// Memory for that block.
    share: Option<BudgetShare<IpAddr>>,
    memory: Arc<HeaderMemory>,
    /// Time for that block, and for each one.
    deadline: Deadline,
    head_max: Duration,
}

impl FrameScan {
    /// Reads for the connection of `info`, whose heads may take `head_max` each, and `memory` together
    /// with those of others.
    pub(crate) fn new(
        info: Arc<ConnectionInfo>,
        head_max: Duration,
        memory: Arc<HeaderMemory>,
    ) -> Self {
        Self {
            info,
            headers: HeaderScan::default(),
            head: [0; HEAD_BYTES],
            held: 0,
            skips: PREFACE_BYTES,
            left: 0,
            payload: Vec::new(),
            open: None,
            block: Vec::new(),
            share: None,
            memory,
            deadline: Deadline::default(),
            head_max,
        }
    }

    /// Has the connection end once a header block takes too long. To be called when nothing has
    /// arrived; wakes the task at that time.
    pub(crate) fn poll_deadline(&mut self, cx: &mut Context<'_>) {
        if self.open.is_some() && self.deadline.poll(cx, self.head_max).is_ready() {
            self.info.end();
        }
    }

    /// Goes on with what has arrived. Where it cannot be read the connection is to end: nearly always
    /// the h2 crate does not read on either.
    pub(crate) fn advance(&mut self, bytes: &[u8]) {
        if self.read(bytes).is_err() {
            self.skips = usize::MAX;
            (self.payload, self.block, self.share) = (Vec::new(), Vec::new(), None);
            self.info.refused_streams.refuse_all();
        }
    }

    fn read(&mut self, mut bytes: &[u8]) -> Result<(), Unreadable> {
        while !bytes.is_empty() {
            bytes = if self.skips > 0 {
                let own = self.skips.min(bytes.len());
                self.skips -= own;
                &bytes[own..]
            } else if self.left > 0 {
                self.read_headers(bytes)?
            } else {
                self.read_head(bytes)?
            };
        }
        Ok(())
    }

    /// Takes of `bytes` what belongs to the head of a frame, and its payload where it is one of
    /// headers; gives the rest.
    fn read_head<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], Unreadable> {
        let (own, rest) = bytes.split_at((HEAD_BYTES - self.held).min(bytes.len()));
        self.head[self.held..self.held + own.len()].copy_from_slice(own);
        self.held += own.len();
        if self.held < HEAD_BYTES {
            return Ok(rest);
        }
        self.held = 0;
        let [high, middle, low, kind, _, stream @ ..] = self.head;
        let length = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        let stream = u32::from_be_bytes(stream) & STREAM_BITS;
        match (kind, self.open) {
            (CONTINUATION, Some(open)) if open == stream => {}
            (HEADERS, None) => self.open = Some(stream),
            // A client promises nothing, and a header block is not interrupted.
            (HEADERS | CONTINUATION | PUSH_PROMISE, _) | (_, Some(_)) => return Err(Unreadable),
            _ => {
                self.skips = length;
                return Ok(rest);
            }
        }
        let bytes = self.block.len() + length;
        if bytes > BLOCK_BYTES_MAX {
            return Err(Unreadable);
        }
        let units = bytes.saturating_sub(UNIT_BYTES).div_ceil(UNIT_BYTES);
        if self.memory.extend(&network(self.info.peer), &mut self.share, units).is_err() {
            self.info.end();
            return Err(Unreadable);
        }
        self.left = length;
        self.read_headers(rest)
    }

    /// Takes of `bytes` what belongs to the payload of a frame of headers, and gives the rest.
    fn read_headers<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], Unreadable> {
        let (own, rest) = bytes.split_at(self.left.min(bytes.len()));
        self.left -= own.len();
        if self.left > 0 {
            self.payload.extend_from_slice(own);
            return Ok(rest);
        }
        let payload = joined(&mut self.payload, own);
        self.end_frame(&payload)?;
        Ok(rest)
    }

    /// Takes the payload of a frame of headers, and judges the header block that it ends.
    fn end_frame(&mut self, payload: &[u8]) -> Result<(), Unreadable> {
        let [_, _, _, kind, flags, ..] = self.head;
        let part = if kind == HEADERS { self.block_part(payload)? } else { payload };
        if flags & END_HEADERS == 0 {
            self.block.extend_from_slice(part);
            return Ok(());
        }
        self.deadline.clear();
        self.share = None;
        let block = joined(&mut self.block, part);
        let is_refused = self.headers.scan(&block)?;
        if let Some(stream) = self.open.take().filter(|_| is_refused) {
            self.info.refused_streams.refuse(stream);
        }
        Ok(())
    }

    /// The part of a header block in the payload of the frame that opens it, without padding and
    /// priority (RFC 9113, section 6.2).
    fn block_part<'a>(&self, mut payload: &'a [u8]) -> Result<&'a [u8], Unreadable> {
        let [_, _, _, _, flags, ..] = self.head;
        let mut padding = 0;
        if flags & PADDED != 0 {
            padding = usize::from(*payload.split_off_first().ok_or(Unreadable)?);
        }
        if flags & PRIORITY != 0 {
            let (priority, rest) =
                payload.split_first_chunk::<PRIORITY_BYTES>().ok_or(Unreadable)?;
            let [other @ .., _weight] = *priority;
            // The h2 crate skips the headers of a stream that depends on itself, so that its table is
            // not the client's any more.
            if self.open == Some(u32::from_be_bytes(other) & STREAM_BITS) {
                return Err(Unreadable);
            }
            payload = rest;
        }
        let end = payload.len().checked_sub(padding).ok_or(Unreadable)?;
        Ok(&payload[..end])
    }
}

/// Takes what was kept, with `next` behind it; copies nothing where nothing was kept.
fn joined<'a>(kept: &mut Vec<u8>, next: &'a [u8]) -> Cow<'a, [u8]> {
    if kept.is_empty() {
        return Cow::Borrowed(next);
    }
    let mut whole = mem::take(kept);
    whole.extend_from_slice(next);
    Cow::Owned(whole)
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(super) use self::tests::coded;
