//! Branding: set by operators and owners, sanitised, shown to shoppers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::outbox;
use rampart_tests::partner::Partner;
use rampart_tests::staff::Staff;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

const PARTNER: &str = "/admin/v1/partners/acme";
const PATH: &str = "/portal/branding";
/// One red pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

#[tokio::test]
async fn operators_set_name_and_branding() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let change = async |body: Value| context.admin(Method::PATCH, PARTNER, body).await;
    for (branding, member) in [
        (json!({"accentColor": "#ffcc00"}), "accentColor"),
        (json!({"logo": "R0lGODlh"}), "logo"),
        (json!({"termsUrl": "javascript:alert(1)"}), "termsUrl"),
        (json!({"colour": "#000000"}), "colour"),
    ] {
        let answer = change(json!({ "branding": branding })).await;
        assert!(answer.assert_status(422).text().contains(member), "{}", answer.text());
    }
    change(json!({"name": ""})).await.assert_status(422);
    let branding = json!({"accentColor": "#0B57D0", "logo": PNG,
        "supportUrl": "mailto:help@acme.example", "privacyUrl": "https://acme.example/privacy"});
    let body = json!({"name": "Acme & Daughters", "branding": branding});
    let partner = change(body).await.assert_status(200).json();
    assert_eq!(partner["name"], "Acme & Daughters");
    assert_eq!(partner["branding"]["accentColor"], "#0b57d0");
    let path = partner["branding"]["logoPath"].as_str().unwrap().to_owned();
    let logo = acme.anonymous(Method::GET, &path).send().await;
    logo.assert_status(200);
    assert_eq!(logo.header("content-type"), Some("image/png"));
    assert!(logo.header("cache-control").unwrap().contains("immutable"));
    assert!(logo.bytes().starts_with(b"\x89PNG"));
    // The audit has no picture, and no mail address.
    let audit = context.admin(Method::GET, "/admin/v1/audit", Value::Null).await;
    assert!(!audit.text().contains("iVBOR"), "{}", audit.text());
    assert!(!audit.text().contains("help@acme.example"), "{}", audit.text());
    let partner = change(json!({"branding": {"logo": null, "supportUrl": null}})).await.json();
    assert_eq!(partner["branding"]["logoPath"], Value::Null);
    assert_eq!(partner["branding"]["privacyUrl"], "https://acme.example/privacy");
    acme.anonymous(Method::GET, &path).send().await.assert_status(404);
}

#[tokio::test]
async fn a_logo_is_kept_by_no_browser_under_the_path_of_the_one_before() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let branding = json!({ "branding": {"logo": PNG} });
    let partner = context.admin(Method::PATCH, PARTNER, branding).await.assert_status(200).json();
    let path = partner["branding"]["logoPath"].as_str().unwrap();
    // As another edge has committed it, before this one has read it.
    let replaced = "update client_logo set png = png || 'x'::bytea";
    sqlx::query(replaced).execute(context.db()).await.unwrap();
    let logo = acme.anonymous(Method::GET, path).send().await;
    assert_eq!(logo.assert_status(200).header("cache-control"), Some("no-store"));
}

#[tokio::test]
async fn shoppers_see_the_partners_name_logo_colour_and_links() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let rival = context.partner("rival").await;
    let branding = json!({"accentColor": "#8a1538", "logo": PNG,
        "supportUrl": "https://acme.example/help", "termsUrl": "https://acme.example/terms"});
    let body = json!({"name": "Acme & Daughters", "branding": branding});
    let partner = context.admin(Method::PATCH, PARTNER, body).await.assert_status(200).json();
    let logo = partner["branding"]["logoPath"].as_str().unwrap().to_owned();
    let dutch = async |partner: &Partner, path: &str| {
        let request = partner.anonymous(Method::GET, path).header("accept-language", "nl");
        request.send().await
    };
    let proposed = json!({"baseCurrency": "BTC", "quoteCurrency": "EUR",
        "paymentMethod": "creditCard", "quoteCurrencyAmount": 100});
    let checkout = acme.post("/api/v2/buy/checkout", proposed).await.assert_status(200).json();
    let checkout = checkout["checkoutUrl"].as_str().unwrap().split_once(".com").unwrap().1;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    let help = ["/nl-nl/forgot-password", "/nl-nl/support", "/nl-nl/faq"];
    let help = help.map(|path| format!("{path}?client=acme"));
    let reset = reset_link(&context, &acme).await;
    let pages = [checkout, &order.pay_path, &reset].into_iter();
    for path in pages.chain(help.iter().map(String::as_str)) {
        let page = dutch(&acme, path).await;
        let text = page.assert_status(200).text();
        for part in [
            "<span>Acme &amp; Daughters</span>",
            &format!("src=\"{logo}\""),
            "--accent:#8a1538",
            "href=\"https://acme.example/help\"",
            "Voorwaarden van Acme &amp; Daughters",
        ] {
            assert!(text.contains(part), "{path}: {part} in {text}");
        }
        let policy = page.header("content-security-policy").unwrap();
        assert!(policy.contains("img-src 'self'") && !policy.contains("unsafe"), "{policy}");
    }
    // Another partner's shoppers see nothing of it, nor does a page of nobody's.
    let page = dutch(&acme, "/nl-nl/faq?client=nobody").await;
    assert!(!page.assert_status(200).text().contains("class=\"brand\""), "{}", page.text());
    let order = OrderFixture::order(&context, &rival, None, None).await;
    let page = dutch(&rival, &order.pay_path).await;
    let text = page.assert_status(200).text();
    assert!(!text.contains("acme") && !text.contains("<img"), "{text}");
}

