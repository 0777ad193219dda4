use std::collections::BTreeSet;
use std::io::Write as _;

use super::reference::{Setting, sections};
use super::renamed::{CONTRACT_KEYS, RENAMED};
use super::*;

const MINIMAL: &str = "[edge.tls]\ncert = 'c.pem'\nkey = 'k.pem'\n";

/// Reads a file with `text` and an environment of `env` alone.
fn read(text: &str, env: &[(&str, &str)]) -> Result<Config, StartupError> {
    let mut file = tempfile();
    file.1.write_all(text.as_bytes()).unwrap();
    let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let read = source::gather(Some(&file.0), Some(env)).and_then(Config::read);
    std::fs::remove_file(&file.0).unwrap();
    let mut config = read?;
    config.settle().map(|()| config)
}

fn tempfile() -> (std::path::PathBuf, std::fs::File) {
    let name = rampart_core::platform::clock::Clock::system().uuid().unwrap().to_string();
    let path = std::env::temp_dir().join(format!("rampart-config-{name}"));
    (path.clone(), std::fs::File::create(&path).unwrap())
}

fn refusal(text: &str, env: &[(&str, &str)]) -> String {
    read(text, env).unwrap_err().to_string()
}

#[test]
fn defaults_are_those_of_the_contract() {
    let config = read(MINIMAL, &[]).unwrap();
    assert_eq!(config.edge.listen, ["127.0.0.1:8443".parse().unwrap()]);
    assert_eq!(config.admin.listen, "127.0.0.1:9443".parse().unwrap());
    assert_eq!(config.ops.listen, "127.0.0.1:9464".parse().unwrap());
    assert_eq!(config.core.public_url, "");
    assert_eq!(config.core.lifetimes.access_token_seconds, 3600);
}

#[test]
fn the_file_is_read_and_the_environment_wins() {
    let text = format!(
        "{MINIMAL}[edge]\nlisten = ['127.0.0.1:1', '[::1]:2']\npublic_url = 'https://a.example/'\n\
         [lifetimes]\nquote_seconds = 7\n[admin]\nlisten = '127.0.0.1:3'\n"
    )
    .replace("[edge.tls]\ncert = 'c.pem'\nkey = 'k.pem'\n", "")
        + MINIMAL;
    let env = [("RAMPART__ADMIN__LISTEN", "127.0.0.1:0"), ("RAMPART__RATELIMIT__ADDRESS", "9/s")];
    let config = read(&text, &env).unwrap();
    assert_eq!(config.edge.listen.len(), 2);
    assert_eq!(config.core.public_url, "https://a.example");
    assert_eq!(config.core.lifetimes.quote_seconds, 7);
    assert_eq!(config.admin.listen.port(), 0);
    assert_eq!(config.core.ratelimit.address, "9/s".parse().unwrap());
}

#[test]
fn the_environment_alone_is_enough() {
    let env = [
        ("RAMPART__EDGE__TLS__CERT", "/c"),
        ("RAMPART__EDGE__TLS__KEY", "/k"),
        ("RAMPART__EDGE__LISTEN", "127.0.0.1:1, 127.0.0.1:2"),
        ("RAMPART__EDGE__THREADS", "3"),
        ("RAMPART__LOG__ACCESS", "false"),
        ("RAMPART__ADMIN__TOKEN", "007"),
        ("RAMPART_PG_BIN", "/elsewhere"),
    ];
    let config = read("", &env).unwrap();
    assert_eq!((config.edge.listen.len(), config.edge.threads, config.log.access), (2, 3, false));
    assert_eq!(config.core.admin_token.unwrap().expose(), "007");
}

#[test]
fn serving_threads_have_four_policy_calls_each_unless_their_number_is_set() {
    let live_max = |text: &str, env: &[(&str, &str)]| {
        let config = read(&format!("{text}{MINIMAL}"), env).unwrap();
        config.core.policy.live_max
    };
    assert_eq!(live_max("[edge]\nthreads = 3\n", &[]), 12);
    assert_eq!(live_max("[edge]\nthreads = 3\n[policy]\nlive_max = 5\n", &[]), 5);
    let threads = ("RAMPART__EDGE__THREADS", "7");
    assert_eq!(live_max("", &[threads, ("RAMPART__POLICY__FUEL", "1000")]), 28);
    assert_eq!(live_max("", &[threads, ("RAMPART__POLICY__LIVE_MAX", "9")]), 9);
}

