//! The h2 crate bounds the header block of one connection, to seven frames, but not the sum over all
//! connections. A head that is served takes a frame or two.

use std::net::IpAddr;

use rampart_core::platform::keyed_budget::{BudgetShare, KeyedBudget};
use rampart_core::platform::network::network;

/// Bytes behind one permit, and those of each block that need none: a frame.
const FRAME_BYTES: usize = 16 * 1024;
/// Most permits at once: 16 MiB here, and as much again that the h2 crate holds.
const FRAMES_MAX: usize = 1_024;
/// Most of them for one address, in IPv6 a /64 network.
const FRAMES_PER_ADDRESS_MAX: usize = FRAMES_MAX / 4;

/// Memory for header blocks that have not ended, of all connections of a listener.
#[derive(Debug)]
pub(crate) struct HeaderMemory(KeyedBudget<IpAddr>);

/// Memory that a block takes, given back when it is dropped.
pub(super) type BlockShare = BudgetShare<IpAddr>;

impl Default for HeaderMemory {
    fn default() -> Self {
        Self::new(FRAMES_MAX, FRAMES_PER_ADDRESS_MAX)
    }
}

impl HeaderMemory {
    /// So many frames beyond the first ones of blocks, and so many of one address.
    pub(super) fn new(frames: usize, frames_per_address: usize) -> Self {
        Self(KeyedBudget::new(frames, frames_per_address))
    }

    /// Makes `share` cover a block of `bytes` that `address` sends; `false` when there is no room.
    pub(super) fn cover(
        &self,
        address: IpAddr,
        share: &mut Option<BlockShare>,
        bytes: usize,
    ) -> bool {
        let frames = bytes.saturating_sub(FRAME_BYTES).div_ceil(FRAME_BYTES);
        self.0.extend(&network(address), share, frames).is_ok()
    }
}
