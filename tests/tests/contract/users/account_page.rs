//! The page of an account: orders, savings plans, sessions, the file of one's data, erasure.

use chrono::TimeDelta;
use http::Method;
use rampart_tests::answer::Answer;
use rampart_tests::passkey::{Authenticator, Ceremony, challenge};
use serde_json::{Value, json};

use super::{SIGNED_OUT, Visit, page_path, submit};

impl Visit {
    /// The page after a sign-in by password.
    pub(super) async fn sign_in(&self) -> String {
        self.later(60);
        let form = "action=log-in&email=ada%40mail.example.com&password=password-of-ada";
        self.submit(form).await.assert_status(200).text().to_owned()
    }

    /// The answer to a form of this page.
    pub(super) async fn act(&self, page: &str, action: &str) -> Answer {
        self.submit(&format!("action={action}&challenge={}", challenge(page))).await
    }

    async fn sell(&self) -> i64 {
        let body = json!({"currencyPair": "BTC-EUR", "cryptoAmount": "0.002"});
        let quote = self.user.post("/api/v1/sell/quote", &body).await.assert_status(200).json();
        let body = json!({"quote": quote["quote"]});
        let sale = self.user.post("/api/v1/sell/confirm", &body).await.assert_status(200).json();
        sale["orderId"].as_i64().unwrap()
    }

    async fn buy(&self) -> i64 {
        let order = self.user.buy(30).await.assert_status(200).json();
        order["orderId"].as_i64().unwrap()
    }

    async fn happen(&self, order: i64, event: &str) {
        let path = format!("/api/v2/sandbox/orders/{order}/{event}");
        self.partner.post(&path, Value::Null).await.assert_status(200);
    }

    async fn count(&self, table: &'static str) -> i64 {
        let query = sqlx::AssertSqlSafe(format!("select count(*) from {table}"));
        sqlx::query_scalar(query).fetch_one(self.context.db()).await.unwrap()
    }
}

#[tokio::test]
async fn purchases_and_sales_are_one_list_that_is_filtered() {
    let visit = Visit::start().await;
    let empty = visit.sign_in().await;
    assert!(empty.contains("Je hebt nog niets gekocht of verkocht."), "{empty}");
    let (bought, sold, cancelled) = (visit.buy().await, visit.sell().await, visit.buy().await);
    for event in ["payment-received", "coins-sent", "confirmed-on-chain"] {
        visit.happen(bought, event).await;
    }
    visit.happen(cancelled, "cancel").await;
    let other = visit.partner.user("bob").await.buy(30).await.assert_status(200).json();
    let page = visit.sign_in().await;
    let at = |order: i64| page.find(&order.to_string()).unwrap();
    assert!(at(cancelled) < at(sold) && at(sold) < at(bought), "newest first: {page}");
    assert!(!page.contains(&other["orderId"].to_string()), "somebody else's: {page}");
    assert_eq!(page.matches("/receipt.pdf").count(), 1, "of the one that is complete: {page}");
    let filtered = async |filter: &str| {
        let answer = visit.act(&page, &format!("show&{filter}")).await;
        let text = answer.assert_status(200).text().to_owned();
        [bought, sold, cancelled].map(|order| text.contains(&order.to_string()))
    };
    assert_eq!(filtered("side=buy").await, [true, false, true]);
    assert_eq!(filtered("side=sell&status=").await, [false, true, false]);
    assert_eq!(filtered("status=cancelled").await, [false, false, true]);
    assert_eq!(filtered("side=sell&status=cancelled").await, [false; 3]);
    assert_eq!(filtered("side=nonsense&status=%00&after=%00").await, [true; 3]);
}