#[test]
fn every_key_of_the_contract_is_known() {
    let text = format!(
        "{MINIMAL}[keys]\n[policy]\nfuel = 1000000\n[log]\nformat = 'json'\n\
         [mail]\nsmtp_url = 'smtp://a'\n[documents]\nfolder = '/d'\n\
         s3_access_key = 'hidden'\ns3_secret_key = 'hidden'\n\
         [limits]\nupstream = 'https://limits.example'\n\
         [lifetimes]\naccess_token_seconds = 1\nrefresh_token_seconds = 2\n\
         offer_seconds = 3\nlogin_token_seconds = 4\n\
         [ratelimit]\nclient = '1/s burst 2'\nquotes = '1/s'\ncredentials = '1/min'\n\
         login = '1/min'\nuploads = '1/min'\nredis_url = 'redis://:hidden@a'\n\
         [prices]\nsource = 'http'\nmax_age_seconds = 60\n\
         sources_min = 1\ndeviation_max = 0.75\n\
         [quotes]\nestimated_slippage_max = 0.5\n\
         [[prices.sources.BTC-EUR]]\nurl = 'https://a.example'\npointer = '/p'\ntime_pointer = '/t'\n"
    );
    let config = read(&text, &[("RAMPART__MAIL__SMTP_URL", "smtp://:hidden@b")]).unwrap();
    assert_eq!(config.core.mail.smtp_url.as_ref().unwrap().expose(), "smtp://:hidden@b");
    assert_eq!(config.core.limits.upstream.as_deref(), Some("https://limits.example"));
    assert_eq!(config.core.lifetimes.login_token_seconds, 4);
    assert_eq!(config.core.prices.deviation_max.to_string(), "0.75");
    assert_eq!(config.core.quotes.estimated_slippage_max.to_string(), "0.5");
    assert!(!format!("{config:?}").contains("hidden"));
}

#[test]
fn an_unknown_key_is_named() {
    for (text, key) in [
        ("[edge]\nlisen = 'x'\n", "lisen"),
        ("[edge.tls]\ncertt = 'x'\n", "certt"),
        ("[lifetimes]\nquotes = 1\n", "quotes"),
        ("[edgy]\nlisten = 'x'\n", "edgy"),
        ("public_url = 'https://x'\n", "public_url"),
    ] {
        let sentence = refusal(text, &[]);
        assert!(sentence.starts_with(&format!("there is no setting '{key}'")), "{sentence}");
        assert!(!sentence.contains('\n'), "{sentence}");
    }
    let sentence = refusal(MINIMAL, &[("RAMPART__OPS__LISTENS", "x")]);
    assert!(sentence.contains("listens"), "{sentence}");
}

#[test]
fn a_section_that_there_is_not_is_refused_with_all_that_there_are() {
    let sentence = refusal("[edgy]\nlisten = 'x'\n", &[]);
    let (_, known) = sentence.split_once("known there: ").unwrap();
    let known: Vec<_> = known.split(", ").collect();
    for section in SECTIONS.into_iter().chain(["database", "mail"]) {
        assert!(known.contains(&section), "{section}: {sentence}");
    }
    let nested = refusal("[lifetimes]\nquotes = 1\n", &[]);
    assert!(nested.contains("quote_seconds") && !nested.contains("connectors"), "{nested}");
}

#[test]
fn a_value_that_there_is_not_is_refused_with_all_that_there_are() {
    for (section, key, value, values) in [
        ("compliance", "gate", "later", "before-payment, before-payout, none"),
        ("payments", "unexpected", "keep", "refund, hold"),
        ("prices", "source", "ftp", "static, http"),
        ("edge", "proxy_protocol", "v3", "off, v1, v2, any"),
        ("log", "format", "xml", "json, text"),
        ("log", "format", "", "json, text"),
    ] {
        let sentence = format!("'{section}.{key}' is '{value}', not one of {values}");
        assert_eq!(refusal(&format!("[{section}]\n{key} = '{value}'\n"), &[]), sentence);
    }
}

