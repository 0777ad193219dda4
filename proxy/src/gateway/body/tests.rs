use super::*;

const UNIT: usize = BUDGET_UNIT;

fn address(last: u8) -> Sender {
    Sender::of([192, 0, 2, last].into(), &Arc::default())
}

#[test]
fn a_sender_leaves_memory_to_the_others() {
    let memory = BodyMemory::new(4 * UNIT, 2 * UNIT);
    let (one, other) = (address(1), address(2));
    let partner = Sender::of([192, 0, 2, 1].into(), &"acme".into());
    let (mut of_one, mut of_other, mut of_partner) = (None, None, None);
    assert_eq!(memory.of(&one).cover(&mut of_one, 2 * UNIT), Ok(()));
    let mut more = None;
    assert_eq!(memory.of(&one).cover(&mut more, 1), Err(BodyError::ShareUsedUp));
    assert_eq!(memory.of(&one).cover(&mut of_one, 3 * UNIT), Err(BodyError::ShareUsedUp));
    let covered = memory.of(&partner).cover(&mut of_partner, UNIT);
    assert_eq!(covered, Ok(()), "a partner has its own part");
    assert_eq!(memory.of(&other).cover(&mut of_other, UNIT), Ok(()));
    let covered = memory.of(&other).cover(&mut of_other, UNIT + 1);
    assert_eq!(covered, Err(BodyError::NoMemory), "there is no more");
}

#[test]
fn large_forms_of_addresses_leave_memory_to_uploads_of_partners() {
    let memory = BodyMemory::of_uploads(4 * FORM_BYTES_MAX);
    let [one, other, third] = [1, 2, 3].map(address);
    let partner = Sender::of([192, 0, 2, 1].into(), &"acme".into());
    let (mut of_one, mut of_other, mut more, mut of_partner) = (None, None, None, None);
    assert_eq!(memory.of(&one).cover(&mut of_one, FORM_BYTES_MAX), Ok(()));
    assert_eq!(memory.of(&one).cover(&mut more, 1), Err(BodyError::ShareUsedUp));
    assert_eq!(memory.of(&other).cover(&mut of_other, FORM_BYTES_MAX), Ok(()));
    assert_eq!(memory.of(&third).cover(&mut more, 1), Err(BodyError::NoMemory));
    let covered = memory.of(&partner).cover(&mut of_partner, 2 * FORM_BYTES_MAX);
    assert_eq!(covered, Ok(()), "half of it is left to partners");
    drop((of_other, of_partner));
    assert_eq!(memory.of(&third).cover(&mut more, FORM_BYTES_MAX), Ok(()));
}

#[test]
fn a_document_takes_memory_beside_its_text() {
    let memory = BodyMemory::new(8 * UNIT, 4 * UNIT);
    let sender = address(1);
    let budget = memory.of(&sender);
    let (mut plain, mut dense, mut more) = (None, None, None);
    let text = format!("[\"{}\"]", "[".repeat(UNIT / 2));
    assert_eq!(budget.cover_document(&mut plain, text.as_bytes()), Ok(()));
    let lists = "[".repeat(UNIT);
    let covered = budget.cover_document(&mut dense, lists.as_bytes());
    assert_eq!(covered, Err(BodyError::ShareUsedUp), "beside another body of its sender");
    drop(plain);
    assert_eq!(budget.cover_document(&mut dense, lists.as_bytes()), Ok(()), "alone");
    assert_eq!(budget.cover(&mut more, 1), Err(BodyError::ShareUsedUp));
    let (other, mut of_other) = (address(2), None);
    assert_eq!(memory.of(&other).cover(&mut of_other, 4 * UNIT), Ok(()));
}

#[test]
fn large_answers_of_a_partner_take_memory_until_they_are_taken() {
    let memory = BodyMemory::new(4 * UNIT, 2 * UNIT);
    let partner = |name: &str| Sender::of([192, 0, 2, 1].into(), &name.into());
    let cover = |sender: &Sender, share: &mut Option<Share>, answer: &Bytes| {
        memory.of(sender).cover_answer(share, answer)
    };
    let large = || Bytes::from(vec![0; 3 * UNIT]);
    let (mut first, mut other, mut none) = (None, None, None);
    assert_eq!(cover(&partner("acme"), &mut first, &large()), Ok(()), "larger than a share");
    let refused = Err(BodyError::ShareUsedUp);
    assert_eq!(cover(&partner("acme"), &mut none, &large()), refused);
    assert_eq!(cover(&partner("shop"), &mut other, &large()), Ok(()));
    assert_eq!(cover(&partner("late"), &mut none, &large()), Err(BodyError::NoMemory));
    let shared = large();
    let _kept = shared.clone();
    for free in [shared, Bytes::from(vec![0; UNIT]), Bytes::from_static(&[0; 3 * UNIT])] {
        assert_eq!(cover(&partner("acme"), &mut none, &free), Ok(()));
    }
    assert!(none.is_none());
    drop(first);
    assert_eq!(cover(&partner("acme"), &mut none, &large()), Ok(()));
}

#[test]
fn large_answers_of_addresses_leave_memory_to_those_of_partners() {
    let memory = BodyMemory::of_answers(16 * UNIT);
    let cover = |sender: &Sender, share: &mut Option<Share>| {
        memory.of(sender).cover_answer(share, &Bytes::from(vec![0; 3 * UNIT]))
    };
    let mut unread = [None, None, None, None];
    for (share, last) in unread.iter_mut().zip(1..) {
        assert_eq!(cover(&address(last), share), Ok(()), "larger than a share");
    }
    let (mut more, mut of_partner) = (None, None);
    assert_eq!(cover(&address(1), &mut more), Err(BodyError::ShareUsedUp));
    assert_eq!(cover(&address(5), &mut more), Err(BodyError::NoMemory));
    let partner = Sender::of([192, 0, 2, 1].into(), &"acme".into());
    assert_eq!(cover(&partner, &mut of_partner), Ok(()));
    drop(unread);
    assert_eq!(cover(&address(5), &mut more), Ok(()));
}
