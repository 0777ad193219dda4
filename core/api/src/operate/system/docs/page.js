// The search of the index. Without this script the whole index is shown.
const search = document.getElementById("search");
if (search) {
  search.parentElement.hidden = false;
  search.addEventListener("input", () => {
    const words = search.value.toLowerCase().split(/\s+/);
    let found = 0;
    for (const row of document.querySelectorAll("#index li")) {
      const text = row.textContent.toLowerCase();
      const fits = words.every((word) => text.includes(word));
      row.hidden = !fits;
      if (fits) found++;
    }
    document.getElementById("found").textContent = found + " found";
  });
}

// JSON with line breaks. Numbers stay as they came: parsing would round long ones.
function indented(json) {
  let depth = 0;
  const line = () => "\n" + "  ".repeat(Math.max(depth, 0));
  return json.replace(/"(?:[^"\\]|\\.)*"|\{\}|\[\]|[{}[\],:]/g, (token) => {
    switch (token) {
      case "{":
      case "[":
        depth++;
        return token + line();
      case "}":
      case "]":
        depth--;
        return line() + token;
      case ",":
        return token + line();
      case ":":
        return ": ";
      default:
        return token;
    }
  });
}

// A token may be pasted with its scheme or without.
function withScheme(value, scheme) {
  return value.toLowerCase().startsWith(scheme.toLowerCase()) ? value : scheme + value;
}

// The request that a form of an operation describes.
function request(form) {
  let target = form.dataset.path;
  const query = new URLSearchParams();
  const headers = new Headers();
  for (const { name, value, dataset } of form.querySelectorAll("[data-in]")) {
    if (!value) continue;
    if (dataset.in === "path") target = target.replace(`{${name}}`, encodeURIComponent(value));
    if (dataset.in === "query") query.append(name, value);
    if (dataset.in === "header") headers.set(name, withScheme(value, dataset.scheme ?? ""));
  }
  const body = form.elements.body?.value;
  if (body) headers.set("Content-Type", "application/json");
  const url = query.size ? `${target}?${query}` : target;
  return new Request(url, { method: form.dataset.method, headers, body, credentials: "omit", cache: "no-store" });
}

const trial = document.getElementById("try");
if (trial) {
  const [form, status, answer] = ["form", "[role=status]", "pre"].map((part) => trial.querySelector(part));
  trial.hidden = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    answer.hidden = true;
    const key = form.elements["X-Api-Key"]?.value;
    if (key && !key.startsWith("rk_test_")) {
      status.textContent = "This is not a key for tests. Nothing was sent.";
      return;
    }
    status.textContent = "The request is sent.";
    try {
      const response = await fetch(request(form));
      const text = await response.text();
      const isJson = (response.headers.get("Content-Type") ?? "").startsWith("application/json");
      answer.textContent = isJson ? indented(text) : text;
      answer.hidden = !text;
      status.textContent = `Status ${response.status}`;
    } catch (error) {
      status.textContent = `No answer: ${error.message}`;
    }
  });
}
