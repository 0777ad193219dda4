//! Webhook endpoints: secrets of their own, test events, attempts on record, and what is sent again.

use std::sync::Arc;

use chrono::TimeDelta;
use rampart_tests::answer::Answer;
use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::partner::Partner;
use rampart_tests::receiver::{Heard, Reaction, Receiver};
use rampart_tests::staff::Staff;
use rampart_tests::test_context::TestContext;
use serde_json::json;
use standardwebhooks::Webhook;

const PATH: &str = "/portal/webhooks";

/// The text of a page between two others.
fn between<'a>(page: &'a Answer, before: &str, after: &str) -> &'a str {
    let (_, rest) = page.text().split_once(before).unwrap_or_else(|| panic!("{}", page.text()));
    rest.split_once(after).unwrap().0
}

/// Registers an endpoint; its page's path and its secret.
async fn register(staff: &mut Staff, url: &str, events: &[(&str, &str)]) -> (String, String) {
    let fields: Vec<_> = [("url", url)].iter().chain(events).copied().collect();
    let page = staff.submit(PATH, &fields).await;
    let secret = between(page.assert_status(200), "id=\"new-secret\">", "<").to_owned();
    (format!("{PATH}/{}", between(&page, "href=\"/portal/webhooks/", "\"")), secret)
}

async fn deliver(context: &TestContext) -> usize {
    context.core().deliver_due().await.unwrap()
}

fn is_signed(heard: &Heard, secret: &str) -> bool {
    // The clocks of these tests run ahead of the one that `verify` would ask.
    let sent_at = heard.header("webhook-timestamp").parse().unwrap();
    let signed =
        Webhook::new(secret).unwrap().sign(heard.header("webhook-id"), sent_at, &heard.body);
    heard.header("webhook-signature").split(' ').any(|one| one == signed.as_deref().unwrap())
}

async fn started() -> (TestContext, Partner, Staff, Receiver) {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let staff = Staff::signed_in(&context, &acme, "developer").await;
    (context, acme, staff, Receiver::start().await)
}

#[tokio::test]
async fn an_endpoint_has_a_secret_of_its_own_and_is_tested_alone() {
    let (context, acme, mut staff, host) = started().await;
    let neighbour = Receiver::start().await;
    let body = json!({"url": neighbour.url("/all")});
    acme.post("/api/v2/webhooks", body).await.assert_status(200);
    let wanted = [("event-order.paid", "yes")];
    let (path, secret) = register(&mut staff, &host.url("/hook"), &wanted).await;
    host.react(Reaction::status(500));
    staff.get(&path).await.assert_status(200);
    let sent = staff.submit(&format!("{path}/test"), &[]).await;
    assert_eq!(sent.header("location"), Some(&*format!("{path}?done=tested")));
    assert_eq!(deliver(&context).await, 1);
    let heard = host.heard();
    assert_eq!((heard.len(), neighbour.heard().len()), (1, 0));
    assert_eq!(heard[0].json()["type"], "webhook.test");
    assert!(is_signed(&heard[0], &secret) && !is_signed(&heard[0], &acme.webhook_secret));
    // The attempt is on record, and the delivery is sent again by hand.
    let page = staff.get(&path).await;
    let delivery = format!("/portal/deliveries/{}", between(&page, "/portal/deliveries/", "\""));
    let page = staff.get(&delivery).await;
    let text = page.assert_status(200).text();
    for part in ["webhook.test", "webhook-id", "500", "pending", &host.url("/hook")] {
        assert!(text.contains(part), "{part}: {text}");
    }
    host.react(Reaction::status(204));
    staff.submit(&format!("{delivery}/resend"), &[]).await.assert_status(303);
    assert_eq!(deliver(&context).await, 1);
    let again = host.heard();
    assert_eq!(again[1].header("webhook-id"), again[0].header("webhook-id"));
    let page = staff.get(&delivery).await;
    assert!(page.text().contains("delivered"), "{}", page.text());
    // Repeated as an event, it still goes to this endpoint alone.
    let event = format!("/portal/events/{}", between(&page, "/portal/events/", "\""));
    let shown = staff.get(&event).await;
    // What is wider than the page can be scrolled by keyboard, in every browser.
    for text in [text, shown.assert_status(200).text()] {
        assert!(text.contains("<pre tabindex=\"0\">") && !text.contains("<pre>"), "{text}");
    }
    staff.submit(&format!("{event}/redeliver"), &[]).await.assert_status(303);
    deliver(&context).await;
    assert_eq!((host.heard().len(), neighbour.heard().len()), (3, 0));
}

