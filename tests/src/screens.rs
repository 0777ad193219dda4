//! Pages as people see them: what axe finds, how much they load, and pictures that are compared with
//! those in `tests/fixtures/screens`.
//!
//! Pictures are a quarter as wide and high as the screen: a layout, a colour or a component that
//! changes shows, a time or a number that is another one each run does not. `RAMPART_ACCEPT=1`
//! writes them anew.

use std::fs;
use std::process::Command;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::repository::root;

/// Most that a page may load, compressed, in bytes.
const PAGE_BYTES_MAX: u64 = 100_000;
/// Size of a picture by that of its screen.
const SCALE: f64 = 0.25;
/// Difference of a colour's channel up to which two pixels are alike, of 255.
const CHANNEL_TOLERANCE: u8 = 24;
/// Pixels in a thousand that may differ.
const PIXELS_TOLERANCE: u32 = 25;
/// Highest page of which a picture is taken whole, in CSS pixels.
const HEIGHT_MAX: f64 = 12_000.0;

/// The narrowest screen that pages fit on (WCAG 2.2, 1.4.10). No picture is taken of it.
const NARROWEST: Screen = Screen { name: "narrowest", width: 320, height: 568, scheme: "light" };
/// Screens that pages are looked at on.
const SCREENS: [Screen; 2] = [
    Screen { name: "phone", width: 390, height: 844, scheme: "light" },
    Screen { name: "desk", width: 1280, height: 900, scheme: "dark" },
];

/// The script of axe.
static AXE: LazyLock<String> = LazyLock::new(|| {
    let printed = Command::new(root().join("deploy/axe")).output().unwrap();
    let path = String::from_utf8(printed.stdout).unwrap();
    fs::read_to_string(path.trim_end()).expect("deploy/setup --test fetches axe")
});

/// Shows the same time and the same identifier for every one: another one is wider or narrower, and
/// moves what stands beside or below.
const SAME_TEXTS: &str = "
    const at = new Date(2026, 10, 23, 14, 19);
    const text = at.toLocaleString(document.documentElement.lang,
        { dateStyle: 'medium', timeStyle: 'short' });
    for (const time of document.querySelectorAll('time[datetime]')) time.textContent = text;
    const uuid = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        const text = texts.currentNode;
        if (text.data.match(uuid))
            text.data = text.data.replace(uuid, '01a21902-8652-7ae4-974a-be0899d84bcd');
    }";

/// Compares two pictures where a decoder is at hand: in the browser.
const COMPARISON: &str = "
    const [taken, accepted, ofChannel, ofPixels] = arguments;
    const read = async text => {
        const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
        const image = await createImageBitmap(new Blob([bytes]));
        const canvas = new OffscreenCanvas(image.width, image.height).getContext('2d');
        canvas.drawImage(image, 0, 0);
        return canvas.getImageData(0, 0, image.width, image.height);
    };
    return Promise.all([read(taken), read(accepted)]).then(([a, b]) => {
        if (a.width !== b.width || a.height !== b.height)
            return `${a.width} by ${a.height} pixels in place of ${b.width} by ${b.height}`;
        const pixels = a.width * a.height;
        let different = 0;
        for (let at = 0; at < 4 * pixels; at += 4)
            if ([0, 1, 2].some(c => Math.abs(a.data[at + c] - b.data[at + c]) > ofChannel))
                different += 1;
        return different * 1000 > pixels * ofPixels ? `${different} of ${pixels} pixels differ` : null;
    });";

/// A screen, in CSS pixels, and the colour scheme that its owner likes.
struct Screen {
    name: &'static str,
    width: u32,
    height: u32,
    scheme: &'static str,
}

/// Part of a page that a picture is taken of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The part that shows without scrolling.
    Top,
    /// All of it.
    Whole,
}

