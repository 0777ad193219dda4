//! The connector of a bank account between a real edge and a bank that is a folder.

mod kills;

use std::time::Duration;

use http::Method;
use rampart_tests::bank::{
    ACCOUNT, BankAccount, credit, debit, element, is_valid, paid_by_ada, transfer,
};
use rampart_tests::buyer::RETURN_URL;
use rampart_tests::caller::Caller;
use rampart_tests::deadline::until;
use rampart_tests::edge::Edge;
use rampart_tests::remote_connector::RemoteConnector;
use rampart_tests::user::registration;
use serde_json::{Value, json};

use crate::buyer::{WALLET, order_of};

/// Ada's account, which money of sales goes to.
const ADAS: &str = "NL91ABNA0417164300";
/// Time within which everything that is asked for has happened, on a busy machine.
const WITHIN: Duration = Duration::from_secs(60);

/// An edge whose partner's money goes through a bank account, and whose coins are played by the test.
struct Market {
    edge: Edge,
    acme: Caller,
    identifier: String,
    chain: RemoteConnector,
    bank: BankAccount,
}

impl Market {
    async fn open() -> Self {
        let edge = Edge::with(|setup| {
            setup.set("connectors.deposit_addresses_min", "8");
        })
        .await;
        let acme = edge.partner("acme").await;
        let kinds = ["payment.create", "payment.cancel", "payment.refund", "transfer.send"];
        let bank = RemoteConnector::add(&edge, "bank", &kinds).await;
        let chain = ["deposit.address", "payout.send"];
        let chain = RemoteConnector::add(&edge, "chain", &chain).await;
        let route = |leg: &str, of: &str, direction: &str, connector: &str| json!({"partner": "acme", leg: of, "direction": direction, "connector": connector});
        let routes = json!([
            route("method", "bankTransfer", "in", "bank"),
            route("method", "bankTransfer", "out", "bank"),
            route("asset", "ETH", "in", "chain"),
            route("asset", "BTC", "out", "chain"),
        ]);
        let put = edge.admin(Method::PUT, "/admin/v1/routes", json!({ "routes": routes })).await;
        put.assert_status(200);
        let user = registration("ada");
        let login = acme.register(&user).await;
        let path = format!("/admin/v1/users/{}/accounts", login["uuid"].as_str().unwrap());
        let account = json!({"type": "bankTransfer", "identifier": ADAS, "name": "Ada Lovelace",
            "verified": true});
        edge.admin(Method::POST, &path, account).await.assert_status(201);
        let bank = BankAccount::new(edge.connectors, &bank.token);
        let identifier = user["identifier"].as_str().unwrap().to_owned();
        let market = Self { edge, acme, identifier, chain, bank };
        market.make_addresses().await;
        market
    }

    async fn make_addresses(&self) {
        let wanted = self.chain.next("deposit.address").await;
        let addresses: Vec<Value> =
            (1..=8).map(|n| json!({"address": format!("0x{n:040}")})).collect();
        self.chain.done(&wanted, json!(addresses)).await;
    }

    async fn asked(&self, path: &str, body: Value) -> Value {
        let request = self.acme.request(Method::POST, path);
        let answer = request.header("user-identifier", &self.identifier).json(&body).send().await;
        answer.assert_status(200).json()
    }

    /// A sale whose coins have arrived; its number.
    async fn sale(&self) -> u64 {
        let asked = json!({"currencyPair": "ETH-EUR", "cryptoAmount": 0.1});
        let quote = self.asked("/api/v1/sell/quote", asked).await;
        let confirm = json!({"quote": quote["quote"], "accountIdentifier": ADAS});
        let sale = self.asked("/api/v1/sell/confirm", confirm).await;
        let transaction = format!("tx-{}", sale["orderId"]);
        let deposit = json!({"id": transaction, "kind": "deposit.received", "asset": "ETH",
            "amount": 0.1, "occurredAt": "2026-03-01T12:00:00Z", "transactionId": transaction,
            "providerReference": transaction, "address": sale["walletAddress"],
            "confirmations": 12});
        self.chain.call("events", deposit).await;
        sale["orderId"].as_u64().unwrap()
    }

    async fn order(&self, order: u64) -> Value {
        let path = format!("/admin/v1/orders/{order}");
        self.edge.admin(Method::GET, &path, Value::Null).await.assert_status(200).json()
    }

    async fn reaches(&self, order: u64, status: &str) {
        until(&format!("the order is {status}"), WITHIN, async || {
            (self.order(order).await["status"] == status).then_some(())
        })
        .await;
    }

    /// The transfer of an order that is not in `known`.
    async fn transfer(&self, order: u64, known: &[&str]) -> (String, String) {
        until("the transfer is in a file", WITHIN, async || {
            let mut all = self.bank.transfers().into_iter();
            let of_order = |text: &str| element(text, "Ustrd") == order.to_string();
            all.find(|(id, (_, text))| of_order(text) && !known.contains(&&**id))
                .map(|(id, (_, text))| (id, text))
        })
        .await
    }
}

