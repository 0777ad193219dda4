//! Operators who log in at an OpenID Connect provider: by its tokens, and in a browser.

mod approvals;

use rampart_tests::caller::Protocol;
use rampart_tests::cluster;
use rampart_tests::edge::{Edge, Setup};
use rampart_tests::oidc_provider::{OidcProvider, OperatorBrowser, location};
use serde_json::{Value, json};

/// A provider with an operator, one for money, and one without a role.
async fn provider() -> OidcProvider {
    OidcProvider::start(&[
        json!({"sub": "ada", "preferred_username": "Ada", "groups": ["rampart-platform"]}),
        json!({"sub": "bob", "preferred_username": "bob", "groups": ["rampart-money", "chess"]}),
        json!({"sub": "eve", "preferred_username": "eve", "groups": ["chess"]}),
    ])
    .await
}

/// An edge whose operators log in there.
async fn edge(provider: &OidcProvider) -> Edge {
    edge_with(provider, |_| ()).await
}

/// The same with other settings besides.
async fn edge_with(provider: &OidcProvider, change: impl FnOnce(&mut Setup)) -> Edge {
    Edge::with(|setup| {
        change(setup);
        setup.set("operators.oidc.issuer", &provider.issuer);
        setup.set("operators.oidc.client_id", "rampart");
        setup.set("operators.oidc.client_secret", "the secret: of/rampart");
        setup.set("operators.oidc.role_claim", "groups");
        setup.set("operators.oidc.roles.rampart-platform", "platform");
        setup.set("operators.oidc.roles.rampart-money", "treasury, support");
    })
    .await
}

