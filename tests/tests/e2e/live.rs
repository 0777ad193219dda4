//! The whole way of a live partner, over a real chain, cards in a browser and files of a bank: a user
//! buys coins, sells some again, and others agree with the books. `make live` shows its steps.

mod keyboard;
mod market;
mod provider;
mod steps;

use std::process::Command;

use http::Method;
use rampart_tests::anvil::CUSTOMER;
use rampart_tests::bank::{debit, element, is_valid, transfer};
use rampart_tests::browser::Browser;
use rampart_tests::deadline::{SOON, until};
use serde_json::{Value, json};

use market::{Market, PATIENCE};
use steps::Steps;

/// Price of the purchase in EUR; below what wants a proof of the wallet.
const FIAT: u32 = 250;
/// Coins that are sold again, in ETH and in wei.
const SOLD: (&str, u128) = ("0.04", 40_000_000_000_000_000);
/// Ada's account, which the money of the sale goes to.
const ADAS: &str = "NL91ABNA0417164300";
/// A card that is charged without more questions, by the fields of the form.
const CARD: [(&str, &str); 4] =
    [("number", "4242424242424242"), ("exp_month", "12"), ("exp_year", "30"), ("cvc", "123")];
/// Ada's address, by the inputs of the page.
const ADDRESS: [(&str, &str); 4] = [
    ("address", "Keizersgracht"),
    ("addressNo", "7"),
    ("postalCode", "1015 CJ"),
    ("city", "Amsterdam"),
];

/// A confirmed purchase: its number, and the page where it is paid.
struct Purchase {
    id: u64,
    page: String,
}

#[tokio::test]
async fn a_live_partner_buys_and_sells_over_chain_cards_and_bank() {
    let mut steps = Steps::new(10);
    let market =
        steps.run("the edge, a chain, cards and a bank start", Box::pin(Market::open())).await;
    let browser = Browser::start().await;
    steps.run("a user registers, and is screened", market.register()).await;
    let purchase =
        steps.run("she confirms a purchase; her wallet is screened", confirm(&market)).await;
    let paid = Box::pin(pay(&market, &browser, &purchase));
    steps.run("she pays by card, in a browser", paid).await;
    let checked = Box::pin(pass_checks(&market, &browser, &purchase));
    steps.run("she verifies at a provider of identity checks", checked).await;
    let coins = Box::pin(coins_arrive(&market, &purchase));
    steps.run("the coins are in her account on the chain", coins).await;
    let sale = steps.run("she sells some of them again", Box::pin(sell(&market))).await;
    steps.run("a pain.001 file pays her", Box::pin(pay_out(&market, sale))).await;
    steps.run("rampart ledger check finds nothing", check_books(&market)).await;
    steps.run("bean-check agrees with the books", check_journal(&market)).await;
    steps.done();
    market.all_run();
}

async fn confirm(market: &Market) -> Purchase {
    let asked =
        json!({"currencyPair": "ETH-EUR", "paymentMethod": "creditCard", "fiatAmount": FIAT});
    let quote = market.asked("/api/v1/buy/quote", asked).await;
    let body = json!({"quote": quote["quote"], "walletAddress": CUSTOMER,
        "returnUrl": market.shop.url("/thanks")});
    let confirmed = market.asked("/api/v1/buy/confirm", body).await;
    market.provider.clear("wallet").await;
    let page = confirmed["paymentUrl"].as_str().unwrap().to_owned();
    Purchase { id: confirmed["orderId"].as_u64().unwrap(), page }
}

/// Waits until the provider's form is there.
async fn shows_card_form(browser: &Browser) {
    until("the form for cards is there", SOON, async || {
        let ready =
            "const b = document.querySelector('#card-form button'); return !!b && !b.disabled";
        browser.run(ready).await.as_bool().unwrap().then_some(())
    })
    .await;
}

/// Types a card into the provider's form.
async fn pay(market: &Market, browser: &Browser, purchase: &Purchase) {
    browser.open(&purchase.page).await;
    shows_card_form(browser).await;
    for (field, text) in CARD {
        browser.enter(&format!("#card-element input[placeholder={field}]"), text).await;
    }
    browser.click("#card-form button").await;
    browser.reaches(&market.shop.url("/thanks")).await;
    market.reaches(purchase.id, "in progress").await;
}

/// Passes every check that holds up the coins, each on its page, until none is left.
async fn pass_checks(market: &Market, browser: &Browser, purchase: &Purchase) {
    let before = market.anvil.balance(CUSTOMER).await;
    let mut passed = Vec::new();
    loop {
        let read = market.asked_for(&format!("/api/v1/user/buy/orders/{}", purchase.id)).await;
        let reasons = read["orderNotCompletedReasons"].as_array().unwrap();
        let Some(reason) = reasons.first() else { break };
        assert_eq!(market.anvil.balance(CUSTOMER).await, before, "coins left before {reason}");
        let code = reason["code"].as_str().unwrap().to_owned();
        assert!(!passed.contains(&code), "{code} is passed, and stands: {reasons:?}");
        browser.open(reason["url"].as_str().unwrap()).await;
        match code.as_str() {
            "011" => market.provider.verify(browser).await,
            "012" => answer_questions(browser).await,
            "014" => give_address(browser).await,
            other => panic!("nobody passes {other}: {reasons:?}"),
        }
        passed.push(code);
    }
    assert!(passed.contains(&"011".to_owned()), "her identity was not asked for: {passed:?}");
}

