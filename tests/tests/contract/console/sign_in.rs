//! Sessions that begin with an operator's token.

use rampart_core::platform::settings::Oidc;
use rampart_tests::cluster::commit_once_awaited;

use super::*;

#[tokio::test]
async fn an_operator_signs_in_with_a_token_and_out() {
    let context = TestContext::start().await;
    let token = context.operator("ada", &["viewer"]).await;
    let browser = Browser::new(&context);
    browser.get("/console/orders").await.assert(401, "Please sign in");
    let page = browser.get("/console").await.assert(200, "Operator token");
    assert_eq!(page.header("referrer-policy"), "same-origin", "its forms name their origin");
    let form = page.csrf_token();
    let send = async |token: &str, csrf_token: &str| {
        let members = [("token", token), ("csrfToken", csrf_token)];
        browser.post("/console/sign-in", &members).await
    };
    send(&token, "forged").await.assert(403, "This form is no longer good");
    send("rop_wrong", &form).await.assert(401, "This token is wrong");
    browser.get("/console/sign-in").await.assert(200, "Operator token");
    let done = send(&token, &form).await.assert(303, "");
    assert_eq!(done.header("location"), "/console");
    let cookie = done.header("set-cookie");
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let home = browser.get("/console").await.assert(200, "ada");
    let form = browser.get("/console/sign-in").await.assert(303, "");
    assert_eq!(form.header("location"), "/console");
    let login = audited(&context, "operator.login").await;
    assert_eq!((&login["actor"], &login["detail"]["roles"]), (&json!("ada"), &json!(["viewer"])));
    let out = [("csrfToken", "forged")];
    browser.post("/console/sign-out", &out).await.assert(303, "");
    browser.get("/console").await.assert(200, "Sign out");
    let csrf_token = home.csrf_token();
    browser.post("/console/sign-out", &[("csrfToken", &csrf_token)]).await.assert(303, "");
    browser.get("/console/orders").await.assert(401, "Please sign in");
    let logout = audited(&context, "operator.logout").await;
    assert_eq!(logout["actor"], "ada");
    assert_eq!(logout["detail"]["sessionId"], login["detail"]["sessionId"]);
}

#[tokio::test]
async fn a_sign_in_leads_back_to_the_page_that_was_asked_for() {
    let context = TestContext::with(|settings| {
        let (issuer, client_id) = ("https://login.example.com".to_owned(), "rampart".to_owned());
        settings.operators.oidc = Some(Oidc { issuer, client_id, ..Oidc::default() });
    })
    .await;
    let token = context.operator("ada", &["viewer"]).await;
    let path = "/console/orders?status=pending&limit=5";
    let field = "name=\"page\" value=\"/console/orders?status=pending&amp;limit=5\"";
    let carried = "/console/login?page=%2Fconsole%2Forders%3Fstatus%3Dpending%26limit%3D5";
    let browser = Browser::new(&context);
    let form = browser.get(path).await.assert(401, field).assert(401, carried).csrf_token();
    let send = async |token: &str, page: &str| {
        let members = [("token", token), ("page", page), ("csrfToken", &*form)];
        browser.post("/console/sign-in", &members).await
    };
    send("rop_wrong", path).await.assert(401, field).assert(401, carried);
    for (page, to) in [
        (path, path),
        ("", "/console"),
        ("https://evil.example/console/orders", "/console"),
        ("//evil.example/console", "/console"),
        ("/console/../admin/v1/orders", "/console"),
        ("/admin/v1/orders", "/console"),
    ] {
        let done = send(&token, page).await.assert(303, "");
        assert_eq!(done.header("location"), to, "{page}");
    }
    browser.get(path).await.assert(200, "Sign out");
    let stranger = Browser::new(&context);
    for no_page in ["/console/sign-in", "/console/nothing", "/console"] {
        let shown = stranger.get(no_page).await;
        assert!(!shown.text.contains("name=\"page\""), "{no_page}: {}", shown.text);
    }
    let action = stranger.post("/console/orders/1/hold", &[("reason", "x")]).await;
    assert!(!action.assert(401, "nothing was done").text.contains("name=\"page\""));
}

