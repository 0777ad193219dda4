//! Components that an edge could not compile.

use std::fs;

use super::*;

#[tokio::test]
async fn a_component_that_was_refused_at_a_load_serves_once_it_is_uploaded_again() {
    let folder = |name: &str| {
        std::env::temp_dir().join(format!("rampart-refused-code-{name}-{}", std::process::id()))
    };
    let (compiled, copied) = (folder("compiled"), folder("copied"));
    let cache = Some(compiled.clone());
    let context = TestContext::with(|settings| settings.policy.cache_folder = cache).await;
    let acme = context.partner("acme").await;
    // Its compiler prints its arguments, which are no code: but for what is copied to its folder, each
    // component is refused for good.
    let edge = context
        .edge_with(|settings| {
            settings.policy.cache_folder = Some(copied.clone());
            settings.policy.compiler = Some("/bin/echo".into());
        })
        .await;
    let there = acme.at(&edge);
    let partner_fee = async || {
        let body = json!({"currencyPair": "BTC-EUR", "paymentMethod": "bankTransfer",
            "fiatAmount": 100, "countryCode": "DE"});
        let quote = there.post("/api/v1/buy/quote", body).await;
        quote.assert_status(200).json()["partnerFee"].to_string()
    };
    push(&context, FEE, "tiered-fee").await.assert_status(200);
    edge.core().refresh().await.unwrap();
    assert_eq!(partner_fee().await, "0", "the built-in fee");
    for file in fs::read_dir(&compiled).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), copied.join(file.file_name())).unwrap();
    }
    assert_eq!(push(&edge, FEE, "tiered-fee").await.assert_status(200).json()["version"], 2);
    assert_eq!(partner_fee().await, "1.5");
    for folder in [compiled, copied] {
        fs::remove_dir_all(folder).unwrap();
    }
}
