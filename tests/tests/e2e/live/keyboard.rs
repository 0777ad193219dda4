//! A live purchase from a checkout's link to the coins, by keyboard alone on the width of a telephone.

use rampart_tests::anvil::CUSTOMER;
use rampart_tests::browser::Key;
use rampart_tests::deadline::until;

use super::market::{Market, PATIENCE};
use super::{ADDRESS, CARD, shows_card_form};
use crate::keyboard::{DUTCH, Shopper};

/// Price of the purchase in EUR.
const FIAT: u32 = 100;
/// The page's first link to a check; null where there is none.
const CHECK: &str = "const link = document.querySelector('main a[href*=\"/checks/\"]');
    return link && link.getAttribute('href');";

/// The link to the next check, once the page has one; `None` once the order is complete.
async fn next_check(shopper: &Shopper) -> Option<String> {
    until("a check, or the end", PATIENCE, async || {
        if let Some(link) = shopper.browser.run(CHECK).await.as_str() {
            return Some(Some(link.to_owned()));
        }
        let heading = "return document.querySelector('h1')?.textContent ?? ''";
        let heading = shopper.browser.run(heading).await;
        heading.as_str().unwrap().contains(DUTCH.completed).then_some(None)
    })
    .await
}

/// Passes the check of this link on its page.
async fn pass(market: &Market, shopper: &Shopper, link: &str) {
    shopper.press(&format!("a[href=\"{link}\"]"), Key::Enter).await;
    shopper.browser.reaches(link).await;
    match link.rsplit('/').next().unwrap() {
        "registration" => shopper.press("input[name=privacy]", Key::Space).await,
        "identity" => {
            let (check, start) = market.provider.begin().await;
            let link = format!("a[href=\"{check}\"]");
            shopper.browser.has(&link).await;
            shopper.press(&link, Key::Enter).await;
            shopper.browser.reaches(&check).await;
            return shopper.browser.open(&market.provider.end(&start).await).await;
        }
        "amld5" => {
            let names = "return [...document.querySelectorAll('select')].map(s => s.name)";
            for name in shopper.browser.run(names).await.as_array().unwrap() {
                let select = format!("select[name={name}]");
                shopper.press(&select, Key::Down).await;
            }
        }
        "address" => {
            for (name, text) in ADDRESS {
                shopper.fill(&format!("input[name={name}]"), text).await;
            }
        }
        other => panic!("nobody passes {other}"),
    }
    shopper.press("form button.main", Key::Enter).await;
}

#[tokio::test]
async fn a_live_purchase_needs_a_keyboard_alone() {
    let market = Box::pin(Market::open()).await;
    let before = market.anvil.balance(CUSTOMER).await;
    let shopper = Shopper::start().await;
    shopper.orders(&market.checkout(FIAT).await, CUSTOMER, &DUTCH).await;
    market.provider.clear("wallet").await;
    shows_card_form(&shopper.browser).await;
    for (field, text) in CARD {
        shopper.fill(&format!("#card-element input[placeholder={field}]"), text).await;
    }
    shopper.press("#card-form button", Key::Enter).await;
    let mut passed = Vec::new();
    while let Some(link) = next_check(&shopper).await {
        assert!(!passed.contains(&link), "{link} is passed, and stands: {passed:?}");
        assert_eq!(market.anvil.balance(CUSTOMER).await, before, "coins left before {link}");
        pass(&market, &shopper, &link).await;
        passed.push(link);
        shopper.arrives("Bedankt, deze stap is klaar.").await;
        let left = shopper.browser.run(CHECK).await;
        if left.is_null() {
            shopper.press("main a[href*=\"/pay/\"]", Key::Enter).await;
        }
    }
    assert!(passed.iter().any(|link| link.ends_with("/identity")), "{passed:?}");
    assert!(market.anvil.balance(CUSTOMER).await > before);
}
