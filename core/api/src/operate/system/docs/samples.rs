//! Requests of an operation in the languages that partners write.

use serde_json::Value;

/// A header that proves the client or the user.
#[derive(Clone, Copy)]
pub(super) struct Credential {
    /// The header's name.
    pub(super) header: &'static str,
    /// Text of the header before the reader's own value.
    pub(super) scheme: &'static str,
    /// Environment variable that holds the reader's own value.
    variable: &'static str,
}

/// A request as every language needs it.
struct Call<'a> {
    method: String,
    /// Path, with `{name}` for what only the reader knows.
    path: &'a str,
    /// Names of the parameters of the query, whose values only the reader knows, too.
    query: Vec<&'a str>,
    headers: Vec<Credential>,
    body: Option<&'a Value>,
    /// True if the answer has a document: there is none to read in a 204.
    has_answer: bool,
}

/// The operation's request by language: name, and code.
pub(super) fn all(method: &str, path: &str, operation: &Value) -> Vec<(&'static str, String)> {
    let body = &operation["requestBody"]["content"]["application/json"]["example"];
    let call = Call {
        method: method.to_uppercase(),
        path,
        query: query(operation),
        headers: credentials(operation),
        body: Some(body).filter(|body| !body.is_null()),
        has_answer: operation["responses"]["204"].is_null(),
    };
    vec![
        ("curl", curl(&call)),
        ("Python", python(&call)),
        ("TypeScript", typescript(&call)),
        ("Go", go(&call)),
        ("Rust", rust(&call)),
        ("PHP", php(&call)),
    ]
}

/// Names of the required parameters of the query, which reads alone have.
fn query(operation: &Value) -> Vec<&str> {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let required = parameters.filter(|p| p["in"] == "query" && p["required"] == true);
    required.filter_map(|parameter| parameter["name"].as_str()).collect()
}

/// The headers that prove who calls.
pub(super) fn credentials(operation: &Value) -> Vec<Credential> {
    let ways = operation["security"].as_array().into_iter().flatten();
    let last = ways.filter_map(Value::as_object).rfind(|way| way.contains_key("ApiKey"));
    let names = last.into_iter().flat_map(|way| way.keys());
    names
        .filter_map(|name| {
            let (header, scheme, variable) = match name.as_str() {
                "ApiKey" => ("X-Api-Key", "", "API_KEY"),
                "UserToken" => ("User-Authorization", "Bearer ", "USER_TOKEN"),
                "UserIdentifier" => ("User-Identifier", "", "USER_IDENTIFIER"),
                _ => return None,
            };
            Some(Credential { header, scheme, variable })
        })
        .collect()
}

/// A value in lines.
pub(super) fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// The names in braces of a path.
fn placeholders(path: &str) -> Vec<&str> {
    path.split('{').skip(1).filter_map(|rest| rest.split('}').next()).collect()
}

/// The call's path with something else for each name in braces.
fn filled_path(call: &Call<'_>, value: impl Fn(&str) -> String) -> String {
    let names = placeholders(call.path).into_iter();
    names
        .fold(call.path.to_owned(), |path, name| path.replace(&format!("{{{name}}}"), &value(name)))
}

/// The query as code: each parameter in the language's form, joined; nothing without one.
fn query_code(call: &Call<'_>, parameter: impl Fn(&str) -> String) -> Option<String> {
    let parameters: Vec<_> = call.query.iter().map(|name| parameter(name)).collect();
    (!parameters.is_empty()).then(|| parameters.join(", "))
}

