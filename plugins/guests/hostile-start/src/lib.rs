//! A fee policy that never finishes starting, for the tests of the host.

use rampart_guest::fee::*;

struct NeverStarts;

rampart_guest::fee_policy!(NeverStarts);

/// Runs when the component is instantiated.
#[unsafe(no_mangle)]
pub extern "C" fn _initialize() {
    loop {
        std::hint::black_box(());
    }
}

impl FeePolicy for NeverStarts {
    const ABOUT: About = About {
        name: "rampart/hostile-start",
        version: "1.0.0",
        summary: "Never starts.",
        settings: &[],
        keys: &[],
    };

    fn price(_: CallContext, _: Config, _: FeeRequest) -> Result<FeeSchedule, PolicyError> {
        Err(PolicyError::Internal("never reached".into()))
    }
}
