//! Passkeys on the account's page: added, used in place of a password and beside it, removed; and
//! everything that is none.

use futures::future::join_all;
use http::Method;
use rampart_tests::passkey::{Authenticator, Ceremony, challenge, encode};
use serde_json::json;

use super::{SIGNED_OUT, Visit, page_path, submit};

const WRONG: &str = "De passkey kon niet worden gecontroleerd.";
const PASSWORD_STEP: &str = "action=log-in&email=ada%40mail.example.com&password=password-of-ada";

/// Makes a ceremony wrong.
type Change = fn(&mut Ceremony);

impl Visit {
    /// Signs in by password; the page that follows.
    pub(super) async fn password(&self) -> String {
        self.submit(PASSWORD_STEP).await.assert_status(200).text().to_owned()
    }

    /// Adds a passkey after a sign-in by password, which must suffice.
    pub(super) async fn add(&self, name: &str) -> Authenticator {
        let page = self.password().await;
        let authenticator = Authenticator::of(&self.id);
        let made = Ceremony::create(&challenge(&page));
        let form = authenticator.registration(name, &made, &authenticator.public_key());
        let added = self.submit(&form).await;
        assert!(added.assert_status(200).text().contains("De passkey is toegevoegd."));
        authenticator
    }

    /// The challenge that follows the password.
    async fn asked(&self) -> String {
        self.later(60);
        let page = self.password().await;
        assert!(page.contains("data-ceremony=\"get\"") && !page.contains("<dd>ada"), "{page}");
        challenge(&page)
    }

    async fn is_refused(&self, why: &str, form: &str) {
        let answer = self.submit(form).await;
        let text = answer.assert_status(400).text();
        assert!(text.contains(WRONG) && !text.contains("ada@mail"), "{why}: {text}");
    }
}

#[tokio::test]
async fn a_passkey_is_added_used_beside_the_password_and_alone_and_removed() {
    let visit = Visit::start().await;
    let authenticator = visit.add("Laptop of Ada").await;
    let page = visit.submit(&authenticator.answer(&Ceremony::get(&visit.asked().await, 1))).await;
    let text = page.assert_status(200).text();
    for part in ["<dd>ada@mail", "Laptop of Ada", "Toegevoegd:", "Laatst gebruikt:"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("nooit"), "{text}");
    let step = visit.submit("action=passkey").await.assert_status(200).text().to_owned();
    assert!(step.contains("&quot;known&quot;:[]"), "{step}");
    let alone = authenticator.answer(&Ceremony::get(&challenge(&step), 2));
    let page = visit.submit(&alone).await.assert_status(200).text().to_owned();
    assert!(page.contains("<dd>ada@mail.example.com"), "{page}");
    let credential = encode(&authenticator.credential);
    let remove =
        format!("action=passkey-remove&credential={credential}&challenge={}", challenge(&page));
    let removed = visit.submit(&remove).await;
    let text = removed.assert_status(200).text();
    assert!(text.contains("De passkey is verwijderd.") && !text.contains("Laptop"), "{text}");
    // Once: the same form again does nothing, and the password suffices again.
    assert!(visit.submit(&remove).await.assert_status(400).text().contains(SIGNED_OUT));
    visit.later(60);
    assert!(visit.password().await.contains("<dd>ada@mail.example.com"));
}

#[tokio::test]
async fn an_authenticator_that_counts_nothing_is_good_again_and_again() {
    let visit = Visit::start().await;
    let authenticator = visit.add("Telephone").await;
    for _ in 0..2 {
        let form = authenticator.answer(&Ceremony::get(&visit.asked().await, 0));
        // No counter tells one answer from another: the challenge alone is good once.
        let answers = join_all((0..4).map(|_| visit.submit(&form))).await;
        let won = answers.iter().filter(|answer| answer.status() == 200).count();
        assert_eq!(won, 1, "of several at once one wins");
    }
}