#[tokio::test]
async fn older_orders_are_on_the_next_page() {
    let visit = Visit::start().await;
    let first = visit.buy().await;
    for number in 1..=10_i64 {
        sqlx::query(
            "insert into buy_order (client_id, order_id, quote_id, user_id, status, pair, \
             payment_method, wallet_address, wallet_type, fiat_amount, fiat_currency, \
             crypto_amount, crypto_currency, price, partner_fee, provider_fee, \
             payment_method_fee, network_fee, spread_fee, affiliate_fee, is_estimated_quote, \
             terms_digest, created_at, updated_at) \
             select client_id, $1, gen_random_uuid(), user_id, 'cancelled', pair, payment_method, \
             wallet_address, wallet_type, fiat_amount, fiat_currency, crypto_amount, \
             crypto_currency, price, partner_fee, provider_fee, payment_method_fee, network_fee, \
             spread_fee, affiliate_fee, is_estimated_quote, terms_digest, created_at, updated_at \
             from buy_order where order_id = $2",
        )
        .bind(first - number)
        .bind(first)
        .execute(visit.context.db())
        .await
        .unwrap();
    }
    let page = visit.sign_in().await;
    assert!(page.contains(&first.to_string()), "{page}");
    assert!(!page.contains(&(first - 10).to_string()), "{page}");
    let (_, rest) = page.split_once("name=\"after\" value=\"").unwrap();
    let after = rest.split('"').next().unwrap();
    let next = visit.act(&page, &format!("show&after={after}")).await;
    let text = next.assert_status(200).text();
    assert!(text.contains(&(first - 10).to_string()), "{text}");
    assert!(!text.contains(&first.to_string()) && !text.contains("name=\"after\""), "{text}");
}

#[tokio::test]
async fn reading_is_free_and_a_change_uses_the_page_up() {
    let visit = Visit::start().await;
    let page = visit.sign_in().await;
    for _ in 0..2 {
        visit.act(&page, "show").await.assert_status(200);
        visit.act(&page, "erase-ask").await.assert_status(200);
    }
    visit.act(&page, "language").await.assert_status(200);
    for action in ["show", "download", "erase-ask", "language", "session-end", "erase"] {
        let answer = visit.act(&page, action).await;
        let text = answer.assert_status(400).text();
        assert!(text.contains(SIGNED_OUT) && !text.contains("ada@mail"), "{action}: {text}");
        // Sent by a second click, a change was made by the first.
        let is_change = ["language", "session-end", "erase"].contains(&action);
        assert_eq!(text.contains("telde de eerste keer"), is_change, "{action}: {text}");
    }
    let page = visit.sign_in().await;
    visit.context.clock().advance(TimeDelta::seconds(601));
    visit.act(&page, "download").await.assert_status(400);
    // Of somebody who was disabled meanwhile it opens nothing.
    let page = visit.sign_in().await;
    let path = format!("/admin/v1/users/{}", visit.id);
    visit.context.admin(Method::PATCH, &path, json!({"disabled": true})).await.assert_status(200);
    let refused = visit.act(&page, "download").await;
    assert!(!refused.assert_status(400).text().contains("ada@mail"));
}

#[tokio::test]
async fn nothing_is_changed_by_a_visit_that_is_ended_meanwhile() {
    let visit = Visit::start().await;
    // The first holds up the change alone, the second its permission too.
    let holds = ["select from end_user for key share", "update end_user set newsletter = true"];
    let changes = ["app-begin", "erase&password=password-of-ada"];
    for (hold, change) in holds.into_iter().flat_map(|hold| changes.map(|change| (hold, change))) {
        let page = visit.sign_in().await;
        let end = "delete from passkey_challenge";
        let begun = visit.ended_beside(hold, end, visit.act(&page, change)).await;
        assert!(!begun.text().contains("otpauth"), "{hold}: {}", begun.text());
    }
    let begun = "select exists (select from authenticator_app) \
         or exists (select from end_user where deleted_at is not null)";
    let begun: bool = sqlx::query_scalar(begun).fetch_one(visit.context.db()).await.unwrap();
    assert!(!begun);
}

