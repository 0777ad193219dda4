//! A configuration in TOML files: read with the line of each member, and written.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::startup_error::{Context as _, StartupError};

/// Largest file, in bytes.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Sections whose tables are subjects.
const SECTIONS: [&str; 4] = ["partners", "pairs", "paymentMethods", "prices"];
/// The section that is a list.
const ROUTES: &str = "routes";

/// The configuration of some files.
#[derive(Debug, Default)]
pub(super) struct Document {
    sections: Map<String, Value>,
    /// File and line of each subject and member by its path, such as
    /// `partners.acme.rateLimits.quotes` or `routes[1].connector`.
    places: BTreeMap<String, String>,
}

impl Document {
    /// Reads the files, and those of folders that end in `.toml`.
    ///
    /// # Errors
    /// One sentence with file and line.
    pub(super) fn read(paths: &[PathBuf]) -> Result<Self, StartupError> {
        let mut document = Self::default();
        for path in paths {
            for file in files(path)? {
                let text = text(&file)?;
                document.add(&file.display().to_string(), &text)?;
            }
        }
        Ok(document)
    }

    /// The body of the call.
    pub(super) fn configuration(&self) -> Value {
        Value::Object(self.sections.clone())
    }

    fn add(&mut self, file: &str, text: &str) -> Result<(), StartupError> {
        let source = Source::new(file, text);
        let root = DeTable::parse(text).map_err(|error| {
            source.error(error.span().map_or(0, |span| span.start), error.message())
        })?;
        for (section, value) in root.get_ref() {
            let (name, start) = (section.get_ref().as_ref(), section.span().start);
            if name == ROUTES {
                let routes = self.read_subject(&source, ROUTES, start, value)?;
                self.sections.insert(ROUTES.to_owned(), routes);
                continue;
            }
            let subjects = value.get_ref().as_table();
            let (true, Some(subjects)) = (SECTIONS.contains(&name), subjects) else {
                let reason = format!("'{name}' is none of {}, {ROUTES}", SECTIONS.join(", "));
                return Err(source.error(start, &reason));
            };
            for (key, members) in subjects {
                let (key, start) = (key.get_ref().as_ref(), key.span().start);
                if members.get_ref().as_table().is_none() {
                    return Err(source.error(start, &format!("'{name}.{key}' is no table")));
                }
                let members =
                    self.read_subject(&source, &format!("{name}.{key}"), start, members)?;
                self.sections.entry(name).or_insert_with(|| json!({}))[key] = members;
            }
        }
        Ok(())
    }

    /// A subject as JSON; keeps where it and its members stand.
    fn read_subject(
        &mut self,
        source: &Source<'_>,
        subject: &str,
        start: usize,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<Value, StartupError> {
        if let Some(place) = self.places.get(subject) {
            let reason = format!("'{subject}' stands in {place} already");
            return Err(source.error(start, &reason));
        }
        source.read(subject.to_owned(), start, value, &mut self.places)
    }

    /// The refusal of the call, with the line of the subject, or of the member, that it names.
    pub(super) fn locate(&self, refusal: &StartupError) -> StartupError {
        let text = refusal.to_string();
        match text.split_once(": ").and_then(|(_, reason)| self.place(reason)) {
            Some(place) => format!("{place}: {text}").into(),
            None => text.into(),
        }
    }

    /// The place of the member whose path a reason begins with, or of the innermost one around it.
    fn place(&self, reason: &str) -> Option<&str> {
        let (subject, reason) = reason.split_once(": ")?;
        let member = reason.split([':', ' ']).next().unwrap_or_default();
        let unknown = reason.split_once("unknown field `").map(|(_, rest)| rest);
        let mut path = match unknown.and_then(|rest| rest.split('`').next()) {
            Some(name) if member == "unknown" => format!("{subject}.{name}"),
            Some(name) => format!("{subject}.{member}.{name}"),
            None => format!("{subject}.{member}"),
        };
        loop {
            if let Some(place) = self.places.get(&path) {
                return Some(place);
            }
            path.truncate(path.rfind(['.', '['])?);
        }
    }
}

/// A file's text.
struct Source<'a> {
    file: &'a str,
    /// The places of the ends of lines.
    line_ends: Vec<usize>,
}

impl<'a> Source<'a> {
    fn new(file: &'a str, text: &str) -> Self {
        let line_ends = text.match_indices('\n').map(|(at, _)| at).collect();
        Self { file, line_ends }
    }

    /// File and line.
    fn place(&self, at: usize) -> String {
        let line = self.line_ends.partition_point(|end| *end < at) + 1;
        format!("{}:{line}", self.file)
    }

