//! Forms: each makes one call, once, and keeps what was typed when it does not.

use rampart_api::operate::listener;
use rampart_tests::order_fixture::OrderFixture;

use super::*;

/// A paid order of a partner, and the path of its page.
async fn paid(context: &TestContext) -> (OrderFixture, String) {
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(context, &acme, None, None).await;
    order.event(context, "payment-received").await.assert_status(200);
    let path = format!("/console/orders/{}", order.id);
    (order, path)
}

#[tokio::test]
async fn a_form_does_what_the_call_does_and_counts_once() {
    let context = TestContext::start().await;
    let (order, path) = paid(&context).await;
    let ada = Browser::of(&context, "ada", &["treasury"]).await;
    let hold = format!("{path}/hold");
    let form = ada.get(&hold).await.assert(200, "100 EUR").csrf_token();
    let send = async |reason: &str, csrf_token: &str| {
        ada.post(&hold, &[("reason", reason), ("csrfToken", csrf_token)]).await
    };
    send("source of funds", "forged").await.assert(403, "source of funds</textarea>");
    send("", &form).await.assert(422, "Reason is missing");
    assert_eq!(order.seen(&context).await["status"], "in progress");
    let done = send("source of funds", &form).await.assert(303, "");
    assert_eq!(done.header("location"), format!("{path}?done=hold"));
    ada.get(done.header("location")).await.assert(200, "Done: Hold.");
    let seen = order.seen(&context).await;
    assert_eq!(
        (&seen["status"], &seen["statusReason"]),
        (&json!("blocked"), &json!("source of funds"))
    );
    let row = audited(&context, "order.event").await;
    assert_eq!((&row["actor"], &row["detail"]["event"]), (&json!("ada"), &json!("hold")));
    assert_eq!(row["detail"]["reason"], "source of funds");
    // The same form again, and another one of the same.
    send("once more", &form)
        .await
        .assert(409, "was sent before")
        .assert(409, "once more</textarea>");
    let stale = ada.submit(&hold, &[("reason", "once more")]).await;
    stale.assert(409, "the order is blocked, and takes").assert(409, "once more</textarea>");
    let timeline = order.seen(&context).await["timeline"].as_array().unwrap().len();
    assert_eq!(timeline, 2, "payment and hold");
}

