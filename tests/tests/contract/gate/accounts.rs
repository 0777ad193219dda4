//! Accounts that connectors verify while a request waits for the answer.

use super::*;
use crate::orders::count;
use crate::users::until_stored_or_waiting;

/// A live partner's user, with a wait of a second, and the connector of cards.
async fn user() -> (TestContext, Connector, User) {
    user_who_waits(1).await
}

async fn user_who_waits(seconds: u32) -> (TestContext, Connector, User) {
    let context =
        TestContext::with(move |settings| settings.connectors.answer_seconds = seconds).await;
    let connector = Connector::of_live(&context).await;
    let body = json!({"slug": "acme", "name": "Acme", "mode": "live"});
    let ada = context.partner_of(body).await.user("ada").await;
    (context, connector, ada)
}

/// Waits for the command and answers it.
async fn answer(connector: &Connector, kind: &str, outcome: &str, result: Value) -> Value {
    let wait = json!({"max": 1, "waitSeconds": 30, "leaseSeconds": 60, "kinds": [kind]});
    let leased = connector.call(Method::POST, "/connectors/v1/commands/lease", wait).await;
    let command = leased.assert_status(200).json()[0].take();
    connector.report(&command, outcome, result).await.assert_status(200);
    command
}

fn session(name: &str) -> Value {
    json!({"sessionIdentifier": name, "cardHolderName": "Ada Lovelace", "currencyCode": "EUR"})
}

const REGISTER: &str = "/api/v2/user/accounts/cards/processor";
const VERIFY: &str = "/api/v1/user/verify/card";
const COMMANDS: &str = "select count(*) from command where kind = 'card.verify'";
const ASKED: &str = "exists (select from command where kind = 'card.verify')";

#[tokio::test]
async fn a_card_is_registered_and_verified_by_its_connectors_answers() {
    let (_context, connector, ada) = user().await;
    let card = json!({"accountIdentifier": "411111******1234", "token": "tok"});
    let entered = session("s-1");
    let (added, command) = futures::join!(
        ada.post(REGISTER, &entered),
        answer(&connector, "card.verify", "done", card),
    );
    assert_eq!(command["body"]["sessionIdentifier"], "s-1");
    assert_eq!(added.assert_status(200).json()["accountIdentifier"], "411111******1234");
    ada.post(REGISTER, &entered).await.assert_status(200);
    let named = json!({"accountIdentifier": "411111******1234"});
    let (refused, _) = futures::join!(
        ada.post(VERIFY, &named),
        answer(&connector, "card.verify", "rejected", Value::Null),
    );
    refused.assert_codes(&["ER400"]);
    let (verified, command) = futures::join!(
        ada.post(VERIFY, &named),
        answer(&connector, "card.verify", "done", json!({})),
    );
    assert_eq!(command["body"]["token"], "tok");
    assert_eq!(verified.assert_status(200).json()["status"], "initiated");
    ada.post(VERIFY, &named).await.assert_codes(&["ER398"]);
}

#[tokio::test]
async fn a_card_is_verified_by_its_newest_session_and_holder() {
    let (context, connector, ada) = user().await;
    let named = json!({"accountIdentifier": "411111******1234"});
    let enter = async |name: &str, holder: &str| {
        let mut entered = session(name);
        entered["cardHolderName"] = json!(holder);
        let card = json!({"accountIdentifier": "411111******1234", "token": name});
        let (added, _) = futures::join!(
            ada.post(REGISTER, &entered),
            answer(&connector, "card.verify", "done", card),
        );
        added.assert_status(200).json()["accountHolderName"].clone()
    };
    assert_eq!(enter("s-1", "A. Lovelace").await, "A. Lovelace");
    assert_eq!(enter("s-2", "Ada Lovelace").await, "Ada Lovelace");
    // The processor is asked, and has not answered yet.
    ada.post(VERIFY, &named).await.assert_codes(&["ER400"]);
    let lease = json!({"max": 1, "waitSeconds": 0, "leaseSeconds": 60, "kinds": ["card.verify"]});
    let leased = connector.call(Method::POST, "/connectors/v1/commands/lease", lease).await;
    let asked = leased.assert_status(200).json()[0].take();
    let told = &asked["body"];
    assert_eq!((&told["token"], &told["cardHolderName"]), (&json!("s-2"), &json!("Ada Lovelace")));
    assert_eq!(enter("s-3", "Eve").await, "Eve");
    connector.report(&asked, "done", json!({})).await.assert_status(200);
    let verified = "select count(*) from payment_account where verified_at is not null";
    assert_eq!(count(&context, verified).await, 0, "that was another session of another holder");

    let (started, command) = futures::join!(
        ada.post(VERIFY, &named),
        answer(&connector, "card.verify", "done", json!({})),
    );
    started.assert_status(200);
    assert_eq!(command["body"]["token"], "s-3");
    assert_eq!(count(&context, verified).await, 1);
    assert_eq!(enter("s-4", "Mallory").await, "Eve", "it was verified under this name");
}

