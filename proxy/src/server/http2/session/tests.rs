use http::{Method, StatusCode};
use pingora_error::ErrorSource;
use tokio::io::DuplexStream;
use tokio::task::JoinHandle;
use tokio::time::{advance, timeout};

use super::*;

/// Bytes that the client takes before it gives more room.
const WINDOW: u32 = 10;
/// Time that the server takes to make the next part of an answer.
const MAKING: Duration = Duration::from_secs(20);
/// An answer of several frames.
const LARGE: &[u8] = &[b' '; 48 * 1024];

/// The first request of a connection.
async fn accepted(near: DuplexStream) -> Http2Session {
    let mut connection = h2::server::handshake(near).await.unwrap();
    let bounds = SendBounds { rate_min_bytes: 1_024, total: Some(MAKING) };
    let (request, answer) = connection.accept().await.unwrap().unwrap();
    tokio::spawn(async move { while connection.accept().await.is_some() {} });
    Http2Session::new(request, answer, Arc::default(), bounds)
}

/// A client's answer, not read yet, and the bytes of its parts that the server sent in the end.
async fn answered(
    method: Method,
    status: StatusCode,
    parts: &[&'static str],
) -> (Response<RecvStream>, JoinHandle<usize>) {
    let (near, far) = tokio::io::duplex(4096);
    let parts = parts.to_vec();
    let serving = tokio::spawn(async move {
        let mut session = accepted(near).await;
        assert!(session.is_body_empty() && session.read_body_bytes().await.unwrap().is_none());
        let head = ResponseHeader::build(status, None).unwrap();
        session.write_response_header(Box::new(head), false).await.unwrap();
        for (left, part) in (0..parts.len()).rev().zip(parts) {
            // Fails where the client takes no more.
            if session.write_body(Bytes::from_static(part.as_bytes()), left == 0).await.is_err() {
                break;
            }
            if left > 0 {
                advance(MAKING).await;
            }
        }
        session.body_bytes_sent()
    });
    let mut client = h2::client::Builder::new();
    let handshake = client.initial_window_size(WINDOW).handshake::<_, Bytes>(far);
    let (mut sender, connection) = handshake.await.unwrap();
    tokio::spawn(connection);
    let uri = "https://a/";
    let request = Request::builder().method(method).uri(uri).body(()).unwrap();
    let answer = sender.send_request(request, true).unwrap().0.await.unwrap();
    (answer, serving)
}

/// The whole of an answer, read as it comes.
async fn read(answer: Response<RecvStream>) -> Vec<u8> {
    let (seen, error) = read_in(answer, Duration::ZERO).await;
    assert!(error.is_none(), "{error:?}");
    seen
}

/// The bytes of an answer that arrive, and the error at its end, where the client takes this time
/// before it makes room for as much as it has seen.
async fn read_in(answer: Response<RecvStream>, time: Duration) -> (Vec<u8>, Option<h2::Error>) {
    let (mut body, mut seen) = (answer.into_body(), Vec::new());
    while let Some(part) = body.data().await {
        let part = match part {
            Ok(part) => part,
            Err(error) => return (seen, Some(error)),
        };
        if !time.is_zero() {
            advance(time).await;
        }
        // Fails where the server has given the stream up meanwhile; the next part says so.
        let _ = body.flow_control().release_capacity(part.len());
        seen.extend_from_slice(&part);
    }
    (seen, None)
}

#[tokio::test]
async fn an_answer_larger_than_the_window_arrives_whole() {
    let text = "three times as long as the window";
    let (answer, serving) = answered(Method::GET, StatusCode::OK, &[text]).await;
    assert!(answer.headers().contains_key(header::DATE));
    assert_eq!(read(answer).await, text.as_bytes());
    assert_eq!(serving.await.unwrap(), text.len());
}

#[tokio::test(start_paused = true)]
async fn an_answer_whose_parts_are_made_slowly_arrives_whole() {
    const PARTS: [&str; 4] = ["more than the window"; 4];
    let (answer, serving) = answered(Method::GET, StatusCode::OK, &PARTS).await;
    assert_eq!(read(answer).await, PARTS.concat().as_bytes());
    assert_eq!(serving.await.unwrap(), PARTS.concat().len());
}

#[tokio::test(start_paused = true)]
async fn a_client_slower_than_the_pace_is_given_up_however_small_the_parts_are() {
    const PARTS: [&str; 40] = ["more than the window"; 40];
    let (answer, serving) = answered(Method::GET, StatusCode::OK, &PARTS).await;
    let (seen, error) = read_in(answer, Duration::from_secs(4)).await;
    assert!(error.is_some_and(|error| error.is_reset()));
    assert!(seen.len() < 2 * PARTS[0].len(), "{}", seen.len());
    assert_eq!(serving.await.unwrap(), seen.len());
}

#[tokio::test(start_paused = true)]
async fn a_client_of_a_decent_pace_is_not_given_up_however_long_the_answer_is() {
    const PARTS: [&str; 40] = ["more than the window"; 40];
    let (answer, serving) = answered(Method::GET, StatusCode::OK, &PARTS).await;
    let (seen, error) = read_in(answer, Duration::from_millis(5)).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(seen, PARTS.concat().as_bytes());
    assert_eq!(serving.await.unwrap(), seen.len());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_nothing_is_given_up() {
    let text = "longer than the window";
    let (answer, serving) = answered(Method::GET, StatusCode::OK, &[text]).await;
    assert_eq!(serving.await.unwrap(), usize::try_from(WINDOW).unwrap());
    let mut body = answer.into_body();
    assert_eq!(body.data().await.unwrap().unwrap(), text.as_bytes()[..10]);
    assert!(body.data().await.unwrap().unwrap_err().is_reset());
}

/// All of the answer fits into the window, which its client makes smaller before any of it is sent.
#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_take_the_rest_of_an_answer_is_given_up() {
    let (near, far) = tokio::io::duplex(4096);
    let (begin, begun) = oneshot::channel();
    let serving = tokio::spawn(async move {
        let mut session = accepted(near).await;
        begun.await.unwrap();
        let head = ResponseHeader::build(StatusCode::OK, None).unwrap();
        session.write_response_header(Box::new(head), false).await.unwrap();
        session.write_body(Bytes::from_static(LARGE), true).await
    });
    let (mut sender, mut connection) = h2::client::handshake(far).await.unwrap();
    let request = Request::get("https://a/").body(()).unwrap();
    let (answer, _) = sender.send_request(request, true).unwrap();
    // Until the server has the request, and waits.
    timeout(Duration::from_secs(1), &mut connection).await.unwrap_err();
    connection.set_initial_window_size(WINDOW).unwrap();
    // The answer is ready to be sent when the server's connection reads of the window.
    begin.send(()).unwrap();
    tokio::spawn(connection);
    let error = serving.await.unwrap().unwrap_err();
    assert_eq!(*error.etype(), ErrorType::WriteTimedout);
    let (seen, error) = read_in(answer.await.unwrap(), Duration::ZERO).await;
    assert!(error.is_some_and(|error| error.is_reset()));
    assert_eq!(seen, &LARGE[..WINDOW as usize]);
}

#[tokio::test]
async fn an_answer_without_a_body_says_so_at_once() {
    for (method, status) in [(Method::HEAD, StatusCode::OK), (Method::GET, StatusCode::NO_CONTENT)]
    {
        let (answer, serving) = answered(method, status, &[""]).await;
        assert!(answer.body().is_end_stream(), "{status}");
        assert_eq!(serving.await.unwrap(), 0);
    }
}

#[tokio::test]
async fn an_answer_to_a_stream_that_is_reset_is_none() {
    let (near, far) = tokio::io::duplex(4096);
    let serving = tokio::spawn(async move {
        let mut session = accepted(near).await;
        session.read_body_or_idle(true).await.unwrap_err();
        let head = ResponseHeader::build(StatusCode::OK, None).unwrap();
        session.write_response_header(Box::new(head), false).await.unwrap();
        let error = session.write_body(Bytes::from_static(b"late"), true).await.unwrap_err();
        assert_eq!(*error.esource(), ErrorSource::Downstream);
        assert!(session.response_written().is_none());
    });
    let (mut sender, connection) = h2::client::handshake(far).await.unwrap();
    tokio::spawn(connection);
    let request = Request::get("https://a/").body(()).unwrap();
    let (_answer, mut stream) = sender.send_request(request, true).unwrap();
    stream.send_reset(h2::Reason::CANCEL);
    serving.await.unwrap();
}