#[test]
fn what_is_out_of_bounds_is_named() {
    for (text, key) in [
        ("", "edge.tls.cert"),
        ("[edge.tls]\ncert = 'c'\n", "edge.tls.key"),
        ("[edge]\nlisten = 'nowhere'\n", "nowhere"),
        ("[edge]\nlisten = []\n", "edge.listen"),
        ("[edge]\nthreads = 0\ntls = { cert = 'c', key = 'k' }\n", "edge.threads"),
        ("[edge]\ndrain_seconds = 'ten'\n", "drain_seconds"),
        ("[ratelimit]\nclient = 'often'\n", "often"),
        ("[edge]\npublic_url = 'ftp://a'\ntls = { cert = 'c', key = 'k' }\n", "public_url"),
        ("[edge\n", "cannot be read"),
    ] {
        let sentence = refusal(text, &[]);
        assert!(sentence.contains(key), "{text:?}: {sentence}");
    }
}

#[test]
fn a_secret_may_stand_in_a_file_and_is_never_shown() {
    let (path, mut file) = tempfile();
    file.write_all(b"hidden-token\n").unwrap();
    let text = format!("{MINIMAL}[admin]\ntoken_file = '{}'\n", path.display());
    let config = read(&text, &[]).unwrap();
    assert_eq!(config.admin.token.as_ref().unwrap().expose(), "hidden-token");
    assert!(!format!("{config:?}").contains("hidden-token"));
    let twice = refusal(&format!("{text}token = 'other'\n"), &[]);
    assert!(twice.contains("admin.token_file") && !twice.contains("other"), "{twice}");
    std::fs::remove_file(&path).unwrap();
    assert!(refusal(&text, &[]).contains("admin.token_file"));
}