#[tokio::test]
async fn an_answer_that_is_not_what_was_asked_for_is_refused() {
    let visit = Visit::start().await;
    let ours = visit.add("Laptop").await;
    let mut forged = Authenticator::of(&visit.id);
    forged.credential.clone_from(&ours.credential);
    let mut unknown = Authenticator::of(&visit.id);
    unknown.credential = vec![7; 32];
    let changes: [(&str, &Authenticator, Change); 9] = [
        ("a registration", &ours, |it| it.kind = "webauthn.create"),
        ("another origin", &ours, |it| it.origin = "https://evil.example".to_owned()),
        ("another port", &ours, |it| it.origin += ":8443"),
        ("another host's key", &ours, |it| it.party = "evil.example".to_owned()),
        ("nobody verified", &ours, |it| it.flags = 0x01),
        ("nobody there", &ours, |it| it.flags = 0x04),
        ("another key", &forged, |_| ()),
        ("an unknown key", &unknown, |_| ()),
        ("a challenge of our own", &ours, |it| it.challenge = encode(&[7; 32])),
    ];
    for (why, authenticator, change) in changes {
        let mut ceremony = Ceremony::get(&visit.asked().await, 9);
        change(&mut ceremony);
        visit.is_refused(why, &authenticator.answer(&ceremony)).await;
    }
    // A challenge that was signed, and another one in the form.
    let form = ours.answer(&Ceremony::get(&visit.asked().await, 9));
    let swapped = form.replacen("challenge=", "challenge=AA", 1);
    visit.is_refused("another challenge in the form", &swapped).await;
    visit.is_refused("nothing", "action=passkey-answer").await;
    // What was refused has not counted.
    let form = ours.answer(&Ceremony::get(&visit.asked().await, 1));
    visit.submit(&form).await.assert_status(200);
}

#[tokio::test]
async fn an_answer_counts_once_in_its_time_and_with_an_advancing_counter() {
    let visit = Visit::start().await;
    let ours = visit.add("Laptop").await;
    let form = ours.answer(&Ceremony::get(&visit.asked().await, 5));
    visit.submit(&form).await.assert_status(200);
    visit.later(60);
    visit.is_refused("a replay", &form).await;
    for count in [4, 5, 0] {
        let form = ours.answer(&Ceremony::get(&visit.asked().await, count));
        visit.is_refused("a counter that goes back", &form).await;
    }
    let form = ours.answer(&Ceremony::get(&visit.asked().await, 6));
    visit.later(301);
    visit.is_refused("an expired challenge", &form).await;
    // A refusal uses a challenge up as well.
    let asked = visit.asked().await;
    let mut wrong = Ceremony::get(&asked, 7);
    wrong.flags = 0x01;
    visit.is_refused("nobody verified", &ours.answer(&wrong)).await;
    visit.is_refused("a second try", &ours.answer(&Ceremony::get(&asked, 7))).await;
}

#[tokio::test]
async fn a_passkey_signs_its_own_user_in_and_no_other() {
    let visit = Visit::start().await;
    let ours = visit.add("Laptop").await;
    let bob = visit.partner.user("bob").await;
    let bobs_id = bob.log_in().await["uuid"].as_str().unwrap().to_owned();
    let path = page_path(&visit.partner, &bob.identifier).await;
    let page =
        submit(&visit.partner, &path, "email=bob%40mail.example.com&password=password-of-bob");
    let page = page.await.assert_status(200).text().to_owned();
    // Somebody else's credential cannot be registered again.
    let bobs = Authenticator::of(&bobs_id);
    let mut copy = Authenticator::of(&bobs_id);
    copy.credential.clone_from(&ours.credential);
    let made = Ceremony::create(&challenge(&page));
    let form = copy.registration("Copy", &made, &copy.public_key());
    let taken = submit(&visit.partner, &path, &form).await.assert_status(200).text().to_owned();
    assert!(taken.contains(WRONG) && !taken.contains("<strong>Copy"), "{taken}");
    let made = Ceremony::create(&challenge(&taken));
    let form = bobs.registration("Bob", &made, &bobs.public_key());
    let added = submit(&visit.partner, &path, &form).await.assert_status(200).text().to_owned();
    // Nor removed.
    let remove = format!(
        "action=passkey-remove&credential={}&challenge={}",
        encode(&ours.credential),
        challenge(&added)
    );
    assert!(submit(&visit.partner, &path, &remove).await.text().contains(WRONG));
    // Ada's password and Bob's passkey, whatever it says whose it is.
    visit.is_refused("Bob's", &bobs.answer(&Ceremony::get(&visit.asked().await, 1))).await;
    let mut posing = bobs;
    posing.user_handle.clone_from(&ours.user_handle);
    visit
        .is_refused("Bob's as Ada's", &posing.answer(&Ceremony::get(&visit.asked().await, 1)))
        .await;
    // Alone, it has to say whose it is.
    let step = visit.submit("action=passkey").await.text().to_owned();
    let mut silent = ours;
    silent.user_handle.clear();
    let form = silent.answer(&Ceremony::get(&challenge(&step), 1));
    visit.is_refused("nobody's", &form).await;
    let form = silent.answer(&Ceremony::get(&visit.asked().await, 1));
    visit.submit(&form).await.assert_status(200);
    // Another partner has users of its own.
    let rival = visit.context.partner("rival").await;
    let path = page_path(&rival, &rival.user("ada").await.identifier).await;
    let step = submit(&rival, &path, "action=passkey").await.text().to_owned();
    let form = silent.answer(&Ceremony::get(&challenge(&step), 2));
    submit(&rival, &path, &form).await.assert_status(400);
}

