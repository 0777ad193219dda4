//! The configuration as one document: applied whole or not at all, by two persons, and drift from it.

use rampart_api::operate::admin::configuration::drift::measure_drift;
use rampart_tests::cluster::commit_once_awaited;

use super::*;

const PATH: &str = "/admin/v1/configuration";
const DRY_RUN: &str = "/admin/v1/configuration?dryRun=true";

/// Applies as the break-glass owner, who needs nobody.
async fn apply(context: &TestContext, path: &str, configuration: Value) -> Answer {
    context.admin(Method::PUT, path, configuration).await
}

async fn stored(context: &TestContext) -> Value {
    context.admin(Method::GET, PATH, Value::Null).await.assert_status(200).json()
}

/// Subjects, members and values that an application changes.
fn changes(answer: &Answer) -> Vec<(String, String, Value)> {
    let changes = answer.assert_status(200).json()["changes"].take();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let told = changes.as_array().unwrap().iter();
    told.map(|one| (text(&one["subject"]), text(&one["member"]), one["to"].clone())).collect()
}

#[tokio::test]
async fn what_is_exported_changes_nothing_when_applied() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let price = json!({"price": 51234.56, "maxAgeSeconds": 3600});
    context.admin(Method::PUT, "/admin/v1/prices/BTC-EUR", price).await.assert_status(200);
    let exported = stored(&context).await;
    assert_eq!(exported["partners"]["acme"]["mode"], "test");
    assert_eq!(exported["prices"]["BTC-EUR"]["price"].to_string(), "51234.56");
    assert!(exported["pairs"]["BTC-EUR"]["buy"]["min"].is_number());
    assert!(exported["paymentMethods"]["creditCard"]["fees"]["fixed"].is_number());
    assert!(exported["partners"].get("house").is_none());
    for path in [DRY_RUN, PATH] {
        assert_eq!(changes(&apply(&context, path, exported.clone()).await), [], "{path}");
    }
}

#[tokio::test]
async fn what_is_exported_is_of_one_moment() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let mut somebody = context.db().begin().await.unwrap();
    for change in [
        "lock table payment_method in access exclusive mode",
        "update payment_method set enabled = false where code = 'creditCard'",
        "update client set name = 'Renamed' where slug = 'acme'",
    ] {
        sqlx::query(change).execute(&mut *somebody).await.unwrap();
    }
    let commit = commit_once_awaited(context.db(), somebody);
    let (exported, ()) = futures::join!(stored(&context), commit);
    let is_renamed = exported["partners"]["acme"]["name"] == "Renamed";
    assert_eq!(exported["paymentMethods"]["creditCard"]["enabled"], !is_renamed);
}

#[tokio::test]
async fn an_exported_default_lets_no_guest_order_once_the_partner_is_live() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    context.partner_of(json!({"slug": "rival", "name": "Rival", "mode": "live"})).await;
    let exported = stored(&context).await;
    assert_eq!(exported["partners"]["acme"]["guestOrders"]["allowed"], true);
    assert_eq!(changes(&apply(&context, PATH, exported).await), []);
    let live = json!({"partners": {"acme": {"mode": "live"}}});
    let told = changes(&apply(&context, PATH, live).await);
    assert_eq!(told, [("partners.acme".to_owned(), "mode".to_owned(), json!("live"))]);
    let shown = &stored(&context).await["partners"]["acme"]["guestOrders"];
    assert_eq!(shown["allowed"], false);
    let guests = json!({"partners": {"acme": {"guestOrders": {"allowed": true}}}});
    let told = changes(&apply(&context, PATH, guests).await);
    let (partner, member) = ("partners.acme".to_owned(), "guestOrders.allowed".to_owned());
    assert_eq!(told, [(partner, member, json!(true))]);
    assert_eq!(stored(&context).await["partners"]["acme"]["guestOrders"]["allowed"], true);
}

#[tokio::test]
async fn a_document_brings_the_routes_and_prices_that_its_live_partner_needs() {
    let context = TestContext::start().await;
    let connector = json!({"name": "all", "capabilities": ["payment.create", "transfer.send"]});
    let made = context.admin(Method::POST, "/admin/v1/connectors", connector).await;
    made.assert_status(201);
    let mut wanted = json!({
        "partners": {"acme": {"mode": "live"}},
        "prices": {"BTC-EUR": {"price": 50_000, "maxAgeSeconds": 3_600}},
    });
    for path in [DRY_RUN, PATH] {
        let refused = apply(&context, path, wanted.clone()).await;
        refused.assert_status(409);
        assert!(refused.text().contains("partners.acme: a live partner needs"), "{path}");
    }
    wanted["routes"] = json!([
        {"partner": "acme", "method": "creditCard", "direction": "in", "connector": "all"},
        {"partner": "acme", "asset": "BTC", "direction": "out", "connector": "all"},
    ]);
    for path in [DRY_RUN, PATH] {
        let told = changes(&apply(&context, path, wanted.clone()).await);
        let live = ("partners.acme".to_owned(), "mode".to_owned(), json!("live"));
        assert!(told.contains(&live), "{path}: {told:?}");
    }
    assert_eq!(changes(&apply(&context, PATH, wanted).await), []);
    assert_eq!(stored(&context).await["partners"]["acme"]["mode"], "live");
}