#[tokio::test]
async fn who_has_a_savings_plan_finds_its_page() {
    let visit = Visit::start().await;
    assert!(!visit.sign_in().await.contains("value=\"plans\""));
    let path = format!("/admin/v1/users/{}/dca-codes", visit.id);
    let body = json!({"cryptoCurrency": "XRP", "destinationTag": 4711,
        "walletAddress": "rEb8TK3gBgk5auZkwc6sHnwrGVJH8DuaLh"});
    let plan = visit.context.admin(Method::POST, &path, body).await.assert_status(201).json();
    let page = visit.sign_in().await;
    let led = visit.act(&page, "plans").await;
    let path = led.assert_status(303).header("location").unwrap();
    assert!(path.starts_with("/nl-nl/account/dca?token="), "{path}");
    let plans = visit.partner.anonymous(Method::GET, path).send().await;
    let text = plans.assert_status(200).text();
    assert!(text.contains(plan["code"].as_str().unwrap()), "{text}");
    assert!(text.contains("<dd><code>4711</code></dd>"), "{text}");
    assert!(text.contains("Dit is een test."), "nobody may transfer money to the sandbox: {text}");
    // The script shows the button that copies the address.
    assert!(text.contains("data-copy=") && text.contains("enhance(document);"), "{text}");
    let policy = plans.header("content-security-policy").unwrap();
    assert!(policy.contains("script-src 'sha256-"), "{policy}");
}

#[tokio::test]
async fn a_user_downloads_what_is_known() {
    let visit = Visit::start().await;
    let order = visit.buy().await;
    let accounts = format!("/admin/v1/users/{}/accounts", visit.id);
    let account =
        json!({"type": "bankTransfer", "identifier": "NL91ABNA0417164300", "name": "Ada"});
    let added = visit.context.admin(Method::POST, &accounts, account).await;
    added.assert_status(201);
    sqlx::query("update payment_account set disabled_at = now()")
        .execute(visit.context.db())
        .await
        .unwrap();
    let page = visit.sign_in().await;
    for part in ["Ada Lovelace", "10-12-1990", "Keizersgracht 7-II", "1015 CJ Amsterdam"] {
        assert!(page.contains(part), "{part} in {page}");
    }
    let file = visit.act(&page, "download").await;
    file.assert_status(200);
    let disposition = file.header("content-disposition");
    assert_eq!(disposition, Some("attachment; filename=\"account.json\""));
    assert_eq!(file.header("content-type"), Some("application/json"));
    assert_eq!(file.header("cache-control"), Some("no-store"));
    let file = file.json();
    assert_eq!(file["profile"]["emailAddress"], "ada@mail.example.com");
    assert_eq!(file["personalData"]["city"], "Amsterdam");
    assert_eq!(file["orders"][0]["id"], order);
    assert_eq!(file["orders"][0]["type"], "buy");
    assert_eq!((&file["hasAllOrders"], &file["newsletter"]), (&json!(true), &json!(false)));
    assert_eq!(file["sessions"].as_array().unwrap().len(), 1);
    let account = &file["accounts"][0];
    assert_eq!(account["identifier"], "NL91ABNA0417164300");
    assert_eq!((&account["type"], &account["disabled"]), (&json!("bankTransfer"), &json!(true)));
}

