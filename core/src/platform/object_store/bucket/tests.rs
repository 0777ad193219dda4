use futures::FutureExt as _;

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
const _: () = assert!(SEALED_BYTES_MAX.div_ceil(MIB) <= PUTS_PER_PARTNER_MIB as usize);

#[tokio::test(start_paused = true)]
async fn the_uploads_of_one_partner_leave_room_for_those_of_others() {
    let puts = PutPermits::new();
    let [busy, other] = [1, 2].map(|number| ClientId::from(Uuid::from_u128(number)));
    let mut held = Vec::new();
    while let Some(permit) = puts.acquire(busy, PUT_MIB_MIN).now_or_never() {
        held.push(permit.unwrap());
    }
    assert_eq!(held.len(), (PUTS_PER_PARTNER_MIB / PUT_MIB_MIN) as usize);
    let refused = puts.acquire(busy, PUT_MIB_MIN).await.err().unwrap();
    assert!(refused.is_unavailable());
    let of_other = puts.acquire(other, PUTS_MIB - PUTS_PER_PARTNER_MIB).now_or_never();
    let _of_other = of_other.unwrap().unwrap();
    held.pop();
    let all = puts.acquire(busy, PUT_MIB_MIN).now_or_never();
    assert!(all.unwrap().is_ok(), "what was given back is the partner's again");
}