#[tokio::test]
async fn money_of_sales_leaves_by_files_and_comes_back_by_statements() {
    let market = Market::open().await;
    let connector = market.bank.spawn(&[]);
    let sale = market.sale().await;
    let (id, text) = market.transfer(sale, &[]).await;
    let amount = element(&text, "InstdAmt");
    let fiat = market.order(sale).await["fiatAmount"].to_string();
    assert!(amount.starts_with(&fiat), "{amount} is not {fiat}");
    assert_eq!(element(&text, "IBAN"), ADAS);
    assert!(is_valid(&market.bank.files("outbox")));
    let wrong = market.bank.path("wrong.xml");
    let file = std::fs::read_to_string(&market.bank.files("outbox")[0]).unwrap();
    std::fs::write(&wrong, file.replace("<PmtMtd>TRF</PmtMtd>", "")).unwrap();
    assert!(!is_valid(&[wrong]), "the schema is not looked at");
    market.bank.deliver("1.xml", &[debit(&amount, "bank-1", &transfer(&id, None))]);
    market.reaches(sale, "completed").await;

    // Another one comes back, and is sent once more when an operator says so.
    let sale = market.sale().await;
    let (id, _) = market.transfer(sale, &[]).await;
    let returned = credit(&amount, "bank-3", &transfer(&id, Some("AC04")));
    market.bank.deliver("2.xml", std::slice::from_ref(&returned));
    market.reaches(sale, "blocked").await;
    market.bank.deliver("3.xml", &[returned]);
    until("both statements are read", WITHIN, async || {
        (market.bank.files("taken").len() == 3).then_some(())
    })
    .await;
    let path = format!("/admin/v1/orders/{sale}/events");
    let release = json!({"event": "release"});
    market.edge.admin(Method::POST, &path, release).await.assert_status(200);
    let (again, _) = market.transfer(sale, &[&id]).await;
    market.bank.deliver("4.xml", &[debit(&amount, "bank-4", &transfer(&again, None))]);
    market.reaches(sale, "completed").await;
    assert!(market.bank.transfers().values().all(|(times, _)| *times == 1));
    assert!(connector.status().is_none(), "{:?}", connector.err());
}

#[tokio::test]
async fn a_bank_transfer_is_announced_received_once_and_given_back() {
    let market = Market::open().await;
    let connector = market.bank.spawn(&[]);
    let buyer = market.acme.authenticated().await;
    let quote = json!({"currencyPair": "BTC-EUR", "paymentMethod": "bankTransfer",
        "fiatAmount": 100});
    let quote = buyer.post("/api/v1/buy/quote", quote).await.assert_status(200).json();
    let confirm = json!({"quote": quote["quote"], "walletAddress": WALLET,
        "returnUrl": RETURN_URL});
    let confirmed = buyer.post("/api/v1/buy/confirm", confirm).await;
    let order = order_of(&confirmed);
    let url = confirmed.json()["paymentUrl"].as_str().unwrap().to_owned();
    let pay_path = &url[url.find("/pay/").unwrap()..];
    until("the page says where to pay", WITHIN, async || {
        let page = buyer.anonymous(Method::GET, pay_path).send().await;
        let told = [ACCOUNT.to_owned(), order.to_string()];
        let told = told.map(|one| page.text().contains(&format!("data-copy=\"{one}\"")));
        (told == [true; 2]).then_some(())
    })
    .await;
    let paid =
        |reference: &str, amount: &str, text: &str| credit(amount, reference, &paid_by_ada(text));
    let reads = |count: usize| {
        let market = &market;
        async move {
            until("the statements are read", WITHIN, async || {
                (market.bank.files("taken").len() == count).then_some(())
            })
            .await;
        }
    };
    let first = [paid("bank-1", "100.00", &format!("order {order}"))];
    market.bank.deliver("1.xml", &first);
    let payout = market.chain.next("payout.send").await;
    assert_eq!(payout["body"]["orderId"], order);
    // A refund waits for the order's earlier commands.
    market.chain.done(&payout, json!({"transactionId": "ab12"})).await;
    // The same day again, with what came later: one more payment that nobody waits for.
    let later = [first[0].clone(), paid("bank-2", "100.00", &order.to_string())];
    market.bank.deliver("2.xml", &later);
    let (id, (times, text)) = until("the second payment is given back", WITHIN, async || {
        market.bank.transfers().into_iter().next()
    })
    .await;
    assert_eq!((times, id.starts_with('R')), (1, true));
    assert_eq!(element(&text, "InstdAmt"), "100.00");
    assert_eq!(element(&text, "IBAN"), "NL58ABNA0000000001", "to the account that it came from");
    let refunded = debit("100.00", "bank-3", &transfer(&id, None));
    market.bank.deliver("3.xml", std::slice::from_ref(&refunded));
    market.bank.deliver("bad.xml", &["<Ntry><Amt Ccy=\"EUR\">1</Amt>".to_owned()]);
    reads(3).await;

    // Treasury lays the same statement beside the books: everything is there already, once.
    let statement = rampart_tests::bank::statement(&[&later[..], &[refunded]].concat());
    let path = "/admin/v1/reconciliations?connector=bank";
    let made = market.edge.admin_bytes(Method::POST, path, statement.into()).await;
    let made = made.assert_status(201).json();
    assert_eq!((&made["matched"], &made["recorded"]), (&json!(3), &json!(0)), "{made}");
    assert_eq!(made["differences"], json!([]));
    assert_eq!(market.bank.files("inbox").len(), 1, "half a statement waits");
    assert!(connector.status().is_none(), "{:?}", connector.err());
}

#[tokio::test]
async fn a_configuration_is_checked_and_a_folder_has_one_process() {
    let market = Market::open().await;
    let checked = market.bank.spawn(&["--check"]);
    assert_eq!(checked.ended().await.code(), Some(1), "the folder is not there yet");
    std::fs::create_dir_all(market.bank.path("files")).unwrap();
    let checked = market.bank.spawn(&["--check"]);
    assert!(checked.ended().await.success(), "{:?}", checked.err());
    let first = market.bank.spawn(&[]);
    until("it has the folder", WITHIN, async || {
        assert!(first.status().is_none(), "{:?}", first.err());
        market.bank.path("files/id").exists().then_some(())
    })
    .await;
    let second = market.bank.spawn(&[]);
    assert_eq!(second.ended().await.code(), Some(1));
    assert!(second.err().join("\n").contains("another process"), "{:?}", second.err());
}