#[tokio::test]
async fn a_page_of_another_origin_changes_nothing() {
    let context = TestContext::start().await;
    let (order, path) = paid(&context).await;
    let ada = Browser::of(&context, "ada", &["treasury"]).await;
    let hold = format!("{path}/hold");
    let csrf_token = ada.get(&hold).await.csrf_token();
    let form: Bytes = format!("reason=x&csrfToken={csrf_token}").into();
    for foreign in [("origin", "http://evil.example"), ("sec-fetch-site", "cross-site")] {
        let sent = ada.send(Method::POST, &hold, &[foreign], form.clone()).await;
        assert_eq!(sent.status, 403, "{foreign:?}");
    }
    assert_eq!(order.seen(&context).await["status"], "in progress");
    // The session's cookie alone makes no call of the API either.
    let call = format!("/admin/v1/orders/{}/events", order.id);
    let json = ("content-type", "application/json");
    let sent = ada.send(Method::POST, &call, &[json], r#"{"event":"hold"}"#.into()).await;
    assert_eq!(sent.status, 403);
}

#[tokio::test]
async fn settings_change_where_they_differ_and_overwrite_nobody() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let ada = Browser::of(&context, "ada", &["platform"]).await;
    let path = "/console/partners/acme/settings";
    let form = ada.get(path).await.assert(200, "name=\"shown.feeCapPercentage\"");
    let value = |name: &str| {
        let start = format!("name=\"{name}\" value=\"");
        form.text.split(&start).nth(1).unwrap().split('"').next().unwrap().to_owned()
    };
    let (fee, cap) = (value("shown.defaultFeePercentage"), value("shown.feeCapPercentage"));
    let rates = form.text.split("name=\"shown.rateLimits\" value=\"").nth(1).unwrap();
    let rates = rates.split('"').next().unwrap().to_owned();
    let members = |csrf_token: &str, fee_now: &str| {
        let typed = [
            ("shown.defaultFeePercentage", &*fee),
            ("defaultFeePercentage", fee_now),
            ("shown.feeCapPercentage", &cap),
            ("feeCapPercentage", &cap),
            ("shown.allowedCountries", ""),
            ("allowedCountries", "NL, xx"),
            ("shown.rateLimits", &rates),
            ("rateLimits", &rates),
            ("shown.walletAddressRequired", "no"),
            ("walletAddressRequired", "no"),
            ("shown.policyApprovalRequired", "no"),
            ("policyApprovalRequired", "no"),
            ("shown.policyUploadAllowed", "no"),
            ("policyUploadAllowed", "no"),
            ("csrfToken", csrf_token),
        ];
        typed.map(|(name, value)| (name.to_owned(), value.to_owned()))
    };
    let send = async |members: [(String, String); 15]| {
        let members: Vec<_> = members.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        ada.post(path, &members).await
    };
    let refused = send(members(&form.csrf_token(), "21")).await.assert(422, "0 to 20");
    refused.assert(422, "value=\"21\"");
    let new = ada.get(path).await.csrf_token();
    send(members(&new, "2.5")).await.assert(422, "xx is no country");
    let elsewhere = json!({"defaultFeePercentage": 3});
    context.admin(Method::PATCH, "/admin/v1/partners/acme", elsewhere).await.assert_status(200);
    let new = ada.get(path).await.csrf_token();
    send(members(&new, "2.5")).await.assert(422, "Default fee (%) has become 3 meanwhile");
    let partner = context.admin(Method::GET, "/admin/v1/partners/acme", Value::Null).await.json();
    assert_eq!(partner["defaultFeePercentage"], json!(3));
    let shown = ada.get(path).await.csrf_token();
    let one = [
        ("shown.defaultFeePercentage", "3"),
        ("defaultFeePercentage", "2.5"),
        ("shown.feeCapPercentage", &*cap),
        ("feeCapPercentage", &*cap),
        ("shown.rateLimits", &*rates),
        ("rateLimits", &*rates),
        ("shown.walletAddressRequired", "no"),
        ("walletAddressRequired", "no"),
        ("shown.policyApprovalRequired", "no"),
        ("policyApprovalRequired", "no"),
        ("shown.policyUploadAllowed", "no"),
        ("policyUploadAllowed", "no"),
        ("csrfToken", &*shown),
    ];
    ada.post(path, &one).await.assert(303, "");
    let row = audited(&context, "partner.change").await;
    assert_eq!(
        (&row["actor"], &row["detail"]),
        (&json!("ada"), &json!({"defaultFeePercentage": 2.5}))
    );
}

#[tokio::test]
async fn a_large_payment_takes_two_persons_and_is_carried_out_from_its_approval() {
    let context = TestContext::start().await;
    let ada = Browser::of(&context, "ada", &["treasury"]).await;
    let bob = Browser::of(&context, "bob", &["treasury"]).await;
    let path = "/console/payments/~/record";
    let payment = [
        ("kind", "received"),
        ("amount", "5000.00"),
        ("currency", "EUR"),
        ("providerReference", "2026-03-01-17"),
        ("reason", "seen on the statement"),
    ];
    let waits = ada.submit(path, &payment).await.assert(303, "");
    let waits = waits.header("location").to_owned();
    assert!(waits.starts_with("/console/payments/~?waits="), "{waits}");
    let page = ada.get(&waits).await.assert(200, "Another operator must agree first");
    let page = page.assert(200, "carry it out from there");
    assert!(!page.text.contains("the same again"), "with another reason it would wait anew");
    let id = waits.split('=').nth(1).unwrap();
    let shown = ada.get("/console/approvals").await.assert(200, "5000.00");
    assert!(shown.text.contains("<h2>Open</h2>"), "headings skip no level: {}", shown.text);
    assert!(!shown.text.contains(&format!("{id}/grant")), "nobody agrees with themselves");
    let (grant, carry_out) =
        (format!("/console/approvals/{id}/grant"), format!("/console/approvals/{id}/carry-out"));
    ada.submit(&grant, &[]).await.assert(403, "another operator must agree");
    ada.get(&carry_out).await.assert(409, "must agree to this call first");
    bob.get("/console/approvals").await.assert(200, &format!("{id}/grant"));
    bob.submit(&grant, &[]).await.assert(303, "");
    bob.get(&carry_out).await.assert(409, "The operator who asked for this call");
    let form = ada.get(&carry_out).await.assert(200, "5000.00").csrf_token();
    let send = async || ada.post(&carry_out, &[("csrfToken", &form)]).await;
    send().await.assert(200, "The call is carried out");
    send().await.assert(200, "The call is carried out");
    ada.get(&carry_out).await.assert(409, "carried out already");
    let nobody = "0199a000-0000-7000-8000-0000000000ff";
    let nothing = format!("/console/approvals/{nobody}/carry-out");
    ada.get(&nothing).await.assert(404, "no such page");
    let listed = ada.get("/console/payments?state=unmatched").await;
    assert_eq!(listed.text.matches("2026-03-01-17").count(), 1, "{}", listed.text);
    assert_eq!(audited(&context, "payment.record").await["actor"], "ada");
}

