//! A browser without a window: Chromium, driven by WebDriver (JSON over HTTP, W3C).

use std::cell::RefCell;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use http::Method;
use serde_json::{Value, json};

use crate::caller::Protocol;
use crate::deadline::{SOON, until};
use crate::edge::Folder;
use crate::process::Process;

/// The key under which WebDriver names an element (W3C WebDriver, section 12.1).
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";
/// No window, nothing but what a page asks for, and a certificate that nobody signed. Through a
/// pipe the browser ends when its driver does.
const ARGUMENTS: [&str; 13] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    // Some systems colour the edges of letters.
    "--disable-lcd-text",
    "--no-first-run",
    "--ignore-certificate-errors",
    "--remote-debugging-pipe",
    "--window-size=1280,900",
];

/// Chromium without windows, which `deploy/setup` installs where the system has no package of it.
const SHELL: &str = "chrome-headless-shell";

/// A key (W3C WebDriver, section 17.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// To the next place.
    Tab,
    /// Presses a button, follows a link, submits a form.
    Enter,
    /// Presses a button, ticks a box.
    Space,
    /// To the next choice of a list.
    Down,
}

impl Key {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Down => "\u{e015}",
            Self::Tab => "\u{e004}",
            Self::Enter => "\u{e007}",
            Self::Space => " ",
        }
    }
}

/// The shift key.
const SHIFT: &str = "\u{e008}";

/// A browser with an empty profile. It ends when it is dropped.
pub struct Browser {
    driver: Process,
    http: reqwest::Client,
    session: String,
    _profile: Arc<Folder>,
}

/// Text of a page, which a failure prints.
#[derive(Default)]
struct LastText(RefCell<String>);

impl Drop for LastText {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the page shows {}", self.0.borrow());
        }
    }
}

impl Browser {
    /// Starts it.
    ///
    /// # Panics
    /// Without Chromium and its driver: `deploy/setup --test` installs them.
    pub async fn start() -> Self {
        Self::with(None).await
    }

    /// Starts one that finds the host `localhost` at this address: browsers make passkeys for a name
    /// alone, and for this one whoever has signed the certificate.
    ///
    /// # Panics
    /// As [`Self::start`].
    pub async fn at_localhost(address: SocketAddr) -> Self {
        let rule = format!("--host-resolver-rules=MAP localhost:443 {address}");
        Self::with(Some(rule)).await
    }

    async fn with(argument: Option<String>) -> Self {
        let found = Command::new("chromedriver").arg("--version").stdout(Stdio::null()).status();
        assert!(found.is_ok(), "there is no Chromium with its driver: run deploy/setup --test");
        let (driver, port) = start_driver().await;
        let profile = Arc::new(Folder::make());
        let mut arguments = ARGUMENTS.map(str::to_owned).to_vec();
        arguments.push(format!("--user-data-dir={}", profile.path().display()));
        arguments.extend(argument);
        let mut wanted = json!({
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        });
        if let Some(shell) = headless_shell() {
            wanted["browserName"] = SHELL.into();
            wanted["goog:chromeOptions"]["binary"] = shell.to_str().unwrap().into();
            // It opens no page by itself.
            wanted["goog:chromeOptions"]["args"].as_array_mut().unwrap().push("about:blank".into());
        }
        let root = format!("http://127.0.0.1:{port}/session");
        let mut browser =
            Self { driver, http: Protocol::Http1.client(), session: root, _profile: profile };
        let wanted = json!({"capabilities": {"alwaysMatch": wanted}});
        let session = browser.call(Method::POST, "", &wanted).await;
        browser.session += &format!("/{}", session["sessionId"].as_str().unwrap());
        browser
    }

    /// Opens a page and waits until it is there.
    pub async fn open(&self, url: &str) {
        self.call(Method::POST, "/url", &json!({ "url": url })).await;
    }

    /// The URL of the current page.
    pub async fn url(&self) -> String {
        self.get("/url").await.as_str().unwrap().to_owned()
    }

