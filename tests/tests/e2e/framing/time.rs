//! Timeouts of slow clients.

use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::Edge;
use rampart_tests::wire::Wire;

#[tokio::test]
async fn a_head_and_a_body_that_do_not_come_end_the_connection() {
    let edge = Edge::with(|setup| _ = setup.set("edge.request_header_timeout_seconds", "1")).await;
    let partner = edge.partner("slow").await.authenticated().await;
    let head = async {
        let mut wire = Wire::open(edge.address).await;
        wire.send(b"GET /api/v1/prices HTTP/1.1\r\nHost:").await;
        assert!(wire.is_closed().await, "half a head gets no answer");
    };
    let silent = async {
        let mut wire = Wire::open(edge.address).await;
        assert!(wire.is_closed().await, "a connection without a request ends");
    };
    let body = async {
        let (name, value) = partner.credential();
        let post = format!(
            "POST /api/v1/buy/confirm HTTP/1.1\r\nHost: a\r\n{name}: {value}\r\n\
             Content-Length: 100\r\n\r\n{{"
        );
        // A head that is late itself gets none: another one is sent.
        until("half a body gets an answer", SOON, async || {
            let mut wire = Wire::open(edge.address).await;
            let answer = wire.exchange(post.as_bytes()).await?;
            answer.assert_status(408).assert_codes(&["ER048"]);
            assert!(wire.is_closed().await);
            Some(())
        })
        .await;
    };
    tokio::join!(head, silent, body);
    partner.get("/api/v1/prices").await.assert_status(200);
}