#[tokio::test]
async fn an_approval_that_has_ended_says_so_where_it_would_be_carried_out() {
    let context = TestContext::start().await;
    let ada = Browser::of(&context, "ada", &["treasury"]).await;
    let bob = Browser::of(&context, "bob", &["treasury"]).await;
    let path = "/console/market/BTC-EUR/price";
    let ask = async |price: &str| {
        let waits = ada.submit(path, &[("price", price)]).await.assert(303, "");
        let id = waits.header("location").split("waits=").nth(1).unwrap().to_owned();
        format!("/console/approvals/{id}")
    };
    let refused = ask("41234.56").await;
    bob.submit(&format!("{refused}/refuse"), &[]).await.assert(303, "");
    let carry_out = format!("{refused}/carry-out");
    ada.get(&carry_out).await.assert(409, "This call was refused");
    let expired = ask("42345.67").await;
    bob.submit(&format!("{expired}/grant"), &[]).await.assert(303, "");
    let carry_out = format!("{expired}/carry-out");
    let form = ada.get(&carry_out).await.assert(200, "42345.67").csrf_token();
    let end = "update approval set expires_at = now() where granted_by = 'bob'";
    sqlx::query(end).execute(context.db()).await.unwrap();
    let late = ada.post(&carry_out, &[("csrfToken", &form)]).await;
    late.assert(409, "This approval has ended");
}

#[tokio::test]
async fn a_payment_without_an_order_is_matched_to_a_suggestion() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    let ada = Browser::of(&context, "ada", &["treasury"]).await;
    let reference = format!("INVOICE {}", order.id);
    let payment = [
        ("kind", "received"),
        ("amount", "100"),
        ("currency", "EUR"),
        ("providerReference", &*reference),
        ("reason", "seen on the statement"),
    ];
    let unmatched = async |payment: &[(&str, &str)], shown: &str| {
        ada.submit("/console/payments/~/record", payment).await.assert(303, "");
        let list = ada.get("/console/payments?state=unmatched").await.assert(200, shown);
        let id = list.text.split("href=\"/console/payments/").filter_map(|link| {
            let id = link.split('"').next()?;
            (id.len() == 36).then(|| id.to_owned())
        });
        format!("/console/payments/{}", id.last().unwrap())
    };
    let path = unmatched(&payment, "100 EUR").await;
    let page = ada.get(&path).await.assert(200, "Orders that it may be meant for");
    assert!(page.text.contains("number, amount"), "{}", page.text);
    let number = order.id.to_string();
    // Who may not match sees what it may be meant for, and no way to do it.
    let support = Browser::of(&context, "eve", &["support"]).await;
    let seen = support.get(&path).await.assert(200, "Orders that it may be meant for");
    assert!(page.text.contains("/match?") && !seen.text.contains("/match"), "{}", seen.text);
    ada.get(&format!("{path}/match?orderId={number}"))
        .await
        .assert(200, &format!("value=\"{number}\""));
    ada.submit(&format!("{path}/match"), &[("orderId", "x")]).await.assert(422, "a whole number");
    ada.submit(&format!("{path}/match"), &[("orderId", &number)]).await.assert(303, "");
    assert_eq!(order.seen(&context).await["status"], "in progress");
    assert_eq!(audited(&context, "payment.match").await["actor"], "ada");
    let again = ada.submit(&format!("{path}/match"), &[("orderId", &number)]).await;
    again.assert(409, "matched already");
    let mut stray = payment;
    (stray[1].1, stray[3].1) = ("77.77", "STRAY");
    let path = unmatched(&stray, "77.77 EUR").await;
    ada.get(&path).await.assert(200, "fits this payment by number, amount or name");
}