/// Answers the questions of anti-money-laundering law.
async fn answer_questions(browser: &Browser) {
    let first_of_each = "for (const s of document.querySelectorAll('select')) s.selectedIndex = 1; \
                         return document.querySelectorAll('select').length";
    assert!(browser.run(first_of_each).await.as_u64().unwrap() > 0, "there are no questions");
    browser.click("form button").await;
    are_gone(browser, "select").await;
}

/// Waits until the page has none of these any more.
async fn are_gone(browser: &Browser, selector: &str) {
    until(&format!("{selector} is taken"), SOON, async || {
        let count = format!("return document.querySelectorAll('{selector}').length");
        (browser.run(&count).await == 0).then_some(())
    })
    .await;
}

async fn give_address(browser: &Browser) {
    for (name, text) in ADDRESS {
        browser.enter(&format!("input[name={name}]"), text).await;
    }
    browser.click("form button").await;
    are_gone(browser, "input").await;
}

/// Reads the chain itself: the transaction that the order names has moved its coins.
async fn coins_arrive(market: &Market, purchase: &Purchase) {
    market.reaches(purchase.id, "completed").await;
    let read = market.asked_for(&format!("/api/v2/buy/orders/{}", purchase.id)).await;
    let hash = &read["blockchainInfo"]["transactionId"];
    let sent = market.anvil.call("eth_getTransactionByHash", json!([hash])).await;
    assert_eq!(sent["to"], CUSTOMER);
    let bought: rust_decimal::Decimal = read["cryptoAmount"]["amount"].to_string().parse().unwrap();
    let wei = bought * rust_decimal::Decimal::from(1_000_000_000_000_000_000_u64);
    let moved = rampart_tests::anvil::quantity(&sent["value"]);
    assert_eq!(wei.normalize().to_string(), moved.to_string());
    let whole = 10_000 * 1_000_000_000_000_000_000;
    assert_eq!(market.anvil.balance(CUSTOMER).await, whole + moved, "she had 10,000 coins");
}

/// A sale whose coins are sent on the chain; its number.
async fn sell(market: &Market) -> u64 {
    let account = json!({"type": "bankTransfer", "identifier": ADAS, "name": "Ada Lovelace",
        "verified": true});
    let path = format!("{}/accounts", market.user_path());
    market.edge.admin(Method::POST, &path, account).await.assert_status(201);
    let amount: Value = serde_json::from_str(SOLD.0).unwrap();
    let asked = json!({"currencyPair": "ETH-EUR", "cryptoAmount": amount});
    let quote = market.asked("/api/v1/sell/quote", asked).await;
    let confirm = json!({"quote": quote["quote"], "accountIdentifier": ADAS});
    let sale = market.asked("/api/v1/sell/confirm", confirm).await;
    market.anvil.send(CUSTOMER, sale["walletAddress"].as_str().unwrap(), SOLD.1).await;
    let id = sale["orderId"].as_u64().unwrap();
    market.reaches(id, "in progress").await;
    id
}

/// The bank takes the file, and tells of it by a statement.
async fn pay_out(market: &Market, sale: u64) {
    let (id, text) = until("the transfer is in a file", PATIENCE, async || {
        let mut all = market.bank.transfers().into_iter();
        all.find_map(|(id, (_, text))| {
            (element(&text, "Ustrd") == sale.to_string()).then_some((id, text))
        })
    })
    .await;
    assert!(is_valid(&market.bank.files("outbox")), "the schema refuses it");
    assert_eq!(
        (element(&text, "Nm"), element(&text, "IBAN")),
        ("Ada Lovelace".into(), ADAS.into())
    );
    let amount = element(&text, "InstdAmt");
    let owed = market.order(sale).await["fiatAmount"].to_string();
    let [paid, owed]: [rust_decimal::Decimal; 2] =
        [&amount, &owed].map(|text| text.parse().unwrap());
    assert_eq!(paid, owed);
    market.bank.collect();
    let done = debit(&amount, "bank-1", &transfer(&id, None));
    market.bank.deliver("1.xml", &[done]);
    market.reaches(sale, "completed").await;
}

async fn check_books(market: &Market) {
    let checked = market.edge.command(&["ledger", "check"]).await;
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}

/// Somebody else's program judges the journal, and would have refused another amount.
async fn check_journal(market: &Market) {
    let path = "/admin/v1/ledger/export?format=beancount";
    let journal = market.edge.admin(Method::GET, path, Value::Null).await;
    let journal = journal.assert_status(200).text();
    let check = |name: &str, journal: &str| {
        let file = market.bank.path(name);
        std::fs::write(&file, journal).unwrap();
        let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/bean-check");
        Command::new(program).arg(&file).output().unwrap()
    };
    let judged = check("books.beancount", journal);
    assert!(judged.status.success(), "{}", String::from_utf8_lossy(&judged.stderr));
    let wrong = journal.replacen(&format!(" {FIAT} EUR"), " 1 EUR", 1);
    assert_ne!(wrong, journal, "the purchase is not in the journal");
    assert!(!check("wrong.beancount", &wrong).status.success(), "it checks nothing");
}
