//! A partner's page: name, branding, staff, webhook endpoints, and what it needs to go live.

use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::receiver::Receiver;

use super::*;

const PARTNER: &str = "/console/partners/acme";

async fn read(context: &TestContext) -> Value {
    let partner = context.admin(Method::GET, "/admin/v1/partners/acme", Value::Null).await;
    partner.assert_status(200).json()
}

#[tokio::test]
async fn a_partner_is_renamed_and_branded() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let ada = Browser::of(&context, "ada", &["platform"]).await;
    let name = [("shown.name", "acme"), ("name", "Acme Pay")];
    ada.submit(&format!("{PARTNER}/rename"), &name).await.assert(303, "");
    let branding = format!("{PARTNER}/branding");
    let typed = [("branding.accentColor", "#0b57d0"), ("branding.termsUrl", "ftp://acme.example")];
    let refused = ada.submit(&branding, &typed).await;
    refused.assert(422, "href=\"#field-branding.termsUrl\"");
    let typed =
        [("branding.accentColor", "#0b57d0"), ("branding.termsUrl", "https://acme.example/terms")];
    ada.submit(&branding, &typed).await.assert(303, "");
    let partner = read(&context).await;
    assert_eq!((&partner["name"], &partner["slug"]), (&json!("Acme Pay"), &json!("acme")));
    assert_eq!(partner["branding"]["accentColor"], "#0b57d0");
    assert_eq!(partner["branding"]["termsUrl"], "https://acme.example/terms");
    ada.get(PARTNER).await.assert(200, "Acme Pay").assert(200, "#0b57d0");
    // What is emptied is taken away.
    let emptied = [("shown.branding.accentColor", "#0b57d0"), ("branding.accentColor", "")];
    let kept = [
        ("shown.branding.termsUrl", "https://acme.example/terms"),
        ("branding.termsUrl", "https://acme.example/terms"),
    ];
    ada.submit(&branding, &[emptied, kept].concat()).await.assert(303, "");
    let partner = read(&context).await;
    assert_eq!(partner["branding"]["accentColor"], Value::Null);
    assert_eq!(partner["branding"]["termsUrl"], "https://acme.example/terms");
}

#[tokio::test]
async fn staff_is_invited_listed_and_removed() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let ada = Browser::of(&context, "ada", &["platform"]).await;
    let staff = format!("{PARTNER}/staff");
    ada.get(PARTNER).await.assert(200, &format!("href=\"{staff}\""));
    ada.get(&staff).await.assert(200, "Nobody");
    let invited = [("email", "eve@acme.example"), ("role", "owner")];
    ada.submit(&format!("{PARTNER}/invite"), &invited).await.assert(303, "");
    let page = ada.get(&staff).await.assert(200, "eve@acme.example");
    let removal = page.text.split("href=\"").find(|link| link.contains("/remove\"")).unwrap();
    let removal = removal.split('"').next().unwrap().to_owned();
    ada.submit(&removal, &[]).await.assert(303, "");
    ada.get(&staff).await.assert(200, "Nobody");
    assert_eq!(audited(&context, "staff.read").await["target"], "acme");
    assert_eq!(audited(&context, "staff.invite").await["actor"], "ada");
    let viewer = Browser::of(&context, "bob", &["viewer"]).await;
    let page = viewer.get(PARTNER).await.assert(200, "Settings");
    assert!(!page.text.contains(&staff) && !page.text.contains("/invite"), "{}", page.text);
    viewer.get(&staff).await.assert(403, "Not for your role");
}

#[tokio::test]
async fn webhook_endpoints_are_shown_tested_and_removed() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let host = Receiver::start().await;
    let body = json!({"url": host.url("/hook")});
    let made = acme.post("/api/v2/webhooks", body).await.assert_status(200).json();
    let path = format!("{PARTNER}/webhooks/{}", made["id"].as_str().unwrap());
    let ada = Browser::of(&context, "ada", &["platform"]).await;
    ada.get(PARTNER).await.assert(200, &host.url("/hook")).assert(200, &format!("{path}/test"));
    let done = ada.submit(&format!("{path}/test"), &[]).await.assert(303, "");
    ada.get(done.header("location")).await.assert(200, "Done: Test.");
    context.core().deliver_due().await.unwrap();
    assert_eq!(host.heard().len(), 1);
    let off = "update webhook_endpoint set disabled_at = now()";
    sqlx::query(off).execute(context.db()).await.unwrap();
    let page = ada.get(PARTNER).await.assert(200, &format!("{path}/remove"));
    assert!(!page.text.contains(&format!("{path}/test")), "{}", page.text);
    ada.submit(&format!("{path}/remove"), &[]).await.assert(303, "");
    assert!(!ada.get(PARTNER).await.text.contains("/hook"));
    assert_eq!(audited(&context, "webhook.remove").await["actor"], "ada");
}

