//! Limits of policies.

/// Limits of policies. The defaults are those of the operator's manual.
///
/// Fuel is the limit that decides: the same call burns the same fuel on every machine. The deadline
/// is a backstop for work that fuel does not count (host calls). That of a live call is wall clock, and
/// wide on purpose: 3 ms are less than one time slice that a busy scheduler gives to another thread. A
/// call that is put aside once would fail then, whatever fuel it has left, and the built-in rule would
/// set its fee. All fuel of a live call burns in about a millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyLimits {
    /// Largest component accepted, in bytes.
    pub component_bytes_max: usize,
    /// Processor time of a compilation, in milliseconds; an examination may take longer
    /// ([`PolicyLimits::examination_ms_max`]).
    pub admission_ms_max: u64,
    /// Memory of one compilation in a child process, in bytes.
    pub compile_memory_bytes_max: u64,
    /// Concurrent admissions; one more is refused.
    pub admissions_max: u32,
    /// Fuel of one live call (one unit is about one instruction).
    pub fuel_max: u64,
    /// Fuel of one call at admission, where the real cost is still unknown.
    pub admission_fuel_max: u64,
    /// Deadline of one live call, in milliseconds of wall clock.
    pub deadline_ms: u64,
    /// Deadline of one call that no request waits for, in milliseconds of processor time.
    pub admission_deadline_ms: u64,
    /// Largest linear memory of one call, in bytes.
    pub memory_bytes_max: usize,
    /// Linear memories in one component.
    pub memories_max: u32,
    /// Tables in one component.
    pub tables_max: u32,
    /// Elements in one table.
    pub table_elements_max: usize,
    /// Core instances in one component.
    pub core_instances_max: u32,
    /// WebAssembly stack, in bytes.
    pub stack_bytes_max: usize,
    /// Bytes a policy may pass to the host at a time: its output, or the arguments of one host call.
    pub output_bytes_max: usize,
    /// Text of one fee or method-order request with its configuration, in bytes.
    pub request_bytes_max: usize,
    /// Text of one signature request with its configuration, in bytes.
    pub signature_request_bytes_max: usize,
    /// Signature checks and digests in one call.
    pub crypto_calls_max: u32,
    /// Log lines kept of one call.
    pub log_lines_max: usize,
    /// Log text kept of one call, in bytes.
    pub log_bytes_max: usize,
    /// Concurrent live calls; one more fails with `FailureKind::Capacity`.
    pub live_calls_max: u32,
    /// Concurrent calls that no request waits for; one more fails with `FailureKind::Capacity`.
    pub background_calls_max: u32,
    /// Memory kept warm between calls for each slot, in bytes; more than a policy uses is waste.
    pub resident_bytes: usize,
}

const LIVE_CALLS_PER_THREAD: u32 = 4;
/// Wall clock of an examination, in times of the processor time of a compilation. A component that has
/// the processor is refused by its bounds of processor time before.
const EXAMINATION_TIMES: u64 = 2;

impl PolicyLimits {
    /// The defaults, with slots for `threads` serving threads.
    pub const fn for_threads(threads: u32) -> Self {
        Self {
            component_bytes_max: 2 << 20,
            admission_ms_max: 10_000,
            compile_memory_bytes_max: 1 << 30,
            admissions_max: 2,
            fuel_max: 5_000_000,
            admission_fuel_max: 50_000_000,
            deadline_ms: 20,
            admission_deadline_ms: 500,
            memory_bytes_max: 16 << 20,
            memories_max: 4,
            tables_max: 4,
            table_elements_max: 20_000,
            core_instances_max: 16,
            stack_bytes_max: 256 << 10,
            output_bytes_max: 64 << 10,
            request_bytes_max: 64 << 10,
            signature_request_bytes_max: 256 << 10,
            crypto_calls_max: 16,
            log_lines_max: 16,
            log_bytes_max: 4 << 10,
            live_calls_max: threads.saturating_mul(LIVE_CALLS_PER_THREAD),
            background_calls_max: 4,
            resident_bytes: 256 << 10,
        }
    }

    /// Longest examination of an upload, compilation and probes together, in milliseconds of wall clock.
    pub const fn examination_ms_max(&self) -> u64 {
        self.compile_seconds().saturating_mul(1_000 * EXAMINATION_TIMES)
    }

    /// Processor time of a compilation in a process of its own, whose bound has whole seconds.
    pub(crate) const fn compile_seconds(&self) -> u64 {
        self.admission_ms_max.div_ceil(1_000)
    }
}

impl Default for PolicyLimits {
    /// Slots for one serving thread per processor.
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self::for_threads(u32::try_from(threads).unwrap_or(u32::MAX))
    }
}
