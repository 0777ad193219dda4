//! Mail that tells users how the opening of their account was changed, in their language.

use http::Method;
use rampart_tests::outbox;
use rampart_tests::passkey::{challenge, encode};
use serde_json::json;

use super::{Visit, mailed_code, submit};

const NOT_YOU: &str = "Was jij dit niet? Laat het acme meteen weten.";

impl Visit {
    /// A user whose address is proven.
    pub(super) async fn of_proven_address() -> Self {
        let visit = Self::start().await;
        visit.change_by_operator(r#"{"verification": {"email": "verified"}}"#).await;
        visit
    }

    pub(super) async fn change_by_operator(&self, change: &str) {
        let path = format!("/admin/v1/users/{}", self.id);
        let change = serde_json::from_str(change).unwrap();
        self.context.admin(Method::PATCH, &path, change).await.assert_status(200);
    }

    /// The sentence of the newest notice, which is the newest mail to this address.
    async fn notice(&self, to: &str) -> String {
        let mail = outbox::newest(&self.context, to).await;
        let (said, not_you) = mail.text.trim_end().split_once('\n').unwrap();
        assert_eq!((not_you, &*mail.state), (NOT_YOU, "pending"));
        said.to_owned()
    }

    pub(super) async fn notices(&self) -> i64 {
        sqlx::query_scalar("select count(*) from mail_outbox where kind = 'security-notice'")
            .fetch_one(self.context.db())
            .await
            .unwrap()
    }
}

#[tokio::test]
async fn passkeys_and_apps_are_told_of_whoever_changes_them() {
    let visit = Visit::of_proven_address().await;
    let (email, added) = (&*visit.user.email, "Er is een passkey aan je account toegevoegd.");
    let removed = "Er is een passkey van je account verwijderd.";
    let authenticator = visit.add("Laptop").await;
    assert_eq!(visit.notice(email).await, added);
    visit.change_by_operator(r#"{"passkeysRemoved": true}"#).await;
    assert_eq!(visit.notice(email).await, removed);
    // There is nothing to remove, and nothing to tell.
    visit.change_by_operator(r#"{"passkeysRemoved": true, "authenticatorAppRemoved": true}"#).await;
    assert_eq!(visit.notices().await, 2);

    visit.set_up_app().await;
    let now = "Je account heeft nu een authenticator-app: na je wachtwoord wordt om de code ervan \
               gevraagd.";
    assert_eq!(visit.notice(email).await, now);
    visit.change_by_operator(r#"{"authenticatorAppRemoved": true}"#).await;
    assert_eq!(visit.notice(email).await, "De authenticator-app van je account is verwijderd.");
    // What is refused changes nothing.
    let credential = encode(&authenticator.credential);
    visit.later(60);
    let page = visit.password().await;
    let form =
        format!("action=passkey-remove&credential={credential}&challenge={}", challenge(&page));
    visit.submit(&form).await.assert_status(200);
    assert_eq!(visit.notices().await, 4);
}

#[tokio::test]
async fn a_new_password_and_address_are_told_to_the_address_of_before() {
    let visit = Visit::of_proven_address().await;
    let email = &*visit.user.email;
    let change = json!({"oldPassword": visit.user.password, "password": "password-of-eve"});
    visit.user.patch("/api/v2/user", &change).await.assert_status(200);
    assert_eq!(visit.notice(email).await, "Je account heeft een nieuw wachtwoord.");
    let change = json!({"oldPassword": "password-of-eve", "email": "eve@mail.example.com"});
    visit.user.patch("/api/v2/user", &change).await.assert_status(200);
    assert_eq!(visit.notice(email).await, "Je account heeft nu een ander e-mailadres.");
    // The new address, which is not proven, gets its code alone.
    let change = json!({"oldPassword": "password-of-eve", "password": "password-of-ada"});
    visit.user.patch("/api/v2/user", &change).await.assert_status(200);
    assert_eq!(visit.notices().await, 2);
    // Both changed at once are told to the previous address.
    visit.change_by_operator(r#"{"verification": {"email": "verified"}}"#).await;
    let change = json!({"oldPassword": "password-of-ada", "password": "password-of-eve",
        "email": "bob@mail.example.com"});
    visit.later(60);
    visit.user.patch("/api/v2/user", &change).await.assert_status(200);
    assert_eq!(visit.notices().await, 4);
    let code = outbox::newest(&visit.context, "bob@mail.example.com").await.text;
    assert!(code.starts_with("Je code is ") && code.ends_with("geldig.\n"), "{code}");
    assert_eq!(mailed_code(&visit.context, "bob@mail.example.com").await.len(), 6);
}

#[tokio::test]
async fn a_password_that_was_reset_is_told_and_a_mailbox_is_not_filled() {
    let visit = Visit::of_proven_address().await;
    let email = &*visit.user.email;
    let asked = json!({"emailAddress": email});
    visit.partner.post("/api/v1/user/reset-password", asked).await.assert_status(200);
    let mail = outbox::newest(&visit.context, email).await.text;
    assert!(mail.starts_with("Stel hier binnen een uur een nieuw wachtwoord in:\n"), "{mail}");
    let link = mail.lines().find_map(|line| line.split_once("/reset-password/")).unwrap().1;
    let path = format!("/reset-password/{link}");
    submit(&visit.partner, &path, "password=password-of-eve").await.assert_status(200);
    assert_eq!(visit.notice(email).await, "Je account heeft een nieuw wachtwoord.");

    let filled = "insert into mail_outbox (client_id, mail_id, user_id, kind, sealed, state, created_at) \
                  select client_id, gen_random_uuid(), user_id, kind, sealed, state, created_at \
                  from mail_outbox, generate_series(1, 19) where kind = 'security-notice'";
    sqlx::query(filled).execute(visit.context.db()).await.unwrap();
    let change = json!({"oldPassword": "password-of-eve", "password": "password-of-ada"});
    visit.later(60);
    visit.user.patch("/api/v2/user", &change).await.assert_status(200);
    assert_eq!(visit.notices().await, 20);
    visit.later(3601);
    visit.add("Laptop").await;
    assert_eq!(visit.notices().await, 21);
}