#[tokio::test]
async fn a_dry_run_shows_the_changes_and_an_application_makes_them() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let wanted = json!({
        "partners": {
            "acme": {"defaultFeePercentage": 1.5, "rateLimits": {"quotes": "5/s burst 7"},
                "contactEmail": "hooks@acme.example",
                "branding": {"supportUrl": "mailto:help@acme.example"}},
            "new-shop": {"name": "New Shop", "allowedCountries": ["NL"]},
        },
        "pairs": {"BTC-EUR": {"buy": {"min": 25}}},
        "paymentMethods": {"creditCard": {"enabled": false}},
        "prices": {"BTC-EUR": {"price": 40000}},
    });
    let shown = apply(&context, DRY_RUN, wanted.clone()).await;
    assert_eq!(shown.assert_status(200).json()["isApplied"], false);
    let told = changes(&shown);
    for (subject, member, to) in [
        ("partners.acme", "defaultFeePercentage", json!(1.5)),
        ("partners.acme", "rateLimits.quotes", json!("5/s burst 7")),
        ("partners.new-shop", "slug", json!("new-shop")),
        ("partners.new-shop", "name", json!("New Shop")),
        ("pairs.BTC-EUR", "buy.min", json!(25)),
        ("paymentMethods.creditCard", "enabled", json!(false)),
        ("prices.BTC-EUR", "price", json!(40000)),
    ] {
        let change = (subject.to_owned(), member.to_owned(), to);
        assert!(told.contains(&change), "{change:?} is not in {told:?}");
    }
    assert!(stored(&context).await["partners"].get("new-shop").is_none(), "it was a dry run");
    assert_eq!(changes(&apply(&context, PATH, wanted.clone()).await), told);
    let now = stored(&context).await;
    assert_eq!(now["partners"]["new-shop"]["allowedCountries"], json!(["NL"]));
    assert_eq!(now["partners"]["acme"]["defaultFeePercentage"], json!(1.5));
    assert_eq!(changes(&apply(&context, PATH, wanted).await), []);
    let subjects: Vec<_> =
        audited(&context, "configuration.apply").await.into_iter().map(|row| row.1).collect();
    for subject in ["partners.acme", "partners.new-shop", "pairs.BTC-EUR", "prices.BTC-EUR"] {
        assert!(subjects.iter().any(|one| one == subject), "{subject} is not in {subjects:?}");
    }
    let audit = context.admin(Method::GET, "/admin/v1/audit", Value::Null).await;
    assert!(!audit.text().contains("@acme.example"), "the audit names nobody");
}

#[tokio::test]
async fn what_is_wrong_is_named_and_nothing_is_applied() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let before = stored(&context).await;
    for (wrong, status, reason) in [
        (json!({"shops": {}}), 422, "unknown field `shops`"),
        (json!({"partners": {"acme": {"feeCapPercentage": 30}}}), 422, "partners.acme: feeCap"),
        (json!({"partners": {"acme": {"color": "red"}}}), 422, "partners.acme: unknown field"),
        (json!({"partners": {"A!": {}}}), 422, "partners.A!: slug"),
        (json!({"partners": {"house": {"name": "x"}}}), 409, "partners.house: slug is taken"),
        (
            json!({"partners": {"acme": {"mode": "live"}}}),
            409,
            "partners.acme: a live partner needs",
        ),
        (json!({"partners": {"acme": {"policies": {"tax": "x"}}}}), 422, "no kind tax"),
        (
            json!({"partners": {"acme": {"policies": {"fee": "00"}}}}),
            422,
            "no version has this digest",
        ),
        (
            json!({"pairs": {"XXX-YYY": {"spreadPercentage": 1}}}),
            422,
            "pairs.XXX-YYY: no such pair",
        ),
        (
            json!({"pairs": {"BTC-EUR": {"spreadPercentage": -1}}}),
            422,
            "pairs.BTC-EUR: out of bounds",
        ),
        (
            json!({"pairs": {"BTC-EUR": {"quotesValidFrom": "2026-01-01T00:00:00Z"}}}),
            422,
            "quotesValidFrom is an action",
        ),
        (json!({"prices": {"BTC-EUR": {"price": 0}}}), 422, "prices.BTC-EUR: price: above zero"),
        (json!({"paymentMethods": {"nothing": {}}}), 422, "no such payment method"),
        (json!({"partners": {"acme": {"policies": {"fee": 1}}}}), 422, "policies.fee: invalid"),
    ] {
        // The right half comes first, and must not stay.
        let mut both = wrong.clone();
        both["partners"]["acme"]["defaultFeePercentage"] = json!(1.25);
        for path in [DRY_RUN, PATH] {
            let refused = apply(&context, path, both.clone()).await;
            refused.assert_status(status);
            assert!(refused.text().contains(reason), "{wrong}: {}", refused.text());
        }
        assert_eq!(stored(&context).await, before, "{wrong}");
    }
    let odd = apply(&context, "/admin/v1/configuration?dryRun=maybe", json!({})).await;
    odd.assert_status(422);
}