/// The path of a mailed link to set a new password.
async fn reset_link(context: &TestContext, acme: &Partner) -> String {
    let ada = acme.user("ada").await;
    let reset = json!({"emailAddress": ada.email});
    acme.post("/api/v1/user/reset-password", reset).await.assert_status(200);
    let text = outbox::newest(context, &ada.email).await.text;
    let url = text.lines().find(|line| line.contains("/reset-password/")).unwrap();
    url.split_once(".com").unwrap().1.to_owned()
}

#[tokio::test]
async fn an_owner_sets_the_branding_with_a_file() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut staff = Staff::signed_in(&context, &acme, "owner").await;
    let png = STANDARD.decode(PNG).unwrap();
    let fields = [("accentColor", "#0b57d0"), ("termsUrl", "https://acme.example/terms")];
    let saved = staff.submit_file(PATH, "logo", &png, &fields).await;
    assert_eq!(saved.header("location"), Some("/portal/branding?done=saved"));
    let page = staff.get(PATH).await;
    let text = page.assert_status(200).text();
    for part in [
        "value=\"#0b57d0\"",
        "value=\"https://acme.example/terms\"",
        "src=\"https://pay.example.com/brand/acme/",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // No file leaves the logo, an empty field takes away.
    staff.submit_file(PATH, "logo", b"", &[("accentColor", "#0b57d0")]).await.assert_status(303);
    let partner = context.admin(Method::GET, PARTNER, Value::Null).await.json();
    assert!(partner["branding"]["logoPath"].is_string());
    assert_eq!(partner["branding"]["termsUrl"], Value::Null);
    let wrong = [("accentColor", "#ffff00"), ("supportUrl", "ftp://acme.example")];
    let page = staff.submit_file(PATH, "logo", b"GIF89a", &wrong).await;
    let text = page.assert_status(400).text();
    for part in [
        "href=\"#field-logo\">Logo – A PNG of at most 64 KiB",
        "href=\"#field-accentColor\">Accent colour – Its contrast to the ground",
        "href=\"#field-supportUrl\">Help – An https: or mailto: URL.<",
        "value=\"#ffff00\"",
        "value=\"ftp://acme.example\"",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let wrong = [("removeLogo", "yes"), ("supportUrl", "ftp://acme.example")];
    let page = staff.submit(PATH, &wrong).await;
    let text = page.assert_status(400).text();
    assert!(text.contains("name=\"removeLogo\" value=\"yes\" checked"), "{text}");
    staff.submit(PATH, &[("removeLogo", "yes")]).await.assert_status(303);
    let partner = context.admin(Method::GET, PARTNER, Value::Null).await.json();
    assert_eq!(partner["branding"]["logoPath"], Value::Null);
}

#[tokio::test]
async fn a_drawing_is_written_anew_and_served_so_that_nothing_runs() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut staff = Staff::signed_in(&context, &acme, "owner").await;
    let drawing = |inside: &str| {
        format!("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 8 8\">{inside}</svg>")
    };
    let shape = "<path d=\"M0,0 L8,8z\" fill=\"#8a1538\"/>";
    for bad in ["<script>alert(1)</script>", "<image href=\"https://a.example/b.png\"/>"] {
        let refused = staff.submit_file(PATH, "logo", drawing(bad).as_bytes(), &[]).await;
        assert!(refused.assert_status(400).text().contains("href=\"#field-logo\""));
    }
    let sent = drawing(&shape.replace("/>", " onload=\"alert(1)\"/>"));
    staff.submit_file(PATH, "logo", sent.as_bytes(), &[]).await.assert_status(303);
    let partner = context.admin(Method::GET, PARTNER, Value::Null).await.json();
    let path = partner["branding"]["logoPath"].as_str().unwrap().to_owned();
    assert!(path.ends_with(".svg"), "{path}");
    let logo = acme.anonymous(Method::GET, &path).send().await;
    assert_eq!(logo.assert_status(200).text(), drawing(shape));
    for (name, value) in [
        ("content-type", "image/svg+xml"),
        ("content-security-policy", "default-src 'none'"),
        ("x-content-type-options", "nosniff"),
    ] {
        assert_eq!(logo.header(name), Some(value), "{name}");
    }
    // A picture in its place has another path, of its own kind.
    let png = json!({"branding": {"logo": PNG}});
    let partner = context.admin(Method::PATCH, PARTNER, png).await.assert_status(200).json();
    assert!(partner["branding"]["logoPath"].as_str().unwrap().ends_with(".png"));
    acme.anonymous(Method::GET, &path).send().await.assert_status(404);
}
