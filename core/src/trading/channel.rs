//! The channel of a request: the kind of program that the user holds, as its partner states it.

/// The channels of the policy contract.
pub(crate) const CHANNELS: [&str; 3] = ["android", "ios", "web"];

/// The channel of this name.
pub(crate) fn channel(name: &str) -> Option<&'static str> {
    CHANNELS.into_iter().find(|channel| *channel == name)
}
