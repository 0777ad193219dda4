//! Compilation in a child process: its memory, its processor time and its wall clock are bounded, so
//! that a component made to exhaust the compiler costs its author an error and the edge nothing.
//!
//! The child is this binary, started anew; it bounds itself before it reads the component, and has no
//! environment of the edge.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rampart_native_code::NativeCode;
use rustix::process::{Resource, Rlimit, Signal, setpriority_process, setrlimit};
use wasmtime::Engine;

use crate::host::limits::PolicyLimits;
use crate::host::rejection::Rejection;
use crate::host::runtime::compiler_config;

/// Largest native code accepted from the child, in bytes.
const CODE_BYTES_MAX: u64 = 256 << 20;
/// Longest message of the child, in bytes.
const MESSAGE_BYTES_MAX: u64 = 4 << 10;
/// Compiling recurses with the nesting of the code, which the uploader chooses.
const THREAD_STACK_BYTES: usize = 16 << 20;
/// Niceness of the child: requests come first. On a machine whose processors have more to do than they can,
/// it still gets a fifth of one, and examines a component in its time; at the lowest priority of all it
/// would get a hundredth.
pub(crate) const NICENESS: i32 = 5;

/// Messages of the child about the component itself begin so.
const UNFIT: &str = "not a component this host can run";
const BROKE: &str = "the component broke the compiler";

/// The program that compiles: started with [`arguments`](Self::arguments), it must call
/// [`compile_as_child`].
#[derive(Clone, Debug)]
pub struct CompilerProgram {
    /// The binary.
    pub program: PathBuf,
    /// Its arguments before the bounds.
    pub arguments: Vec<String>,
}

impl CompilerProgram {
    /// Compiles a component in a child, and kills it past its time. That is wall clock; what a component
    /// may cost is bounded in processor time.
    ///
    /// # Errors
    /// The compiler's reason, or the bound that it met. It is transient unless it is of the component.
    pub(crate) fn compile(
        &self,
        limits: &PolicyLimits,
        wasm: &[u8],
        time: Duration,
    ) -> Result<NativeCode, Rejection> {
        let failed =
            |error: std::io::Error| Rejection::transient(format!("no compiler runs: {error}"));
        let seconds = limits.compile_seconds();
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .args([limits.compile_memory_bytes_max.to_string(), seconds.to_string()])
            .arg(limits.component_bytes_max.to_string())
            .env_clear()
            // Counted when it is used, not when it is reserved.
            .env("MIMALLOC_ARENA_EAGER_COMMIT", "0")
            // A binary that `deploy/profile` built writes its counts at its end; the child may not write.
            .env("LLVM_PROFILE_FILE", "/dev/null")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let finished = exchange(&mut child, wasm, time);
        if finished.is_none() {
            drop(child.kill());
        }
        let status = child.wait().map_err(failed)?;
        let Some((code, message)) = finished else {
            let wait_ms = time.as_millis();
            return Err(Rejection::transient(format!("not compiled within {wait_ms} ms")));
        };
        match status.success() {
            true => Ok(NativeCode::from_own_compiler(code)),
            false => Err(rejection(status, &message, limits, is_memory_promised())),
        }
    }
}

/// Passes the component to the child and reads its output and its message; `None` past the time.
fn exchange(child: &mut Child, wasm: &[u8], time: Duration) -> Option<(Vec<u8>, String)> {
    let (stdin, stdout, stderr) = (child.stdin.take()?, child.stdout.take()?, child.stderr.take()?);
    let wasm = wasm.to_vec();
    let (sender, results) = mpsc::sync_channel(1);
    let work = move || {
        let mut stdin = stdin;
        // A child that ends early does not read it; its status says why.
        drop(stdin.write_all(&wasm));
        drop(stdin);
        let (mut code, mut message) = (Vec::new(), String::new());
        drop(stdout.take(CODE_BYTES_MAX).read_to_end(&mut code));
        drop(stderr.take(MESSAGE_BYTES_MAX).read_to_string(&mut message));
        drop(sender.send((code, message)));
    };
    // Ends with the child, whose ends of the pipes it waits for.
    thread::Builder::new().name("policy-compiler".into()).spawn(work).ok()?;
    results.recv_timeout(time).ok()
}