#[tokio::test]
async fn a_session_is_ended_and_then_all() {
    let visit = Visit::start().await;
    let (first, second) = (visit.user.log_in().await, visit.user.log_in().await);
    let bob = visit.partner.user("bob").await;
    let his = bob.log_in().await;
    let renew = async |session: &Value| {
        let body = json!({"refreshToken": session["refreshToken"]});
        let request = visit.partner.anonymous(Method::POST, "/api/v1/refresh");
        request.json(&body).send().await.status()
    };
    let page = visit.sign_in().await;
    let ids: Vec<_> = page
        .split("name=\"session\" value=\"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap().to_owned())
        .collect();
    assert_eq!(ids.len(), 3, "{page}");
    // Newest first.
    let ended = visit.act(&page, &format!("session-end&session={}", ids[0])).await;
    let page = ended.assert_status(200).text().to_owned();
    assert!(page.contains("De sessie is uitgelogd.") && !page.contains(&ids[0]), "{page}");
    assert_eq!((renew(&second).await, renew(&first).await), (400, 200));
    let family = "select family_id::text from refresh_family where user_id <> $1::uuid";
    let family: String =
        sqlx::query_scalar(family).bind(&visit.id).fetch_one(visit.context.db()).await.unwrap();
    let page = visit.act(&page, &format!("session-end&session={family}")).await;
    assert!(page.assert_status(200).text().contains("Deze sessie was al geëindigd."));
    assert_eq!(renew(&his).await, 200, "somebody else's goes on");
    let all = visit.act(page.text(), "sessions-end").await;
    let text = all.assert_status(200).text();
    assert!(text.contains("Je bent overal uitgelogd") && !text.contains("ada@mail"), "{text}");
    assert_eq!(renew(&first).await, 400);
    visit.act(page.text(), "show").await.assert_status(400);
}

#[tokio::test]
async fn sessions_name_their_devices_until_the_account_is_erased() {
    let visit = Visit::start().await;
    let of_linux = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
    let log_in = async |user_agent: &str| {
        let body = json!({"emailAddress": visit.user.email, "password": visit.user.password});
        let request = visit.partner.request(Method::POST, "/api/v1/user/login");
        let request = request.header("user-agent", user_agent).json(&body);
        request.send().await.assert_status(200);
    };
    log_in(of_linux).await;
    visit.later(60);
    log_in("<b>unheard of</b>").await;
    let page = visit.sign_in().await;
    let (_, sessions) = page.split_once("Deze pagina").unwrap();
    let (newest, older) = sessions.split_once("Laatste keer ingelogd").unwrap();
    assert!(newest.contains("Onbekend apparaat") && !newest.contains("unheard"), "{page}");
    assert!(older.contains("Firefox op Linux"), "{page}");
    // A screen reader tells the button of one session from that of another.
    let group = "role=\"group\" aria-label=\"Firefox op Linux, ";
    assert!(older.contains(group) && page.contains(", Deze pagina\">"), "{page}");
    let file = visit.act(&page, "download").await.assert_status(200).json();
    let devices = file["sessions"].as_array().unwrap().iter().map(|session| &session["device"]);
    assert!(devices.clone().any(|device| device == "Firefox on Linux"), "{file}");
    let devices = "refresh_family where device is not null";
    assert_eq!(visit.count(devices).await, 1);
    let path = format!("/admin/v1/users/{}", visit.id);
    let erased = visit.context.admin(Method::PATCH, &path, json!({"deleted": true})).await;
    erased.assert_status(200);
    assert_eq!(visit.count(devices).await, 0);
}

#[tokio::test]
async fn an_account_is_erased_by_its_password() {
    let visit = Visit::start().await;
    let order = visit.buy().await;
    let page = visit.sign_in().await;
    let open = visit.act(&page, "erase-ask").await;
    let text = open.assert_status(200).text();
    assert!(text.contains("nog niet zijn afgerond: 1.") && !text.contains("password"), "{text}");
    let forced = visit.act(&page, "erase&password=password-of-ada").await;
    assert!(forced.assert_status(409).text().contains("nog niet zijn afgerond: 1."));
    visit.happen(order, "cancel").await;
    let page = visit.sign_in().await;
    // An app that was begun, and never gave a code, is not in use.
    let begun = visit.act(&page, "app-begin").await.assert_status(200).text().to_owned();
    let asked = visit.act(&begun, "erase-ask").await;
    let text = asked.assert_status(200).text().to_owned();
    assert!(text.contains("je bestellingen (1)") && text.contains("5 jaar"), "{text}");
    assert!(text.contains("Passkeys en authenticator-apps</dt><dd>0</dd>"), "{text}");
    let wrong = visit.act(&text, "erase&password=password-of-eve").await;
    let again = wrong.assert_status(400).text().to_owned();
    for part in ["href=\"#field-password\"", "aria-invalid=\"true\"", "Er is niets gewist."] {
        assert!(again.contains(part), "{part} in {again}");
    }
    assert!(!again.contains("password-of-eve"), "{again}");
    let done = visit.act(&again, "erase&password=password-of-ada").await;
    assert!(done.assert_status(200).text().contains("Je account is gewist."));
    let path = format!("/admin/v1/users/{}", visit.id);
    let shown = visit.context.admin(Method::GET, &path, json!({})).await.assert_status(200).json();
    assert_eq!((&shown["deleted"], &shown["personal"]["lastName"]), (&json!(true), &Value::Null));
    assert_eq!(visit.count("retained_record").await, 1);
    let audit = visit.context.admin(Method::GET, "/admin/v1/audit", json!({})).await.json();
    let row = audit.as_array().unwrap().iter().find(|row| row["action"] == "user.erase").unwrap();
    let actor = json!(format!("user:{}", visit.id));
    assert_eq!((&row["actor"], &row["target"]), (&actor, &json!(visit.id)));
    visit.act(&again, "show").await.assert_status(400);
}

#[tokio::test]
async fn an_account_is_erased_by_an_older_passkey() {
    let visit = Visit::start().await;
    let page = visit.sign_in().await;
    let ours = Authenticator::of(&visit.id);
    let made = Ceremony::create(&challenge(&page));
    let form = ours.registration("Laptop", &made, &ours.public_key());
    let page = visit.submit(&form).await.assert_status(200).text().to_owned();
    let step = async || {
        let step = visit.submit("action=passkey").await;
        challenge(step.assert_status(200).text())
    };
    let ask = async |page: &str| {
        let asked = visit.act(page, "erase-ask").await;
        asked.assert_status(200).text().to_owned()
    };
    let erase = async |page: &str, ceremony: &Ceremony| {
        let form = ours.answer(ceremony).replace("passkey-answer", "erase");
        visit.submit(&format!("{form}&visit={}", challenge(page))).await
    };
    // Whoever finds the page open may have added it a moment ago.
    let page = ask(&page).await;
    assert!(page.contains("name=\"password\"") && !page.contains("data-ceremony=\""), "{page}");
    let refused = erase(&page, &Ceremony::get(&step().await, 1)).await;
    let page = refused.assert_status(400).text().to_owned();
    assert!(page.contains("De passkey kon niet worden gecontroleerd."), "{page}");
    let without = sqlx::query("update end_user set password_hash = null");
    without.execute(visit.context.db()).await.unwrap();
    let page = ask(&page).await;
    assert!(page.contains("Je passkey is nieuw.") && !page.contains("<input name"), "{page}");
    visit.later(600);
    let signed_in = ours.answer(&Ceremony::get(&step().await, 2));
    let page = visit.submit(&signed_in).await.assert_status(200).text().to_owned();
    let asked = ask(&page).await;
    let (_, ceremony) = asked.split_once("data-ceremony=\"get\"").unwrap();
    let done = erase(&page, &Ceremony::get(&challenge(ceremony), 3)).await;
    assert!(done.assert_status(200).text().contains("Je account is gewist."));
    assert_eq!(visit.count("passkey").await, 0);
}

#[tokio::test]
async fn forms_keep_what_was_typed_and_say_where_it_is_wrong() {
    let visit = Visit::start().await;
    let path = page_path(&visit.partner, &"x".repeat(36)).await;
    let form = "action=register&email=eve&password=sh0rt&country=XQ1&privacy=yes";
    let refused = submit(&visit.partner, &path, form).await;
    let text = refused.assert_status(400).text();
    for part in [
        "href=\"#field-register-email\"",
        "href=\"#field-register-password\"",
        "href=\"#field-register-country\"",
        "id=\"field-register-email\" type=\"email\" name=\"email\" value=\"eve\"",
        "name=\"country\" value=\"XQ1\"",
        "name=\"privacy\" value=\"yes\" required checked",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("sh0rt") && text.matches("value=\"eve\"").count() == 1, "{text}");
    let refused = submit(&visit.partner, &path, "email=%22eve&password=whatever").await;
    let text = refused.assert_status(400).text();
    assert!(
        text.contains("href=\"#field-email\"") && text.contains("value=\"&quot;eve\""),
        "{text}"
    );
    let refused = visit.submit("email=eve%40mail.example.com&password=wrong-one").await;
    let text = refused.assert_status(400).text();
    assert!(
        text.contains("value=\"eve@mail.example.com\"") && !text.contains("wrong-one"),
        "{text}"
    );
    let refused = submit(&visit.partner, "/nl-nl/forgot-password?client=acme", "email=eve").await;
    let text = refused.assert_status(400).text();
    assert!(text.contains("href=\"#field-email\"") && text.contains("value=\"eve\""), "{text}");
}
