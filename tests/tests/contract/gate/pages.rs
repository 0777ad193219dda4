//! Forms of the pages of checks as they are shown again, and the images that they take.

use rampart_tests::wallet::Wallet;

use super::*;

const IBAN: &str = "NL91ABNA0417164300";
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n of a document";
/// An answer to each question.
const ANSWERS: [(&str, &str); 5] = [
    ("kyc-amld5-annual-net-income", "up-to-25000"),
    ("kyc-amld5-employment-status", "student"),
    ("kyc-amld5-main-source-income", "salary"),
    ("kyc-amld5-which-industry", "trade"),
    ("kyc-amld5-why-account-created", "trading"),
];

/// Sends a page's form with files; a member without a name of a file is a text.
async fn upload(partner: &Partner, path: &str, members: &[(&str, Option<&str>, &[u8])]) -> Answer {
    let mut body = Vec::new();
    for (name, file, content) in members {
        let file = file.map(|file| format!("; filename=\"{file}\"")).unwrap_or_default();
        let head = format!("--b1\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n");
        body.extend([head.as_bytes(), content, b"\r\n"].concat());
    }
    body.extend(b"--b1--\r\n");
    let request = partner.anonymous(Method::POST, path);
    let request = request.header("content-type", "multipart/form-data; boundary=b1");
    shown(partner, request.body(body).send().await).await
}

/// The number of files that a page's form cannot be sent without.
fn required_files(page: &str) -> usize {
    let files = page.split("type=\"file\"").skip(1).filter_map(|rest| rest.split('>').next());
    files.filter(|attributes| attributes.contains(" required")).count()
}

/// A shop whose user has no language of its own: pages follow the browser's.
async fn shop_without_language() -> Shop {
    let shop = Shop::open().await;
    let forget = sqlx::query("update end_user set region = null");
    forget.execute(shop.context.db()).await.unwrap();
    shop
}

/// The page of the only reason that an order waits for.
async fn page_of(shop: &Shop, order: i64) -> String {
    path(&shop.reasons(order).await.remove(0))
}

/// A shop where no connector checks identities, an order that waits for its user's, and the page of that.
async fn unidentified() -> (Shop, i64, String) {
    let shop = shop_without_language().await;
    let without =
        "update connector set capabilities = array_remove(capabilities, 'identity.start')";
    sqlx::query(without).execute(shop.context.db()).await.unwrap();
    shop.change(json!({"verification": {"identity": "pending"}})).await;
    let order = shop.paid(100, &Wallet::new(7).address()).await;
    let page = page_of(&shop, order).await;
    (shop, order, page)
}

#[tokio::test]
async fn a_refused_form_has_each_error_at_its_field_and_what_was_typed() {
    let shop = Shop::open().await;
    shop.change(
        json!({"dac8Status": "missing", "verification": {"residentialAddress": "missing"}}),
    )
    .await;
    let order = shop.paid(100, &Wallet::new(7).address()).await;
    let pages: Vec<_> = shop.reasons(order).await.iter().map(path).collect();
    let typed = [("country", "Utopia"), ("number", "12 <34>")];
    let tax = send(&shop.partner, &pages[0], &typed).await;
    let text = tax.assert_status(400).text();
    assert!(text.contains("href=\"#field-country\"") && text.contains("Utopia"), "{text}");
    assert!(text.contains("href=\"#field-number\"") && text.contains("12 &lt;34&gt;"), "{text}");
    let typed = [("address", "Keizersgracht"), ("addressNo", "7"), ("city", "")];
    let address = send(&shop.partner, &pages[1], &typed).await;
    let text = address.assert_status(400).text();
    for field in ["postalCode", "city"] {
        let (_, label) = text.split_once(&format!("id=\"field-{field}-label\">")).unwrap();
        let (label, _) = label.split_once('<').unwrap();
        let line = format!("href=\"#field-{field}\">{label} – ");
        assert!(text.contains(&line), "{line} in {text}");
    }
    assert!(!text.contains("href=\"#field-address\"") && text.contains("Keizersgracht"), "{text}");
    assert_eq!(text.matches("class=\"field-error\"").count(), 2, "{text}");
}

