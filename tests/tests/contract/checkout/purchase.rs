//! Buying on the checkout's page: the steps, what each refuses, and one order of each checkout.

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};
use http::{Method, StatusCode};
use rampart_tests::answer::Answer;
use rampart_tests::partner::Partner;
use rampart_tests::test_context::TestContext;
use serde_json::json;
use url::form_urlencoded;

use super::{ADDRESS, IDENTIFIER, link, made, page};

/// Posts a form to the page.
pub(super) async fn post(partner: &Partner, link: &str, members: &[(&str, &str)]) -> Answer {
    let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(members).finish();
    let request = partner.anonymous(Method::POST, link);
    request.header("content-type", "application/x-www-form-urlencoded").body(body).send().await
}

/// The value of a hidden input.
pub(super) fn hidden(page: &Answer, name: &str) -> String {
    let mark = format!(r#"name="{name}" value=""#);
    let (_, rest) = page.text().split_once(&mark).unwrap_or_else(|| panic!("{name} is missing"));
    rest.split('"').next().unwrap().to_owned()
}

/// The page to which a form leads that first needs a sign-in.
pub(super) fn sign_in_link(posted_to: &str, answer: &Answer) -> String {
    let query = answer.assert_status(303).header("location").unwrap();
    assert!(query.starts_with('?') && query.contains("resume="), "{query}");
    format!("{}{query}", posted_to.split('?').next().unwrap())
}

async fn orders(context: &TestContext) -> i64 {
    sqlx::query_scalar("select count(*) from buy_order").fetch_one(context.db()).await.unwrap()
}

/// The members of the form that confirms a quote with these inputs.
async fn quoted(partner: &Partner, link: &str, inputs: &[(&str, &str)]) -> Vec<(String, String)> {
    let quoted = post(partner, link, &[inputs, &[("action", "quote")]].concat()).await;
    quoted.assert_status(200);
    let (quote, shopper) = (hidden(&quoted, "quote"), hidden(&quoted, "shopper"));
    let members = [
        ("action", "confirm"),
        ("quote", quote.as_str()),
        ("shopper", shopper.as_str()),
        ("consent", "yes"),
    ];
    let members = members.iter().chain(inputs);
    members.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

async fn confirm(partner: &Partner, link: &str, form: &[(String, String)]) -> Answer {
    let members: Vec<_> = form.iter().map(|(name, value)| (&**name, &**value)).collect();
    post(partner, link, &members).await
}

/// Quotes with these inputs, and confirms.
pub(super) async fn buy(partner: &Partner, link: &str, inputs: &[(&str, &str)]) -> Answer {
    let form = quoted(partner, link, inputs).await;
    confirm(partner, link, &form).await
}

#[tokio::test]
async fn a_guest_buys_and_pays() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let made = made(&acme, json!({"quoteCurrencyAmount": 100})).await;
    let inputs = [("amount", "120,50"), ("wallet", ADDRESS)];
    let quoted = post(&acme, link(&made), &[&inputs[..], &[("action", "quote")]].concat()).await;
    for text in ["Check and confirm", "120.50 EUR", "Fee of the network", "Bitcoin", ADDRESS] {
        assert!(quoted.assert_status(200).text().contains(text), "{text}: {}", quoted.text());
    }
    let bought = buy(&acme, link(&made), &inputs).await;
    let pay = bought.assert_status(303).header("location").unwrap().to_owned();
    let pay = page(&acme, pay.strip_prefix("https://pay.example.com").unwrap()).await;
    assert!(pay.assert_status(200).text().contains("120.50 EUR"), "{}", pay.text());
    // Whoever opens the link again, or sends the form again, goes on to the payment.
    let to = bought.header("location");
    let opened = page(&acme, link(&made)).await;
    assert_eq!(opened.assert_status(303).header("location"), to);
    let again = post(&acme, link(&made), &[("action", "quote")]).await;
    assert_eq!(again.assert_status(303).header("location"), to);
    assert_eq!(orders(&context).await, 1);
}

#[tokio::test]
async fn a_price_that_is_shown_before_the_quote_is_not_counted() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let made = made(&acme, json!({"quoteCurrencyAmount": 100})).await;
    for _ in 0..2 {
        page(&acme, link(&made)).await.assert_status(200);
    }
    let inputs = [("amount", "120.50"), ("wallet", ADDRESS)];
    buy(&acme, link(&made), &inputs).await.assert_status(303);
    context.core().write_quote_counts().await.unwrap();
    let quotes = "select side || ' ' || quotes from quote_hour";
    let quotes: Vec<String> = sqlx::query_scalar(quotes).fetch_all(context.db()).await.unwrap();
    assert_eq!(quotes, ["buy 1"]);
}

