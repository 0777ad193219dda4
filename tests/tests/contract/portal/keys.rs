//! API keys: made, shown once, used, revoked.

use rampart_tests::answer::Answer;
use rampart_tests::staff::Staff;
use rampart_tests::test_context::TestContext;

/// Characters at the end of a key that are of its secret.
const SECRET_CHARS: usize = 20;

/// The key that a page shows.
fn shown(page: &Answer) -> String {
    let (_, rest) = page.text().split_once("id=\"new-key\">").unwrap();
    rest.split('<').next().unwrap().to_owned()
}

#[tokio::test]
async fn a_key_is_shown_once_works_and_is_revoked() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut staff = Staff::signed_in(&context, &acme, "developer").await;
    let fields = [("name", "Till <7>"), ("scope-quotes:read", "yes"), ("networks", "127.0.0.1")];
    let made = staff.submit("/portal/keys", &fields).await;
    let key = shown(made.assert_status(200));
    let till = acme.with_key(key.clone());
    till.get("/api/v2/prices").await.assert_status(200);
    till.get("/api/v2/webhooks").await.assert_codes(&["ER805"]);
    let list = staff.get("/portal/keys").await;
    // By its length: a secret may have a `_` of its own.
    let secret = &key[key.len() - SECRET_CHARS..];
    assert!(list.text().contains("Till &lt;7&gt;") && !list.text().contains(secret));
    assert!(list.text().contains("quotes:read") && list.text().contains("127.0.0.1/32"));
    let (_, rest) = list.text().rsplit_once("/portal/keys/").unwrap();
    let path = format!("/portal/keys/{}", rest.split('"').next().unwrap());
    staff.submit(&path, &[]).await.assert_status(303);
    till.get("/api/v2/prices").await.assert_codes(&["ER805"]);
    staff.submit(&path, &[]).await.assert_status(404);
    let actions = super::audited(&context).await;
    let expected =
        ["api-key.revoke", "api-key.issue"].map(|one| (one.to_owned(), "acme".to_owned()));
    assert_eq!(actions, expected);
}

#[tokio::test]
async fn of_revoked_keys_the_last_thousand_stay() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let revoked = "insert into api_key (client_id, api_key_id, public_id, secret_digest, created_at, \
            revoked_at) \
        select client_id, gen_random_uuid(), 'revoked' || n, secret_digest, created_at, \
            rampart_now() - n * interval '1 second' \
        from api_key, generate_series(1, 1002) n";
    sqlx::query(revoked).execute(context.db()).await.unwrap();
    let mut staff = Staff::signed_in(&context, &acme, "developer").await;
    let fields = [("name", "Till"), ("scope-quotes:read", "yes")];
    staff.submit("/portal/keys", &fields).await.assert_status(200);
    let kept = "select count(*), bool_and(public_id not in ('revoked1001', 'revoked1002')) \
        from api_key where revoked_at is not null";
    let kept: (i64, bool) = sqlx::query_as(kept).fetch_one(context.db()).await.unwrap();
    assert_eq!(kept, (1_000, true));
    acme.get("/api/v2/prices").await.assert_status(200);
}

#[tokio::test]
async fn what_was_typed_stays_beside_its_error() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut staff = Staff::signed_in(&context, &acme, "owner").await;
    let fields = [
        ("name", ""),
        ("networks", "somewhere"),
        ("expires", "2001-01-01"),
        ("scope-users:read", "yes"),
    ];
    let page = staff.submit("/portal/keys", &fields).await;
    let text = page.assert_status(400).text();
    for part in [
        "value=\"somewhere\"",
        "value=\"2001-01-01\"",
        "href=\"#field-name\"",
        "href=\"#field-networks\"",
        "href=\"#field-expires\"",
        "aria-invalid=\"true\"",
        "name=\"scope-users:read\" value=\"yes\" checked",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(super::audited(&context).await.is_empty());
}

#[tokio::test]
async fn a_box_of_a_scope_that_the_page_does_not_have_makes_no_key() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut staff = Staff::signed_in(&context, &acme, "developer").await;
    for (name, value) in
        [("scope-quotes:read", "on"), ("scope-quotes:read", ""), ("scope-quotes", "yes")]
    {
        let page = staff.submit("/portal/keys", &[("name", "till"), (name, value)]).await;
        let text = page.assert_status(400).text();
        assert!(text.contains("href=\"#field-scopes\""), "{name}={value}: {text}");
    }
    assert!(super::audited(&context).await.is_empty());
}

#[tokio::test]
async fn other_partners_keep_their_changes_when_a_key_is_issued() {
    let context = TestContext::start().await;
    let (acme, rival) = (context.partner("acme").await, context.partner("rival").await);
    let other = context.second_edge().await;
    let mut staff = Staff::signed_in(&context, &acme, "owner").await;
    // The other edge makes a change that this one has not seen when the portal reloads its snapshot.
    let body = serde_json::json!({"status": "suspended"});
    other.admin(http::Method::PATCH, "/admin/v1/partners/rival", body).await.assert_status(200);
    staff.submit("/portal/keys", &[("name", "one")]).await.assert_status(200);
    assert!(rival.get("/api/v2/prices").await.status() >= 400, "the rival is suspended here too");
    acme.get("/api/v2/prices").await.assert_status(200);
}