#[tokio::test]
async fn what_it_needs_to_go_live_is_listed_as_the_refusal_has_it() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let live = json!({"mode": "live"});
    let refused = context.admin(Method::PATCH, "/admin/v1/partners/acme", live).await;
    let missing = refused.assert_status(409).json()["missing"].clone();
    assert!(missing.as_array().is_some_and(|words| words.contains(&json!("route"))), "{missing}");
    assert_eq!(read(&context).await["missing"], missing);
    let ada = Browser::of(&context, "ada", &["viewer"]).await;
    ada.get(PARTNER).await.assert(200, "Before it can go live").assert(200, "A route for money");
}

#[tokio::test]
async fn a_user_is_disabled_enabled_and_erased_in_its_own_state_alone() {
    let context = TestContext::start().await;
    let eve = context.partner("acme").await.user("eve").await;
    let page = format!("/console/users/{}", eve.log_in().await["uuid"].as_str().unwrap());
    let ada = Browser::of(&context, "ada", &["compliance"]).await;
    let reason = [("reason", "as the user has asked")];
    for (offered, other) in [("disable", "enable"), ("enable", "disable"), ("disable", "enable")] {
        let shown = ada.get(&page).await.assert(200, &format!("href=\"{page}/{offered}\""));
        assert!(!shown.text.contains(&format!("href=\"{page}/{other}\"")), "{}", shown.text);
        ada.submit(&format!("{page}/{offered}"), &reason).await.assert(303, "");
    }
    ada.submit(&format!("{page}/erase"), &reason).await.assert(303, "");
    let erased = ada.get(&page).await.assert(200, "<dt>Erased</dt><dd>yes</dd>");
    assert!(!erased.text.contains(&format!("href=\"{page}/")), "{}", erased.text);
}

#[tokio::test]
async fn an_account_is_verified_as_the_page_of_its_user_has_shown_it() {
    let context = TestContext::start().await;
    let eve = context.partner("acme").await.user("eve").await;
    let named = async |name: &str| {
        let photo = json!({"name": name, "iban": "NL91ABNA0417164300",
            "proof": "iVBORw0KGgoAAAANSUhEUgAAAAE="});
        eve.post("/api/v1/user/verify/iban/photo", &photo).await.assert_status(200);
    };
    named("Eve Lovelace").await;
    let page = format!("/console/users/{}", eve.log_in().await["uuid"].as_str().unwrap());
    let ada = Browser::of(&context, "ada", &["compliance"]).await;
    // The form and its hidden member, as the link on the page has them.
    let link = async |name: &str| {
        let shown = ada.get(&page).await.assert(200, name);
        let (before, rest) = shown.text.split_once("/verify?version=").unwrap();
        let (version, _) = rest.split_once('"').unwrap();
        let (_, path) = before.rsplit_once('"').unwrap();
        (format!("{path}/verify?version={version}"), version.to_owned())
    };
    let (form, version) = link("Eve Lovelace").await;
    let hidden = format!("<input type=\"hidden\" name=\"version\" value=\"{version}\">");
    ada.get(&form).await.assert(200, &hidden);
    named("Mallory").await;
    let sent = [("version", &*version), ("reason", "the statement names the holder")];
    ada.submit(&form, &sent).await.assert(409, "another holder");
    let (without, _) = form.split_once('?').unwrap();
    ada.submit(without, &sent[1..]).await.assert(422, "The version in the link to this form is");
    let (form, version) = link("Mallory").await;
    let sent = [("version", &*version), ("reason", "the statement names the holder")];
    ada.submit(&form, &sent).await.assert(303, "");
}

#[tokio::test]
async fn a_side_of_a_document_that_was_not_sent_is_asked_for() {
    let context = TestContext::start().await;
    let eve = context.partner("acme").await.user("eve").await;
    let page = format!("/console/users/{}", eve.log_in().await["uuid"].as_str().unwrap());
    let ada = Browser::of(&context, "ada", &["compliance"]).await;
    let form = format!("{page}/document");
    ada.get(&form).await.assert(200, "<option value=\"missing\">missing: ask for it</option>");
    let typed = [
        ("documents.0.type", "id-card"),
        ("documents.0.side", "back"),
        ("documents.0.status", "missing"),
        ("reason", "the other side is needed"),
    ];
    ada.submit(&form, &typed).await.assert(303, "");
    let shown = ada.get(&page).await.assert(200, "Decide: id-card, back");
    let shown = shown.assert(200, ">Since</th>");
    assert!(!shown.text.contains("/documents/"), "it has no picture: {}", shown.text);
}

