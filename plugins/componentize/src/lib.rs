//! Converts a core module, in any language, into a component.
//!
//! A custom section of the module names the world of `wit/` it implements; Rust bindings write that
//! section. For a module without one, as from C, the world is the one whose function it exports.

use std::path::Path;
use std::sync::LazyLock;

use wasmparser::{Parser, Payload};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::{PackageId, Resolve, SourceMap};

/// The files of the contract, for authors of policies: name and text.
pub const WIT: [(&str, &str); 4] = [
    ("types.wit", include_str!("../../../wit/types.wit")),
    ("fee.wit", include_str!("../../../wit/fee.wit")),
    ("method-order.wit", include_str!("../../../wit/method-order.wit")),
    ("signature.wit", include_str!("../../../wit/signature.wit")),
];

/// The export that identifies each world, and the world's name.
const WORLDS: [(&str, &str); 3] = [
    ("rampart:policy/fee@0.1.0#price", "fee-policy"),
    ("rampart:policy/method-order@0.1.0#rank", "method-order-policy"),
    ("rampart:policy/signature@0.1.0#verify", "signature-policy"),
];

/// The contract and its package, read once.
static CONTRACT: LazyLock<Result<(Resolve, PackageId), String>> = LazyLock::new(|| {
    let mut sources = SourceMap::new();
    for (file, text) in WIT {
        sources.push(Path::new(file), text);
    }
    let group = sources.parse().map_err(|(_, error)| error.to_string())?;
    let mut resolve = Resolve::default();
    let package = resolve.push_group(group).map_err(|error| error.to_string())?;
    Ok((resolve, package))
});

/// The parts of a module that decide its world.
#[derive(Default)]
struct Module {
    has_world: bool,
    exports: Vec<String>,
}

/// The component of a core module.
///
/// # Errors
/// The problem with the module, in one line.
pub fn component(module: &[u8]) -> Result<Vec<u8>, String> {
    let Module { has_world, exports } = read(module)?;
    let mut module = module.to_vec();
    if !has_world {
        let world = WORLDS.iter().find(|(export, _)| exports.iter().any(|e| e == export));
        let (_, world) = world.ok_or("the module exports none of the contract's functions")?;
        embed(&mut module, world)?;
    }
    ComponentEncoder::default()
        .validate(true)
        .module(&module)
        .and_then(|mut encoder| encoder.encode())
        .map_err(|error| one_line(&format!("{error:#}")))
}

fn read(bytes: &[u8]) -> Result<Module, String> {
    let mut module = Module::default();
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(|error| one_line(&format!("not a WebAssembly module: {error}")))? {
            Payload::ComponentSection { .. } => return Err("this is a component already".into()),
            Payload::CustomSection(section) => {
                module.has_world |= section.name().starts_with("component-type");
            }
            Payload::ExportSection(exports) => {
                let names = exports.into_iter().flatten().map(|export| export.name.to_owned());
                module.exports.extend(names);
            }
            _ => {}
        }
    }
    Ok(module)
}

/// Some of the parser's messages quote bytes over several lines.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Writes the section that names the module's world.
fn embed(module: &mut Vec<u8>, world: &str) -> Result<(), String> {
    let (resolve, package) = CONTRACT.as_ref().map_err(Clone::clone)?;
    let fault = |error| one_line(&format!("{error:#}"));
    let world = resolve.select_world(&[*package], Some(world)).map_err(fault)?;
    embed_component_metadata(module, resolve, world, StringEncoding::UTF8).map_err(fault)
}
