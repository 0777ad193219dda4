//! Savings plans: opened on the page of a user, found by code, partner and user, fed by deposits.

use rampart_tests::buyer::WALLET;

use super::*;

#[tokio::test]
async fn a_plan_is_opened_found_and_deposited_to() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let uuid = acme.user("ada").await.log_in().await["uuid"].as_str().unwrap().to_owned();
    let sue = Browser::of(&context, "sue", &["support"]).await;
    let user = format!("/console/users/{uuid}");
    let open = format!("{user}/open-savings-plan");
    let typed = [("cryptoCurrency", "BTC"), ("walletAddress", "nowhere")];
    sue.submit(&open, &typed).await.assert(422, "href=\"#field-walletAddress\"");
    let typed = |intended: &'static str| {
        [
            ("cryptoCurrency", "BTC"),
            ("walletAddress", WALLET),
            ("intendedAmount", intended),
            ("frequency", "monthly"),
        ]
    };
    sue.submit(&open, &typed("12.345")).await.assert(422, "Intended amount in EUR: a number of");
    let typed = typed("12.50");
    let opened = sue.submit(&open, &typed).await.assert(303, "");
    let shown = sue.get(opened.header("location")).await.assert(200, "Done: Open a savings plan.");
    let (_, code) = shown.text.split_once("href=\"/console/savings-plans/").unwrap();
    let code = code.split('"').next().unwrap().to_owned();
    assert_eq!(audited(&context, "dca.open").await["actor"], "sue");

    let tom = Browser::of(&context, "tom", &["treasury"]).await;
    let plan = format!("/console/savings-plans/{code}");
    let link = format!("href=\"{plan}\"");
    tom.get("/console/partners/acme").await.assert(200, "/console/savings-plans?partner=acme");
    for (name, value) in [("partner", "acme"), ("code", &*code), ("user", &*uuid)] {
        let path = format!("/console/savings-plans?{name}={value}");
        tom.get(&path).await.assert(200, &link).assert(200, "12.5 EUR");
    }
    let wrong = tom.get("/console/savings-plans?code=nothing").await;
    wrong.assert(422, "not a savings plan").assert(422, "value=\"nothing\"");
    let page = tom.get(&plan).await.assert(200, "Nothing was deposited yet");
    let page = page.assert(200, "monthly").assert(200, "12.5 EUR").assert(200, &uuid);
    let user = format!("href=\"{user}\"");
    assert!(!page.text.contains(&user), "users are none of the treasury's pages: {}", page.text);
    sue.get(&plan).await.assert(200, &user);
    let typed = [("amount", "100"), ("currencyCode", "EUR"), ("reference", "2026-03-01-17")];
    let done = tom.submit(&format!("{plan}/deposit"), &typed).await.assert(303, "");
    let shown = tom.get(done.header("location")).await.assert(200, "Done: Report a deposit.");
    let shown = shown.assert(200, "100 EUR").assert(200, "2026-03-01-17");
    shown.assert(200, "href=\"/console/orders/");
    assert_eq!(audited(&context, "dca.deposit").await["actor"], "tom");
    let file = format!("{plan}/~/deposits?format=csv&columns=Amount&columns=Reference");
    tom.get(&file).await.assert(200, "Amount,Reference\r\n100 EUR,2026-03-01-17\r\n");

    let viewer = Browser::of(&context, "eve", &["viewer"]).await;
    let page = viewer.get(&plan).await.assert(200, "2026-03-01-17");
    assert!(!page.text.contains("Report a deposit"), "{}", page.text);
    viewer.get(&format!("{plan}/deposit")).await.assert(403, "not for your role");
    viewer.get("/console/savings-plans/000000000000").await.assert(404, "no such savings plan");
}
