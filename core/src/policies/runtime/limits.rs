//! The limits of the policy engine.

use rampart_plugins::PolicyLimits;

use crate::platform::settings;

/// The engine's limits with those of the settings.
pub(super) fn policy_limits(settings: &settings::Policy) -> PolicyLimits {
    let defaults = PolicyLimits::default();
    PolicyLimits {
        component_bytes_max: settings.component_bytes,
        admission_ms_max: settings.compile_timeout_ms,
        compile_memory_bytes_max: settings.compile_memory_bytes,
        fuel_max: settings.fuel,
        admission_fuel_max: settings.admission_fuel,
        deadline_ms: settings.deadline_ms,
        // A version that may take so long to serve must be examined, too.
        admission_deadline_ms: defaults.admission_deadline_ms.max(settings.deadline_ms),
        memory_bytes_max: settings.call_memory_bytes,
        memories_max: settings.memories_max,
        tables_max: settings.tables_max,
        core_instances_max: settings.core_instances_max,
        stack_bytes_max: settings.stack_bytes,
        output_bytes_max: settings.output_bytes,
        request_bytes_max: settings.request_bytes,
        signature_request_bytes_max: settings.signature_request_bytes,
        log_lines_max: settings.log_lines_max,
        log_bytes_max: settings.log_bytes,
        live_calls_max: settings.live_max,
        // Admissions wait for a slot. A background call without one fails: dry runs and the worker of
        // shadow runs have theirs, however few live calls there may be.
        admissions_max: defaults.admissions_max.min(settings.live_max),
        ..defaults
    }
}

#[cfg(test)]
mod tests {
    use super::super::compiled::DRY_RUNS_MAX;
    use super::*;

    #[test]
    fn limits_are_those_of_the_settings() {
        let defaults = PolicyLimits::default();
        assert_eq!(policy_limits(&settings::Policy::default()), defaults);
        let settings = settings::Policy {
            stack_bytes: 1,
            memories_max: 2,
            tables_max: 3,
            core_instances_max: 4,
            signature_request_bytes: 5,
            log_bytes: 6,
            ..settings::Policy::default()
        };
        let limits = PolicyLimits {
            stack_bytes_max: 1,
            memories_max: 2,
            tables_max: 3,
            core_instances_max: 4,
            signature_request_bytes_max: 5,
            log_bytes_max: 6,
            ..defaults
        };
        assert_eq!(policy_limits(&settings), limits);
    }

    #[test]
    fn dry_runs_and_shadow_runs_have_slots_however_few_live_calls_may_be() {
        for live_max in [1, 2, 10_000] {
            let settings = settings::Policy { live_max, ..settings::Policy::default() };
            let limits = policy_limits(&settings);
            assert_eq!(limits.live_calls_max, live_max);
            assert!(limits.background_calls_max as usize > DRY_RUNS_MAX, "{live_max}");
        }
    }

    #[test]
    fn an_examination_has_no_less_time_than_a_live_call() {
        for (deadline_ms, admission_deadline_ms) in [(3, 500), (500, 500), (60_000, 60_000)] {
            let settings = settings::Policy { deadline_ms, ..settings::Policy::default() };
            let limits = policy_limits(&settings);
            assert_eq!(limits.deadline_ms, deadline_ms);
            assert_eq!(limits.admission_deadline_ms, admission_deadline_ms);
        }
    }
}
