//! Logos in SVG: read element by element and written anew from an allow-list of shapes, gradients and
//! their attributes, so that nothing runs, nothing is fetched and nothing is said that is not drawn
//! (SVG 1.1, second edition).

use std::collections::BTreeMap;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::logo::LOGO_BYTES_MAX;

/// Most elements within each other.
const DEPTH_MAX: usize = 32;
/// Most elements that are drawn.
const ELEMENTS_MAX: usize = 2_000;
/// Most attributes of an element: the XML library compares each with all before it.
const ATTRIBUTES_MAX: usize = 100;
/// Longest id, in bytes.
const ID_BYTES_MAX: usize = 64;

const NAMESPACE: &str = "http://www.w3.org/2000/svg";

/// Elements that are written anew; any other one is refused.
const ELEMENTS: [&str; 14] = [
    "svg",
    "g",
    "defs",
    "path",
    "rect",
    "circle",
    "ellipse",
    "line",
    "polyline",
    "polygon",
    "linearGradient",
    "radialGradient",
    "stop",
    "clipPath",
];
/// Elements that are left out with what is in them, as are those of other namespaces: they draw
/// nothing.
const LEFT_OUT: [&str; 3] = ["title", "desc", "metadata"];
/// Attributes that are written anew; others are left out.
const ATTRIBUTES: [&str; 49] = [
    "clip-path",
    "clip-rule",
    "clipPathUnits",
    "color",
    "cx",
    "cy",
    "d",
    "display",
    "fill",
    "fill-opacity",
    "fill-rule",
    "fx",
    "fy",
    "gradientTransform",
    "gradientUnits",
    "height",
    "id",
    "offset",
    "opacity",
    "pathLength",
    "points",
    "preserveAspectRatio",
    "r",
    "rx",
    "ry",
    "shape-rendering",
    "spreadMethod",
    "stop-color",
    "stop-opacity",
    "stroke",
    "stroke-dasharray",
    "stroke-dashoffset",
    "stroke-linecap",
    "stroke-linejoin",
    "stroke-miterlimit",
    "stroke-opacity",
    "stroke-width",
    "transform",
    "vector-effect",
    "version",
    "viewBox",
    "visibility",
    "width",
    "x",
    "x1",
    "x2",
    "y",
    "y1",
    "y2",
];

/// Reads an SVG and writes it anew. `None` unless it is a whole one of shapes and gradients alone,
/// within [`LOGO_BYTES_MAX`].
pub(crate) fn sanitise(svg: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(svg).ok().filter(|text| text.len() <= LOGO_BYTES_MAX)?;
    let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}').trim());
    let mut written = Written::default();
    loop {
        match reader.read_event().ok()? {
            Event::Start(element) => written.begin(&element, true)?,
            Event::Empty(element) => written.begin(&element, false)?,
            Event::End(_) => written.end()?,
            Event::Text(text) => {
                let is_blank = text.iter().all(u8::is_ascii_whitespace);
                if !is_blank && written.left_out == 0 {
                    return None;
                }
            }
            Event::Comment(_) | Event::Decl(_) => {}
            Event::CData(_) | Event::GeneralRef(_) if written.left_out > 0 => {}
            // A document type may declare entities; the others are of no use in a logo.
            Event::DocType(_) | Event::PI(_) | Event::CData(_) | Event::GeneralRef(_) => {
                return None;
            }
            Event::Eof => break,
        }
    }
    let is_whole = written.open.is_empty() && written.elements > 0;
    is_whole.then(|| written.text.into_bytes())
}

/// The document that is written.
#[derive(Default)]
struct Written {
    text: String,
    /// Elements that are not closed yet.
    open: Vec<&'static str>,
    elements: usize,
    /// Depth within an element that is left out; 0 outside of one.
    left_out: usize,
}