    /// Waits until it is at a URL that starts like this.
    pub async fn reaches(&self, start: &str) {
        until(&format!("the browser reaches {start}"), SOON, async || {
            self.url().await.starts_with(start).then_some(())
        })
        .await;
    }

    /// Waits until the page shows a text.
    pub async fn shows(&self, text: &str) {
        let last = LastText::default();
        until(&format!("the page shows {text:?}"), SOON, async || {
            let shown = self.run("return document.body ? document.body.innerText : ''").await;
            let shows = shown.as_str().unwrap().contains(text);
            last.0.replace(shown.to_string());
            shows.then_some(())
        })
        .await;
    }

    /// Waits until a CSS selector finds something, whatever language the page is in.
    pub async fn has(&self, selector: &str) {
        let count = "return document.querySelectorAll(arguments[0]).length";
        until(&format!("the page has {selector}"), SOON, async || {
            (self.run_with(count, json!([selector])).await != 0).then_some(())
        })
        .await;
    }

    /// Runs a function body on the page; returns its result.
    pub async fn run(&self, script: &str) -> Value {
        self.run_with(script, json!([])).await
    }

    /// The same with arguments: an array.
    pub async fn run_with(&self, script: &str, arguments: Value) -> Value {
        let body = json!({"script": script, "args": arguments});
        self.call(Method::POST, "/execute/sync", &body).await
    }

    /// Clicks on what a CSS selector finds first.
    pub async fn click(&self, selector: &str) {
        let element = self.find(selector).await;
        self.call(Method::POST, &format!("/element/{element}/click"), &json!({})).await;
    }

    /// Types into what a CSS selector finds first.
    pub async fn enter(&self, selector: &str, text: &str) {
        let element = self.find(selector).await;
        self.call(Method::POST, &format!("/element/{element}/clear"), &json!({})).await;
        let path = format!("/element/{element}/value");
        self.call(Method::POST, &path, &json!({ "text": text })).await;
    }

    /// Presses a key, and lets it go.
    pub async fn press(&self, key: Key) {
        self.keys(&[("keyDown", key.as_str()), ("keyUp", key.as_str())]).await;
    }

    /// The same while shift is held.
    pub async fn press_shifted(&self, key: Key) {
        let key = key.as_str();
        let held = [("keyDown", SHIFT), ("keyDown", key), ("keyUp", key), ("keyUp", SHIFT)];
        self.keys(&held).await;
    }

    /// Types a text, key by key, to where the focus is.
    pub async fn type_text(&self, text: &str) {
        let chars: Vec<String> = text.chars().map(String::from).collect();
        let strokes = chars.iter().flat_map(|key| [("keyDown", &**key), ("keyUp", &**key)]);
        self.keys(&strokes.collect::<Vec<_>>()).await;
    }

    async fn keys(&self, strokes: &[(&str, &str)]) {
        let strokes: Vec<_> =
            strokes.iter().map(|(kind, key)| json!({"type": kind, "value": key})).collect();
        let keyboard = json!({"type": "key", "id": "keyboard", "actions": strokes});
        self.call(Method::POST, "/actions", &json!({"actions": [keyboard]})).await;
    }

    /// Asks for pages in this language from now on.
    pub async fn prefer_language(&self, tag: &str) {
        let agent = self.run("return navigator.userAgent").await;
        let wanted = json!({"userAgent": agent, "acceptLanguage": tag});
        self.command("Emulation.setUserAgentOverride", wanted).await;
    }

    /// Gives it an authenticator of its own that makes passkeys and knows whoever asks (Web
    /// Authentication, section 11).
    pub async fn add_authenticator(&self) {
        let wanted = json!({"protocol": "ctap2", "transport": "internal", "hasResidentKey": true,
            "hasUserVerification": true, "isUserConsenting": true, "isUserVerified": true});
        self.call(Method::POST, "/webauthn/authenticator", &wanted).await;
    }