#[tokio::test]
async fn questions_are_asked_in_the_readers_language() {
    let shop = shop_without_language().await;
    shop.change(json!({"verification": {"amld5": "pending"}})).await;
    let order = shop.paid(100, &Wallet::new(7).address()).await;
    let page = page_of(&shop, order).await;
    for (language, label) in [("pt", "Em que setor"), ("it", "In quale settore"), ("pl", "branży")]
    {
        let request = shop.partner.anonymous(Method::GET, &page);
        let shown = request.header("accept-language", language).send().await;
        assert!(shown.assert_status(200).text().contains(label), "{language}: {}", shown.text());
    }
    let some = [("kyc-amld5-which-industry", "trade")];
    let refused = send(&shop.partner, &page, &some).await;
    let text = refused.assert_status(400).text();
    assert!(text.contains("<option value=\"trade\" selected>"), "{text}");
    assert!(text.contains("href=\"#field-kyc-amld5-employment-status\""), "{text}");
    send(&shop.partner, &page, &ANSWERS).await.assert_status(200);
    assert!(shop.reasons(order).await.is_empty());
}

#[tokio::test]
async fn questions_whose_answers_count_no_more_are_asked_again() {
    let shop = shop_without_language().await;
    for fiat in [100, 101] {
        shop.change(json!({"verification": {"amld5": "pending"}})).await;
        // Neither another change nor one answer ends what is asked again.
        let change = json!({"newsletterSubscription": true});
        shop.ada.patch("/api/v2/user", &change).await.assert_status(200);
        let one = json!([{"key": "kyc-amld5-employment-status", "answer": "Employed"}]);
        shop.ada.post("/api/v1/user/verify/amld5", &one).await.assert_status(200);
        let order = shop.paid(fiat, &Wallet::new(7).address()).await;
        let page = page_of(&shop, order).await;
        let shown = visit(&shop.partner, &page).await;
        assert!(shown.assert_status(200).text().contains("<select"), "{}", shown.text());
        let open = shop.ada.get("/api/v2/user/verification-status").await.json();
        let item = open.as_array().unwrap().iter().find(|item| item["name"] == "AMLD5Questions");
        assert_eq!(item.unwrap()["status"], "missing");
        send(&shop.partner, &page, &ANSWERS).await.assert_status(200);
        assert!(shop.reasons(order).await.is_empty());
        // The payout is not the next order's payment.
        assert_eq!(shop.connector.lease(10).await.len(), 1);
    }
}

#[tokio::test]
async fn who_is_refused_with_every_answer_is_not_told_to_wait() {
    let shop = shop_without_language().await;
    shop.change(json!({"verification": {"amld5": "pending"}})).await;
    let order = shop.paid(100, &Wallet::new(7).address()).await;
    let page = page_of(&shop, order).await;
    shop.change(json!({"verification": {"amld5": "failed"}})).await;
    let shown = visit(&shop.partner, &page).await;
    let text = shown.assert_status(200).text();
    assert!(text.contains("Please try again, or ask") && text.contains("<select"), "{text}");
    assert!(text.contains("One more step for your order"), "{text}");
    // An operator's decision stays.
    let answered = send(&shop.partner, &page, &ANSWERS).await;
    let text = answered.assert_status(200).text();
    assert!(text.contains("This was refused. Please ask for help."), "{text}");
    assert!(!text.contains("We look at your answers") && !text.contains("<select"), "{text}");
    assert!(!text.contains("One more step"), "{text}");
    for (language, title) in [
        ("de", "Bitten Sie um Hilfe zu Ihrer Bestellung"),
        ("en", "Ask for help with your order"),
        ("es", "Pide ayuda con tu pedido"),
        ("fr", "Demandez de l'aide pour votre commande"),
        ("it", "Chiedi aiuto per il tuo ordine"),
        ("nl", "Vraag om hulp bij je bestelling"),
        ("pl", "Poproś o pomoc w sprawie zamówienia"),
        ("pt", "Peça ajuda com a sua ordem"),
    ] {
        let request = shop.partner.anonymous(Method::GET, &page);
        let shown = request.header("accept-language", language).send().await;
        let heading = format!("<h1>{title}</h1>");
        assert!(shown.assert_status(200).text().contains(&heading), "{}", shown.text());
    }
}

