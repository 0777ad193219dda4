//! An OpenID Connect provider in a process of its own (`deploy/oidc-provider`), and a browser that
//! logs in there.

use std::process::Command;

use http::header::{COOKIE, LOCATION, SET_COOKIE};
use reqwest::{Client, Response};
use serde_json::Value;
use url::Url;

use crate::caller::Protocol;
use crate::deadline::{SOON, until};
use crate::edge::Edge;
use crate::process::Process;
use crate::repository::root;

/// The line with which it says where it listens.
const LISTENING: &str = "Uvicorn running on ";

/// The provider. It ends when it is dropped.
pub struct OidcProvider {
    /// Its URL, as its tokens name it.
    pub issuer: String,
    _process: Process,
}

impl OidcProvider {
    /// A provider on a free port, with these people, each with the claims of their tokens.
    pub async fn start(people: &[Value]) -> Self {
        let mut command = Command::new(root().join("deploy/oidc-provider"));
        command.args(["--port", "0"]);
        for person in people {
            command.arg("--user-claims").arg(person.to_string());
        }
        let process = Process::spawn(command);
        let issuer = until("the provider says where it listens", SOON * 4, async || {
            let ended = process.status().is_some();
            let lines = process.err();
            assert!(!ended, "the provider has ended: {lines:?}");
            let found = lines.iter().find_map(|line| line.split_once(LISTENING));
            Some(found?.1.split(' ').next()?.to_owned())
        })
        .await;
        Self { issuer, _process: process }
    }

    /// Logs `subject` in on the page that a login leads to; the URL that the page leads back to.
    pub async fn log_in(&self, page: &str, subject: &str) -> Url {
        let answer = http().post(page).header("content-type", "application/x-www-form-urlencoded");
        let answer = answer.body(format!("sub={subject}")).send().await.unwrap();
        location(&answer)
    }

    /// Gives a person other claims, which their next token has.
    pub async fn change(&self, subject: &str, claims: &Value) {
        let request = http().put(format!("{}/users/{subject}", self.issuer)).json(claims);
        let answer = request.send().await.unwrap();
        assert!(answer.status().is_success(), "{}", answer.status());
    }

    /// A token of `subject` for `client`, as another program would get it.
    pub async fn token(&self, client: &str, subject: &str) -> String {
        let back = "http://127.0.0.1/back";
        let page = format!(
            "{}/oauth2/authorize?response_type=code&scope=openid%20profile%20email&client_id=\
             {client}&redirect_uri={back}",
            self.issuer
        );
        let returned = self.log_in(&page, subject).await;
        let code = returned.query_pairs().find(|(name, _)| name == "code").unwrap().1.into_owned();
        let request = http().post(format!("{}/oauth2/token", self.issuer));
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        let body = format!(
            "grant_type=authorization_code&code={code}&redirect_uri={back}&client_id={client}\
             &client_secret=any"
        );
        let answer: Value = request.body(body).send().await.unwrap().json().await.unwrap();
        answer["id_token"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }
}

/// An operator's browser at an edge: it keeps cookies.
pub struct OperatorBrowser {
    address: String,
    cookies: Vec<(String, String)>,
}

impl OperatorBrowser {
    /// A browser without a cookie.
    pub fn new(edge: &Edge) -> Self {
        Self { address: format!("http://{}", edge.admin), cookies: Vec::new() }
    }

    /// Opens a page.
    pub async fn open(&mut self, path: &str) -> Response {
        self.send(http().get(format!("{}{path}", self.address))).await
    }

    /// Makes a change, with the session's token if it is given.
    pub async fn change(&mut self, path: &str, token: Option<&str>, body: &Value) -> Response {
        let request = http().post(format!("{}{path}", self.address)).json(body);
        let request = token.into_iter().fold(request, |request, token| {
            request.header("x-csrf-token", token).header("sec-fetch-site", "same-origin")
        });
        self.send(request).await
    }

    /// The attributes and the value of a cookie that an answer set.
    pub fn cookie(answer: &Response, name: &str) -> String {
        let set = answer.headers().get_all(SET_COOKIE).iter().map(|one| one.to_str().unwrap());
        let own = set.filter(|one| one.starts_with(&format!("{name}="))).collect::<Vec<_>>();
        own.first()
            .unwrap_or_else(|| panic!("no cookie {name}: {:?}", answer.headers()))
            .to_string()
    }

    async fn send(&mut self, request: reqwest::RequestBuilder) -> Response {
        let pairs = self.cookies.iter().map(|(name, value)| format!("{name}={value}"));
        let cookies = pairs.collect::<Vec<_>>().join("; ");
        let request = if cookies.is_empty() { request } else { request.header(COOKIE, cookies) };
        let answer = request.send().await.unwrap();
        for set in answer.headers().get_all(SET_COOKIE) {
            let pair = set.to_str().unwrap().split(';').next().unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            self.cookies.retain(|(known, _)| known != name);
            if !value.is_empty() {
                self.cookies.push((name.to_owned(), value.to_owned()));
            }
        }
        answer
    }
}

/// The URL that an answer leads to.
pub fn location(answer: &Response) -> Url {
    let location = answer.headers().get(LOCATION);
    let location = location.unwrap_or_else(|| panic!("{}: no redirect", answer.status()));
    location.to_str().unwrap().parse().unwrap()
}

fn http() -> Client {
    Protocol::Http1.client()
}