#[tokio::test]
async fn a_delivery_is_not_sent_again_while_an_attempt_is_under_way() {
    let (context, _, mut staff, host) = started().await;
    let (path, _) = register(&mut staff, &host.url("/hook"), &[]).await;
    host.react(Reaction::Silence);
    staff.get(&path).await;
    staff.submit(&format!("{path}/test"), &[]).await.assert_status(303);
    let core = Arc::clone(context.core());
    let attempt = tokio::spawn(async move { core.deliver_due().await });
    host.heard_at_least(1).await;
    let page = staff.get(&path).await;
    let delivery = format!("/portal/deliveries/{}", between(&page, "/portal/deliveries/", "\""));
    let refused = staff.submit(&format!("{delivery}/resend"), &[]).await;
    assert!(refused.assert_status(409).text().contains("under way"), "{}", refused.text());
    attempt.abort();
}

#[tokio::test]
async fn a_delivery_to_an_endpoint_that_is_off_is_not_offered_again() {
    let (context, _, mut staff, host) = started().await;
    let (path, _) = register(&mut staff, &host.url("/hook"), &[]).await;
    staff.submit(&format!("{path}/test"), &[]).await.assert_status(303);
    let page = staff.get(&path).await;
    let delivery = format!("/portal/deliveries/{}", between(&page, "/portal/deliveries/", "\""));
    let page = staff.get(&delivery).await;
    assert!(page.assert_status(200).text().contains("Send it again"), "{}", page.text());
    let off = "update webhook_endpoint set disabled_at = now()";
    sqlx::query(off).execute(context.db()).await.unwrap();
    let page = staff.get(&delivery).await;
    let text = page.assert_status(200).text();
    assert!(text.contains("switched off") && !text.contains("Send it again"), "{text}");
}

#[tokio::test]
async fn the_answer_of_an_attempt_is_shown_for_seven_days() {
    let (context, _, mut staff, host) = started().await;
    let (path, _) = register(&mut staff, &host.url("/hook"), &[]).await;
    staff.get(&path).await;
    staff.submit(&format!("{path}/test"), &[]).await.assert_status(303);
    deliver(&context).await;
    let page = staff.get(&path).await;
    let delivery = format!("/portal/deliveries/{}", between(&page, "/portal/deliveries/", "\""));
    assert!(staff.get(&delivery).await.text().contains(" ms · webhook-timestamp "));
    context.core().delete_old_deliveries().await.unwrap();
    let attempts = || sqlx::query_scalar::<_, i64>("select count(*) from delivery_attempt");
    assert_eq!(attempts().fetch_one(context.db()).await.unwrap(), 1);
    context.clock().advance(TimeDelta::days(7));
    context.core().delete_old_deliveries().await.unwrap();
    assert_eq!(attempts().fetch_one(context.db()).await.unwrap(), 0);
}