#[tokio::test]
async fn a_checkout_that_expired_leads_nowhere() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let made = made(&acme, json!({"quoteCurrencyAmount": 100})).await;
    context.clock().advance(TimeDelta::days(1));
    let ended = page(&acme, link(&made)).await;
    assert!(ended.assert_status(200).text().contains("This checkout has ended"));
    for action in ["quote", "confirm", "register", "log-in"] {
        post(&acme, link(&made), &[("action", action)]).await.assert_status(409);
    }
}

#[tokio::test]
async fn what_is_wrong_stands_at_its_input_and_nothing_typed_is_lost() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let made = made(&acme, json!({})).await;
    let cases = [
        ([("amount", "100"), ("wallet", "0xabc")], "#field-wallet", "value=\"100\""),
        ([("amount", "-1"), ("wallet", ADDRESS)], "#field-amount", ADDRESS),
        ([("amount", ""), ("wallet", ADDRESS)], "role=\"alert\"", ADDRESS),
        ([("amount", "<b>"), ("wallet", ADDRESS)], "#field-amount", "&lt;b&gt;"),
    ];
    for (inputs, error, kept) in cases {
        let answer =
            post(&acme, link(&made), &[&inputs[..], &[("action", "quote")]].concat()).await;
        let text = answer.assert_status(400).text();
        assert!(text.contains(error) && text.contains(kept), "{inputs:?}: {text}");
        assert!(text.contains("aria-invalid=\"true\"") && !text.contains("#field-\""), "{text}");
        assert!(text.contains("class=\"field-error\""), "{text}");
    }
    // Beyond what the pair takes, a quote is shown that cannot be confirmed.
    let inputs = [("amount", "9999999"), ("wallet", ADDRESS), ("action", "quote")];
    let beyond = post(&acme, link(&made), &inputs).await;
    let text = beyond.assert_status(200).text();
    assert!(text.contains("outside the limits") && !text.contains("value=\"confirm\""), "{text}");
    // What nobody confirms is no order, and consent is no matter of the browser alone.
    let quoted =
        post(&acme, link(&made), &[("amount", "50"), ("wallet", ADDRESS), ("action", "quote")])
            .await;
    let quote = hidden(&quoted, "quote");
    let members =
        [("action", "confirm"), ("quote", quote.as_str()), ("amount", "50"), ("wallet", ADDRESS)];
    let refused = post(&acme, link(&made), &members).await;
    let text = refused.assert_status(400).text();
    for part in ["agree to the terms", "href=\"#field-consent\"", "aria-invalid=\"true\""] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let forged = [("action", "confirm"), ("quote", "e30"), ("wallet", ADDRESS), ("consent", "yes")];
    post(&acme, link(&made), &forged).await.assert_status(400);
    assert_eq!(orders(&context).await, 0);
}

#[tokio::test]
async fn a_price_that_has_expired_is_shown_anew() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let made = made(&acme, json!({"quoteCurrencyAmount": 100, "fixedAmount": true})).await;
    let quoted = post(&acme, link(&made), &[("wallet", ADDRESS), ("action", "quote")]).await;
    let quote = hidden(&quoted, "quote");
    context.clock().advance(TimeDelta::minutes(30));
    let members =
        [("action", "confirm"), ("quote", quote.as_str()), ("wallet", ADDRESS), ("consent", "yes")];
    let anew = post(&acme, link(&made), &members).await;
    let text = anew.assert_status(200).text();
    assert!(text.contains("The price has changed") && text.contains("value=\"confirm\""), "{text}");
    assert_ne!(hidden(&anew, "quote"), quote);
    buy(&acme, link(&made), &[("wallet", ADDRESS)]).await.assert_status(303);
    assert_eq!(orders(&context).await, 1);
}