#[tokio::test]
async fn a_subject_of_the_queue_is_claimed_and_released() {
    let context = TestContext::start().await;
    let (order, path) = paid(&context).await;
    let ada = Browser::of(&context, "ada", &["compliance"]).await;
    ada.submit(&format!("{path}/hold"), &[("reason", "look")]).await.assert(303, "");
    let review = format!("/console/reviews/order/{}", order.id);
    ada.get("/console/reviews").await.assert(200, &format!("href=\"{review}\""));
    ada.submit(&format!("{review}/claim"), &[]).await.assert(303, "");
    let bob = Browser::of(&context, "bob", &["compliance"]).await;
    bob.get(&review).await.assert(200, "ada");
    bob.submit(&format!("{review}/claim"), &[])
        .await
        .assert(409, "another operator has claimed it");
    ada.submit(&format!("{review}/release"), &[]).await.assert(303, "");
    bob.submit(&format!("{review}/claim"), &[]).await.assert(303, "");
    bob.submit(&format!("{path}/release"), &[("reason", "fine")]).await.assert(303, "");
    bob.get(&review).await.assert(200, "It waits for nobody any more");
    bob.get("/console/reviews/order/7").await.assert(404, "no such order");
    let nobody = "0199a000-0000-7000-8000-0000000000ff";
    for (path, words) in [
        (&*format!("user/{nobody}"), "no such user"),
        ("user/7", "no such user"),
        (&*format!("order/{nobody}"), "no such order"),
        ("user/ada", "no such page"),
        ("partner/7", "no such page"),
    ] {
        bob.get(&format!("/console/reviews/{path}")).await.assert(404, words);
    }
}

#[tokio::test]
async fn a_subject_shows_its_screening_however_many_wait() {
    let context = TestContext::start().await;
    let (order, _) = paid(&context).await;
    // More than a page of the list, and all of them older.
    let orders = "insert into buy_order select (jsonb_populate_record(o, \
        jsonb_build_object('order_id', n, 'quote_id', gen_random_uuid(), 'offer_id', null))).* \
        from buy_order o, generate_series(1, 200) n";
    let screenings = "insert into screening (client_id, screening_id, order_id, state, created_at) \
        select client_id, (lpad(to_hex(least(order_id, 1000)), 12, '0') || '7' \
                || substr(md5(order_id::text), 1, 19))::uuid, order_id, 'review', \
            timestamptz '2026-01-01' + least(order_id, 1000) * interval '1 second' from buy_order";
    for statement in [orders, screenings] {
        sqlx::query(statement).execute(context.db()).await.unwrap();
    }
    let list = async |criteria: &str| {
        let path = format!("/admin/v1/screenings?{criteria}");
        context.admin(Method::GET, &path, Value::Null).await
    };
    let own = list(&format!("state=review&orderId={}", order.id)).await.assert_status(200).json();
    assert_eq!(own.as_array().unwrap().len(), 1, "{own}");
    assert_eq!(own[0]["orderId"], order.id);
    let nobody = "userId=0199a000-0000-7000-8000-0000000000ff";
    assert_eq!(list(nobody).await.assert_status(200).json(), json!([]));
    for wrong in ["orderId=x", "userId=7"] {
        list(wrong).await.assert_status(422);
    }
    let ada = Browser::of(&context, "ada", &["compliance"]).await;
    let link = format!("href=\"/console/screenings/{}\"", own[0]["id"].as_str().unwrap());
    let page = format!("/console/reviews/order/{}", order.id);
    ada.get(&page).await.assert(200, &link);
    sqlx::query("update screening set state = 'block'").execute(context.db()).await.unwrap();
    ada.get(&page).await.assert(200, &link);
}

