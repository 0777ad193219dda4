//! The device of a sign-in, in the few words that a `User-Agent` is worth: `Firefox on Linux`. All of
//! them are names from here, so that nothing else of the header is kept or shown.

use super::language::Texts;

/// Browsers by the product that tells them. The first that is there counts: most name the products of
/// others as well.
const BROWSERS: [(&str, &str); 8] = [
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
];
/// Systems likewise: telephones name the systems of computers.
const SYSTEMS: [(&str, &str); 7] = [
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("CrOS", "ChromeOS"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
];
/// Between the browser and the system, in what is stored.
const ON: &str = " on ";

/// The device that a `User-Agent` names, of at most 64 characters; `None` if it names none that is
/// known.
pub(crate) fn named(user_agent: &str) -> Option<String> {
    let browser = BROWSERS.iter().find(|(product, _)| user_agent.contains(*product));
    let system = SYSTEMS.iter().find(|(product, _)| user_agent.contains(*product));
    match (browser, system) {
        (Some((_, browser)), Some((_, system))) => Some(format!("{browser}{ON}{system}")),
        (one, other) => one.or(other).map(|(_, name)| (*name).to_owned()),
    }
}

/// A device as it is stored, in the reader's language.
pub(crate) fn shown(texts: Texts, device: Option<&str>) -> String {
    let Some(device) = device else { return texts.get("session-device-unknown") };
    match device.split_once(ON) {
        Some((browser, system)) => {
            texts.with("session-device", &[("browser", browser), ("system", system)])
        }
        None => device.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::language::Language;

    const WEBKIT: &str = "AppleWebKit/537.36 (KHTML, like Gecko)";

    #[test]
    fn a_device_is_named_in_a_few_words() {
        for (user_agent, device) in [
            (
                "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
                "Firefox on Linux",
            ),
            (
                &*format!(
                    "Mozilla/5.0 (Windows NT 10.0) {WEBKIT} Chrome/140.0 Safari/537.36 Edg/140.0"
                ),
                "Edge on Windows",
            ),
            (
                &*format!(
                    "Mozilla/5.0 (Linux; Android 15) {WEBKIT} Chrome/140.0 Mobile Safari/537.36"
                ),
                "Chrome on Android",
            ),
            (
                &*format!(
                    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) {WEBKIT} Safari/604.1"
                ),
                "Safari on iPhone",
            ),
            ("Shop/7 (Android 15)", "Android"),
        ] {
            assert_eq!(named(user_agent).as_deref(), Some(device), "{user_agent}");
        }
        for unknown in ["", "python-requests/2.32", "<script>"] {
            assert_eq!(named(unknown), None);
        }
        let names =
            BROWSERS.iter().flat_map(|(_, one)| SYSTEMS.map(|(_, other)| one.len() + other.len()));
        assert!(names.max().unwrap() + ON.len() <= 64);
    }

    #[test]
    fn a_device_is_shown_in_the_readers_language() {
        let dutch = Language::Dutch.texts();
        assert_eq!(shown(dutch, Some("Firefox on Linux")), "Firefox op Linux");
        assert_eq!(shown(dutch, Some("Android")), "Android");
        assert_eq!(shown(dutch, None), "Onbekend apparaat");
    }
}