#[tokio::test]
async fn the_details_show_the_price_of_the_amount() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let proposed = made(&acme, json!({"quoteCurrencyAmount": 100})).await;
    let shown = page(&acme, link(&proposed)).await;
    for text in ["100.00 EUR", "Fee of the network", "data-until=", "data-renew=\"change\""] {
        assert!(shown.assert_status(200).text().contains(text), "{text}: {}", shown.text());
    }
    let policy = shown.header("content-security-policy").unwrap();
    assert!(policy.contains("connect-src 'self';"), "{policy}");
    // As the script asks for another amount: nothing is refused, and what is typed stays.
    let typed = [("action", "change"), ("amount", "120,50"), ("wallet", "half typed")];
    let renewed = post(&acme, link(&proposed), &typed).await;
    for text in ["120.50 EUR", "Fee of the network", "value=\"half typed\""] {
        assert!(renewed.assert_status(200).text().contains(text), "{text}: {}", renewed.text());
    }
    for amount in ["", "<b>", "-1"] {
        let open = made(&acme, json!({})).await;
        let typed = [("action", "change"), ("amount", amount)];
        let none = post(&acme, link(&open), &typed).await;
        let text = none.assert_status(200).text();
        assert!(!text.contains("Fee of the network") && text.contains("data-quote"), "{text}");
    }
}

#[tokio::test]
async fn a_price_that_ends_is_renewed_by_script_or_by_a_button() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let made = made(&acme, json!({"quoteCurrencyAmount": 100})).await;
    let inputs = [("action", "quote"), ("amount", "100"), ("wallet", ADDRESS)];
    let quoted = post(&acme, link(&made), &inputs).await;
    let text = quoted.assert_status(200).text();
    for part in ["data-renew=\"quote\"", "Get a new price", "the price has ended: get a new one"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let (before, _) = text.split_once("data-ended").unwrap();
    assert!(before.contains("name=\"quote\"") && !before.contains("name=\"consent\""), "{text}");
    let anew = post(&acme, link(&made), &inputs).await;
    assert_ne!(hidden(anew.assert_status(200), "quote"), hidden(&quoted, "quote"));
}

#[tokio::test]
async fn a_shopper_registers_where_the_partner_wants_a_user() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let guests = json!({"guestOrders": {"allowed": false}});
    let path = format!("/admin/v1/partners/{}", acme.slug);
    context.admin(Method::PATCH, &path, guests).await.assert_status(200);
    let members = json!({"quoteCurrencyAmount": 80, "identifier": IDENTIFIER});
    let (first, second) = (made(&acme, members.clone()).await, made(&acme, members).await);
    let asked = page(&acme, link(&first)).await;
    assert!(asked.assert_status(200).text().contains("value=\"register\""), "{}", asked.text());
    let unknown =
        post(&acme, link(&first), &[("action", "quote"), ("amount", "80"), ("wallet", ADDRESS)])
            .await;
    let asked = page(&acme, &sign_in_link(link(&first), &unknown)).await;
    assert!(asked.assert_status(200).text().contains("value=\"register\""), "{}", asked.text());
    let registration = [
        ("action", "register"),
        ("email", "shopper@mail.example.com"),
        ("password", "password-of-shopper"),
        ("country", "NL"),
        ("privacy", "yes"),
    ];
    let known = post(&acme, link(&first), &registration).await;
    let shopper = hidden(known.assert_status(200), "shopper");
    // A shopper of one checkout is nobody at another.
    let foreign =
        [("action", "quote"), ("shopper", shopper.as_str()), ("amount", "80"), ("wallet", ADDRESS)];
    sign_in_link(link(&second), &post(&acme, link(&second), &foreign).await);
    let inputs = [("amount", "80"), ("wallet", ADDRESS), ("shopper", shopper.as_str())];
    buy(&acme, link(&first), &inputs).await.assert_status(303);
    let linked: i64 = sqlx::query_scalar(
        "select count(*) from buy_order join user_identifier using (client_id, user_id)",
    )
    .fetch_one(context.db())
    .await
    .unwrap();
    assert_eq!(linked, 1);
    let signed_in = [
        ("action", "log-in"),
        ("email", "shopper@mail.example.com"),
        ("password", "wrong-password"),
    ];
    let refused = post(&acme, link(&second), &signed_in).await;
    assert!(refused.assert_status(400).text().contains("is wrong"), "{}", refused.text());
}