/// Looks at the page that the browser shows, on every screen; returns what is wrong with it.
pub async fn look(browser: &Browser, name: &str, part: Part) -> Vec<String> {
    let mut findings = Vec::new();
    NARROWEST.emulate(browser).await;
    if is_too_wide(browser).await {
        findings.push(format!("{name} is wider than {} pixels", NARROWEST.width));
    }
    for screen in &SCREENS {
        screen.emulate(browser).await;
        browser.run(SAME_TEXTS).await;
        let mut found = violations(browser).await;
        if is_too_wide(browser).await {
            found.push("it is wider than the screen".to_owned());
        }
        found.extend(compare(browser, &format!("{name}-{}", screen.name), screen, part).await);
        let at = |finding| format!("{name} on a {}: {finding}", screen.name);
        findings.extend(found.into_iter().map(at));
    }
    let loaded = "return performance.getEntriesByType('navigation')\
        .concat(performance.getEntriesByType('resource'))\
        .reduce((sum, entry) => sum + entry.transferSize, 0)";
    let bytes = browser.run(loaded).await.as_u64().unwrap();
    if bytes > PAGE_BYTES_MAX {
        findings.push(format!("{name} loads {bytes} bytes"));
    }
    findings
}

impl Screen {
    async fn emulate(&self, browser: &Browser) {
        let size = json!({"width": self.width, "height": self.height, "deviceScaleFactor": 1,
            "mobile": self.name == "phone"});
        browser.command("Emulation.setDeviceMetricsOverride", size).await;
        let features = json!({"features": [
            {"name": "prefers-color-scheme", "value": self.scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]});
        browser.command("Emulation.setEmulatedMedia", features).await;
    }
}

/// True if the page is wider than its screen. On a telephone `innerWidth` would grow with the page.
async fn is_too_wide(browser: &Browser) -> bool {
    let wider = "const page = document.documentElement; return page.scrollWidth > page.clientWidth";
    browser.run(wider).await == Value::Bool(true)
}

/// The rules of axe that the page breaks, with the elements that do.
async fn violations(browser: &Browser) -> Vec<String> {
    // Half a megabyte, once for both screens.
    if browser.run("return !window.axe").await == Value::Bool(true) {
        browser.run(&AXE).await;
    }
    let found = browser
        .run(
            "return axe.run({resultTypes: ['violations']}).then(found => found.violations.map(\
             rule => rule.id + ' at ' + rule.nodes.map(node => node.target.join(' ')).join(', ')))",
        )
        .await;
    let found = found.as_array().unwrap().iter();
    found.map(|finding| finding.as_str().unwrap().to_owned()).collect()
}

/// Compares the page with its picture; returns what differs.
async fn compare(browser: &Browser, name: &str, screen: &Screen, part: Part) -> Option<String> {
    let height = match part {
        Part::Top => f64::from(screen.height),
        Part::Whole => {
            let all = browser.run("return document.documentElement.scrollHeight").await;
            all.as_f64().unwrap().min(HEIGHT_MAX)
        }
    };
    let clip = json!({"x": 0, "y": 0, "width": screen.width, "height": height, "scale": SCALE});
    let wanted = json!({"clip": clip, "captureBeyondViewport": part == Part::Whole});
    let taken = browser.command("Page.captureScreenshot", wanted).await;
    let taken = STANDARD.decode(taken["data"].as_str().unwrap()).unwrap();
    let file = root().join(format!("tests/fixtures/screens/{name}.png"));
    if is_to_accept() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, &taken).unwrap();
        return None;
    }
    let Ok(accepted) = fs::read(&file) else {
        return Some("it has no picture yet: RAMPART_ACCEPT=1 writes it".to_owned());
    };
    let (taken_text, accepted) = (STANDARD.encode(&taken), STANDARD.encode(accepted));
    let arguments = json!([taken_text, accepted, CHANNEL_TOLERANCE, PIXELS_TOLERANCE]);
    let difference = browser.run_with(COMPARISON, arguments).await;
    let difference = difference.as_str()?;
    let shown = std::env::temp_dir().join(format!("{name}.png"));
    fs::write(&shown, &taken).unwrap();
    Some(format!("{difference}: compare {} with {}", shown.display(), file.display()))
}

/// True if pictures are written in place of compared.
#[expect(clippy::disallowed_methods, reason = "how a test is asked is no setting of Rampart")]
fn is_to_accept() -> bool {
    std::env::var_os("RAMPART_ACCEPT").is_some()
}