#[tokio::test]
async fn over_tls_cookies_are_of_this_host_alone() {
    let context =
        TestContext::with(|settings| settings.admin_url = "https://ops.example.com".to_owned())
            .await;
    let token = context.operator("ada", &["viewer"]).await;
    let shown = Browser::new(&context).get("/console").await;
    let cookie = shown.header("set-cookie");
    assert!(cookie.starts_with("__Host-rampart_sign_in="), "{cookie}");
    assert!(cookie.contains("; Path=/;") && cookie.contains("; Secure"), "{cookie}");
    let done = Browser::new(&context).sign_in(&token).await.assert(303, "");
    let cookie = done.header("set-cookie");
    assert!(
        cookie.starts_with("__Host-rampart_operator=") && cookie.contains("; Secure"),
        "{cookie}"
    );
    assert!(cookie.contains("Path=/;") && cookie.contains("Max-Age=28800"), "{cookie}");
}

#[tokio::test]
async fn a_session_ends_with_its_token_and_follows_its_operators_roles() {
    let context = TestContext::start().await;
    let ada = Browser::of(&context, "ada", &["viewer"]).await;
    ada.get("/console/audit").await.assert(403, "Not for your role");
    let roles = json!({"roles": ["platform"]});
    context.admin(Method::PATCH, "/admin/v1/operators/ada", roles).await.assert_status(204);
    ada.get("/console/audit").await.assert(200, "operator.login");
    let list = context.admin(Method::GET, "/admin/v1/operators", Value::Null).await.json();
    let id = list[0]["tokens"][0]["id"].as_str().unwrap();
    let path = format!("/admin/v1/operators/ada/tokens/{id}");
    context.admin(Method::DELETE, &path, Value::Null).await.assert_status(204);
    ada.get("/console").await.assert(200, "Operator token");
}

#[tokio::test]
async fn the_configured_token_signs_in_as_an_alarm() {
    let context = TestContext::start().await;
    let browser = Browser::new(&context);
    browser.sign_in("operator-of-the-test").await.assert(303, "");
    browser.get("/console/audit").await.assert(200, "operator.login");
    let alarms = |text: String| {
        let line =
            text.lines().find(|line| line.starts_with("rampart_operator_break_glass_total "));
        line.unwrap().rsplit(' ').next().unwrap().parse::<u64>().unwrap()
    };
    let before = alarms(context.core().metrics_text());
    browser.get("/console").await.assert(200, "admin");
    assert_eq!(alarms(context.core().metrics_text()), before + 1);
    // An edge with another token does not know the session.
    let edge = context.edge_with(|settings| settings.admin_token = None).await;
    let other = Browser { context: &edge, cookies: browser.cookies.clone() };
    other.get("/console/audit").await.assert(401, "Please sign in");
}

#[tokio::test]
async fn guesses_are_limited_and_sessions_end() {
    let quota = "10/h burst 3".parse().unwrap();
    let context = TestContext::with(|settings| settings.ratelimit.operators = quota).await;
    let ada = Browser::of(&context, "ada", &["viewer"]).await;
    let stranger = Browser::new(&context);
    for _ in 0..3 {
        stranger.sign_in("rop_guess").await.assert(401, "wrong");
    }
    let limited = stranger.sign_in("rop_guess").await.assert(429, "Too many failed sign-ins");
    assert!(limited.header("retry-after").parse::<u64>().is_ok_and(|seconds| seconds > 0));
    ada.get("/console").await.assert(200, "Overview");
    let end = "update operator_session set expires_at = now() - interval '1 second'";
    sqlx::query(end).execute(context.db()).await.unwrap();
    ada.get("/console/orders").await.assert(401, "Please sign in");
    let hold = [("reason", "x"), ("csrfToken", "y")];
    ada.post("/console/orders/1/hold", &hold).await.assert(401, "Your session has ended");
}

