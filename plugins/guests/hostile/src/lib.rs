//! A fee policy that misbehaves as its `mode` setting says, for the tests of the host. Without a mode
//! it behaves. `MODE@COUNTRY` misbehaves in one country only, so that it can pass admission.

use std::hint::black_box;

use rampart_guest::fee::*;
use rampart_guest::log;

struct Hostile;

rampart_guest::fee_policy!(Hostile);

impl FeePolicy for Hostile {
    const ABOUT: About = About {
        name: "rampart/hostile",
        version: "1.0.0",
        summary: "Does what it should not.",
        settings: &[Setting::optional("mode", SettingType::Text, "what to do")],
        keys: &[],
    };

    fn validate(config: &Config) -> Result<(), Problem> {
        match config.text("mode") {
            Some("refuse") => Err(Problem::new("mode", "cannot be `refuse`")),
            _ => Ok(()),
        }
    }

    fn price(
        context: CallContext,
        config: Config,
        request: FeeRequest,
    ) -> Result<FeeSchedule, PolicyError> {
        log::write_panics();
        let mut answer = FeeSchedule {
            lines: vec![partner_fee("flat", Charge::Flat("1.00".into()))],
            spread: 0,
            rule: "behaved".into(),
        };
        let mode = config.text("mode").unwrap_or("behave");
        let mode = match mode.split_once('@') {
            Some((mode, country)) if country == request.country => mode,
            Some(_) => "behave",
            None => mode,
        };
        match mode {
            "loop" => spin(),
            "panic" => panic!("the tariff of {} is missing", request.country),
            "allocate" => allocate(),
            "recurse" => _ = recurse(1),
            "read-outside" => answer.spread = read_outside(),
            "large-answer" => answer.rule = "x".repeat(1 << 20),
            "many-lines" => answer.lines = vec![answer.lines[0].clone(); 17],
            "exponent" => answer.lines[0].charge = Charge::Flat("1e3".into()),
            "code" => answer.lines[0].code = "Not A Code".into(),
            "bounds" => {
                answer.lines[0].charge = Charge::Bounded(BoundedRate {
                    rate: 1,
                    at_least: Some("2".into()),
                    at_most: Some("1".into()),
                });
            }
            "chatter" => (0..100).for_each(|line| log::info(&format!("line {line}\n\u{1b}[2J"))),
            "error" => return Err(PolicyError::Unsupported("this\nand that".into())),
            "time" => answer.rule = format!("at-{}", context.now),
            "slow" => _ = burn(1_000_000),
            _ => {}
        }
        Ok(answer)
    }
}

fn spin() -> ! {
    loop {
        black_box(());
    }
}

fn allocate() -> ! {
    loop {
        black_box(Vec::<u8>::with_capacity(1 << 16));
    }
}

#[expect(unconditional_recursion, reason = "the host must stop it")]
fn recurse(depth: u64) -> u64 {
    let frame = black_box([depth; 16]);
    1 + recurse(frame[3] + 1)
}

fn read_outside() -> i32 {
    // SAFETY: none, and that is the point: the host must stop it.
    unsafe { *black_box(0x7fff_0000_usize as *const i32) }
}

fn burn(steps: u64) -> u64 {
    (0..steps).fold(0, |sum, step| black_box(sum ^ step))
}