#[tokio::test]
async fn what_is_no_passkey_is_not_added() {
    let visit = Visit::start().await;
    let ours = Authenticator::of(&visit.id);
    let mut page = visit.password().await;
    let changes: [(&str, Change); 5] = [
        ("a use", |it| it.kind = "webauthn.get"),
        ("another origin", |it| it.origin = "https://evil.example".to_owned()),
        ("another host's", |it| it.party = "evil.example".to_owned()),
        ("nobody verified", |it| it.flags = 0x41),
        ("no credential", |it| it.flags = 0x05),
    ];
    for (why, change) in changes {
        let mut made = Ceremony::create(&challenge(&page));
        change(&mut made);
        let form = ours.registration("Laptop", &made, &ours.public_key());
        page = visit.submit(&form).await.assert_status(200).text().to_owned();
        assert!(page.contains(WRONG) && !page.contains("<strong>Laptop"), "{why}: {page}");
        assert!(page.contains("name=\"name\" value=\"Laptop\""), "{why}: {page}");
    }
    let mut other_curve = ours.public_key();
    other_curve[22] = 0x08;
    let made = Ceremony::create(&challenge(&page));
    let form = ours.registration("Laptop", &made, &other_curve);
    page = visit.submit(&form).await.assert_status(200).text().to_owned();
    assert!(page.contains(WRONG) && !page.contains("<strong>Laptop"), "another algorithm: {page}");
    for name in ["", "  ", &"n".repeat(61)] {
        let made = Ceremony::create(&challenge(&page));
        let form = ours.registration(name, &made, &ours.public_key());
        page = visit.submit(&form).await.assert_status(200).text().to_owned();
        let kept = format!("name=\"name\" value=\"{name}\"");
        for part in ["Voer een naam in van 1 tot 60 tekens", "href=\"#field-name\"", &kept] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }
    let none = visit.submit("action=passkey-add&name=Laptop").await;
    assert!(none.assert_status(400).text().contains(SIGNED_OUT));
}

#[tokio::test]
async fn changes_want_a_fresh_sign_in_and_end_at_ten_passkeys() {
    let visit = Visit::start().await;
    let mut page = visit.password().await;
    for count in 1..=10 {
        let one = Authenticator::of(&visit.id);
        let made = Ceremony::create(&challenge(&page));
        let form = one.registration(&format!("Key {count}"), &made, &one.public_key());
        let added = visit.submit(&form).await;
        page = added.assert_status(200).text().to_owned();
        assert!(page.contains(&format!("Key {count}")), "{page}");
    }
    assert!(!page.contains("data-ceremony=\"create\""), "{page}");
    let one = Authenticator::of(&visit.id);
    let last = Ceremony::create(&challenge(&page));
    let form = one.registration("Key 11", &last, &one.public_key());
    page = visit.submit(&form).await.assert_status(200).text().to_owned();
    assert!(
        page.contains(WRONG)
            && page.contains("maximale aantal passkeys")
            && !page.contains("Key 11"),
        "{page}"
    );
    // Changes do not make the sign-in younger.
    visit.later(601);
    let form = one.registration("Key 11", &Ceremony::create(&challenge(&page)), &one.public_key());
    assert!(visit.submit(&form).await.assert_status(400).text().contains(SIGNED_OUT));
}

