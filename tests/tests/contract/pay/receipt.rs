//! The receipt that a payer keeps: as a document, and as signed facts.

use super::*;

/// Reads the receipt that the page links to with this ending.
async fn receipt(partner: &Partner, order: &OrderFixture, ending: &str) -> Answer {
    let path = format!("{}/receipt.{ending}", order.pay_path);
    partner.anonymous(Method::GET, &path).send().await
}

#[tokio::test]
async fn a_completed_order_has_a_receipt_to_keep() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    press(&acme, &order, "pay").await.assert_status(303);
    for _ in 0..2 {
        assert!(!show(&acme, &order).await.text().contains("receipt"));
        settle(&context).await;
    }
    let page = show(&acme, &order).await;
    for ending in ["pdf", "json"] {
        let link = format!("href=\"{}/receipt.{ending}\"", order.pay_path);
        assert!(page.text().contains(&link), "{link}: {}", page.text());
        let kept = receipt(&acme, &order, ending).await;
        kept.assert_status(200);
        assert_eq!(kept.header("content-type"), Some(&*format!("application/{ending}")));
        let name = format!("attachment; filename=\"receipt-{}.{ending}\"", order.id);
        assert_eq!(kept.header("content-disposition"), Some(&*name));
        assert_eq!(kept.header("cache-control"), Some("no-store"));
        assert_eq!(kept.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(kept.header("x-content-type-options"), Some("nosniff"));
    }
    let signed = receipt(&acme, &order, "json").await.json();
    assert_eq!(signed["receipt"]["orderId"], order.id);
    let document = receipt(&acme, &order, "pdf").await;
    let jws = signed["jws"].as_str().unwrap();
    let has_jws = document.bytes().windows(jws.len()).any(|part| part == jws.as_bytes());
    assert!(has_jws, "the signed facts are in the document");
    let shown = shown(document.bytes());
    for text in [
        "Receipt",
        "acme",
        "100.00 EUR",
        "0.002 BTC",
        "Fee of acme",
        "Credit card",
        "This is a test. No money is moved and no coins are sent.",
    ] {
        assert!(shown.iter().any(|line| line == text), "{text} in {shown:?}");
    }
    let path = format!("{}/receipt.pdf", order.pay_path);
    let polish = acme.anonymous(Method::GET, &path).header("accept-language", "pl").send().await;
    let shown = self::shown(polish.bytes());
    for text in ["Potwierdzenie zakupu", "Karta kredytowa"] {
        assert!(shown.iter().any(|line| line == text), "{text} in {shown:?}");
    }
    // What has happened stays true of a partner that is suspended later.
    let suspended = json!({"status": "suspended"});
    context.admin(Method::PATCH, "/admin/v1/partners/acme", suspended).await.assert_status(200);
    assert!(show(&acme, &order).await.text().contains("/receipt.pdf"));
    receipt(&acme, &order, "pdf").await.assert_status(200);
}

/// The lines of a document's page: its codes by the map that readers copy text with.
fn shown(document: &[u8]) -> Vec<String> {
    let text: String = document.iter().map(|byte| char::from(*byte)).collect();
    let between = |start: &str, end: &str| {
        let parts = text.split(start).skip(1);
        parts.filter_map(|part| Some(part.split_once(end)?.0.to_owned())).collect::<Vec<_>>()
    };
    let number = |hex: &str| u16::from_str_radix(hex.trim_matches(['<', '>']), 16).unwrap();
    let mut characters = std::collections::BTreeMap::new();
    for line in between("beginbfchar\n", "endbfchar").iter().flat_map(|map| map.lines()) {
        let (code, character) = line.split_once(' ').unwrap();
        characters.insert(number(code), char::from_u32(number(character).into()).unwrap());
    }
    let character = |code: &[u8]| characters[&u16::from_be_bytes([code[0], code[1]])];
    let lines = between(" Td\n(", ") Tj");
    lines.iter().map(|line| unescaped(line).chunks(2).map(character).collect()).collect()
}

/// The bytes of a literal string (ISO 32000-1, 7.3.4.2).
fn unescaped(literal: &str) -> Vec<u8> {
    let (mut bytes, mut characters) = (Vec::new(), literal.chars());
    while let Some(character) = characters.next() {
        let byte = match character {
            '\\' => match characters.next().unwrap() {
                'n' => 10,
                'r' => 13,
                't' => 9,
                'b' => 8,
                'f' => 12,
                first @ '0'..='7' => {
                    let digits: String =
                        std::iter::once(first).chain(characters.by_ref().take(2)).collect();
                    u32::from_str_radix(&digits, 8).unwrap()
                }
                other => other.into(),
            },
            other => other.into(),
        };
        bytes.push(u8::try_from(byte).unwrap());
    }
    bytes
}

#[tokio::test]
async fn who_asks_too_early_or_with_another_link_gets_no_receipt() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, Some(RETURN_URL), None).await;
    for ending in ["pdf", "json"] {
        let early = receipt(&acme, &order, ending).await;
        early.assert_status(303);
        assert_eq!(early.header("location"), Some(&*order.pay_path), "to the page of the order");
        let forged = format!("/pay/_{}/receipt.{ending}", &order.pay_path[6..]);
        let forged = acme.anonymous(Method::GET, &forged).send().await;
        forged.assert_status(404);
        assert!(forged.header("content-disposition").is_none());
    }
}

#[tokio::test]
async fn the_page_says_each_fee_and_where_the_coins_are() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    let page = show(&acme, &order).await;
    for text in ["Price and fees", "Fee of the network", "Fee of acme", "Network", "Bitcoin"] {
        assert!(page.text().contains(text), "{text} in {}", page.text());
    }
    assert!(!page.text().contains("Transaction"));
    press(&acme, &order, "pay").await.assert_status(303);
    settle(&context).await;
    let transaction = order.seen(&context).await["transactionId"].as_str().unwrap().to_owned();
    let page = show(&acme, &order).await;
    let link = format!("/{transaction}\" rel=\"noreferrer\"");
    assert!(page.text().contains("Transaction") && page.text().contains(&link), "{}", page.text());
}
