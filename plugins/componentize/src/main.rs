//! Converts core modules into components: `componentize OUT_DIR MODULE.wasm...`.
//!
//! `a_guest.wasm` becomes `OUT_DIR/a-guest.wasm`; one that is newer than its module is kept.

use std::error::Error;
use std::path::Path;
use std::{env, fs, io};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args_os().skip(1);
    let out = arguments.next().ok_or("usage: componentize OUT_DIR MODULE.wasm...")?;
    fs::create_dir_all(&out)?;
    for module in arguments {
        write_component(Path::new(&module), Path::new(&out))
            .map_err(|error| format!("{}: {error}", module.to_string_lossy()))?;
    }
    Ok(())
}

fn write_component(module: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    let name = module.file_name().ok_or("not a file")?.to_string_lossy().replace('_', "-");
    let target = out.join(&name);
    if is_newer(&target, module)? {
        return Ok(());
    }
    let component = componentize::component(&fs::read(module)?)?;
    // Renamed into place, so that a reader never sees a partial file.
    let partial = out.join(format!(".{name}.partial"));
    fs::write(&partial, &component)?;
    fs::rename(&partial, &target)?;
    println!("{} {} bytes", target.display(), component.len());
    Ok(())
}

fn is_newer(target: &Path, source: &Path) -> io::Result<bool> {
    match fs::metadata(target) {
        Ok(target) => Ok(target.modified()? > fs::metadata(source)?.modified()?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
