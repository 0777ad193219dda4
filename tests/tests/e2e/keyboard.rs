//! A purchase by keyboard alone, on the width of a telephone, in Dutch and in English: from the
//! partner's link to the coins.

use http::Method;
use rampart_tests::browser::{Browser, Key};
use rampart_tests::caller::Caller;
use rampart_tests::edge::Edge;
use serde_json::json;

use crate::buyer::WALLET;

/// Places that Tab reaches on a page, in the order of the page.
const PLACES: &str = "const places = [...document.querySelectorAll(
    'a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex=\"0\"]')]
    .filter((place) => !place.disabled && place.checkVisibility());";
/// The place that has the focus: its number among them, or -1; and what is wrong with it.
const FOCUSED: &str = "const place = document.activeElement, style = getComputedStyle(place);
    const box = place.getBoundingClientRect();
    const outlined = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
    const wrong = places.includes(place) && [
        !place.matches(':focus-visible') && 'shows no focus',
        !outlined && style.boxShadow === 'none' && 'has no outline',
        (box.bottom < 0 || box.top > innerHeight) && 'is out of sight',
        (box.left < 0 || box.right > innerWidth) && 'is too wide',
    ].filter(Boolean);
    return [places.indexOf(place), wrong || [], place.outerHTML.slice(0, 120), places.length];";

/// The texts by which a reader of this language knows where they are.
pub(crate) struct Words {
    language: &'static str,
    details: &'static str,
    confirm: &'static str,
    pay: &'static str,
    pub(crate) completed: &'static str,
}

pub(crate) const DUTCH: Words = Words {
    language: "nl",
    details: "Dit is het voorstel van de winkel.",
    confirm: "Controleren en bevestigen",
    pay: "Kies hoe deze testbetaling afloopt.",
    completed: "Je bestelling is afgerond",
};
const ENGLISH: Words = Words {
    language: "en",
    details: "This is what the shop proposes.",
    confirm: "Check and confirm",
    pay: "Choose how this test payment ends.",
    completed: "Your order is complete",
};

/// A shopper who has a keyboard and nothing else.
pub(crate) struct Shopper {
    pub(crate) browser: Browser,
}

impl Shopper {
    /// The number of the place that has the focus, which is seen; `None` outside of all places.
    async fn focused(&self) -> Option<usize> {
        let found = self.browser.run(&format!("{PLACES} {FOCUSED}")).await;
        assert_eq!(found[1], json!([]), "{found}");
        found[0].as_u64().and_then(|number| usize::try_from(number).ok())
    }

    /// A shopper with a telephone.
    pub(crate) async fn start() -> Self {
        let browser = Browser::start().await;
        let size = json!({"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": true});
        browser.command("Emulation.setDeviceMetricsOverride", size).await;
        Self { browser }
    }

    /// Goes once around the page, and checks that every place has its turn, in the page's order, and
    /// that the way back is the same.
    async fn look_around(&self) {
        let count = self.browser.run(&format!("{PLACES} return places.length;")).await;
        let count = usize::try_from(count.as_u64().unwrap()).unwrap();
        // As after loading: the focus is nowhere.
        self.browser.run("document.activeElement.blur(); getSelection().removeAllRanges();").await;
        self.browser.press(Key::Tab).await;
        let mut turns = vec![self.focused().await];
        while turns.len() < count {
            self.browser.press(Key::Tab).await;
            turns.push(self.focused().await);
        }
        let all: Vec<_> = turns.iter().map(|turn| turn.unwrap()).collect();
        let first = all[0];
        let expected: Vec<_> = (0..count).map(|turn| (first + turn) % count).collect();
        assert_eq!(all, expected, "every place once, in the order of the page");
        if let Some(&before) = all.iter().rev().nth(1) {
            self.browser.press_shifted(Key::Tab).await;
            assert_eq!(self.focused().await, Some(before), "back the same way");
        }
    }

    /// Tabs to what a CSS selector finds first.
    async fn tab_to(&self, selector: &str) {
        let count = self.browser.run(&format!("{PLACES} return places.length;")).await;
        for _ in 0..=2 * count.as_u64().unwrap() {
            let there = "return document.activeElement === document.querySelector(arguments[0])";
            if self.browser.run_with(there, json!([selector])).await == true {
                return;
            }
            self.browser.press(Key::Tab).await;
            self.focused().await;
        }
        panic!("Tab never reaches {selector}");
    }

    /// Tabs to an input and types.
    pub(crate) async fn fill(&self, selector: &str, text: &str) {
        self.tab_to(selector).await;
        self.browser.type_text(text).await;
    }

    /// Tabs to a button, a link or a box, and presses it.
    pub(crate) async fn press(&self, selector: &str, key: Key) {
        self.tab_to(selector).await;
        self.browser.press(key).await;
    }

    pub(crate) async fn arrives(&self, text: &str) {
        self.browser.shows(text).await;
        self.look_around().await;
    }

    /// Registers, names a wallet and confirms.
    pub(crate) async fn orders(&self, checkout: &str, wallet: &str, words: &Words) {
        self.browser.prefer_language(words.language).await;
        self.browser.open(checkout).await;
        let language = self.browser.run("return document.documentElement.lang").await;
        assert_eq!(language, words.language);
        self.look_around().await;
        let form = "form:has(button[value=register])";
        let email = format!("{}@mail.example.com", words.language);
        self.fill(&format!("{form} input[name=email]"), &email).await;
        self.fill(&format!("{form} input[name=password]"), "password-of-shopper").await;
        self.fill(&format!("{form} input[name=country]"), "NL").await;
        self.press(&format!("{form} input[name=privacy]"), Key::Space).await;
        self.press(&format!("{form} button[value=register]"), Key::Enter).await;
        self.arrives(words.details).await;
        self.fill("input[name=wallet]", wallet).await;
        self.press("button[value=quote]", Key::Enter).await;
        self.arrives(words.confirm).await;
        self.press("input[name=consent]", Key::Space).await;
        self.press("button[value=confirm]", Key::Space).await;
    }

    /// The same, and pays.
    async fn buys(&self, checkout: &str, words: &Words) {
        self.orders(checkout, WALLET, words).await;
        self.arrives(words.pay).await;
        self.press("button[value=pay]", Key::Enter).await;
        self.browser.shows(words.completed).await;
    }
}

/// The link of a checkout at which somebody signed in buys.
async fn checkout(partner: &Caller) -> String {
    let body = json!({
        "baseCurrency": "BTC", "quoteCurrency": "EUR", "paymentMethod": "creditCard",
        "quoteCurrencyAmount": 100,
    });
    let made = partner.post("/api/v2/buy/checkout", body).await.assert_status(200).json();
    made["checkoutUrl"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_purchase_needs_a_keyboard_alone() {
    let edge = Edge::start().await;
    let partner = edge.partner("keys").await.authenticated().await;
    let guests = json!({"guestOrders": {"allowed": false}});
    let path = "/admin/v1/partners/keys";
    edge.admin(Method::PATCH, path, guests).await.assert_status(200);
    let shopper = Shopper::start().await;
    for words in [DUTCH, ENGLISH] {
        shopper.buys(&checkout(&partner).await, &words).await;
    }
    assert_eq!(shopper.browser.complaints().await, [""; 0]);
}
