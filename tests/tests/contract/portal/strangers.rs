//! Strangers at the portal's forms, who learn nothing of its partners.

use http::Method;
use rampart_tests::staff::Staff;
use rampart_tests::test_context::TestContext;
use serde_json::json;

const FORGOT: &str = "/portal/forgot-password";
const EMAIL: &str = "nobody@acme.example";

#[tokio::test]
async fn nobody_learns_by_refusals_which_partners_there_are() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    // For its users alone.
    let rates = json!({"rateLimits": {"login": "60/min"}});
    let path = "/admin/v1/partners/acme";
    context.admin(Method::PATCH, path, rates).await.assert_status(200);
    let mut unknown = acme.clone();
    unknown.slug = "unknown".to_owned();
    for partner in [&acme, &unknown] {
        let mut stranger = Staff::stranger(partner, EMAIL);
        let mut statuses = Vec::new();
        for _ in 0..6 {
            statuses.push(stranger.signs_in("a wrong password").await.status());
        }
        assert_eq!(statuses, [401, 401, 401, 401, 401, 429], "{}", partner.slug);
        statuses.clear();
        let fields = [("partner", &*partner.slug), ("email", EMAIL)];
        for _ in 0..6 {
            stranger.get(FORGOT).await.assert_status(200);
            // A form that is sent twice counts once.
            stranger.submit(FORGOT, &fields).await;
            statuses.push(stranger.submit(FORGOT, &fields).await.status());
        }
        assert_eq!(statuses, [303, 303, 303, 303, 303, 429], "{}", partner.slug);
    }
}