fn snake(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

/// The scheme as a string that another is added to; nothing without one.
fn quoted_scheme(scheme: &str, plus: &str) -> String {
    if scheme.is_empty() { String::new() } else { format!("\"{scheme}\"{plus}") }
}

fn curl(call: &Call<'_>) -> String {
    let variable = |name: &str| format!("${}", snake(name).to_uppercase());
    let method = match (call.method.as_str(), call.body) {
        ("GET", _) if !call.query.is_empty() => "-G ".to_owned(),
        ("GET", _) | ("POST", Some(_)) => String::new(),
        (method, _) => format!("-X {method} "),
    };
    let mut lines = vec![format!("curl {method}\"$BASE{}\"", filled_path(call, variable))];
    lines.extend(
        call.query.iter().map(|name| format!("--data-urlencode \"{name}={}\"", variable(name))),
    );
    lines.extend(call.headers.iter().map(|Credential { header, scheme, variable }| {
        format!("-H \"{header}: {scheme}${variable}\"")
    }));
    if let Some(body) = call.body {
        lines.push("-H \"Content-Type: application/json\"".to_owned());
        lines.push(format!("-d '{}'", body.to_string().replace('\'', r"'\''")));
    }
    lines.join(" \\\n  ")
}

fn python(call: &Call<'_>) -> String {
    let path = filled_path(call, |name| format!("{{{}}}", snake(name)));
    let headers: Vec<_> = call
        .headers
        .iter()
        .map(|Credential { header, scheme, variable }| {
            let scheme = quoted_scheme(scheme, " + ");
            format!("\"{header}\": {scheme}os.environ[\"{variable}\"]")
        })
        .collect();
    let mut code = String::from("import os, json\nimport requests\n\n");
    code += &format!("answer = requests.request(\n    \"{}\",\n", call.method);
    code += &format!("    f\"{{os.environ['BASE']}}{path}\",\n");
    if let Some(query) = query_code(call, |name| format!("\"{name}\": {}", snake(name))) {
        code += &format!("    params={{{query}}},\n");
    }
    code += &format!("    headers={{{}}},\n", headers.join(", "));
    if let Some(body) = call.body {
        let body = pretty(body).replace("\\", "\\\\").replace("\"\"\"", "\\\"\\\"\\\"");
        code += &format!("    json=json.loads(\"\"\"{body}\"\"\"),\n");
    }
    code + "    timeout=30,\n)\nanswer.raise_for_status()\nprint(answer.text)"
}

fn typescript(call: &Call<'_>) -> String {
    let mut path = call.path.replace('{', "${");
    let mut before = String::new();
    if let Some(query) = query_code(call, str::to_owned) {
        before = format!("const query = new URLSearchParams({{ {query} }});\n");
        path += "?${query}";
    }
    let mut headers: Vec<_> = call
        .headers
        .iter()
        .map(|Credential { header, scheme, variable }| {
            let scheme = quoted_scheme(scheme, " + ");
            format!("    \"{header}\": {scheme}process.env.{variable}!,\n")
        })
        .collect();
    let mut body = String::new();
    if let Some(value) = call.body {
        headers.push("    \"Content-Type\": \"application/json\",\n".to_owned());
        body = format!("  body: JSON.stringify({}),\n", pretty(value).replace('\n', "\n  "));
    }
    let shown = if call.has_answer { "await answer.json()" } else { "answer.status" };
    format!(
        "{before}const answer = await fetch(`${{process.env.BASE}}{path}`, {{\n  method: \"{}\",\n  \
         headers: {{\n{}  }},\n{body}}});\nif (!answer.ok) throw new Error(await answer.text());\n\
         console.log({shown});",
        call.method,
        headers.concat(),
    )
}

fn go(call: &Call<'_>) -> String {
    let mut path = filled_path(call, |name| format!("\" + {name} + \""));
    let (mut code, mut encoded) = (String::new(), "");
    if let Some(query) = query_code(call, |name| format!("\"{name}\": {{{name}}}")) {
        code = format!("query := url.Values{{{query}}}\n");
        path += "?";
        encoded = " + query.Encode()";
    }
    let target = format!("\"{path}\"{encoded}").replace(" + \"\"", "");
    let body = call.body.map_or("nil".to_owned(), |body| {
        format!("strings.NewReader(`{}`)", pretty(body).replace('`', "\\u0060"))
    });
    code += &format!(
        "request, err := http.NewRequest(\"{}\", os.Getenv(\"BASE\") + {target}, {body})\n\
         if err != nil {{\n\treturn err\n}}\n",
        call.method
    );
    for Credential { header, scheme, variable } in &call.headers {
        let scheme = quoted_scheme(scheme, "+");
        code += &format!("request.Header.Set(\"{header}\", {scheme}os.Getenv(\"{variable}\"))\n");
    }
    if call.body.is_some() {
        code += "request.Header.Set(\"Content-Type\", \"application/json\")\n";
    }
    code + "answer, err := http.DefaultClient.Do(request)\nif err != nil {\n\treturn err\n}\n\
            defer answer.Body.Close()\n_, err = io.Copy(os.Stdout, answer.Body)\nreturn err"
}

fn rust(call: &Call<'_>) -> String {
    let path = filled_path(call, |name| format!("{{{}}}", snake(name)));
    let mut code = format!(
        "let base = std::env::var(\"BASE\")?;\nlet answer = reqwest::Client::new()\n    \
         .request(reqwest::Method::{}, format!(\"{{base}}{path}\"))\n",
        call.method
    );
    if let Some(query) = query_code(call, |name| format!("(\"{name}\", {})", snake(name))) {
        code += &format!("    .query(&[{query}])\n");
    }
    for Credential { header, scheme, variable } in &call.headers {
        let scheme = quoted_scheme(scheme, ".to_owned() + &");
        code += &format!("    .header(\"{header}\", {scheme}std::env::var(\"{variable}\")?)\n");
    }
    if let Some(body) = call.body {
        let body = pretty(body).replace('\n', "\n    ");
        code += &format!("    .json(&serde_json::json!({body}))\n");
    }
    code + "    .send()\n    .await?\n    .error_for_status()?;\nprintln!(\"{}\", answer.text().await?);"
}

fn php(call: &Call<'_>) -> String {
    let mut path = call.path.replace('{', "{$");
    let mut query = String::new();
    if let Some(parameters) = query_code(call, |name| format!("'{name}' => ${name}")) {
        path += "?";
        query = format!(" . http_build_query([{parameters}])");
    }
    let mut headers: Vec<_> = call
        .headers
        .iter()
        .map(|Credential { header, scheme, variable }| {
            format!("        '{header}: {scheme}' . getenv('{variable}'),\n")
        })
        .collect();
    let mut body = String::new();
    if let Some(value) = call.body {
        headers.push("        'Content-Type: application/json',\n".to_owned());
        body = format!("    CURLOPT_POSTFIELDS => <<<'JSON'\n{}\nJSON,\n", pretty(value));
    }
    let shown = match call.has_answer {
        true => "print_r(json_decode($answer, true));",
        false => "echo curl_getinfo($request, CURLINFO_RESPONSE_CODE);",
    };
    format!(
        "$request = curl_init(getenv('BASE') . \"{path}\"{query});\ncurl_setopt_array($request, [\n    \
         CURLOPT_CUSTOMREQUEST => '{}',\n    CURLOPT_RETURNTRANSFER => true,\n    \
         CURLOPT_HTTPHEADER => [\n{}    ],\n{body}]);\n$answer = curl_exec($request);\n\
         if (curl_getinfo($request, CURLINFO_RESPONSE_CODE) >= 400) {{ throw new Exception($answer); }}\n\
         {shown}",
        call.method,
        headers.concat(),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::PARTNERS_API;
    use crate::operate::system::docs::reference::operations;

    #[test]
    fn every_language_says_method_path_credentials_and_body() {
        let operation = json!({
            "security": [{ "ApiKey": [], "UserIdentifier": [] }],
            "requestBody": { "content": { "application/json": { "example": { "name": "Ada" } } } },
        });
        let samples = all("patch", "/plans/{code}", &operation);
        assert_eq!(samples.len(), 6);
        for (language, code) in samples {
            for part in ["PATCH", "/plans/", "X-Api-Key", "User-Identifier", "Ada"] {
                assert!(code.contains(part), "{language} lacks {part}: {code}");
            }
        }
    }

    /// The operation's curl command.
    fn command(method: &str, path: &str, operation: &Value) -> String {
        all(method, path, operation).swap_remove(0).1
    }

    #[test]
    fn a_read_names_what_the_reader_has() {
        let operation = json!({
            "security": [{ "ApiKey": [], "UserToken": [] }],
            "parameters": [
                { "in": "query", "name": "emailAddress", "required": true },
                { "in": "query", "name": "limit", "required": false },
            ],
        });
        assert_eq!(
            command("get", "/orders/{id}", &operation),
            "curl -G \"$BASE/orders/$ID\" \\\n  \
             --data-urlencode \"emailAddress=$EMAIL_ADDRESS\" \\\n  \
             -H \"X-Api-Key: $API_KEY\" \\\n  -H \"User-Authorization: Bearer $USER_TOKEN\""
        );
    }

    #[test]
    fn values_of_a_query_are_percent_encoded() {
        let parameter = json!({ "in": "query", "name": "emailAddress", "required": true });
        let samples = all("get", "/exists", &json!({ "parameters": [parameter] }));
        let encoded = [
            "--data-urlencode \"emailAddress=$EMAIL_ADDRESS\"",
            "params={\"emailAddress\": email_address}",
            "new URLSearchParams({ emailAddress });",
            "os.Getenv(\"BASE\") + \"/exists?\" + query.Encode(), nil)",
            ".query(&[(\"emailAddress\", email_address)])",
            "\"/exists?\" . http_build_query(['emailAddress' => $emailAddress])",
        ];
        for ((language, code), part) in samples.iter().zip(encoded) {
            assert!(code.contains(part), "{language}: {code}");
        }
    }

    #[test]
    fn only_reads_have_a_query() {
        for operation in operations(PARTNERS_API.document()) {
            let is_read = operation.method == "get";
            assert!(is_read || query(operation.is).is_empty(), "{}", operation.path);
        }
    }

    #[test]
    fn a_token_is_sent_with_its_scheme() {
        let operation = json!({ "security": [{ "UserToken": [], "ApiKey": [] }] });
        for (language, code) in all("post", "/logout", &operation) {
            let (before, _) = code.split_once("USER_TOKEN").unwrap();
            let header = before.rsplit_once("User-Authorization").unwrap().1;
            assert!(header.contains("Bearer "), "{language}: {code}");
        }
    }

    #[test]
    fn a_body_survives_the_shell() {
        let body = json!({ "application/json": { "example": { "name": "O'Hara" } } });
        let operation = json!({ "requestBody": { "content": body } });
        let command = command("patch", "/user", &operation);
        assert!(command.starts_with("curl -X PATCH \"$BASE/user\""));
        assert!(command.ends_with(r#"-d '{"name":"O'\''Hara"}'"#));
    }

    #[test]
    fn an_answer_without_a_document_is_not_parsed() {
        let code = |responses: Value| {
            let samples = all("post", "/events", &json!({ "responses": responses }));
            samples.into_iter().map(|(_, code)| code).collect::<String>()
        };
        let (answered, empty) = (code(json!({ "200": {} })), code(json!({ "204": {} })));
        for parser in ["answer.json()", "json_decode($answer"] {
            assert!(answered.contains(parser) && !empty.contains(parser), "{parser}: {empty}");
        }
    }

    #[test]
    fn placeholders_become_variables() {
        let operation = json!({ "security": [] });
        let samples = all("get", "/plans/{planCode}/days", &operation);
        let code = |language| &samples.iter().find(|(name, _)| *name == language).unwrap().1;
        assert!(code("Python").contains("/plans/{plan_code}/days"));
        assert!(code("TypeScript").contains("/plans/${planCode}/days"));
        assert!(code("Go").contains("\"/plans/\" + planCode + \"/days\""));
        assert!(code("Rust").contains("/plans/{plan_code}/days"));
        assert!(code("PHP").contains("/plans/{$planCode}/days"));
    }
}