    /// The value that has this path and begins at `start` as JSON; keeps its place, and those of all
    /// below it. Numbers keep their digits: they are money.
    fn read(
        &self,
        path: String,
        start: usize,
        value: &Spanned<DeValue<'_>>,
        places: &mut BTreeMap<String, String>,
    ) -> Result<Value, StartupError> {
        let at = value.span().start;
        let number = |digits: &str| -> Result<Value, StartupError> {
            let digits = digits.replace('_', "");
            serde_json::from_str(digits.trim_start_matches('+'))
                .map_err(|_| self.error(at, &format!("'{digits}' is no decimal number")))
        };
        let json: Value = match value.get_ref() {
            DeValue::String(text) => json!(text.as_ref()),
            DeValue::Integer(integer) if integer.radix() == 10 => number(integer.as_str())?,
            DeValue::Integer(integer) => {
                return Err(self.error(at, &format!("'{}' is not decimal", integer.as_str())));
            }
            DeValue::Float(float) => number(float.as_str())?,
            DeValue::Boolean(is) => json!(is),
            DeValue::Datetime(_) => return Err(self.error(at, "no member is a time")),
            DeValue::Array(values) => {
                let mut array = Vec::new();
                for (index, value) in values.iter().enumerate() {
                    let path = format!("{path}[{index}]");
                    array.push(self.read(path, value.span().start, value, places)?);
                }
                array.into()
            }
            DeValue::Table(members) => {
                let mut object = Map::new();
                for (name, member) in members {
                    let path = format!("{path}.{}", name.get_ref());
                    let member = self.read(path, name.span().start, member, places)?;
                    object.insert(name.get_ref().to_string(), member);
                }
                object.into()
            }
        };
        places.insert(path, self.place(start));
        Ok(json)
    }

    fn error(&self, at: usize, reason: &str) -> StartupError {
        StartupError::from(format!("{}: {reason}", self.place(at)))
    }
}

/// The file, or those of the folder that end in `.toml`, sorted.
fn files(path: &Path) -> Result<Vec<PathBuf>, StartupError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let unreadable = format!("'{}' cannot be read", path.display());
    let entries = fs::read_dir(path).context(&unreadable)?;
    let mut found = Vec::new();
    for entry in entries {
        let file = entry.context(&unreadable)?.path();
        if file.extension().is_some_and(|extension| extension == "toml") {
            found.push(file);
        }
    }
    found.sort();
    if found.is_empty() {
        return Err(format!("'{}' holds no file that ends in .toml", path.display()).into());
    }
    Ok(found)
}

fn text(file: &Path) -> Result<String, StartupError> {
    let mut bytes = Vec::new();
    let read =
        fs::File::open(file).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes));
    read.context(format_args!("'{}' cannot be read", file.display()))?;
    if u64::try_from(bytes.len()).is_ok_and(|bytes| bytes > FILE_BYTES_MAX) {
        return Err(format!("'{}' is larger than {FILE_BYTES_MAX} bytes", file.display()).into());
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let lines = error.as_bytes().iter().take(valid).filter(|byte| **byte == b'\n').count();
        StartupError::from(format!("{}:{}: what follows is not UTF-8", file.display(), lines + 1))
    })
}

/// A configuration as TOML. What is null is left out: so it stays as it is.
pub(super) fn toml(configuration: &Value) -> String {
    let mut text = String::new();
    for section in SECTIONS {
        for (name, members) in configuration[section].as_object().into_iter().flatten() {
            table(&mut text, &format!("[{section}.{}]", key(name)), members);
        }
    }
    for route in configuration[ROUTES].as_array().into_iter().flatten() {
        table(&mut text, &format!("[[{ROUTES}]]"), route);
    }
    text
}

fn table(text: &mut String, head: &str, members: &Value) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{head}");
    for (name, member) in members.as_object().into_iter().flatten() {
        if !member.is_null() {
            let _ = writeln!(text, "{} = {}", key(name), inline(member));
        }
    }
    text.push('\n');
}

/// A key, quoted where it must be.
fn key(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.chars().all(is_bare) {
        name.to_owned()
    } else {
        json!(name).to_string()
    }
}

