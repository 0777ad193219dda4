//! The texts are complete, well formed and used, and a reader gets those of the right language.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::*;

/// Ids of a file, each with the names of its placeables.
fn messages(language: Language) -> BTreeMap<String, BTreeSet<String>> {
    let mut found = BTreeMap::new();
    for line in language.source().lines() {
        let Some((id, text)) = line.split_once(" = ") else {
            assert!(line.is_empty() || line.starts_with('#'), "{}: {line}", language.code());
            continue;
        };
        let names = text.split("{ $").skip(1).filter_map(|rest| rest.split(" }").next());
        let names = names.map(str::to_owned).collect();
        assert!(found.insert(id.to_owned(), names).is_none(), "{id} stands twice");
    }
    found
}

fn sources(folder: &Path, found: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn every_language_has_every_message_with_its_values() {
    let english = messages(Language::English);
    for language in Language::ALL {
        assert_eq!(messages(language), english, "{}", language.code());
        let texts = language.texts();
        for id in english.keys() {
            let bundle = &BUNDLES[language as usize];
            assert!(bundle.has_message(id), "{}: {id} is not well formed", texts.language().code());
        }
    }
}

#[test]
fn every_language_addresses_its_reader_in_one_way() {
    for language in Language::ALL {
        // The familiar form where the others are formal, the formal one where they are not.
        let other: &[&str] = match language {
            Language::English => &[],
            Language::Dutch => &["u", "uw"],
            Language::German => &["du", "dich", "dir", "dein", "deine", "deinen"],
            Language::French => &["tu", "toi", "ton", "tes"],
            Language::Spanish => &["usted", "elija", "escriba", "indique", "añada"],
            Language::Portuguese => &["tu", "teu", "tua"],
            Language::Italian => &["scelga", "inserisca", "indichi", "aggiunga"],
            Language::Polish => &["pan", "pana", "pani", "proszę"],
        };
        for line in language.source().lines().filter(|line| !line.starts_with('#')) {
            let text = line.split_once(" = ").map_or("", |(_, text)| text).to_lowercase();
            let mut words = text.split(|c: char| !c.is_alphabetic());
            assert!(!words.any(|word| other.contains(&word)), "{line}");
            assert!(!text.contains('’'), "{line}");
        }
    }
}

#[test]
fn a_language_has_one_word_for_a_thing_whoever_reads() {
    // A second word for an order, a second spelling, a gender of the reader.
    for (language, other) in [
        (Language::Portuguese, "encomenda"),
        (Language::Portuguese, "carateres"),
        (Language::Polish, "zalogowany"),
    ] {
        assert!(!language.source().contains(other), "{other}");
    }
}

#[test]
fn states_of_an_order_agree_with_the_word_for_it() {
    for (language, word, states) in [
        (Language::French, "commande", ["Terminée", "Annulée", "Remboursée"]),
        (Language::Spanish, "pedido", ["Completado", "Cancelado", "Reembolsado"]),
        (Language::Portuguese, "ordem", ["Concluída", "Cancelada", "Reembolsada"]),
        (Language::Italian, "ordine", ["Completato", "Annullato", "Rimborsato"]),
        (Language::Polish, "zamówienie", ["Zrealizowane", "Anulowane", "Zwrócone"]),
    ] {
        let texts = language.texts();
        let ids = ["status-completed", "status-cancelled", "status-refunded"];
        assert_eq!(ids.map(|id| texts.get(id)), states);
        assert_eq!(texts.get("term-order").to_lowercase(), word);
    }
}

#[test]
fn no_message_is_unused_and_none_is_missing() {
    let mut text = String::new();
    for folder in ["src", "api/src"] {
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut text);
    }
    let ids = messages(Language::English);
    for id in ids.keys() {
        assert!(text.contains(&format!("\"{id}\"")), "{id} is unused");
    }
    for part in text.split("texts.get(\"").chain(text.split("texts.with(\"")).skip(1) {
        let id = part.split('"').next().unwrap_or_default();
        let is_id = id.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
        assert!(!is_id || id.is_empty() || ids.contains_key(id), "there is no message {id}");
    }
}

#[test]
fn the_readers_language_is_the_one_of_the_greatest_weight() {
    for (header, language) in [
        ("nl-NL,nl;q=0.9,en;q=0.8", Some(Language::Dutch)),
        ("sv, pt-BR;q=0.5, en;q=0.1", Some(Language::Portuguese)),
        ("en;q=0.1, nl;q=0.9", Some(Language::Dutch)),
        ("en;q=0, de", Some(Language::German)),
        ("fr ; Q=0.25 , it;q=0.250, es;q=.9, pl;q=1.001", Some(Language::French)),
        ("en;q=0.999, de;q=1.000", Some(Language::German)),
        ("en;q=high, de;q=0.1", Some(Language::German)),
        ("nl;q=0.0", None),
        ("sv", None),
        ("", None),
        (";;;=,,q", None),
    ] {
        assert_eq!(Language::accepted(header), language, "{header}");
    }
    assert_eq!(Language::accepted(&"nl,".repeat(200)), None);
    assert_eq!(Language::from_tag("de-at"), Some(Language::German));
    assert_eq!(Language::from_tag(""), None);
}

#[test]
fn the_path_counts_before_the_account_and_that_before_the_browser() {
    let (path, browser) = (
        Texts { language: Language::French, is_of_page: true },
        Texts { language: Language::French, is_of_page: false },
    );
    assert_eq!(path.of_account(Some("de-at")).language(), Language::French);
    assert_eq!(browser.of_account(Some("de-at")).language(), Language::German);
    for unknown in [None, Some(""), Some("sv-se")] {
        assert_eq!(browser.of_account(unknown).language(), Language::French);
    }
}

#[test]
fn pages_have_a_region_for_every_language() {
    let supported = ["nl-nl", "fr-be", "fr-fr", "pt-br"].map(str::to_owned);
    assert_eq!(Language::Polish.texts().spoken_region(&supported), None);
    let regions = Language::page_regions(&supported);
    let (first, added) = regions.split_at(supported.len());
    assert_eq!(first, supported);
    assert_eq!(added, ["en-gb", "de-de", "es-es", "it-it", "pl-pl"]);
    for (language, region) in [(Language::French, "fr-be"), (Language::Polish, "pl-pl")] {
        assert_eq!(language.texts().spoken_region(&regions), Some(region));
    }
    let alone = Language::page_regions(&[]);
    assert_eq!(alone, Language::ALL.map(Language::own_region));
    for (language, region) in Language::ALL.into_iter().zip(&alone) {
        assert_eq!(Language::from_tag(region), Some(language));
    }
}

#[test]
fn times_have_the_languages_order() {
    let at = DateTime::from_timestamp(1_772_366_700, 0).unwrap();
    for (language, time) in [
        (Language::English, "2026-03-01 12:05 UTC"),
        (Language::Dutch, "01-03-2026 12:05 UTC"),
        (Language::Polish, "01.03.2026 12:05 UTC"),
        (Language::French, "01/03/2026 12:05 UTC"),
    ] {
        assert_eq!(language.texts().time(at), time);
    }
}
