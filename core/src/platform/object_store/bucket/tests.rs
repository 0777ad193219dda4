use super::super::format::OBJECT_BYTES_MAX;
use super::client::CALL_TIMEOUT;
use super::*;

#[test]
fn a_call_ends_before_postgres_ends_the_transaction_that_waits() {
    // Ten seconds, of which a place among the calls may take one.
    assert!(time_for(SEALED_BYTES_MAX) + PERMIT_TIMEOUT <= Duration::from_secs(10));
    assert!(time_for(0) == CALL_TIMEOUT && time_for(1) > CALL_TIMEOUT);
}

// The largest object has a place.
const _: () = assert!(SEALED_BYTES_MAX > OBJECT_BYTES_MAX);
const _: () = assert!(SEALED_BYTES_MAX.div_ceil(MIB) <= PUTS_MIB);
