//! Begins of elements.

use quick_xml::events::BytesStart;

/// Begin of the namespaces of camt.053's versions.
const NAMESPACE: &[u8] = b"urn:iso:std:iso:20022:tech:xsd:camt.053.";

/// False if the document says that it is something else.
pub(super) fn is_of_camt(start: &BytesStart<'_>) -> bool {
    let declared = match start.name().prefix() {
        Some(prefix) => [b"xmlns:", prefix.as_ref()].concat(),
        None => b"xmlns".to_vec(),
    };
    attribute(start, &declared).is_none_or(|namespace| namespace.starts_with(NAMESPACE))
}

/// The value of an attribute. Duplicates are not looked for: that takes the square of their number.
pub(super) fn attribute(start: &BytesStart<'_>, name: &[u8]) -> Option<Vec<u8>> {
    let mut attributes = start.attributes();
    let mut readable = attributes.with_checks(false).flatten();
    let found = readable.find(|attribute| attribute.key.as_ref() == name);
    found.map(|attribute| attribute.value.into_owned())
}

/// The name without its prefix.
pub(super) fn local_name(start: &BytesStart<'_>) -> String {
    String::from_utf8_lossy(start.local_name().as_ref()).into_owned()
}
