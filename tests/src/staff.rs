//! A partner's staff member in a browser: keeps cookies, sends the forms of the pages it was shown,
//! follows no redirect by itself.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use http::Method;
use serde_json::json;
use url::form_urlencoded;

use crate::answer::Answer;
use crate::outbox;
use crate::partner::Partner;
use crate::test_context::TestContext;

/// A password that everybody in these tests has.
pub const PASSWORD: &str = "correct horse battery";

/// A browser of a staff member.
#[derive(Clone)]
pub struct Staff {
    partner: Partner,
    /// The address that signs in.
    pub email: String,
    cookies: BTreeMap<String, String>,
    /// Token of the forms of the last page.
    form_token: String,
    /// True on a page of another host of the same site.
    is_next_door: bool,
    peer: IpAddr,
}

impl Staff {
    /// A browser that nobody has used.
    pub fn stranger(partner: &Partner, email: &str) -> Self {
        Self {
            partner: partner.clone(),
            email: email.to_owned(),
            cookies: BTreeMap::new(),
            form_token: String::new(),
            is_next_door: false,
            peer: Ipv4Addr::LOCALHOST.into(),
        }
    }

    /// Somebody who was invited by an operator, has joined and is signed in.
    pub async fn signed_in(context: &TestContext, partner: &Partner, role: &str) -> Self {
        let mut staff = Self::stranger(partner, &format!("{role}@{}.example", partner.slug));
        staff.invited(context, role).await;
        staff.joins(context).await.assert_status(200);
        staff.signs_in(PASSWORD).await.assert_status(303);
        staff.get("/portal").await.assert_status(200);
        staff
    }

    /// Is invited by an operator.
    pub async fn invited(&self, context: &TestContext, role: &str) {
        let path = format!("/admin/v1/partners/{}/staff", self.partner.slug);
        let body = json!({"email": self.email, "role": role});
        context.admin(Method::POST, &path, body).await.assert_status(201);
    }

    /// The path of the link in the newest mail.
    pub async fn mailed_link(&self, context: &TestContext) -> String {
        let text = outbox::newest(context, &self.email).await.text;
        let url = text.lines().find(|line| line.starts_with("https://")).unwrap();
        url.split_once(".com").unwrap().1.to_owned()
    }

    /// Opens the mailed link and sets the password.
    pub async fn joins(&mut self, context: &TestContext) -> Answer {
        let link = self.mailed_link(context).await;
        self.get(&link).await.assert_status(200);
        self.submit(&link, &[("password", PASSWORD)]).await
    }

    /// Sends the form that signs in.
    pub async fn signs_in(&mut self, password: &str) -> Answer {
        self.signs_in_with_code(password, "").await
    }

    /// The same with a code of the second factor.
    pub async fn signs_in_with_code(&mut self, password: &str, code: &str) -> Answer {
        self.get("/portal/sign-in").await.assert_status(200);
        let (partner, email) = (self.partner.slug.clone(), self.email.clone());
        let fields =
            [("partner", &*partner), ("email", &email), ("password", password), ("code", code)];
        self.submit("/portal/sign-in", &fields).await
    }

    /// Opens a page.
    pub async fn get(&mut self, path: &str) -> Answer {
        let answer = self.send(Method::GET, path, "", Vec::new()).await;
        if let Some((_, rest)) = answer.text().split_once("name=\"formToken\" value=\"") {
            self.form_token = rest.split('"').next().unwrap().to_owned();
        }
        answer
    }

    /// Sends a form of the last page.
    pub async fn submit(&mut self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let token = self.form_token.clone();
        self.submit_with(path, &token, fields).await
    }

    /// Sends a form with this token.
    pub async fn submit_with(
        &mut self,
        path: &str,
        token: &str,
        fields: &[(&str, &str)],
    ) -> Answer {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("formToken", token).extend_pairs(fields);
        let form = form.finish().into_bytes();
        self.send(Method::POST, path, "application/x-www-form-urlencoded", form).await
    }

    /// Sends a form of the last page with a file as this field.
    pub async fn submit_file(
        &mut self,
        path: &str,
        name: &str,
        content: &[u8],
        fields: &[(&str, &str)],
    ) -> Answer {
        self.submit_files(path, &[(name, content)], fields).await
    }

    /// The same with several files.
    pub async fn submit_files(
        &mut self,
        path: &str,
        files: &[(&str, &[u8])],
        fields: &[(&str, &str)],
    ) -> Answer {
        let token = self.form_token.clone();
        let mut body = Vec::new();
        for (name, value) in [("formToken", &*token)].iter().chain(fields) {
            let head = format!("--b1\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n");
            body.extend([head.as_bytes(), value.as_bytes(), b"\r\n"].concat());
        }
        for (name, content) in files {
            let head = format!(
                "--b1\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"a\"\r\n\
                 Content-Type: application/octet-stream\r\n\r\n"
            );
            body.extend([head.as_bytes(), content, b"\r\n"].concat());
        }
        body.extend(b"--b1--\r\n");
        self.send(Method::POST, path, "multipart/form-data; boundary=b1", body).await
    }

    /// The token of the forms of the last page.
    pub fn form_token(&self) -> &str {
        &self.form_token
    }

    /// The same browser on a page of another host of the same site: it sends its cookies along.
    pub fn next_door(&self) -> Self {
        Self { is_next_door: true, ..self.clone() }
    }

    /// The same browser at this address.
    pub fn from(&self, peer: IpAddr) -> Self {
        Self { peer, ..self.clone() }
    }

    /// Changes how the browser talks to another edge.
    pub fn at(&self, edge: &TestContext) -> Self {
        Self { partner: self.partner.at(edge), ..self.clone() }
    }

    async fn send(
        &mut self,
        method: Method,
        path: &str,
        media_type: &str,
        body: Vec<u8>,
    ) -> Answer {
        let cookies: Vec<_> = self.cookies.iter().map(|(n, v)| format!("{n}={v}")).collect();
        let mut request = self.partner.anonymous(method, path).body(body).from(self.peer);
        if !media_type.is_empty() {
            request = request.header("content-type", media_type);
        }
        if !cookies.is_empty() {
            request = request.header("cookie", &cookies.join("; "));
        }
        if self.is_next_door {
            request = request.header("sec-fetch-site", "same-site");
        }
        let answer = request.send().await;
        for (name, line) in answer.headers().filter(|(name, _)| *name == "set-cookie") {
            assert!(line.contains("; HttpOnly; SameSite=Strict; Secure"), "{name}: {line}");
            let (cookie, value) = line.split(';').next().unwrap().split_once('=').unwrap();
            match value {
                "" => self.cookies.remove(cookie),
                value => self.cookies.insert(cookie.to_owned(), value.to_owned()),
            };
        }
        answer
    }
}