#[tokio::test]
async fn attempts_are_counted_like_those_with_passwords() {
    let visit = Visit::start().await;
    let ours = visit.add("Laptop").await;
    let form = ours.answer(&Ceremony::get(&encode(&[7; 32]), 1));
    for _ in 0..5 {
        visit.is_refused("a challenge of our own", &form).await;
    }
    let limited = visit.submit(&form).await;
    assert!(limited.assert_status(429).header("retry-after").is_some());
}

#[tokio::test]
async fn a_network_asks_for_few_challenges_and_keeps_no_other_from_one() {
    let visit = Visit::start().await;
    let mut limited = 0;
    for last in 0..70_u8 {
        let asked = visit.partner.anonymous(Method::POST, &visit.path).body("action=passkey");
        let answer = asked.from([192, 0, 2, last].into()).send().await;
        limited += i64::from(answer.status() == 429);
    }
    let count = "select count(*) from passkey_challenge";
    let rows: i64 = sqlx::query_scalar(count).fetch_one(visit.context.db()).await.unwrap();
    assert!(limited > 0 && rows == 70 - limited, "{rows} rows, {limited} refusals");
    visit.submit("action=passkey").await.assert_status(200);
}

#[tokio::test]
async fn a_page_that_links_asks_for_the_passkey_as_well() {
    let visit = Visit::start().await;
    let ours = visit.add("Laptop").await;
    visit.later(60);
    let identifier = "y".repeat(36);
    let path = page_path(&visit.partner, &identifier).await;
    assert!(path.starts_with("/nl-nl/register/"), "{path}");
    let linked = async || {
        let path = page_path(&visit.partner, &identifier).await;
        path.starts_with("/nl-nl/dashboard/")
    };
    let step = submit(&visit.partner, &path, PASSWORD_STEP).await;
    let step = step.assert_status(200).text().to_owned();
    assert!(!linked().await);
    let form = ours.answer(&Ceremony::get(&challenge(&step), 1));
    submit(&visit.partner, &path, &form).await.assert_status(303);
    assert!(linked().await);
}

#[tokio::test]
async fn an_operator_removes_passkeys_and_an_erasure_leaves_none() {
    let visit = Visit::start().await;
    let ours = visit.add("Laptop").await;
    let path = format!("/admin/v1/users/{}", visit.id);
    // Of somebody who is disabled it opens nothing.
    let asked = visit.asked().await;
    visit.context.admin(Method::PATCH, &path, json!({"disabled": true})).await.assert_status(200);
    visit.is_refused("a disabled user", &ours.answer(&Ceremony::get(&asked, 1))).await;
    visit.context.admin(Method::PATCH, &path, json!({"disabled": false})).await.assert_status(200);
    let removed = json!({"passkeysRemoved": true});
    visit.context.admin(Method::PATCH, &path, removed).await.assert_status(200);
    visit.later(60);
    visit.add("Telephone").await;
    visit.asked().await;
    let rows = async || {
        let count =
            "select (select count(*) from passkey), (select count(*) from passkey_challenge)";
        sqlx::query_as::<_, (i64, i64)>(count).fetch_one(visit.context.db()).await.unwrap()
    };
    assert_eq!(rows().await.0, 1);
    visit.context.admin(Method::PATCH, &path, json!({"deleted": true})).await.assert_status(200);
    assert_eq!(rows().await, (0, 0));
}

#[tokio::test]
async fn a_changed_password_ends_what_was_begun() {
    let visit = Visit::start().await;
    let page = visit.password().await;
    let change = json!({"oldPassword": "password-of-ada", "password": "password-of-eve"});
    visit.user.patch("/api/v2/user", &change).await.assert_status(200);
    let ours = Authenticator::of(&visit.id);
    let form =
        ours.registration("Laptop", &Ceremony::create(&challenge(&page)), &ours.public_key());
    assert!(visit.submit(&form).await.assert_status(400).text().contains(SIGNED_OUT));
}

#[tokio::test]
async fn expired_challenges_are_deleted() {
    let visit = Visit::start().await;
    visit.submit("action=passkey").await.assert_status(200);
    let count = "select count(*) from passkey_challenge";
    let left =
        async || sqlx::query_scalar::<_, i64>(count).fetch_one(visit.context.db()).await.unwrap();
    visit.context.core().delete_expired_codes().await.unwrap();
    assert_eq!(left().await, 1);
    visit.later(301);
    visit.context.core().delete_expired_codes().await.unwrap();
    assert_eq!(left().await, 0);
}
