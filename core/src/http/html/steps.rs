//! The steps of a process. The sign of a state says it in words to who does not see it.

use maud::{Markup, html};

use crate::http::language::{Language, Texts};

/// State of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Behind the reader.
    Done,
    /// It goes on here.
    Current,
    /// Not begun.
    Ahead,
    /// It ended here.
    Failed,
}

/// The steps of a process, the current one marked: from left to right, or one below the other where
/// the screen is too narrow for the longest words of all languages.
pub fn stepper(texts: Texts, steps: &[(&str, Step)]) -> Markup {
    html! { ol.stepper { (list_items(texts, steps)) } }
}

/// Steps to be done before something else can be, one below the other, for people at work: those
/// pages are in English.
pub fn checklist(steps: &[(&str, Step)]) -> Markup {
    html! { ol.checklist { (list_items(Language::English.texts(), steps)) } }
}

fn list_items(texts: Texts, steps: &[(&str, Step)]) -> Markup {
    let class = |step| match step {
        Step::Done => "done",
        Step::Current => "current",
        Step::Ahead => "ahead",
        Step::Failed => "failed",
    };
    html! {
        @for (index, (label, step)) in steps.iter().enumerate() {
            li.(class(*step)) aria-current=[(*step == Step::Current).then_some("step")] {
                @match step {
                    Step::Done => {
                        span.mark role="img" aria-label=(texts.get("step-done")) { "✓" }
                    }
                    Step::Failed => {
                        span.mark role="img" aria-label=(texts.get("step-failed")) { "✕" }
                    }
                    Step::Current | Step::Ahead => {
                        span.mark aria-hidden="true" { (index + 1) }
                    }
                }
                span { (label) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_says_its_state_in_the_readers_words() {
        let steps = [("Betaling", Step::Done), ("Controle", Step::Failed), ("Klaar", Step::Ahead)];
        let shown = stepper(Language::Dutch.texts(), &steps).into_string();
        for part in ["aria-label=\"gedaan\"", "aria-label=\"mislukt\"", "aria-hidden=\"true\">3<"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        let shown = checklist(&[("Mail", Step::Done)]).into_string();
        assert!(shown.contains("aria-label=\"done\""), "{shown}");
    }
}