#[tokio::test]
async fn a_page_says_once_what_came_of_an_action() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let user = acme.user("ada").await.log_in().await["uuid"].as_str().unwrap().to_owned();
    let account = json!({"type": "bankTransfer", "identifier": "NL91ABNA0417164300", "name": "A"});
    let accounts = format!("/admin/v1/users/{user}/accounts");
    let account = context.admin(Method::POST, &accounts, account).await.assert_status(201).json();
    let account = account["accountId"].as_str().unwrap();
    let ada = Browser::of(&context, "ada", &["owner"]).await;
    let after = async |action: &str, typed: &[(&str, &str)]| {
        let led = ada.submit(action, typed).await.assert(303, "");
        ada.get(led.header("location")).await.assert(200, "").text
    };
    let account = format!("/console/users/{user}/accounts/{account}");
    for (action, said) in [("disable", "Disable"), ("enable", "Enable")] {
        let page = after(&format!("{account}/{action}"), &[("reason", "asked for")]).await;
        assert!(page.contains(&format!("Done: {said} the account.")), "{page}");
        assert_eq!(page.matches("Done: ").count(), 1, "the user is as before: {page}");
    }
    let level = [("level", "gold"), ("reason", "seen")];
    let page = after(&format!("/console/users/{user}/level"), &level).await;
    assert_eq!(page.matches("Another operator must agree first").count(), 1, "{page}");
}

#[tokio::test]
async fn what_is_taken_away_says_in_numbers_what_it_touches() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let user = acme.user("ada").await.log_in().await["uuid"].as_str().unwrap().to_owned();
    let hook = json!({"url": "https://shop.example.com/hook"});
    let hook = acme.post("/api/v2/webhooks", hook).await.assert_status(200).json();
    OrderFixture::order(&context, &acme, None, None).await;
    let ended = OrderFixture::order(&context, &acme, None, None).await;
    ended.event(&context, "cancel").await.assert_status(200);
    let key = read(&context).await["apiKeys"][0]["id"].as_str().unwrap().to_owned();
    let account = json!({"type": "bankTransfer", "identifier": "NL91ABNA0417164300", "name": "A"});
    let accounts = format!("/admin/v1/users/{user}/accounts");
    let account = context.admin(Method::POST, &accounts, account).await.assert_status(201).json();
    let account = account["accountId"].as_str().unwrap();
    let ada = Browser::of(&context, "ada", &["owner"]).await;
    let operators = context.admin(Method::GET, "/admin/v1/operators", Value::Null).await.json();
    let token = operators[0]["tokens"][0]["id"].as_str().unwrap();
    let row = |name: &str, number: u32| format!("<dt>{name}</dt><dd>{number}</dd>");
    let hook = hook["id"].as_str().unwrap();
    for (path, shown) in [
        (format!("{PARTNER}/suspend"), row("Open orders", 1)),
        (format!("{PARTNER}/suspend"), row("Users", 1)),
        (format!("{PARTNER}/go-live"), row("Open orders", 1)),
        (format!("{PARTNER}/rotate-secret"), row("Webhook endpoints", 1)),
        (format!("{PARTNER}/verification-keys/delete"), row("Versions of its signature policy", 0)),
        (
            format!("/console/users/{user}/accounts/{account}/disable"),
            row("Accounts of the user", 1),
        ),
        (
            format!("/console/operators/ada/tokens/{token}/revoke"),
            row("Sessions of the operator", 1),
        ),
        (format!("{PARTNER}/keys/{key}/revoke"), row("Other live keys of the partner", 0)),
        (
            format!("{PARTNER}/webhooks/{hook}/remove"),
            row("Deliveries that wait, and are not sent", 1),
        ),
        (format!("/console/users/{user}/erase"), row("Orders", 0)),
        ("/console/market/BTC-EUR/sides".to_owned(), row("Open orders", 1)),
        ("/console/methods/creditCard/change".to_owned(), row("Partners with open orders", 1)),
        ("/console/market/~/routes/replace".to_owned(), row("Routes that are replaced", 0)),
    ] {
        ada.get(&path).await.assert(200, "It touches").assert(200, &shown);
    }
    // A form that was not sent as it must be says it again.
    let erase = format!("/console/users/{user}/erase");
    ada.submit(&erase, &[]).await.assert(422, "Reason is missing").assert(422, "It touches");
}
