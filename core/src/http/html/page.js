// What screen readers say of something that has just happened.
const said = document.createElement("p");
said.setAttribute("role", "status");
said.className = "skip";
document.body.append(said);
// The second click of a double click sends no form again: its answer would take the place of the first one's.
let lastSubmit = {};
document.addEventListener("submit", (event) => {
  const isSecond = event.target === lastSubmit.form && event.timeStamp - lastSubmit.at < 1000;
  if (isSecond) event.preventDefault();
  else lastSubmit = { form: event.target, at: event.timeStamp };
});
// Times are written as in the region of the path, or else in that of the reader's browser, as long as the
// page's language is spoken there.
const isSpoken = (tag) => tag?.split("-")[0] === document.documentElement.lang;
const regionOfPath = location.pathname.match(/^\/([a-z]{2}-[a-z]{2})\//)?.[1];
const timeLocale = [regionOfPath, ...navigator.languages].find(isSpoken) ?? document.documentElement.lang;
const enhance = (root) => {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (isNaN(at)) continue;
    time.title = at.toISOString().replace("T", " ").replace(/(\.\d+)?Z$/, " UTC");
    time.textContent = at.toLocaleString(timeLocale, { dateStyle: "medium", timeStyle: "short" });
  }
  for (const button of root.querySelectorAll("button[data-copy]")) {
    if (!navigator.clipboard) continue;
    const { copyLabel, copiedLabel } = document.body.dataset;
    button.setAttribute("aria-label", copyLabel);
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = button.dataset.done;
      button.setAttribute("aria-label", copiedLabel);
      said.textContent = copiedLabel;
    });
  }
  for (const input of root.querySelectorAll("input[data-preview]")) {
    const image = input.parentElement.querySelector("img");
    input.addEventListener("change", () => {
      const file = input.files[0];
      URL.revokeObjectURL(image.src);
      image.hidden = !file || !file.type.startsWith("image/");
      if (!image.hidden) image.src = URL.createObjectURL(file);
    });
  }
  for (const select of root.querySelectorAll("[data-regions] select")) {
    if (!Intl.DisplayNames) continue;
    const language = document.documentElement.lang;
    const names = new Intl.DisplayNames(language, { type: "region" });
    const chosen = select.value;
    const options = [...select.options].filter((option) => option.value);
    for (const option of options) option.textContent = names.of(option.value);
    options.sort((one, other) => one.text.localeCompare(other.text, language));
    select.append(...options);
    select.value = chosen;
  }
  for (const left of root.querySelectorAll("[data-until]")) {
    const end = new Date(left.dataset.until);
    const show = () => {
      const seconds = Math.max(0, Math.round((end - Date.now()) / 1000));
      const minutes = Math.floor(seconds / 60);
      const digits = (number) => String(number).padStart(2, "0");
      const start = minutes < 60 ? minutes : `${Math.floor(minutes / 60)}:${digits(minutes % 60)}`;
      left.textContent = `(${start}:${digits(seconds % 60)})`;
      if (seconds === 0 || !left.isConnected) clearInterval(timer);
    };
    const timer = setInterval(show, 1000);
    left.hidden = false;
    show();
  }
};
enhance(document);
