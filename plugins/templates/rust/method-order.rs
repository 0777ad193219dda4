//! One payment method first, the others in the order of the edge.

use rampart_guest::method_order::*;

struct PreferredFirst;

rampart_guest::method_order_policy!(PreferredFirst);

impl MethodOrderPolicy for PreferredFirst {
    const ABOUT: About = About {
        name: "example/@name@",
        version: "1.0.0",
        summary: "One payment method first, the others in the order of the edge.",
        settings: &[
            Setting::optional(
                "first",
                SettingType::Text,
                "the method to show first; bankTransfer if not set",
            ),
            Setting::optional("hide", SettingType::Texts, "methods not to show"),
        ],
        keys: &[],
    };

    fn rank(_: CallContext, config: Config, request: OrderRequest) -> Result<Ranking, PolicyError> {
        let first = config.text("first").unwrap_or("bankTransfer");
        let (mut shown, mut hidden) = (Vec::new(), Vec::new());
        for Method { id, .. } in request.methods {
            if config.texts("hide").contains(&id) {
                hidden.push(id);
            } else if id == first {
                shown.push(Placement { id, badge: Some("recommended".into()) });
            }
        }
        let rule = if shown.is_empty() { "as-given" } else { "preferred-first" };
        Ok(Ranking { shown, hidden, rule: rule.into() })
    }
}