#[tokio::test]
async fn a_checkout_becomes_one_order() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let made = made(&acme, json!({"quoteCurrencyAmount": 100, "walletAddress": ADDRESS})).await;
    // All are quoted before one confirms: afterwards the checkout leads to the payment.
    let quotes = (0..8).map(|_| quoted(&acme, link(&made), &[("amount", "100")]));
    let forms = futures::future::join_all(quotes).await;
    let tries = forms.iter().map(|form| confirm(&acme, link(&made), form));
    let answers = futures::future::join_all(tries).await;
    let bought = answers.iter().filter(|answer| answer.status() == StatusCode::SEE_OTHER);
    let payments: BTreeSet<_> = bought.filter_map(|answer| answer.header("location")).collect();
    assert_eq!(payments.len(), 1);
    assert_eq!(orders(&context).await, 1);
}

#[tokio::test]
async fn the_page_speaks_the_readers_language() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let made = made(&acme, json!({"quoteCurrencyAmount": 100})).await;
    for (accepted, lang, amount, copy) in [
        ("nl-NL,nl;q=0.9,en;q=0.5", "nl", "100,00 EUR", "Kopiëren"),
        ("sv,pl;q=0.3", "pl", "100,00 EUR", "Kopiuj"),
        ("en;q=0.1, de;q=0, pl;q=0.9", "pl", "100,00 EUR", "Kopiuj"),
        ("sv", "en", "100.00 EUR", "Copy"),
    ] {
        let request = acme.anonymous(Method::GET, link(&made)).header("accept-language", accepted);
        let text = request.send().await.assert_status(200).text().to_owned();
        assert!(text.contains(&format!("<html lang=\"{lang}\">")), "{text}");
        assert!(text.contains(amount), "{text}");
        assert!(text.contains(&format!("data-copy-label=\"{copy}\"")), "{text}");
    }
}

#[tokio::test]
async fn the_page_of_a_known_user_speaks_the_accounts_language() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ada = acme.user("ada").await;
    let token = ada.get("/api/v1/user/login-token").await.assert_status(200).json()["token"].take();
    let named = json!({"quoteCurrencyAmount": 100, "loginToken": token});
    let (named, open) = (made(&acme, named).await, made(&acme, json!({})).await);
    let german = async |link: &str| {
        let request = acme.anonymous(Method::GET, link).header("accept-language", "de");
        request.send().await
    };
    let shown = german(link(&named)).await;
    assert!(shown.assert_status(200).text().contains("<html lang=\"nl\">"), "{}", shown.text());
    let stranger = german(link(&open)).await;
    assert!(stranger.assert_status(200).text().contains("<html lang=\"de\">"));
    let known = [("action", "log-in"), ("email", &*ada.email), ("password", &*ada.password)];
    let known = post(&acme, link(&open), &known).await;
    assert!(known.assert_status(200).text().contains("<html lang=\"nl\">"), "{}", known.text());
    let shopper = hidden(&known, "shopper");
    let typed = [("action", "change"), ("shopper", &*shopper)];
    let again = post(&acme, link(&open), &typed).await;
    assert!(again.assert_status(200).text().contains("<html lang=\"nl\">"), "{}", again.text());
}

