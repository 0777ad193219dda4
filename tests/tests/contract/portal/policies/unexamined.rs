//! Uploads that could not be examined.

use super::*;

/// A deployment that cannot examine anything, with a developer of a partner whose staff may upload.
async fn unable() -> (TestContext, Staff) {
    let context = TestContext::with(|settings| {
        settings.policy.cache_folder = None;
        // It ends before it has compiled anything, as one that the system has killed.
        settings.policy.compiler = Some("/bin/false".into());
    })
    .await;
    let acme = context.partner("acme").await;
    allow(&context, true).await;
    let ada = Staff::signed_in(&context, &acme, "developer").await;
    (context, ada)
}

#[tokio::test]
async fn an_upload_that_could_not_be_examined_does_not_count_among_the_others() {
    let (context, mut ada) = unable().await;
    let wasm = component("tiered-fee");
    let pushed = context.admin_bytes(Method::PUT, FEE, wasm.clone()).await;
    assert_eq!(pushed.assert_status(503).header("retry-after"), Some("2"));
    let unexamined = async |ada: &mut Staff| {
        let answer = upload(ada, &wasm, &[]).await;
        let text = answer.assert_status(503).text();
        assert!(text.contains("could not be examined"), "{text}");
        // There is nothing to correct.
        for part in ["Please correct this", "aria-invalid=\""] {
            assert!(!text.contains(part), "{part}: {text}");
        }
    };
    let refuse = async |uploads: i64| {
        let refused = "insert into policy_upload (client_id, upload_id, staff_id, kind, digest, size, \
                refusal, created_at, ended_at) \
            select client_id, gen_random_uuid(), staff_id, kind, digest, size, 'odd', created_at, \
                ended_at from (select client_id, staff_id, kind, digest, size, created_at, ended_at \
                from policy_upload limit 1) one, generate_series(1, $1)";
        sqlx::query(refused).bind(uploads).execute(context.db()).await.unwrap();
    };
    unexamined(&mut ada).await;
    unexamined(&mut ada).await;
    assert!(audited(&context).await.is_empty(), "nothing was refused");
    assert!(!ada.get(PATH).await.text().contains("Refused uploads"));
    refuse(19).await;
    unexamined(&mut ada).await;
    refuse(1).await;
    let many = upload(&mut ada, &wasm, &[]).await;
    assert!(many.assert_status(409).text().contains("There were 20 uploads"));
}

#[tokio::test]
async fn uploads_that_could_not_be_examined_have_a_bound_of_their_own() {
    let (context, mut ada) = unable().await;
    let wasm = component("tiered-fee");
    upload(&mut ada, &wasm, &[]).await.assert_status(503);
    let more = "insert into policy_upload (client_id, upload_id, staff_id, kind, digest, size, \
            created_at, ended_at) \
        select client_id, gen_random_uuid(), staff_id, kind, digest, size, created_at, ended_at \
        from policy_upload, generate_series(1, 19)";
    sqlx::query(more).execute(context.db()).await.unwrap();
    let many = upload(&mut ada, &wasm, &[("reason", "new tariff")]).await;
    let text = many.assert_status(409).text();
    assert!(text.contains("20 uploads could not be examined in 24 hours"), "{text}");
    assert!(text.contains("value=\"new tariff\""), "what was typed is kept: {text}");
}