/// A value in one line. JSON's numbers and strings are TOML's.
fn inline(value: &Value) -> String {
    match value {
        Value::Array(values) => {
            let values: Vec<_> = values.iter().map(inline).collect();
            format!("[{}]", values.join(", "))
        }
        Value::Object(members) if members.values().all(Value::is_null) => "{}".to_owned(),
        Value::Object(members) => {
            let given = members.iter().filter(|(_, member)| !member.is_null());
            let members: Vec<_> =
                given.map(|(name, member)| format!("{} = {}", key(name), inline(member))).collect();
            format!("{{ {} }}", members.join(", "))
        }
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Document, String> {
        let mut document = Document::default();
        document.add("a.toml", text).map_err(|error| error.to_string())?;
        Ok(document)
    }

    #[test]
    fn what_is_written_is_read_again_digit_by_digit() {
        let text = r#"{"partners": {"acme": {"name": "A \"b\"", "defaultFeePercentage": 1.10,
            "guestOrders": {"allowed": true}, "allowedCountries": ["NL"], "policies": {}}},
            "prices": {"BTC-EUR": {"price": 51234.123456789012345678}},
            "routes": [{"method": "creditCard", "direction": "in", "connector": "cards"}]}"#;
        let configuration: Value = serde_json::from_str(text).unwrap();
        assert_eq!(read(&toml(&configuration)).unwrap().configuration(), configuration);
    }

    #[test]
    fn errors_name_file_and_line() {
        for (text, reason) in [
            ("[partners.acme]\nname = ", "a.toml:2: "),
            ("\n[shops.acme]", "a.toml:2: 'shops' is none of partners"),
            ("[partners]\nacme = 1", "a.toml:2: 'partners.acme' is no table"),
            ("[pairs.BTC-EUR]\nspreadPercentage = nan", "a.toml:2: 'nan' is no decimal number"),
            ("[pairs.BTC-EUR]\nmin = 0x10", "a.toml:2: "),
            ("[pairs.BTC-EUR]\nfrom = 2026-01-01", "a.toml:2: no member is a time"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(reason), "{text}: {error}");
        }
        let mut document = read("[partners.acme]").unwrap();
        let twice = document.add("b.toml", "\n\n[partners.acme]").unwrap_err().to_string();
        assert_eq!(twice, "b.toml:3: 'partners.acme' stands in a.toml:1 already");
    }

    #[test]
    fn a_refusal_is_located_at_its_member() {
        let document = read(
            "[partners.acme]\nname = 'A'\nmode = 'test'\nfeeCapPercentage = 30\n[partners.b]\n\
             rateLimits.quotes = '5/s'\n[partners.b.policies]\nfee = '00'\n\
             [[routes]]\nmethod = 'a'\n\n[[routes]]\nasset = 'b'\n",
        )
        .unwrap();
        let located =
            |text: &str| document.locate(&StartupError::from(text.to_owned())).to_string();
        for (refused, line) in [
            ("configuration: partners.acme: feeCapPercentage: 0 to 20 (422)", 4),
            ("configuration: partners.acme: slug is taken (409)", 1),
            // The members that there are stand behind the one that is wrong.
            ("configuration: partners.acme: unknown field `mode`, expected `name` (422)", 3),
            ("configuration: partners.acme: out of bounds, as is the mode (422)", 1),
            ("configuration?dryRun=true: partners.b: rateLimits.quotes: no rate (422)", 6),
            (
                "configuration: partners.b: rateLimits: unknown field `quotes`, expected `x` (422)",
                6,
            ),
            ("configuration: partners.b: policies.fee: no version has this digest (422)", 8),
            ("configuration: partners.b: policies: no kind fee (422)", 7),
            ("configuration: routes[1].asset: no such asset (422)", 13),
            ("configuration: routes[1].connector: no such connector (422)", 12),
            ("configuration: routes: at most 10000 (422)", 9),
        ] {
            assert_eq!(located(refused), format!("a.toml:{line}: {refused}"));
        }
        for nowhere in ["the admin listener does not answer", "configuration: partners.c: no (422)"]
        {
            assert_eq!(located(nowhere), nowhere);
        }
    }

    #[test]
    fn a_folder_without_files_and_bytes_that_are_no_text_are_named() {
        let folder = std::env::temp_dir().join(format!("rampart-apply-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let empty = files(&folder).unwrap_err().to_string();
        fs::write(folder.join("a.toml"), b"[partners.acme]\nname = '\xff'\n").unwrap();
        let refused = Document::read(std::slice::from_ref(&folder)).unwrap_err().to_string();
        fs::remove_dir_all(&folder).unwrap();
        assert!(empty.ends_with("' holds no file that ends in .toml"), "{empty}");
        assert!(refused.ends_with("a.toml:2: what follows is not UTF-8"), "{refused}");
    }
}