impl Written {
    /// Writes the start of an element; `None` if it is not one of a logo.
    fn begin(&mut self, element: &BytesStart<'_>, has_content: bool) -> Option<()> {
        let name = element.name();
        let name = std::str::from_utf8(name.as_ref()).ok()?;
        if self.left_out > 0 || LEFT_OUT.contains(&name) || name.contains(':') {
            if self.open.is_empty() || self.left_out >= DEPTH_MAX {
                return None;
            }
            self.left_out += usize::from(has_content);
            return Some(());
        }
        let name = ELEMENTS.into_iter().find(|known| *known == name)?;
        let is_root = self.elements == 0;
        self.elements += 1;
        let is_outside = self.open.is_empty() && !is_root;
        if is_root != (name == "svg")
            || is_outside
            || self.open.len() >= DEPTH_MAX
            || self.elements > ELEMENTS_MAX
        {
            return None;
        }
        let attributes = attributes(name, element)?;
        self.text.extend(["<", name]);
        if is_root {
            if !attributes.contains_key("viewBox") && !attributes.contains_key("width") {
                return None;
            }
            self.text.extend([" xmlns=\"", NAMESPACE, "\""]);
        }
        for (name, value) in &attributes {
            self.text.extend([" ", name, "=\"", value, "\""]);
        }
        if has_content {
            self.text.push('>');
            self.open.push(name);
        } else {
            self.text.push_str("/>");
        }
        Some(())
    }

    /// Writes the end of an element.
    fn end(&mut self) -> Option<()> {
        if self.left_out > 0 {
            self.left_out -= 1;
            return Some(());
        }
        let name = self.open.pop()?;
        self.text.extend(["</", name, ">"]);
        Some(())
    }
}