/// True where the system gives no memory that it cannot promise: an allocator may then give up far below
/// the bound of its process.
fn is_memory_promised() -> bool {
    let overcommit = fs::read_to_string("/proc/sys/vm/overcommit_memory");
    overcommit.is_ok_and(|mode| mode.trim() == "2")
}

fn rejection(
    status: ExitStatus,
    message: &str,
    limits: &PolicyLimits,
    is_memory_promised: bool,
) -> Rejection {
    let message = message.trim_start_matches("rampart: ").trim_end();
    if status.code().is_some() && !message.is_empty() {
        return match message.starts_with(UNFIT) || message.starts_with(BROKE) {
            true => Rejection::new(message),
            false => Rejection::transient(message),
        };
    }
    let reason = format!(
        "compiling it takes more than {} bytes of memory, or too much time",
        limits.compile_memory_bytes_max
    );
    let ended = [Signal::KILL, Signal::TERM].map(Signal::as_raw);
    let is_short = |signal| is_memory_promised && signal == Signal::ABORT.as_raw();
    match status.signal() {
        // Its processor time was over, the allocator gave up, or the stack ended.
        Some(signal) if !ended.contains(&signal) && !is_short(signal) => Rejection::new(reason),
        // The system was short of memory, or the machine goes down.
        _ => Rejection::transient("its compiler was ended, as where the system is short of memory"),
    }
}

/// Bounds this process, compiles the component of the standard input, of which it reads no more
/// than `component_bytes_max`, and writes its native code to the standard output. For the child
/// alone.
///
/// # Errors
/// The reason, in one line: it becomes the reason of the refusal.
pub fn compile_as_child(
    memory_bytes_max: u64,
    seconds_max: u64,
    component_bytes_max: u64,
) -> Result<(), String> {
    let bound = |resource, most, maximum| {
        let limit = Rlimit { current: Some(most), maximum: Some(maximum) };
        setrlimit(resource, limit).map_err(|error| format!("a bound of the compiler: {error}"))
    };
    bound(Resource::Core, 0, 0)?;
    bound(Resource::Fsize, 0, 0)?;
    // At the lower bound the signal says why the process ends, unlike that of the upper one.
    bound(Resource::Cpu, seconds_max, seconds_max.saturating_add(1))?;
    bound(Resource::Data, memory_bytes_max, memory_bytes_max)?;
    // Without it the child is only less polite.
    let _ = setpriority_process(None, NICENESS);
    let mut wasm = Vec::new();
    let input = std::io::stdin().take(component_bytes_max);
    { input }.read_to_end(&mut wasm).map_err(|error| format!("no component: {error}"))?;
    let compile = move || {
        let engine = Engine::new(&compiler_config()).map_err(|error| format!("{error:#}"))?;
        NativeCode::compile(&engine, &wasm).map_err(|e| format!("{UNFIT}: {e:#}"))
    };
    let compiler = thread::Builder::new().stack_size(THREAD_STACK_BYTES).spawn(compile);
    let compiler = compiler.map_err(|error| format!("no thread to compile on: {error}"))?;
    let code = compiler.join().map_err(|_| BROKE.to_owned())??;
    let mut output = std::io::stdout().lock();
    let written = output.write_all(code.as_bytes()).and_then(|()| output.flush());
    written.map_err(|error| format!("the code cannot be handed over: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allocator_that_gives_up_where_memory_is_promised_is_not_the_components_fault() {
        for (signal, is_memory_promised, is_transient) in [
            (Signal::ABORT, true, true),
            (Signal::ABORT, false, false),
            (Signal::XCPU, true, false),
            (Signal::KILL, false, true),
        ] {
            let status = ExitStatus::from_raw(signal.as_raw());
            let message = "memory allocation of 64 bytes failed";
            let refused = rejection(status, message, &PolicyLimits::default(), is_memory_promised);
            assert_eq!(refused.is_transient(), is_transient, "{signal:?} {is_memory_promised}");
        }
    }
}