/// A call with a bearer token: its status and its `error`.
async fn call(edge: &Edge, token: &str, path: &str) -> (u16, String) {
    let request = Protocol::Http1.client().get(format!("http://{}{path}", edge.admin));
    let answer = request.bearer_auth(token).send().await.unwrap();
    let status = answer.status().as_u16();
    let body: Value = answer.json().await.unwrap();
    (status, body["error"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn a_token_of_the_provider_proves_an_operator_and_their_roles() {
    let provider = provider().await;
    let edge = edge(&provider).await;
    let (ada, bob) =
        (provider.token("rampart", "ada").await, provider.token("rampart", "bob").await);
    assert_eq!(call(&edge, &ada, "/admin/v1/partners").await.0, 200);
    assert_eq!(call(&edge, &bob, "/admin/v1/audit").await.0, 403);
    let eve = provider.token("rampart", "eve").await;
    let (status, sentence) = call(&edge, &eve, "/admin/v1/partners").await;
    assert_eq!(status, 403);
    assert!(sentence.contains("eve has no role here") && sentence.contains("groups"), "{sentence}");

    let elsewhere = provider.token("another", "ada").await;
    let (head, rest) = ada.split_once('.').unwrap();
    let (claims, signature) = rest.split_once('.').unwrap();
    let (_, other_claims) = bob.split_once('.').unwrap();
    let other_claims = other_claims.split_once('.').unwrap().0;
    for forged in [
        elsewhere,
        format!("{head}.{other_claims}.{signature}"),
        format!("{head}.{claims}."),
        format!("eyJhbGciOiJub25lIn0.{claims}."),
    ] {
        assert_eq!(call(&edge, &forged, "/admin/v1/partners").await.0, 401, "{forged}");
    }
    let metrics = edge.ops("/metrics").await.text().to_owned();
    assert!(metrics.contains(r#"rampart_operator_login_failures_total{cause="wrong"} 4"#));
}

#[tokio::test]
async fn a_person_logs_in_by_a_browser_and_every_call_names_them() {
    let provider = provider().await;
    let edge = edge(&provider).await;
    let mut browser = OperatorBrowser::new(&edge);
    assert_eq!(browser.open("/console/session").await.status(), 401);
    let begun = browser.open("/console/login?page=%2Fconsole%2Forders%3Fstatus%3Dpending").await;
    assert_eq!(begun.status(), 303);
    let pending = OperatorBrowser::cookie(&begun, "rampart_login");
    assert!(pending.contains("HttpOnly") && pending.contains("SameSite=Lax"), "{pending}");
    let page = location(&begun);
    assert!(page.as_str().starts_with(&provider.issuer), "{page}");
    let asked = |name: &str| {
        let found = page.query_pairs().find(|(known, _)| known == name);
        found.unwrap_or_else(|| panic!("no {name} in {page}")).1.into_owned()
    };
    assert_eq!((&*asked("code_challenge_method"), asked("nonce").len()), ("S256", 43));
    assert_eq!(asked("redirect_uri"), format!("http://{}/console/callback", edge.admin));

    let returned = provider.log_in(page.as_str(), "ada").await;
    let back = format!("{}?{}", returned.path(), returned.query().unwrap());
    let mut stranger = OperatorBrowser::new(&edge);
    assert_eq!(stranger.open(&back).await.status(), 401, "the login is of another browser");
    let forged = back.replace("state=", "state=x");
    assert_eq!(browser.open(&forged).await.status(), 401);
    let done = browser.open(&back).await;
    assert_eq!(done.status(), 200);
    let session = OperatorBrowser::cookie(&done, "rampart_operator");
    assert!(session.contains("HttpOnly") && session.contains("SameSite=Strict"), "{session}");
    let text = done.text().await.unwrap();
    assert!(text.contains("ada"), "{text}");
    assert!(text.contains("href=\"/console/orders?status=pending\""), "{text}");
    assert_eq!(browser.open(&back).await.status(), 401, "a login ends once");

    let session: Value = browser.open("/console/session").await.json().await.unwrap();
    assert_eq!((&session["operator"], &session["roles"]), (&json!("ada"), &json!(["platform"])));
    assert_eq!(browser.open("/admin/v1/partners").await.status(), 200);
    let csrf = session["csrfToken"].as_str().unwrap();
    let partner = json!({"slug": "by-ada", "name": "By Ada", "mode": "test"});
    for token in [None, Some("wrong")] {
        let refused = browser.change("/admin/v1/partners", token, &partner).await;
        assert_eq!(refused.status(), 403, "{token:?}");
    }
    let made = browser.change("/admin/v1/partners", Some(csrf), &partner).await;
    assert_eq!(made.status(), 201);
    let pool = cluster::pool(edge.setup().database()).await;
    let author = "select actor from audit where action = 'partner.create' and target = 'by-ada'";
    let author: String = sqlx::query_scalar(author).fetch_one(&pool).await.unwrap();
    assert_eq!(author, "ada");

    assert_eq!(browser.change("/console/logout", Some(csrf), &json!({})).await.status(), 204);
    assert_eq!(browser.open("/admin/v1/partners").await.status(), 401);
}

#[tokio::test]
async fn over_tls_no_other_host_plants_a_login() {
    let provider = provider().await;
    let named = |setup: &mut Setup| _ = setup.set("admin.url", "https://ops.example.com");
    let edge = edge_with(&provider, named).await;
    let mut browser = OperatorBrowser::new(&edge);
    let begun = browser.open("/console/login").await;
    let pending = OperatorBrowser::cookie(&begun, "__Host-rampart_login");
    assert!(pending.contains("; Path=/;") && pending.ends_with("; Secure"), "{pending}");
    let returned = provider.log_in(location(&begun).as_str(), "ada").await;
    let back = format!("{}?{}", returned.path(), returned.query().unwrap());
    assert_eq!(browser.open(&back).await.status(), 200);
}

#[tokio::test]
async fn a_return_that_another_page_has_asked_for_is_no_guess() {
    let provider = provider().await;
    let few = |setup: &mut Setup| _ = setup.set("ratelimit.operators", "10/h burst 1");
    let edge = edge_with(&provider, few).await;
    let mut browser = OperatorBrowser::new(&edge);
    let page = location(&browser.open("/console/login").await);
    for query in ["error=access_denied", "state=x&code=y", "error=access_denied"] {
        let refused = browser.open(&format!("/console/callback?{query}")).await;
        assert_eq!(refused.status(), 401, "{query}");
    }
    let returned = provider.log_in(page.as_str(), "ada").await;
    let back = format!("{}?{}", returned.path(), returned.query().unwrap());
    assert_eq!(browser.open(&back).await.status(), 200);
}

#[tokio::test]
async fn codes_that_the_provider_has_not_given_are_guesses() {
    let provider = provider().await;
    let few = |setup: &mut Setup| _ = setup.set("ratelimit.operators", "10/h burst 2");
    let edge = edge_with(&provider, few).await;
    let mut browser = OperatorBrowser::new(&edge);
    let page = location(&browser.open("/console/login").await);
    let state = page.query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();
    let guess = format!("/console/callback?code=guessed&state={state}");
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(browser.open(&guess).await.status().as_u16());
    }
    assert_eq!(statuses, [401, 401, 429]);
    let metrics = edge.ops("/metrics").await.text().to_owned();
    assert!(metrics.contains(r#"rampart_operator_login_failures_total{cause="wrong"} 2"#));
}

#[tokio::test]
async fn who_has_no_role_or_is_disabled_here_gets_no_session() {
    let provider = provider().await;
    let edge = edge(&provider).await;
    let log_in = async |subject: &str| {
        let mut browser = OperatorBrowser::new(&edge);
        let form = "/console/login?page=https%3A%2F%2Fevil.example%2Fconsole%2F";
        let page = location(&browser.open(form).await);
        let returned = provider.log_in(page.as_str(), subject).await;
        let back = format!("{}?{}", returned.path(), returned.query().unwrap());
        let answer = browser.open(&back).await;
        (answer.status().as_u16(), answer.text().await.unwrap(), browser)
    };
    let (status, sentence, _) = log_in("eve").await;
    assert_eq!(status, 403);
    assert!(sentence.contains("eve has no role here"), "{sentence}");
    let (status, page, mut bob) = log_in("bob").await;
    assert!(page.contains("href=\"/console\"") && !page.contains("evil"), "{page}");
    assert_eq!((status, bob.open("/admin/v1/partners").await.status().as_u16()), (200, 200));
    let pool = cluster::pool(edge.setup().database()).await;
    let disable = "insert into operator \
        (operator_id, name, roles, disabled_at, created_by, created_at) \
        values (gen_random_uuid(), 'bob', '{viewer}', now(), 'admin', now())";
    sqlx::query(disable).execute(&pool).await.unwrap();
    assert_eq!(bob.open("/admin/v1/partners").await.status(), 401);
    assert_eq!(log_in("bob").await.0, 403);
    let token = provider.token("rampart", "bob").await;
    assert_eq!(call(&edge, &token, "/admin/v1/partners").await.0, 403);
    let metrics = edge.ops("/metrics").await.text().to_owned();
    assert!(metrics.contains(r#"rampart_operator_login_failures_total{cause="forbidden"} 3"#));
}

#[tokio::test]
async fn a_provider_that_is_away_stops_no_token_of_an_operators_own() {
    let provider = provider().await;
    let token = provider.token("rampart", "ada").await;
    let edge = edge(&provider).await;
    drop(provider);
    assert_eq!(call(&edge, &token, "/admin/v1/partners").await.0, 503);
    let mut browser = OperatorBrowser::new(&edge);
    assert_eq!(browser.open("/console/login").await.status(), 503);
    let metrics = edge.ops("/metrics").await.text().to_owned();
    assert!(metrics.contains(r#"rampart_operator_login_failures_total{cause="provider"} 2"#));
    edge.admin(http::Method::GET, "/admin/v1/partners", json!({})).await.assert_status(200);
}