/// The attributes that are kept, those of a style among them, which wins as it does in browsers. `None`
/// for too many, and for a value that refers to anything outside.
fn attributes(element: &str, start: &BytesStart<'_>) -> Option<BTreeMap<&'static str, String>> {
    let (mut kept, mut styled) = (BTreeMap::new(), Vec::new());
    for (before, attribute) in start.attributes().enumerate() {
        let attribute = attribute.ok().filter(|_| before < ATTRIBUTES_MAX)?;
        let name = std::str::from_utf8(attribute.key.as_ref()).ok()?;
        let value = std::str::from_utf8(&attribute.value).ok()?.trim();
        match name {
            "xmlns" if value != NAMESPACE => return None,
            "style" => {
                for declaration in value.split(';').filter(|text| !text.trim().is_empty()) {
                    let (property, value) = declaration.split_once(':')?;
                    styled.push((property.trim().to_owned(), value.trim().to_owned()));
                }
            }
            // Gradients take stops from one another.
            "href" | "xlink:href" if element.ends_with("Gradient") => {
                let id = value.strip_prefix('#').filter(|id| is_id(id))?;
                kept.insert("href", format!("#{id}"));
            }
            "href" | "xlink:href" => return None,
            name => keep(&mut kept, name, value)?,
        }
    }
    for (property, value) in styled {
        keep(&mut kept, &property, &value)?;
    }
    Some(kept)
}

/// Keeps an attribute if it is one of those that are written; `None` for a value that is not good.
fn keep(kept: &mut BTreeMap<&'static str, String>, name: &str, value: &str) -> Option<()> {
    let Some(name) = ATTRIBUTES.into_iter().find(|known| *known == name) else {
        return Some(());
    };
    let is_good = match (name, value.strip_prefix("url(#").and_then(|v| v.strip_suffix(')'))) {
        ("id", _) => is_id(value),
        ("fill" | "stroke" | "clip-path", Some(id)) => is_id(id),
        _ => is_plain(value),
    };
    if !is_good {
        return None;
    }
    kept.insert(name, value.to_owned());
    Some(())
}

fn is_id(text: &str) -> bool {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (1..=ID_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_name)
}

/// True for numbers, colours, lists and transformations: nothing that could end an attribute, escape
/// or refer.
fn is_plain(value: &str) -> bool {
    let is_plain = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || byte.is_ascii_whitespace()
            || matches!(byte, b'.' | b',' | b'#' | b'%' | b'(' | b')' | b'+' | b'-')
    };
    value.bytes().all(is_plain) && !value.to_ascii_lowercase().contains("url")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sanitised(svg: &str) -> Option<String> {
        sanitise(svg.as_bytes()).map(|svg| String::from_utf8(svg).unwrap())
    }

    /// A whole document with this inside.
    fn with(inside: &str) -> String {
        format!("<svg xmlns=\"{NAMESPACE}\" viewBox=\"0 0 8 8\">{inside}</svg>")
    }

    #[test]
    fn shapes_and_gradients_are_written_anew() {
        let svg = with(
            "\n<title>Acme &amp; Co</title><!-- by hand --><defs><linearGradient id='a' \
             xlink:href=\"#b\"><stop offset='0' style='stop-color: #fff; -x-y: 1'/></linearGradient></defs>\
             <g class=\"x\" data-x=\"1\"><path d=\"M0,0 L8,8z\" fill=\"url(#a)\"/></g>\
             <sodipodi:view x=\"1\"><b/></sodipodi:view>",
        );
        let expected = with(
            "<defs><linearGradient href=\"#b\" id=\"a\"><stop offset=\"0\" stop-color=\"#fff\"/>\
             </linearGradient></defs><g><path d=\"M0,0 L8,8z\" fill=\"url(#a)\"/></g>",
        );
        assert_eq!(sanitised(&svg).as_deref(), Some(&*expected));
        // What was written is read the same again.
        assert_eq!(sanitised(&expected).as_deref(), Some(&*expected));
        let declared = format!("\u{feff}<?xml version=\"1.0\"?>\n{}", with(""));
        assert_eq!(sanitised(&declared), Some(with("")));
    }

    #[test]
    fn an_element_with_too_many_attributes_is_refused() {
        let of_attributes = |count: usize| {
            let attributes: String = (0..count).map(|number| format!(" a{number}=\"\"")).collect();
            sanitised(&with(&format!("<g{attributes}/>")))
        };
        assert_eq!(of_attributes(ATTRIBUTES_MAX), Some(with("<g/>")));
        assert_eq!(of_attributes(ATTRIBUTES_MAX + 1), None);
    }

    #[test]
    fn what_runs_fetches_or_speaks_is_refused() {
        for inside in [
            "<script>alert(1)</script>",
            "<style>path{}</style>",
            "<foreignObject/>",
            "<image href=\"https://a.example/b.png\"/>",
            "<use href=\"#a\"/>",
            "<a href=\"https://a.example\"/>",
            "<animate/>",
            "<text>Acme</text>",
            "<svg/>",
            "Acme",
            "&amp;",
            "<![CDATA[a]]>",
            "<?php a?>",
            "<path fill=\"url(https://a.example)\"/>",
            "<path fill=\"URL(//a.example#b)\"/>",
            "<path style=\"fill:url(//a.example)\"/>",
            "<path d=\"url(#a)\"/>",
            "<path d=\"&#60;\"/>",
            "<path style=\"fill\"/>",
            "<path id=\"a b\"/>",
            "<path d='\"'/>",
            "<path d=\"a\" d=\"b\"/>",
            "<linearGradient href=\"other.svg#a\"/>",
            "<path xmlns=\"http://www.w3.org/1999/xhtml\"/>",
            "<path>",
            "</svg><svg>",
        ] {
            assert_eq!(sanitised(&with(inside)), None, "{inside}");
        }
        // Handlers are left out.
        let handled = with("<path d=\"M0\" onload=\"alert(1)\" onclick='a()'/>");
        assert_eq!(sanitised(&handled), Some(with("<path d=\"M0\"/>")));
        let entity = "<!DOCTYPE svg [<!ENTITY a \"b\">]>";
        for svg in ["", "<g/>", "<svg/>", "PNG", &format!("{entity}{}", with(""))] {
            assert_eq!(sanitised(svg), None, "{svg}");
        }
    }

    #[test]
    fn size_depth_and_elements_are_bounded() {
        let nested =
            |depth: usize| with(&format!("{}{}", "<g>".repeat(depth), "</g>".repeat(depth)));
        assert!(sanitised(&nested(DEPTH_MAX - 1)).is_some());
        assert!(sanitised(&nested(DEPTH_MAX)).is_none());
        assert!(sanitised(&with(&"<g/>".repeat(ELEMENTS_MAX - 1))).is_some());
        assert!(sanitised(&with(&"<g/>".repeat(ELEMENTS_MAX))).is_none());
        assert!(sanitised(&with(&" ".repeat(LOGO_BYTES_MAX))).is_none());
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "[ -~]{0,80}", at in 0_usize..60) {
            let mut svg = with("<path d=\"M0\" style=\"fill:red\"/>");
            svg.insert_str(at, &text);
            if let Some(written) = sanitised(&svg) {
                prop_assert!(!written.contains("script") && !written.contains("//a"));
                prop_assert_eq!(sanitised(&written), Some(written));
            }
        }
    }
}
