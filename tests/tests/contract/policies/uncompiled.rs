//! Components that an edge could not compile, or not read.

use std::fs;
use std::path::PathBuf;

use chrono::TimeDelta;
use futures::future::join_all;
use rampart_core::platform::settings::Settings;
use rampart_tests::cluster::locks_awaited;
use sqlx::raw_sql;

use super::*;

/// Longer than an edge waits before it tries again.
const PAUSE: TimeDelta = TimeDelta::seconds(11);

/// An edge that compiles nothing itself, beside one that does.
struct Ground {
    context: TestContext,
    edge: TestContext,
    /// The partner at that edge.
    there: Partner,
    /// Native code of the edge that compiles.
    compiled: PathBuf,
    /// That of the other one.
    copied: PathBuf,
}

impl Ground {
    /// With this program in place of a compiler.
    async fn new(compiler: &str) -> Self {
        let folder = |name: &str| {
            let (program, process) = (compiler.replace('/', "-"), std::process::id());
            std::env::temp_dir().join(format!("rampart-native-code{program}-{name}-{process}"))
        };
        let (compiled, copied) = (folder("compiled"), folder("copied"));
        let cache = Some(compiled.clone());
        let context = TestContext::with(|settings| settings.policy.cache_folder = cache).await;
        let acme = context.partner("acme").await;
        let edge = context
            .edge_with(|settings| {
                settings.policy.cache_folder = Some(copied.clone());
                settings.policy.compiler = Some(compiler.into());
            })
            .await;
        let there = acme.at(&edge);
        Self { context, edge, there, compiled, copied }
    }

    /// Gives the edge what the other one has compiled.
    fn copy(&self) {
        for file in fs::read_dir(&self.compiled).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), self.copied.join(file.file_name())).unwrap();
        }
    }

    async fn partner_fee(&self) -> String {
        partner_fee(&self.there).await
    }
}

async fn partner_fee(partner: &Partner) -> String {
    let body = json!({"currencyPair": "BTC-EUR", "paymentMethod": "bankTransfer",
        "fiatAmount": 100, "countryCode": "DE"});
    let quote = partner.post("/api/v1/buy/quote", body).await;
    quote.assert_status(200).json()["partnerFee"].to_string()
}

impl Drop for Ground {
    fn drop(&mut self) {
        for folder in [&self.compiled, &self.copied] {
            _ = fs::remove_dir_all(folder);
        }
    }
}

#[tokio::test]
async fn a_policy_that_cannot_be_compiled_now_is_tried_again() {
    let ground = Ground::new("/bin/false").await;
    let Ground { context, edge, .. } = &ground;
    push(context, FEE, "tiered-fee").await.assert_status(200);
    edge.core().refresh().await.unwrap();
    assert_eq!(ground.partner_fee().await, "0", "the built-in fee");
    ground.copy();
    context.clock().advance(PAUSE);
    assert_eq!(ground.partner_fee().await, "1.5");

    let looping = format!("{FEE}?config={{%22mode%22:%22loop@FR%22}}");
    push(context, &looping, "hostile").await.assert_status(200);
    edge.core().refresh().await.unwrap();
    assert_eq!(ground.partner_fee().await, "1.5", "of the version before it");
    assert_eq!(edge.core().policies_pending(), 0, "the edge is ready");
    let dry_run = async || {
        let path = format!("{FEE}/dry-run");
        edge.admin(Method::POST, &path, json!({"input": {}})).await
    };
    let unavailable = dry_run().await;
    assert_eq!(unavailable.status(), 503, "it cannot be compiled yet");
    assert_eq!(unavailable.header("retry-after"), Some("2"));
    ground.copy();
    context.clock().advance(PAUSE);
    dry_run().await.assert_status(200);
    assert_eq!(ground.partner_fee().await, "1");
}

#[tokio::test]
async fn a_component_that_was_refused_at_a_load_serves_once_it_is_uploaded_again() {
    // It prints its arguments, which are no code: but for what is copied, each component is refused for
    // good.
    let ground = Ground::new("/bin/echo").await;
    let Ground { context, edge, .. } = &ground;
    push(context, FEE, "tiered-fee").await.assert_status(200);
    edge.core().refresh().await.unwrap();
    assert_eq!(ground.partner_fee().await, "0", "the built-in fee");
    ground.copy();
    assert_eq!(push(edge, FEE, "tiered-fee").await.assert_status(200).json()["version"], 2);
    assert_eq!(ground.partner_fee().await, "1.5");
}

#[tokio::test]
async fn a_read_that_fails_is_not_made_again_by_each_call_that_waits_for_it() {
    let (context, acme) = with_acme().await;
    push(&context, FEE, "tiered-fee").await.assert_status(200);
    // Shorter than a call waits for a policy.
    let limit = |settings: &mut Settings| settings.database.worker_statement_timeout_ms = 3_000;
    let edge = context.edge_with(limit).await;
    let there = acme.at(&edge);
    let mut somebody = context.db().begin().await.unwrap();
    let lock = "lock table policy_component in access exclusive mode";
    raw_sql(lock).execute(&mut *somebody).await.unwrap();
    let fees = join_all((0..4).map(|_| partner_fee(&there))).await;
    assert_eq!(fees, ["0"; 4], "the built-in fee");
    assert_eq!(locks_awaited(context.db()).await, 0);
    somebody.rollback().await.unwrap();
    assert_eq!(partner_fee(&there).await, "1.5");
}