#[tokio::test]
async fn a_rotated_secret_signs_beside_the_one_before_until_the_overlap_ends() {
    let (context, acme, mut staff, host) = started().await;
    let body = json!({"url": host.url("/")});
    let made = acme.post("/api/v2/webhooks", body).await.assert_status(200).json();
    let path = format!("{PATH}/{}", made["id"].as_str().unwrap());
    let test = async |staff: &mut Staff| {
        staff.submit(&format!("{path}/test"), &[]).await.assert_status(303);
        deliver(&context).await;
        host.heard().pop().unwrap()
    };
    assert!(is_signed(&test(&mut staff).await, &acme.webhook_secret), "it has none of its own yet");
    let rotate = format!("{path}/secret");
    let page = staff.submit(&rotate, &[("overlap", "1")]).await;
    let first = between(page.assert_status(200), "id=\"new-secret\">", "<").to_owned();
    let both = test(&mut staff).await;
    assert!(is_signed(&both, &first) && is_signed(&both, &acme.webhook_secret));
    context.clock().advance(TimeDelta::hours(1));
    let alone = test(&mut staff).await;
    assert!(is_signed(&alone, &first) && !is_signed(&alone, &acme.webhook_secret));
    let page = staff.submit(&rotate, &[("overlap", "24")]).await;
    let second = between(page.assert_status(200), "id=\"new-secret\">", "<").to_owned();
    let both = test(&mut staff).await;
    assert!(is_signed(&both, &first) && is_signed(&both, &second));
    let page = staff.submit(&rotate, &[("overlap", "0")]).await;
    let third = between(page.assert_status(200), "id=\"new-secret\">", "<").to_owned();
    let alone = test(&mut staff).await;
    assert!(is_signed(&alone, &third) && !is_signed(&alone, &second) && !is_signed(&alone, &first));
    staff.submit(&rotate, &[("overlap", "9")]).await.assert_status(404);
}

#[tokio::test]
async fn a_rotation_ends_earlier_secrets_with_its_overlap_and_not_before() {
    let (context, acme, mut staff, host) = started().await;
    let body = json!({"url": host.url("/")});
    let made = acme.post("/api/v2/webhooks", body).await.assert_status(200).json();
    let path = format!("{PATH}/{}", made["id"].as_str().unwrap());
    let mut secrets = vec![acme.webhook_secret.clone()];
    // Whoever has lost a new secret rotates again, and the one in use signs on.
    for (overlap, signing) in [("24", 2), ("24", 3), ("0", 1), ("24", 2), ("24", 3), ("0", 1)] {
        staff.get(&path).await;
        let page = staff.submit(&format!("{path}/secret"), &[("overlap", overlap)]).await;
        secrets.push(between(page.assert_status(200), "id=\"new-secret\">", "<").to_owned());
        staff.get(&path).await;
        staff.submit(&format!("{path}/test"), &[]).await.assert_status(303);
        deliver(&context).await;
        let heard = host.heard().pop().unwrap();
        let newest_first = secrets.iter().rev().map(|secret| is_signed(&heard, secret));
        let expected = (0..secrets.len()).map(|age| age < signing);
        assert!(newest_first.eq(expected), "{signing} of {}", secrets.len());
    }
}

#[tokio::test]
async fn an_endpoint_is_not_blamed_for_a_secret_that_cannot_be_opened() {
    let (context, _, mut staff, host) = started().await;
    let (path, _) = register(&mut staff, &host.url("/hook"), &[]).await;
    let broken = "update webhook_endpoint_secret set sealed = ''";
    sqlx::query(broken).execute(context.db()).await.unwrap();
    staff.get(&path).await;
    staff.submit(&format!("{path}/test"), &[]).await.assert_status(303);
    assert_eq!(deliver(&context).await, 1);
    let state = "select concat_ws(' ', d.state, d.last_error, w.failing_since) \
                 from delivery d join webhook_endpoint w using (client_id, endpoint_id)";
    let state: String = sqlx::query_scalar(state).fetch_one(context.db()).await.unwrap();
    assert_eq!(state, "pending unsigned");
}