#[tokio::test]
async fn an_identity_document_is_taken_where_no_provider_checks_it() {
    let (shop, order, page) = unidentified().await;
    let shown = visit(&shop.partner, &page).await;
    let text = shown.assert_status(200).text();
    assert!(text.contains("enctype=\"multipart/form-data\""), "{text}");
    assert!(text.contains("accept=\"image/*\" capture=\"environment\""), "{text}");
    let policy = shown.header("content-security-policy").unwrap();
    assert!(policy.contains("img-src blob:") && policy.contains("script-src 'sha256-"), "{policy}");
    let document = ("document", None, &b"id-card"[..]);
    let wrong = ("front", Some("a.png"), &b"no image"[..]);
    let refused = upload(&shop.partner, &page, &[document, wrong]).await;
    let text = refused.assert_status(400).text();
    for part in ["not a JPEG", "href=\"#field-front\"", "href=\"#field-back\""] {
        assert!(text.contains(part), "{part}: {text}");
    }
    send(&shop.partner, &page, &[("document", "library-card")]).await.assert_status(400);
    let sides = "select count(*) from user_document where status = 'pending'";
    let count =
        async || sqlx::query_scalar::<_, i64>(sides).fetch_one(shop.context.db()).await.unwrap();
    assert_eq!(count().await, 0);
    let (front, back) = (("front", Some("a.png"), PNG), ("back", Some("b.png"), PNG));
    let sent = upload(&shop.partner, &page, &[document, front, back]).await;
    let text = sent.assert_status(200).text();
    assert!(text.contains("we have your document") && !text.contains("type=\"file\""), "{text}");
    assert_eq!(count().await, 2);
    let user = shop.context.admin(Method::GET, &shop.user, json!({})).await.json();
    assert_eq!(user["documents"][0]["type"], "id-card");
    assert_eq!(shop.codes(order).await, ["011"], "an operator decides");
}

#[tokio::test]
async fn a_good_side_of_a_document_is_kept_beside_a_wrong_one() {
    let (shop, order, page) = unidentified().await;
    let shown = visit(&shop.partner, &page).await;
    assert_eq!(required_files(shown.assert_status(200).text()), 1, "the front");
    let document = ("document", None, &b"id-card"[..]);
    let wrong = ("back", Some("b.png"), &b"no image"[..]);
    let front = ("front", Some("a.png"), PNG);
    let refused = upload(&shop.partner, &page, &[document, front, wrong]).await;
    refused.assert_status(400);
    // The same on another day, where nothing is chosen yet.
    for page in [refused, visit(&shop.partner, &page).await] {
        let text = page.text();
        assert!(text.contains("<option value=\"id-card\" selected>"), "{text}");
        assert!(text.contains("we have your document"), "{text}");
        assert_eq!(required_files(text), 0, "{text}");
    }
    let back = ("back", Some("b.png"), PNG);
    let sent = upload(&shop.partner, &page, &[document, back]).await;
    assert!(!sent.assert_status(200).text().contains("type=\"file\""), "{}", sent.text());
    let sides: Vec<String> =
        sqlx::query_scalar("select side from user_document where status = 'pending' order by side")
            .fetch_all(shop.context.db())
            .await
            .unwrap();
    assert_eq!(sides, ["back", "front"]);
    assert_eq!(shop.codes(order).await, ["011"], "an operator decides");
}