#[tokio::test]
async fn a_route_that_is_wrong_is_named_by_its_place() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let connector = json!({"name": "cards", "capabilities": ["payment.create"]});
    let made = context.admin(Method::POST, "/admin/v1/connectors", connector).await;
    made.assert_status(201);
    let before = stored(&context).await;
    for (members, reason) in [
        (json!({"method": "none"}), "routes[1].method: no such payment method"),
        (json!({"asset": "NONE"}), "routes[1].asset: no such asset"),
        (json!({}), "routes[1]: a method or an asset, and not both"),
        (json!({"color": "red"}), "routes[1]: unknown field `color`"),
        (json!({"asset": "BTC", "partner": "none"}), "routes[1].partner: no such partner"),
        (json!({"asset": "BTC", "connector": "none"}), "routes[1].connector: no such connector"),
        (json!({"asset": "BTC", "connector": "sandbox"}), "routes[1].connector: no such connector"),
    ] {
        let right = json!({"method": "creditCard", "direction": "in", "connector": "cards"});
        let mut wrong = json!({"direction": "out", "connector": "cards"});
        wrong.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        let routes = json!({"routes": [right, wrong]});
        let mut both = routes.clone();
        both["partners"]["acme"]["defaultFeePercentage"] = json!(1.25);
        for (path, body) in [(DRY_RUN, &both), (PATH, &both), ("/admin/v1/routes", &routes)] {
            let refused = context.admin(Method::PUT, path, body.clone()).await;
            refused.assert_status(422);
            assert!(refused.text().contains(reason), "{path}: {}", refused.text());
        }
        assert_eq!(stored(&context).await, before, "{members}");
    }
}

#[tokio::test]
async fn changes_need_a_second_person_and_a_look_does_not() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let ada = Operator::new(&context, "ada", &["platform"]).await;
    let bob = Operator::new(&context, "bob", &["platform"]).await;
    let wanted = json!({"partners": {"acme": {"defaultFeePercentage": 1.5}}});
    let apply = async |path: &str| ada.call(Method::PUT, path, wanted.clone()).await;
    assert_eq!(changes(&apply(DRY_RUN).await).len(), 1);
    let waits = apply(PATH).await.assert_status(202).json();
    assert_eq!(stored(&context).await["partners"]["acme"]["defaultFeePercentage"], json!(0));
    let grant = format!("/admin/v1/approvals/{}/grant", waits["approval"].as_str().unwrap());
    bob.call(Method::POST, &grant, Value::Null).await.assert_status(204);
    assert_eq!(changes(&apply(PATH).await).len(), 1);
    // There is nothing to agree to any more.
    assert_eq!(changes(&apply(PATH).await), []);
    let viewer = Operator::new(&context, "eve", &["viewer"]).await;
    viewer.call(Method::PUT, DRY_RUN, wanted.clone()).await.assert_status(403);
    viewer.get(PATH).await.assert_status(200);
}

#[tokio::test]
async fn a_gate_or_a_rate_that_a_document_takes_away_is_a_change_like_any_other() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let set = json!({"complianceGates": {"card": "before-payment"},
        "rateLimits": {"quotes": "5/s burst 7"}});
    context.admin(Method::PATCH, "/admin/v1/partners/acme", set).await.assert_status(200);
    let ada = Operator::new(&context, "ada", &["platform"]).await;
    for (change, member) in [
        (json!({"complianceGates": {"card": null}}), "complianceGates.card"),
        (json!({"rateLimits": {}}), "rateLimits.quotes"),
    ] {
        let wanted = json!({"partners": {"acme": change}});
        ada.call(Method::PUT, PATH, wanted.clone()).await.assert_status(202);
        let told = changes(&apply(&context, PATH, wanted.clone()).await);
        assert_eq!(told, [("partners.acme".to_owned(), member.to_owned(), Value::Null)]);
        assert_eq!(changes(&apply(&context, PATH, wanted).await), []);
    }
    assert_eq!(audited(&context, "configuration.apply").await.len(), 2);
}