#[tokio::test]
async fn pictures_of_a_user_in_the_queue_stand_beside_the_data() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let photo = json!({"name": "Ada Lovelace", "iban": "NL91ABNA0417164300",
        "proof": "iVBORw0KGgoAAAANSUhEUgAAAAE="});
    ada.post("/api/v1/user/verify/iban/photo", &photo).await.assert_status(200);
    let uuid = ada.log_in().await["uuid"].as_str().unwrap().to_owned();
    let review = format!("/console/reviews/user/{uuid}");
    let judge = Browser::of(&context, "judge", &["compliance"]).await;
    let page = judge.get(&review).await.assert(200, "Keizersgracht");
    assert!(page.header("content-security-policy").starts_with("img-src 'self'; default-src"));
    let image = page.text.split("<img src=\"").nth(1).unwrap().split('"').next().unwrap();
    assert!(image.starts_with(&format!("/admin/v1/users/{uuid}/proofs/")), "{image}");
    assert!(page.text.contains("loading=\"lazy\"") && page.text.contains("value=\"4\""));
    assert_eq!(audited(&context, "user.read-proof").await, Value::Null, "nobody has opened it");
    let head = judge.head(Method::GET, image);
    let opened = Box::pin(listener::answer(context.core(), head, Bytes::new())).await;
    assert_eq!(
        (opened.status.as_u16(), &opened.headers["content-type"]),
        (200, &HeaderValue::from_static("image/png"))
    );
    assert_eq!(audited(&context, "user.read-proof").await["actor"], "judge");
    // Support sees the data, and no picture.
    let support = Browser::of(&context, "bob", &["support"]).await;
    let page = support.get(&review).await.assert(200, "Keizersgracht");
    assert!(!page.text.contains("<img"), "{}", page.text);
    // Nor what support may not do.
    let path = format!("/console/users/{uuid}");
    for (browser, may) in [(&judge, true), (&support, false)] {
        let page = browser.get(&path).await.assert(200, "NL91ABNA0417164300");
        for action in ["/verify?version=v", "/disable\""] {
            assert_eq!(page.text.contains(action), may, "{action}: {}", page.text);
        }
    }
}

#[tokio::test]
async fn a_decision_needs_a_reason_and_its_page_shows_it() {
    let context = TestContext::start().await;
    let (_, path) = paid(&context).await;
    let ada = Browser::of(&context, "ada", &["compliance"]).await;
    ada.submit(&format!("{path}/hold"), &[("reason", "look")]).await.assert(303, "");
    let release = format!("{path}/release");
    ada.submit(&release, &[]).await.assert(422, "Reason is missing");
    ada.submit(&release, &[("reason", "source of funds shown")]).await.assert(303, "");
    ada.get(&path).await.assert(200, "Decisions").assert(200, "source of funds shown");

    let user = context.partner("other").await.user("eve").await.log_in().await;
    let path = format!("/console/users/{}", user["uuid"].as_str().unwrap());
    let checks = format!("{path}/checks");
    ada.get(&checks).await.assert(200, "no personal data");
    let decided = [("verification.identity", "verified")];
    ada.submit(&checks, &decided).await.assert(422, "Reason is missing");
    let decided = [("verification.identity", "verified"), ("reason", "passport <seen>")];
    ada.submit(&checks, &decided).await.assert(303, "");
    let page = ada.get(&path).await.assert(200, "verification=identity=verified");
    assert!(page.text.contains("passport &lt;seen&gt;"), "{}", page.text);
    assert_eq!(audited(&context, "user.change").await["detail"]["reason"], "passport <seen>");
    // A role that does not see the audit sees the user without it.
    let bob = Browser::of(&context, "bob", &["support"]).await;
    let page = bob.get(&path).await.assert(200, "Checks");
    assert!(!page.text.contains("Decisions"), "{}", page.text);
}

#[tokio::test]
async fn what_is_wrong_with_a_choice_is_read_out_with_it() {
    let context = TestContext::start().await;
    let ada = Browser::of(&context, "ada", &["platform"]).await;
    let typed = [("slug", "acme"), ("name", "Acme"), ("mode", "")];
    let page = ada.submit("/console/partners/~/create", &typed).await;
    let page = page.assert(422, "id=\"field-mode-about\"").assert(422, "Mode is missing");
    let choice = page.text.split("name=\"mode\"").nth(1).unwrap().split('>').next().unwrap();
    for part in ["aria-describedby=\"field-mode-about\"", "aria-invalid=\"true\""] {
        assert!(choice.contains(part), "{part}: {choice}");
    }
}