#[tokio::test]
async fn no_document_is_taken_where_a_provider_checks_identities() {
    let shop = shop_without_language().await;
    shop.change(json!({"verification": {"identity": "pending"}})).await;
    let order = shop.paid(100, &Wallet::new(7).address()).await;
    let page = page_of(&shop, order).await;
    let document = ("document", None, &b"passport"[..]);
    let sent = upload(&shop.partner, &page, &[document, ("front", Some("a.png"), PNG)]).await;
    assert!(!sent.assert_status(200).text().contains("we have your document"));
    let count = sqlx::query_scalar::<_, i64>("select count(*) from user_document");
    assert_eq!(count.fetch_one(shop.context.db()).await.unwrap(), 0);
}

#[tokio::test]
async fn a_proof_of_the_bank_account_that_pays_is_taken() {
    let shop = shop_without_language().await;
    let account = json!({"type": "bankTransfer", "identifier": IBAN, "name": "Ada Lovelace",
        "verified": true});
    let accounts = format!("{}/accounts", shop.user);
    shop.decide(&accounts, account).await.assert_status(201);
    let asked =
        json!({"currencyPair": "ETH-EUR", "paymentMethod": "bankTransfer", "fiatAmount": 100});
    let quote = shop.ada.post("/api/v1/buy/quote", &asked).await.assert_status(200).json();
    let confirm = json!({"quote": quote["quote"], "walletAddress": Wallet::new(7).address(),
        "returnUrl": "https://shop.example/back", "accountIdentifier": IBAN});
    let confirmed = shop.ada.post("/api/v1/buy/confirm", &confirm).await.assert_status(200).json();
    let order = confirmed["orderId"].as_i64().unwrap();
    let doubted = json!({"verified": false});
    let path = format!("{accounts}/{IBAN}");
    shop.context.admin(Method::PATCH, &path, doubted).await.assert_status(200);
    shop.pay(order, 100).await;
    assert_eq!(shop.codes(order).await, ["015"]);
    let page = page_of(&shop, order).await;
    let shown = visit(&shop.partner, &page).await;
    assert!(shown.assert_status(200).text().contains("name=\"proof\""), "{}", shown.text());
    let refused = send(&shop.partner, &page, &[]).await;
    let line = "href=\"#field-proof\">Please choose a photo or a PDF.";
    assert!(refused.assert_status(400).text().contains(line), "{}", refused.text());
    let proof = ("proof", Some("statement.pdf"), &b"%PDF-1.7 of the account"[..]);
    let sent = upload(&shop.partner, &page, &[proof]).await;
    assert!(sent.assert_status(200).text().contains("we look at your proof"), "{}", sent.text());
    let seen = shop.context.admin(Method::GET, &accounts, json!({})).await.json();
    assert_eq!(seen[0]["proofs"][0]["mediaType"], "application/pdf", "{seen}");
    assert_eq!(shop.codes(order).await, ["015"], "an operator decides");
    // What cannot be shown here is shown to support, whose page has the shop's own help.
    let disable = sqlx::query("update payment_account set disabled_at = now()");
    disable.execute(shop.context.db()).await.unwrap();
    let shown = visit(&shop.partner, &page).await;
    let help = format!("/support?client={}\"", shop.partner.slug);
    assert!(shown.assert_status(200).text().contains(&help), "{}", shown.text());
}

#[tokio::test]
async fn uploads_on_pages_have_the_rate_of_uploads() {
    let (shop, _, page) = unidentified().await;
    let images = json!({"identityDocument": [{"documentType": "passport", "documentSide": "back",
        "data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB"}]});
    shop.ada.patch("/api/v2/user", &images).await.assert_status(200);
    for _ in 1..10 {
        // A side that is under review is refused after it was counted.
        shop.ada.patch("/api/v2/user", &images).await.assert_codes(&["ER708"]);
    }
    let members = [("document", None, &b"passport"[..]), ("front", Some("a.png"), PNG)];
    let refused = upload(&shop.partner, &page, &members).await;
    refused.assert_status(429);
    assert!(refused.header("retry-after").is_some());
}
