//! Choices of forms: an operator makes them, and no form beforehand.

use super::*;

#[tokio::test]
async fn nothing_is_chosen_before_an_operator_chooses() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let ada = Browser::of(&context, "ada", &["owner"]).await;
    let acme = "/console/partners/acme";
    let forms = ["gate", "invite", "rotate-secret"].map(|name| format!("{acme}/{name}"));
    for path in forms.iter().map(String::as_str).chain(["/console/payments/~/record"]) {
        let page = ada.get(path).await.assert(200, "<select");
        for choice in page.text.split("<select").skip(1) {
            let (_, options) = choice.split_once('>').unwrap();
            let none = "<option value=\"\" selected>–</option>";
            assert!(options.starts_with(none), "{path}: {choice}");
        }
    }
    let invite = [("email", "eve@acme.example"), ("role", "")];
    ada.submit(&format!("{acme}/invite"), &invite).await.assert(422, "Role is missing");
    // What a change begins with is what there is.
    let settings = ada.get(&format!("{acme}/settings")).await.assert(200, "<select");
    assert!(!settings.text.contains("<option value=\"\""), "{}", settings.text);
}