    /// Makes the network slow from now on: the time that each answer takes more, and bytes in a second
    /// both ways.
    pub async fn slow_down(&self, latency_ms: u32, bytes_per_second: u32) {
        let conditions = json!({"offline": false, "latency": latency_ms,
            "download_throughput": bytes_per_second, "upload_throughput": bytes_per_second});
        let body = json!({ "network_conditions": conditions });
        self.call(Method::POST, "/chromium/network_conditions", &body).await;
    }

    /// Sends a command of the DevTools protocol, for what WebDriver has no word for.
    pub async fn command(&self, name: &str, parameters: Value) -> Value {
        let body = json!({"cmd": name, "params": parameters});
        self.call(Method::POST, "/goog/cdp/execute", &body).await
    }

    /// The browser's warnings and errors since the last call, violations of a content security
    /// policy among them.
    pub async fn complaints(&self) -> Vec<String> {
        let entries = self.log("browser").await.into_iter();
        let serious = entries.filter(|entry| entry["level"] != "DEBUG" && entry["level"] != "INFO");
        serious.map(|entry| entry["message"].as_str().unwrap().to_owned()).collect()
    }

    /// The URLs that pages asked for since it was last asked, whether or not they came. What the
    /// browser's own first page is made of (`chrome://…`, `chrome-untrusted://…`) is no page's
    /// request, and `data:` asks nobody.
    pub async fn requested(&self) -> Vec<String> {
        let mut urls = Vec::new();
        for entry in self.log("performance").await {
            let event: Value = serde_json::from_str(entry["message"].as_str().unwrap()).unwrap();
            let event = &event["message"];
            if event["method"] == "Network.requestWillBeSent" {
                let url = event["params"]["request"]["url"].as_str().unwrap();
                let own = ["chrome://", "chrome-untrusted://", "data:"];
                if !own.iter().any(|scheme| url.starts_with(scheme)) {
                    urls.push(url.to_owned());
                }
            }
        }
        urls
    }

    async fn log(&self, kind: &str) -> Vec<Value> {
        let entries = self.call(Method::POST, "/se/log", &json!({ "type": kind })).await;
        entries.as_array().unwrap().clone()
    }

    async fn find(&self, selector: &str) -> String {
        let wanted = json!({"using": "css selector", "value": selector});
        let element = self.call(Method::POST, "/element", &wanted).await;
        element[ELEMENT].as_str().unwrap().to_owned()
    }

    async fn get(&self, path: &str) -> Value {
        self.call(Method::GET, path, &Value::Null).await
    }

    async fn call(&self, method: Method, path: &str, body: &Value) -> Value {
        let request = self.http.request(method, format!("{}{path}", self.session));
        let request = if body.is_null() { request } else { request.body(body.to_string()) };
        let answer = request.send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert!(status.is_success(), "{path} {body}: {text}\n{:?}", self.driver.err());
        serde_json::from_str::<Value>(&text).unwrap()["value"].take()
    }
}

/// The program of [`SHELL`], if it is in one of the folders of `PATH`.
#[expect(clippy::disallowed_methods, reason = "where programs are is no setting of Rampart")]
fn headless_shell() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(SHELL)).find(|path| path.exists())
}

/// Starts a driver; gives its port. It takes a free port of IPv4 and wants the same one of IPv6, which
/// somebody may have: another port then.
async fn start_driver() -> (Process, String) {
    loop {
        let mut command = Command::new("chromedriver");
        command.arg("--port=0");
        let driver = Process::spawn(command);
        let started = until("the driver says where it listens", SOON, async || {
            let line = driver.out().into_iter().find(|line| line.contains("started successfully"));
            if line.is_none() && driver.status().is_some() {
                return Some(None);
            }
            Some(Some(line?.trim_end_matches('.').rsplit(' ').next()?.to_owned()))
        });
        if let Some(port) = started.await {
            return (driver, port);
        }
        let error = until("the driver says why it has ended", SOON, async || {
            Some(driver.err().join("\n")).filter(|error| !error.is_empty())
        });
        let error = error.await;
        assert!(error.contains("Address already in use"), "{error}");
    }
}
