//! The edge's own statements for pgbench, taken from its source. Their arguments stand in them:
//! Postgres knows them when it plans, which if anything saves it work.

/// The first statement of a source with its arguments in their places.
pub(super) fn filled(source: &str, arguments: &[&str]) -> String {
    with_arguments(&raw(source), arguments)
}

/// The first raw text of a source.
pub(super) fn raw(source: &str) -> String {
    let (_, rest) = source.split_once("r#\"").expect("the statement is raw text");
    let (statement, _) = rest.split_once("\"#").expect("it ends");
    statement.to_owned()
}

/// A statement without what sqlx reads out of its names, and with its arguments.
pub(super) fn with_arguments(statement: &str, arguments: &[&str]) -> String {
    let mut parts = statement.split(" as \"");
    let mut plain = parts.next().expect("a text has a first part").to_owned();
    for part in parts {
        plain += part.split_once('"').expect("the name ends").1;
    }
    let numbered = arguments.iter().enumerate().rev();
    let filled = numbered.fold(plain, |statement, (index, value)| {
        let parameter = format!("${}", index + 1);
        assert!(statement.contains(&parameter), "the statement has no {parameter}: {statement}");
        statement.replace(&parameter, value)
    });
    assert!(!filled.contains('$'), "the statement has other arguments: {filled}");
    filled
}