#[tokio::test]
async fn amounts_and_times_are_written_as_in_the_readers_language() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let made = made(&acme, json!({"quoteCurrencyAmount": 1234.5})).await;
    let until: DateTime<Utc> =
        sqlx::query_scalar("select expires_at from offer").fetch_one(context.db()).await.unwrap();
    for (language, amount, input, date) in [
        ("en", "1,234.50 EUR", "1234.5", "%Y-%m-%d %H:%M UTC"),
        ("nl", "1.234,50 EUR", "1234,5", "%d-%m-%Y %H:%M UTC"),
        ("de", "1.234,50 EUR", "1234,5", "%d.%m.%Y %H:%M UTC"),
        ("fr", "1\u{202f}234,50 EUR", "1234,5", "%d/%m/%Y %H:%M UTC"),
        ("es", "1.234,50 EUR", "1234,5", "%d/%m/%Y %H:%M UTC"),
        ("pl", "1\u{a0}234,50 EUR", "1234,5", "%d.%m.%Y %H:%M UTC"),
    ] {
        let request = acme.anonymous(Method::GET, link(&made)).header("accept-language", language);
        let shown = request.send().await;
        let (input, date) = (format!("value=\"{input}\""), until.format(date).to_string());
        for text in [amount, &input, &date] {
            assert!(shown.assert_status(200).text().contains(text), "{text}: {}", shown.text());
        }
    }
}

#[tokio::test]
async fn a_purchase_at_once_that_is_sent_twice_leads_to_one_payment() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ada = acme.user("ada").await;
    let token = ada.get("/api/v1/user/login-token").await.assert_status(200).json();
    let members = json!({"loginToken": token["token"], "walletAddress": ADDRESS,
        "attemptDirectConfirm": true});
    let made = made(&acme, members).await;
    // No price was shown: each makes a quote of its own.
    let inputs = [("amount", "100"), ("consent", "yes"), ("action", "quote")];
    let sent = (0..4).map(|_| post(&acme, link(&made), &inputs));
    let answers = futures::future::join_all(sent).await;
    let led = answers.iter().map(|answer| answer.assert_status(303).header("location"));
    assert_eq!(led.collect::<BTreeSet<_>>().len(), 1, "to one payment");
    assert_eq!(orders(&context).await, 1);
}

#[tokio::test]
async fn who_buys_at_once_pays_the_price_that_was_shown() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ada = acme.user("ada").await;
    let known = async || {
        let token = ada.get("/api/v1/user/login-token").await.assert_status(200).json();
        let members = json!({"quoteCurrencyAmount": 1000, "loginToken": token["token"],
            "walletAddress": ADDRESS, "attemptDirectConfirm": true});
        let made = made(&acme, members).await;
        let shown = page(&acme, link(&made)).await;
        (made, ["shopper", "quote", "quoted"].map(|name| hidden(shown.assert_status(200), name)))
    };
    let buy = async |link: &str, [shopper, quote, quoted]: &[String; 3], amount: &str| {
        let form = [("shopper", &**shopper), ("quote", quote), ("quoted", quoted)];
        let inputs = [("amount", amount), ("consent", "yes"), ("action", "quote")];
        post(&acme, link, &[&form[..], &inputs[..]].concat()).await
    };
    let (made, shown) = known().await;
    // Nobody has seen the price of another amount.
    let other = buy(link(&made), &shown, "1.200").await;
    let text = other.assert_status(200).text();
    assert!(text.contains("1.200,00 EUR") && text.contains("value=\"confirm\""), "{text}");
    buy(link(&made), &shown, "1.000").await.assert_status(303);
    assert_eq!(orders(&context).await, 1);
    let (made, shown) = known().await;
    context.clock().advance(TimeDelta::minutes(30));
    let ended = buy(link(&made), &shown, "1000").await;
    let text = ended.assert_status(200).text();
    assert!(text.contains("value=\"confirm\"") && text.contains("name=\"quote\""), "{text}");
    assert_eq!(orders(&context).await, 1);
}