#[test]
fn the_urls_of_replicas_may_stand_in_a_file_too() {
    let (path, mut file) = tempfile();
    file.write_all(b"postgres://a/rampart\npostgres://b/rampart\n").unwrap();
    let named = path.display().to_string();
    let urls = |text: &str, env: &[(&str, &str)]| {
        let config = read(&format!("{text}{MINIMAL}"), env).unwrap();
        let urls = config.core.database.replica_urls;
        urls.iter().map(|url| url.expose().to_owned()).collect::<Vec<_>>()
    };
    let both = ["postgres://a/rampart", "postgres://b/rampart"];
    assert_eq!(urls(&format!("[database]\nreplica_urls_file = '{named}'\n"), &[]), both);
    assert_eq!(urls(&format!("[database]\nreplica_urls = {both:?}\n"), &[]), both);
    let at = ("RAMPART__DATABASE__REPLICA_URLS_FILE", named.as_str());
    assert_eq!(urls("[database]\nreplica_urls = ['postgres://c/rampart']\n", &[at]), both);
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn the_environment_replaces_both_forms_of_a_secret() {
    let (path, mut file) = tempfile();
    file.write_all(b"of-the-file").unwrap();
    let named = path.display().to_string();
    let token = |text: &str, env: &[(&str, &str)]| {
        let config = read(&format!("{text}{MINIMAL}"), env).unwrap();
        config.admin.token.unwrap().expose().to_owned()
    };
    let value = ("RAMPART__ADMIN__TOKEN", "of-an-operator");
    let at = ("RAMPART__ADMIN__TOKEN_FILE", named.as_str());
    // What is replaced is not even read.
    assert_eq!(token("[admin]\ntoken_file = '/nowhere'\n", &[value]), "of-an-operator");
    assert_eq!(token("[admin]\ntoken = 'earlier'\n", &[at]), "of-the-file");
    assert_eq!(token("[admin]\ntoken = 'earlier'\n", &[value]), "of-an-operator");
    assert_eq!(token("[admin]\ntoken_file = '/nowhere'\n", &[at]), "of-the-file");
    // A section within a section, beside a key that nobody replaces.
    let nested =
        "[operators.oidc]\nissuer = 'https://a.example'\nclient_secret_file = '/nowhere'\n";
    let env = [("RAMPART__OPERATORS__OIDC__CLIENT_SECRET", "hidden")];
    read(&format!("{nested}{MINIMAL}"), &env).unwrap();

    let twice = refusal(MINIMAL, &[value, at]);
    assert_eq!(twice, "'admin.token' and 'admin.token_file' are both set");
    let in_the_file = format!("[admin]\ntoken = 'a'\ntoken_file = '{named}'\n{MINIMAL}");
    assert_eq!(refusal(&in_the_file, &[value]), twice);
    // In a container the file is named already, and can only be named anew.
    let none = ("RAMPART__ADMIN__TOKEN_FILE", "");
    assert_eq!(token("", &[value, none]), "of-an-operator");
    assert!(refusal(MINIMAL, &[none]).contains("admin.token_file"));
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn an_empty_secret_is_refused_from_a_value_and_from_a_file() {
    let (path, mut file) = tempfile();
    file.write_all(b"\n").unwrap();
    let empty = "'admin.token' is empty";
    let unset = ("RAMPART__ADMIN__TOKEN", "");
    for text in ["", "[admin]\ntoken = 'earlier'\n", "[admin]\ntoken_file = '/nowhere'\n"] {
        assert_eq!(refusal(&format!("{text}{MINIMAL}"), &[unset]), empty, "{text}");
    }
    assert_eq!(refusal(&format!("[admin]\ntoken = ' '\n{MINIMAL}"), &[]), empty);
    let named = format!("[admin]\ntoken_file = '{}'\n{MINIMAL}", path.display());
    assert_eq!(refusal(&named, &[]), empty);
    let nested = ("RAMPART__OPERATORS__OIDC__CLIENT_SECRET", "");
    assert_eq!(refusal(MINIMAL, &[nested]), "'operators.oidc.client_secret' is empty");
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_key_with_another_name_now_tells_it() {
    for (section, old, new) in RENAMED {
        let sentence = format!("'{section}.{old}' is called '{section}.{new}' now");
        assert_eq!(refusal(&format!("[{section}]\n{old} = 9\n"), &[]), sentence);
        let name = format!("RAMPART__{section}__{old}").to_uppercase();
        assert_eq!(refusal(MINIMAL, &[(&name, "9")]), sentence);
        let keys: Vec<String> = settings().into_iter().map(|setting| setting.key).collect();
        assert!(keys.contains(&format!("{section}.{new}")), "{section}.{new}");
        assert!(!keys.contains(&format!("{section}.{old}")), "{section}.{old}");
    }
}

#[test]
fn a_lifetime_may_have_its_name_of_the_contract() {
    for key in CONTRACT_KEYS {
        let (section, own) = ("lifetimes", format!("{key}_seconds"));
        let shown = |text: &str, env: &[(&str, &str)]| {
            let config = read(&format!("{text}{MINIMAL}"), env).unwrap();
            serde_json::to_value(config).unwrap()[section][&own].clone()
        };
        let text = format!("[{section}]\n{key} = 7\n");
        let name = format!("RAMPART__{section}__{key}").to_uppercase();
        assert_eq!(shown(&text, &[]), 7, "{key}");
        assert_eq!(shown("", &[(&name, "8")]), 8, "{key}");
        assert_eq!(shown(&text, &[(&name, "9")]), 9, "{key}");
        let own_name = format!("RAMPART__{section}__{own}").to_uppercase();
        let own_text = format!("[{section}]\n{own} = 7\n");
        assert_eq!(shown(&text, &[(&own_name, "9")]), 9, "{key}");
        assert_eq!(shown(&own_text, &[(&name, "9")]), 9, "{key}");
        let both = format!("'{section}.{key}' and '{section}.{own}' are both set");
        assert_eq!(refusal(&format!("{text}{own} = 7\n"), &[]), both);
        assert_eq!(refusal(MINIMAL, &[(&name, "8"), (&own_name, "9")]), both);
        let outside = refusal(&format!("[{section}]\n{key} = 0\n"), &[]);
        assert!(outside.starts_with(&format!("'{section}.{own}' is 0, not between")), "{outside}");
    }
}

fn settings() -> Vec<Setting> {
    sections().into_iter().flat_map(|section| section.settings).collect()
}

#[test]
fn every_setting_says_what_it_is() {
    for setting in settings() {
        let Setting { key, description, .. } = &setting;
        assert!(description.ends_with('.'), "{key}: {description}");
        assert!(!description.contains(". "), "{key} has more than one sentence: {description}");
        if setting.kind == "integer" {
            assert!(setting.unit.is_some(), "{key} has no unit");
            assert!(setting.min < setting.max && setting.min.is_some(), "{key} has no bounds");
        }
    }
}

/// The TOML line that sets `key` to `value`.
fn assignment(key: &str, value: &str) -> String {
    format!("{} = {value}\n", key.replace("<name>", "'BTC-EUR'"))
}

/// [`MINIMAL`] and one more setting.
fn minimal_with(key: &str, value: u64) -> String {
    match key.strip_prefix("edge.tls.") {
        Some(name) => format!("{MINIMAL}{name} = {value}\n"),
        None => assignment(key, &value.to_string()) + MINIMAL,
    }
}

#[test]
fn bounds_hold_in_the_file_and_in_the_environment() {
    let bounded: Vec<Setting> =
        settings().into_iter().filter(|setting| setting.max.is_some()).collect();
    assert!(bounded.len() > 20);
    for Setting { key, min, max, .. } in bounded {
        let (min, max) = (min.unwrap(), max.unwrap());
        let name = format!("RAMPART__{}", key.replace('.', "__").to_uppercase());
        for inside in [min, max] {
            read(&minimal_with(&key, inside), &[]).unwrap();
            read(MINIMAL, &[(&name, &inside.to_string())]).unwrap();
        }
        for outside in [min.checked_sub(1), max.checked_add(1)].into_iter().flatten() {
            let sentence = refusal(MINIMAL, &[(&name, &outside.to_string())]);
            for sentence in [sentence, refusal(&minimal_with(&key, outside), &[])] {
                let expected = format!("'{key}' is {outside}, not between {min} and {max}");
                assert_eq!(sentence, expected);
            }
        }
    }
}

#[test]
fn defaults_of_the_reference_are_those_of_the_types() {
    let config = serde_json::to_value(read(MINIMAL, &[]).unwrap()).unwrap();
    for Setting { key, default, default_note, .. } in settings() {
        let read = key.split('.').try_fold(&config, |value, name| value.get(name));
        if let Some(read) = read.filter(|_| default_note.is_none() && !key.contains("tls.")) {
            assert_eq!(*read, default, "{key}");
        }
    }
    let default = |key: &str| settings().into_iter().find(|s| s.key == key).unwrap().default;
    assert_eq!(default("edge.connections_max"), 8_192);
    assert_eq!(default("ratelimit.login"), "5/min burst 5");
    assert_eq!(default("lifetimes.offer_seconds"), 3_600);
}

/// The keys that the types read below `table`, as their refusal of another one tells.
fn keys_read(table: &str) -> BTreeSet<String> {
    let inside = match table {
        "edge.tls.certificates[]" => "edge.tls.certificates = [{ none = 1 }]\n".to_owned(),
        "prices.sources.<name>[]" => "prices.sources.'BTC-EUR' = [{ none = 1 }]\n".to_owned(),
        "" => "none = 1\n".to_owned(),
        _ => assignment(&format!("{table}.none"), "1"),
    };
    let sentence = refusal(&inside, &[]);
    let (_, names) = sentence.split_once("known there: ").unwrap_or_else(|| panic!("{sentence}"));
    names.split(", ").map(str::to_owned).collect()
}

#[test]
fn the_reference_has_the_keys_that_are_read_and_no_others() {
    let settings = settings();
    let of_secrets = settings.iter().filter(|setting| setting.kind == "secret");
    let secrets: Vec<&str> = of_secrets.map(|setting| setting.key.as_str()).collect();
    // No file is read for a secret in a list or in a map.
    assert!(secrets.iter().all(|key| !key.contains(['[', '<'])), "{secrets:?}");
    let listed: Vec<&str> = settings
        .iter()
        .map(|setting| setting.key.as_str())
        .filter(|key| !secrets.iter().any(|secret| **key == format!("{secret}_file")))
        .collect();
    let tables =
        listed.iter().filter_map(|key| key.rsplit_once('.')).filter(|(_, name)| *name != "<name>");
    // Below a map there are names of the operator's own.
    let tables: BTreeSet<&str> = tables.map(|(table, _)| table).collect();
    for table in tables {
        let below = |key: &&str| key.strip_prefix(table)?.strip_prefix('.').map(str::to_owned);
        let names = listed.iter().filter_map(below);
        let names: BTreeSet<String> = names
            .map(|name| name.split(['.', '[']).next().unwrap_or_default().to_owned())
            .collect();
        assert_eq!(names, keys_read(table), "{table}");
    }
    let names: BTreeSet<String> = sections().into_iter().map(|section| section.name).collect();
    assert_eq!(names, keys_read(""));
}