#[tokio::test]
async fn live_sessions_of_an_operator_are_listed() {
    let context = TestContext::start().await;
    let ada = Browser::of(&context, "ada", &["treasury"]).await;
    let path = "/admin/v1/operators/ada/sessions";
    let sessions = context.admin(Method::GET, path, Value::Null).await.assert_status(200).json();
    assert_eq!(sessions.as_array().unwrap().len(), 1, "{sessions}");
    assert_eq!(
        (&sessions[0]["withToken"], &sessions[0]["roles"]),
        (&json!(true), &json!(["treasury"]))
    );
    ada.get("/console/operators/ada").await.assert(200, "Sessions").assert(200, "With a token");
    let disabled = json!({"disabled": true});
    context.admin(Method::PATCH, "/admin/v1/operators/ada", disabled).await.assert_status(204);
    let none = context.admin(Method::GET, path, Value::Null).await.assert_status(200).json();
    assert_eq!(none, json!([]));
}

#[tokio::test]
async fn people_of_one_name_do_not_hide_each_others_sessions() {
    let context = TestContext::start().await;
    let ada = Browser::of(&context, "ada", &["treasury"]).await;
    let eve = Browser::of(&context, "eve", &["treasury"]).await;
    for statement in [
        // As of two people to whom the provider gives one name.
        "update operator_session set name = 'mia', token_digest = null, identity = name",
        // One has had another name before.
        "insert into operator_session \
             (session_id, digest, name, roles, identity, expires_at, created_at) \
         select gen_random_uuid(), sha256('mary'), 'mary', roles, identity, expires_at, created_at \
         from operator_session where identity = 'ada'",
        // The other one has as many sessions as one person may have, and newer ones.
        "insert into operator_session \
             (session_id, digest, name, roles, identity, expires_at, created_at) \
         select gen_random_uuid(), sha256(n::text::bytea), name, roles, identity, expires_at, \
             created_at + interval '1 second' \
         from operator_session, generate_series(1, 19) n where identity = 'eve'",
    ] {
        sqlx::query(statement).execute(context.db()).await.unwrap();
    }
    let path = "/admin/v1/operators/mia/sessions";
    let counts = async |browser: &Browser<'_>| {
        let first = browser.get(path).await.assert(200, "createdAt");
        let next = first.header("link").split(['<', '>']).nth(1).unwrap().to_owned();
        let second = browser.get(&next).await.assert(200, "createdAt");
        [first, second].map(|page| serde_json::from_str::<Vec<Value>>(&page.text).unwrap().len())
    };
    assert_eq!(counts(&ada).await, [20, 2], "those of both, and of her own earlier name");
    assert_eq!(counts(&eve).await, [20, 1], "those of both by this name");
    let zoe = Browser::of(&context, "zoe", &["viewer"]).await;
    assert_eq!(counts(&zoe).await, [20, 1], "the same to everybody else");
    let first = context.admin(Method::GET, path, Value::Null).await;
    let next = first.header("link").unwrap().split(['<', '>']).nth(1).unwrap();
    let second = context.admin(Method::GET, next, Value::Null).await;
    let owned = [first.json(), second.json()].map(|page| page.as_array().unwrap().len());
    assert_eq!(owned, [20, 1], "an owner sees those of both by this name");
    // The page of the name's operator leads on to those behind the first ones.
    context.operator("mia", &["viewer"]).await;
    let page = zoe.get("/console/operators/mia").await.assert(200, "More sessions");
    let link = page.text.split("href=\"").find(|link| link.contains("/~/sessions?after=")).unwrap();
    let rest = zoe.get(link.split('"').next().unwrap()).await.assert(200, "Sessions of mia");
    assert_eq!(rest.text.matches("<tr>").count(), 2, "a heading and a row: {}", rest.text);
}