#[tokio::test]
async fn everything_since_a_time_is_sent_again() {
    let (context, acme, mut staff, host) = started().await;
    let (path, _) = register(&mut staff, &host.url("/hook"), &[]).await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    order.event(&context, "payment-received").await.assert_status(200);
    deliver(&context).await;
    let early = host.heard().len();
    context.clock().advance(TimeDelta::hours(2));
    let since =
        (context.clock().now() - TimeDelta::minutes(1)).format("%Y-%m-%dT%H:%M").to_string();
    order.event(&context, "hold").await.assert_status(200);
    deliver(&context).await;
    let all = host.heard().len();
    assert!(early > 0 && all > early);
    staff.get(&path).await;
    let resend = format!("{path}/resend");
    // Sent twice, it counts once.
    let fields = [("formId", "one"), ("since", &*since)];
    for _ in 0..2 {
        let sent = staff.submit(&resend, &fields).await;
        assert_eq!(sent.header("location"), Some(&*format!("{path}?done=resent")));
    }
    let mut audited = super::audited(&context).await;
    audited.retain(|(action, _)| action == "webhook.resend");
    assert_eq!(audited.len(), 1);
    assert_eq!(deliver(&context).await, all - early);
    let heard = host.heard();
    assert_eq!(heard[all].header("webhook-id"), heard[early].header("webhook-id"));
    for wrong in ["", "yesterday", "2001-01-01T00:00"] {
        let refused = staff.submit(&resend, &[("since", wrong)]).await;
        let dialog =
            between(refused.assert_status(400), "<details class=\"dialog\" open>", "</details>");
        assert!(dialog.contains("id=\"field-since\""), "{dialog}");
    }
}

#[tokio::test]
async fn an_older_event_that_came_since_a_time_is_sent_again_too() {
    let (context, acme, mut staff, host) = started().await;
    OrderFixture::order(&context, &acme, None, None)
        .await
        .event(&context, "cancel")
        .await
        .assert_status(200);
    let events = acme.get("/api/v2/events").await.assert_status(200).json();
    let event = events[0]["id"].as_str().unwrap();
    context.clock().advance(TimeDelta::hours(2));
    let (path, _) = register(&mut staff, &host.url("/hook"), &[]).await;
    let redeliver = format!("/api/v2/events/{event}/redeliver");
    acme.post(&redeliver, json!({})).await.assert_status(200);
    assert_eq!(deliver(&context).await, 1);
    let since =
        (context.clock().now() - TimeDelta::minutes(1)).format("%Y-%m-%dT%H:%M").to_string();
    staff.get(&path).await;
    let resend = format!("{path}/resend");
    staff.submit(&resend, &[("since", &since)]).await.assert_status(303);
    assert_eq!(deliver(&context).await, 1);
    let heard = host.heard();
    assert_eq!((heard.len(), heard[1].header("webhook-id")), (2, event));
    // What was made before is not sent.
    context.clock().advance(TimeDelta::hours(2));
    let since = context.clock().now().format("%Y-%m-%dT%H:%M").to_string();
    staff.get(&path).await;
    let none = staff.submit(&resend, &[("since", &since)]).await;
    let said = staff.get(none.assert_status(303).header("location").unwrap()).await;
    assert!(said.text().contains("Nothing is sent: the endpoint has no"), "{}", said.text());
    assert_eq!(deliver(&context).await, 0);
    staff.submit(&format!("{path}/remove"), &[]).await.assert_status(303);
    let event = format!("/portal/events/{event}");
    staff.get(&event).await;
    let unheard = staff.submit(&format!("{event}/redeliver"), &[]).await;
    let said = staff.get(unheard.assert_status(303).header("location").unwrap()).await;
    assert!(said.text().contains("Nothing is sent: no endpoint"), "{}", said.text());
}

#[tokio::test]
async fn an_endpoint_that_is_switched_off_says_so_and_can_only_be_removed() {
    let (context, _, mut staff, host) = started().await;
    let (path, _) = register(&mut staff, &host.url("/hook"), &[]).await;
    let shown = staff.get(&path).await;
    let action = |name: &str| format!("action=\"{path}/{name}\"");
    for name in ["test", "secret", "resend", "remove"] {
        assert!(shown.text().contains(&action(name)), "{name}: {}", shown.text());
    }
    let off = "update webhook_endpoint set disabled_at = now()";
    sqlx::query(off).execute(context.db()).await.unwrap();
    let refused = staff.submit(&format!("{path}/test"), &[]).await;
    let text = refused.assert_status(409).text();
    assert!(text.contains("switched off") && text.contains("register it anew"), "{text}");
    for name in ["test", "secret", "resend"] {
        assert!(!text.contains(&action(name)), "{name}: {text}");
    }
    assert_eq!(deliver(&context).await, 0);
    staff.submit(&format!("{path}/remove"), &[]).await.assert_status(303);
}