#[tokio::test]
async fn an_answer_that_comes_late_counts() {
    let (context, connector, ada) = user().await;
    ada.post(REGISTER, &session("late")).await.assert_codes(&["ER401"]);
    let card = json!({"accountIdentifier": "411111******1234"});
    answer(&connector, "card.verify", "done", card).await;
    ada.post(REGISTER, &session("late")).await.assert_status(200);
    let named = json!({"accountIdentifier": "411111******1234"});
    ada.post(VERIFY, &named).await.assert_codes(&["ER400"]);
    answer(&connector, "card.verify", "done", json!({})).await;
    ada.post(VERIFY, &named).await.assert_codes(&["ER398"]);

    let token = json!({"access_token": "A21AAF"});
    let path = "/api/v1/user/verify/payprovider";
    ada.post(path, &token).await.assert_status(503).assert_codes(&["ER999"]);
    let payer = json!({"accountIdentifier": "payer-1"});
    answer(&connector, "wallet-provider.verify", "done", payer).await;
    assert_eq!(ada.post(path, &token).await.assert_status(200).json()["status"], "initiated");
    let limits = ada.get("/api/v2/user/limit").await.assert_status(200).json();
    assert_eq!(limits["accounts"]["payer-1"]["verified"], true);
    let kept = "select count(*) from command \
         where kind in ('card.verify', 'wallet-provider.verify') and sealed_body is not null";
    assert_eq!(count(&context, kept).await, 0, "tokens and sessions are used up");
}

#[tokio::test]
async fn a_card_that_is_not_verified_any_more_is_verified_again() {
    let (context, connector, ada) = user().await;
    let card = json!({"accountIdentifier": "card-1"});
    let entered = session("s-1");
    let (added, _) = futures::join!(
        ada.post(REGISTER, &entered),
        answer(&connector, "card.verify", "done", card.clone()),
    );
    added.assert_status(200);
    let uuid = ada.log_in().await["uuid"].as_str().unwrap().to_owned();
    let account = format!("/admin/v1/users/{uuid}/accounts/card-1");
    let mut commands = Vec::new();
    for _ in 0..2 {
        let (verified, command) = futures::join!(
            ada.post(VERIFY, &card),
            answer(&connector, "card.verify", "done", json!({})),
        );
        verified.assert_status(200);
        commands.push(command["id"].clone());
        ada.post(VERIFY, &card).await.assert_codes(&["ER398"]);
        let doubted = json!({"verified": false});
        context.admin(Method::PATCH, &account, doubted).await.assert_status(200);
    }
    assert_ne!(commands[0], commands[1], "the processor is asked again");
}

#[tokio::test]
async fn a_connector_is_told_nothing_of_a_user_who_is_erased_meanwhile() {
    let (context, _connector, ada) = user_who_waits(30).await;
    let mut erasure = context.db().begin().await.unwrap();
    let erased = "with gone as (delete from personal_key) update end_user set deleted_at = now()";
    sqlx::query(erased).execute(&mut *erasure).await.unwrap();
    let commit = async {
        until_stored_or_waiting(&context, ASKED).await;
        erasure.commit().await.unwrap();
    };
    let entered = session("s-1");
    let (refused, ()) = futures::join!(ada.post(REGISTER, &entered), commit);
    refused.assert_status(400).assert_codes(&["ER709"]);
    assert_eq!(count(&context, COMMANDS).await, 0);
}

#[tokio::test]
async fn who_is_erased_while_a_connector_is_asked_is_answered() {
    let (context, _connector, ada) = user_who_waits(30).await;
    let path = format!("/admin/v1/users/{}", ada.log_in().await["uuid"].as_str().unwrap());
    let erase = async {
        until_stored_or_waiting(&context, ASKED).await;
        let deleted = json!({"deleted": true});
        context.admin(Method::PATCH, &path, deleted).await.assert_status(200);
    };
    let entered = session("s-1");
    let (refused, ()) = futures::join!(ada.post(REGISTER, &entered), erase);
    refused.assert_status(400).assert_codes(&["ER709"]);
    assert_eq!(count(&context, COMMANDS).await, 0);
}