#[tokio::test]
async fn a_link_of_another_site_leads_on_from_a_page_of_our_own() {
    let context = TestContext::start().await;
    let ada = Browser::of(&context, "ada", &["viewer"]).await;
    let link = [
        ("accept", "text/html,application/xhtml+xml,*/*;q=0.8"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-dest", "document"),
    ];
    let path = "/console/orders?status=pending&limit=5";
    let page = ada.send(Method::GET, path, &link, Bytes::new()).await.assert(200, "Go on");
    assert!(page.header("content-type").starts_with("text/html"));
    assert_eq!(page.header("refresh"), format!("0; url={path}"));
    assert_eq!(page.header("cross-origin-opener-policy"), "same-origin");
    assert!(!page.text.contains("Sign out"), "{}", page.text);
    // The page that leads on is of this origin.
    ada.send(Method::GET, path, &[("sec-fetch-site", "same-origin")], Bytes::new())
        .await
        .assert(200, "Sign out");
    for other in [("sec-fetch-dest", "iframe"), ("sec-fetch-mode", "cors"), ("accept", "*/*")] {
        let headers: Vec<_> = link.iter().copied().chain([other]).collect();
        let refused = ada.send(Method::GET, path, &headers, Bytes::new()).await;
        assert_eq!(refused.status, 403, "{other:?}");
    }
    for (method, path) in [
        (Method::POST, "/console/orders/1/hold"),
        (Method::POST, "/console/sign-in"),
        (Method::GET, "/admin/v1/orders"),
    ] {
        let refused = ada.send(method, path, &link, Bytes::new()).await;
        assert_eq!(refused.status, 403, "{path}");
    }
}

#[tokio::test]
async fn a_browser_is_shown_pages_of_what_failed_or_was_refused() {
    let context = TestContext::start().await;
    let ada = Browser::of(&context, "ada", &["viewer"]).await;
    let page = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
    let foreign = ("origin", "https://evil.example");
    let hold = "/console/orders/1/hold";
    let refused = ada.send(Method::POST, hold, &[page, foreign], Bytes::new()).await;
    let refused = refused.assert(403, "<h1>This was refused</h1>").assert(403, "another origin");
    assert!(refused.header("content-security-policy").starts_with("default-src 'none'"));
    let plain = ada.send(Method::POST, hold, &[foreign], Bytes::new()).await;
    plain.assert(403, "{\"error\":");
    let away = "alter table operator_session rename to away";
    sqlx::query(away).execute(context.db()).await.unwrap();
    let failed = ada.send(Method::GET, "/console/orders", &[page], Bytes::new()).await;
    failed.assert(500, "This does not work at the moment").assert(500, "Request: test-request");
    ada.get("/console/orders").await.assert(500, "{\"error\":");
    let call = ada.send(Method::GET, "/admin/v1/orders", &[page], Bytes::new()).await;
    call.assert(500, "{\"error\":");
}

/// The token of the changes that a session makes.
async fn csrf_token(browser: &Browser<'_>) -> String {
    let session = browser.get("/console/session").await.assert(200, "csrfToken");
    let session: Value = serde_json::from_str(&session.text).unwrap();
    session["csrfToken"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_session_that_keeps_a_name_alone_does_nothing_that_takes_two_persons() {
    let context = TestContext::start().await;
    let ada = Browser::of(&context, "ada", &["treasury"]).await;
    // As an edge of the version before keeps one of a person whom the provider has proven.
    let forget = "update operator_session set token_digest = null";
    sqlx::query(forget).execute(context.db()).await.unwrap();
    let csrf = csrf_token(&ada).await;
    let price = Bytes::from(json!({"price": 41234.56}).to_string());
    let path = "/admin/v1/prices/BTC-EUR";
    let asked = ada.send(Method::PUT, path, &[("x-csrf-token", &csrf)], price).await;
    asked.assert(403, "sign in again");
    ada.get("/console").await.assert(200, "ada");
}

#[tokio::test]
async fn nobody_agrees_whose_session_ends_meanwhile() {
    let context = TestContext::start().await;
    let ada = context.operator("ada", &["treasury"]).await;
    let bob = Browser::of(&context, "bob", &["treasury"]).await;
    let price = Bytes::from(json!({"price": 41234.56}).to_string());
    let asked = context.admin_as(Some(&ada), Method::PUT, "/admin/v1/prices/BTC-EUR", price).await;
    let asked = asked.assert_status(202).json();
    let grant = format!("/admin/v1/approvals/{}/grant", asked["approval"].as_str().unwrap());
    let csrf = csrf_token(&bob).await;
    let csrf = [("x-csrf-token", &*csrf)];
    let mut somebody = context.db().begin().await.unwrap();
    let end = "delete from operator_session where name = 'bob'";
    sqlx::query(end).execute(&mut *somebody).await.unwrap();
    let end = commit_once_awaited(context.db(), somebody);
    let granted = bob.send(Method::POST, &grant, &csrf, Bytes::new());
    let (granted, ()) = futures::join!(granted, end);
    granted.assert(409, "not pending");
}