#[tokio::test]
async fn what_is_another_partners_is_not_there() {
    let (context, _, mut staff, host) = started().await;
    let rival = context.partner("rival").await;
    let mut stranger = Staff::signed_in(&context, &rival, "owner").await;
    let (path, _) = register(&mut staff, &host.url("/hook"), &[]).await;
    staff.get(&path).await;
    staff.submit(&format!("{path}/test"), &[]).await.assert_status(303);
    deliver(&context).await;
    let page = staff.get(&path).await;
    let delivery = format!("/portal/deliveries/{}", between(&page, "/portal/deliveries/", "\""));
    let page = staff.get(&delivery).await;
    let event = format!("/portal/events/{}", between(&page, "/portal/events/", "\""));
    for page in [&path, &delivery, &event] {
        stranger.get(page).await.assert_status(404);
    }
    let fields = [("overlap", "0"), ("since", "2001-01-01T00:00")];
    for action in [
        format!("{path}/test"),
        format!("{path}/secret"),
        format!("{path}/resend"),
        format!("{path}/remove"),
        format!("{delivery}/resend"),
        format!("{event}/redeliver"),
    ] {
        stranger.submit(&action, &fields).await.assert_status(404);
    }
    assert_eq!(deliver(&context).await, 0);
    assert!(!stranger.get("/portal/events").await.text().contains("href=\"/portal/events/"));
    staff.submit(&format!("{path}/remove"), &[]).await.assert_status(303);
    staff.get(&path).await.assert_status(404);
    let closed = staff.submit(&format!("{delivery}/resend"), &[]).await;
    assert!(closed.assert_status(409).text().contains("removed or switched off"), "no endpoint");
}

#[tokio::test]
async fn a_url_that_is_no_endpoint_is_refused_and_stays_typed() {
    let (_, _, mut staff, _) = started().await;
    let page = staff.submit(PATH, &[("url", "ftp://shop"), ("event-order.paid", "yes")]).await;
    let text = page.assert_status(400).text();
    for part in ["value=\"ftp://shop\"", "href=\"#field-url\"", "value=\"yes\" checked"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[tokio::test]
async fn an_endpoint_too_many_is_refused_to_a_partner_with_one_connection() {
    let context = TestContext::with(|settings| settings.database.partner_connections_max = 1).await;
    let acme = context.partner("acme").await;
    for number in 0..50 {
        let body = json!({"url": format!("https://shop.example/{number}")});
        acme.post("/api/v2/webhooks", body).await.assert_status(200);
    }
    let mut staff = Staff::signed_in(&context, &acme, "developer").await;
    let refused = staff.submit(PATH, &[("url", "https://shop.example/late")]).await;
    assert!(refused.assert_status(400).text().contains("There are 50 endpoints already"));
}

#[tokio::test]
async fn a_box_of_an_event_that_the_page_does_not_have_registers_nothing() {
    let (context, acme, mut staff, host) = started().await;
    let url = host.url("/hook");
    for (name, value) in [
        ("event-order.paid", "on"),
        ("event-order.paid", ""),
        ("event-order", "yes"),
        ("event-webhook.test", "yes"),
    ] {
        let typed = [("url", &*url), ("event-order.sent", "yes"), (name, value)];
        let page = staff.submit(PATH, &typed).await;
        let text = page.assert_status(400).text();
        for part in ["href=\"#field-events\"", "id=\"field-events\"", "/hook\""] {
            assert!(text.contains(part), "{name}={value}: {part}: {text}");
        }
    }
    assert!(super::audited(&context).await.is_empty());
    assert_eq!(acme.get("/api/v2/webhooks").await.assert_status(200).json(), json!([]));
}
