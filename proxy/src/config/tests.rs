use std::io::Write as _;

use super::*;

const MINIMAL: &str = "[edge.tls]\ncert = 'c.pem'\nkey = 'k.pem'\n";

/// Reads a file with `text` and an environment of `env` alone.
fn read(text: &str, env: &[(&str, &str)]) -> Result<Config, Invalid> {
    let mut file = tempfile();
    file.1.write_all(text.as_bytes()).unwrap();
    let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let read =
        source::gather(Some(&file.0), Some(env)).and_then(Config::read).and_then(Config::settled);
    std::fs::remove_file(&file.0).unwrap();
    read
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
    assert_eq!(config.core.lifetimes.access_token, 3600);
}

#[test]
fn the_file_is_read_and_the_environment_wins() {
    let text = format!(
        "{MINIMAL}[edge]\nlisten = ['127.0.0.1:1', '[::1]:2']\npublic_url = 'https://a.example/'\n\
         [lifetimes]\nquote = 7\n[admin]\nlisten = '127.0.0.1:3'\n"
    )
    .replace("[edge.tls]\ncert = 'c.pem'\nkey = 'k.pem'\n", "")
        + MINIMAL;
    let env = [("RAMPART__ADMIN__LISTEN", "127.0.0.1:0"), ("RAMPART__RATELIMIT__ADDRESS", "9/s")];
    let config = read(&text, &env).unwrap();
    assert_eq!(config.edge.listen.len(), 2);
    assert_eq!(config.core.public_url, "https://a.example");
    assert_eq!(config.core.lifetimes.quote, 7);
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
fn every_key_of_the_contract_is_known() {
    let text = format!(
        "{MINIMAL}[keys]\n[policy]\nfuel = 1000000\n[log]\nformat = 'json'\n\
         [mail]\nsmtp_url = 'smtp://a'\n[documents]\nfolder = '/d'\n\
         [limits]\nupstream = 'https://limits.example'\n\
         [lifetimes]\naccess_token = 1\nrefresh_token = 2\noffer = 3\nlogin_token = 4\n\
         [ratelimit]\nclient = '1/s burst 2'\nquotes = '1/s'\ncredentials = '1/min'\n\
         login = '1/min'\nuploads = '1/min'\nredis_url = 'redis://:hidden@a'\n\
         [prices]\nsource = 'http'\nmax_age_seconds = 60\n\
         [prices.sources.BTC-EUR]\nurl = 'https://a.example'\npointer = '/p'\n"
    );
    let config = read(&text, &[("RAMPART__MAIL__SMTP_URL", "smtp://:hidden@b")]).unwrap();
    assert_eq!(config.core.mail.smtp_url.as_ref().unwrap().expose(), "smtp://:hidden@b");
    assert_eq!(config.core.limits.upstream.as_deref(), Some("https://limits.example"));
    assert_eq!(config.core.lifetimes.login_token, 4);
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
        assert!(sentence.contains(key), "{sentence}");
        assert!(!sentence.contains('\n'), "{sentence}");
    }
    let sentence = refusal(MINIMAL, &[("RAMPART__OPS__LISTENS", "x")]);
    assert!(sentence.contains("listens"), "{sentence}");
}

#[test]
fn what_is_out_of_bounds_is_named() {
    for (text, key) in [
        ("", "edge.tls.cert"),
        ("[edge.tls]\ncert = 'c'\n", "edge.tls.key"),
        ("[edge]\nlisten = 'nowhere'\n", "nowhere"),
        ("[edge]\nlisten = []\n", "edge.listen"),
        ("[edge]\nthreads = 0\ntls = { cert = 'c', key = 'k' }\n", "edge.threads"),
        ("[edge]\nhead_seconds = 'ten'\n", "head_seconds"),
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