#[tokio::test]
async fn a_document_changes_prices_and_terms_for_treasurers_alone() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let ada = Operator::new(&context, "ada", &["platform"]).await;
    let bob = Operator::new(&context, "bob", &["platform", "treasury"]).await;
    for wanted in [
        json!({"prices": {"BTC-EUR": {"price": 40_000}}}),
        json!({"pairs": {"BTC-EUR": {"spreadPercentage": 19}}}),
        json!({"paymentMethods": {"creditCard": {"fees": {"percentage": 0.25}}}}),
    ] {
        let looked = changes(&ada.call(Method::PUT, DRY_RUN, wanted.clone()).await);
        let refused = ada.call(Method::PUT, PATH, wanted.clone()).await;
        assert!(
            !looked.is_empty() && refused.assert_status(403).text().contains("treasury"),
            "{wanted}"
        );
        bob.call(Method::PUT, PATH, wanted).await.assert_status(202);
    }
    let mut unchanged = stored(&context).await;
    unchanged["partners"]["acme"]["defaultFeePercentage"] = json!(1.5);
    ada.call(Method::PUT, PATH, unchanged).await.assert_status(202);
}

#[tokio::test]
async fn what_changes_beside_the_document_is_drift() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let drift = async || {
        measure_drift(context.core()).await.unwrap();
        context.core().metrics.configuration_drift.with_label_values::<&str>(&[]).get()
    };
    assert_eq!(drift().await, 0, "nothing was ever applied");
    let wanted = json!({"partners": {"acme": {"defaultFeePercentage": 1.5}},
        "pairs": {"BTC-EUR": {"buy": {"min": 25}}}});
    apply(&context, PATH, wanted.clone()).await.assert_status(200);
    assert_eq!(drift().await, 0);
    let set = async |path: &str, body: Value| {
        context.admin(Method::PATCH, path, body).await.assert_status(200);
    };
    set("/admin/v1/partners/acme", json!({"defaultFeePercentage": 2, "feeCapPercentage": 5})).await;
    assert_eq!(drift().await, 1, "the cap is nothing that the document decides");
    set("/admin/v1/pairs/BTC-EUR", json!({"buy": {"min": 30}})).await;
    assert_eq!(drift().await, 2);
    apply(&context, PATH, wanted).await.assert_status(200);
    assert_eq!(drift().await, 0);
}

#[tokio::test]
async fn a_document_leaves_the_drift_of_subjects_that_it_does_not_name() {
    let context = TestContext::start().await;
    for slug in ["acme", "rival"] {
        context.partner(slug).await;
    }
    let drift = async || {
        measure_drift(context.core()).await.unwrap();
        context.core().metrics.configuration_drift.with_label_values::<&str>(&[]).get()
    };
    let of = |slug: &str| json!({"partners": {slug: {"defaultFeePercentage": 1.5}}});
    for slug in ["acme", "rival"] {
        apply(&context, PATH, of(slug)).await.assert_status(200);
        let path = format!("/admin/v1/partners/{slug}");
        let changed = json!({"defaultFeePercentage": 2});
        context.admin(Method::PATCH, &path, changed).await.assert_status(200);
    }
    assert_eq!(drift().await, 2);
    apply(&context, PATH, json!({})).await.assert_status(200);
    assert_eq!(drift().await, 2, "an empty document names nothing");
    apply(&context, PATH, of("acme")).await.assert_status(200);
    assert_eq!(drift().await, 1, "that of the other partner is left");
    assert_eq!(audited(&context, "configuration.keep").await, []);
    for _ in 0..2 {
        apply(&context, PATH, json!({"partners": {"rival": {}}})).await.assert_status(200);
        assert_eq!(drift().await, 0, "no member of it is wanted any more");
        let kept = audited(&context, "configuration.keep").await;
        assert_eq!(kept, [("admin".into(), "configuration".into())], "it changed nothing else");
    }
}

#[tokio::test]
async fn of_two_documents_at_once_one_follows_the_other() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let document = |fee: u32, min: u32| {
        json!({"partners": {"acme": {"defaultFeePercentage": fee}},
            "pairs": {"BTC-EUR": {"buy": {"min": min}}}})
    };
    for _ in 0..4 {
        let (one, other) = futures::join!(
            apply(&context, PATH, document(1, 21)),
            apply(&context, PATH, document(2, 22)),
        );
        // One that would have changed nothing, had the other not come before, is asked to look again.
        for answer in [one, other] {
            assert!([200, 409].contains(&answer.status()), "{}", answer.text());
        }
        let now = stored(&context).await;
        let fee = now["partners"]["acme"]["defaultFeePercentage"].as_u64().unwrap();
        assert_eq!(now["pairs"]["BTC-EUR"]["buy"]["min"], json!(20 + fee), "all of one document");
    }
}
