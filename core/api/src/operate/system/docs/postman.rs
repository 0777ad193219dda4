//! The operations as a Postman collection, version 2.1: a folder for each tag.

use serde_json::{Value, json};

use super::reference::{Operation, operations};
use super::samples::{self, Credential};

/// The collection.
pub(super) fn collection(document: &Value) -> Value {
    let operations = operations(document);
    let folders: Vec<_> = document["tags"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|tag| {
            let items = operations.iter().filter(|one| one.is["tags"][0] == tag["name"]);
            json!({
                "name": tag["name"],
                "description": tag["description"],
                "item": items.map(item).collect::<Vec<_>>(),
            })
        })
        .collect();
    let schema = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json";
    json!({
        "info": {
            "name": document["info"]["title"],
            "description": document["info"]["description"],
            "schema": schema,
        },
        "variable": [
            { "key": "base", "value": "https://pay.example.com" },
            { "key": "apiKey", "value": "" },
            { "key": "userIdentifier", "value": "" },
            { "key": "userToken", "value": "" },
        ],
        "item": folders,
    })
}

fn item(operation: &Operation<'_>) -> Value {
    let is = operation.is;
    let path = operation.path.replace('{', ":").replace('}', "");
    let parameters: Vec<_> = is["parameters"].as_array().into_iter().flatten().collect();
    let named = |place: &str| {
        let here = parameters.iter().filter(move |one| one["in"] == place);
        here.map(|one| {
            json!({
                "key": one["name"],
                "value": "",
                "description": one["description"],
                "disabled": one["required"] != true,
            })
        })
        .collect::<Vec<_>>()
    };
    let mut headers = credentials(is);
    let body = &is["requestBody"]["content"]["application/json"]["example"];
    let mut request = json!({
        "method": operation.method.to_uppercase(),
        "description": is["description"],
        "url": {
            "raw": format!("{{{{base}}}}{path}"),
            "host": ["{{base}}"],
            "path": path.trim_start_matches('/').split('/').collect::<Vec<_>>(),
            "query": named("query"),
            "variable": named("path"),
        },
    });
    if !body.is_null() {
        headers.push(json!({ "key": "Content-Type", "value": "application/json" }));
        request["body"] = json!({
            "mode": "raw",
            "raw": serde_json::to_string_pretty(body).unwrap_or_default(),
            "options": { "raw": { "language": "json" } },
        });
    }
    request["header"] = Value::Array(headers);
    json!({ "name": is["summary"], "request": request, "response": [] })
}

fn credentials(operation: &Value) -> Vec<Value> {
    let value = |credential: Credential| {
        let variable = match credential.header {
            "X-Api-Key" => "{{apiKey}}",
            "User-Identifier" => "{{userIdentifier}}",
            _ => "{{userToken}}",
        };
        json!({ "key": credential.header, "value": format!("{}{variable}", credential.scheme) })
    };
    samples::credentials(operation).into_iter().map(value).collect()
}
