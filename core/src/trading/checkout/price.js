// Renews the price of the page once it has ended, or another amount is typed: what is typed stays. A
// consent is to the price that was seen: with another one it is asked for again.
// Without script, the page says until when a price holds, and has a button for a new one.
(() => {
  "use strict";
  // Pauses in milliseconds: after the last key, and before the next price at least.
  const TYPED = 500;
  const LEAST = 5000;
  // Prices without a word from the reader.
  const MOST = 60;
  const form = document.querySelector("form[data-renew]");
  const ended = document.querySelector("[data-ended]");
  const changed = document.querySelector("[data-changed]");
  if (!form || !ended || !changed) return;
  let timer;
  let turn = 0;
  let unasked = 0;

  const amounts = () =>
    [...document.querySelectorAll("[data-quote] [data-amount]")].map((one) => one.textContent).join();

  // Those of the price that is seen: none where there is no price.
  let seen = amounts();

  const compare = () => {
    const shown = amounts();
    changed.hidden = !seen || !shown || seen === shown;
    const consent = document.querySelector("input[name=consent]");
    if (consent && seen !== shown) consent.checked = false;
    seen = shown;
  };

  const renew = async () => {
    const mine = ++turn;
    const typed = form.elements.amount;
    if (typed && typed.type !== "hidden" && !typed.value.trim()) {
      document.querySelector("[data-quote]").replaceChildren();
      compare();
      return;
    }
    const body = new URLSearchParams(new FormData(form));
    body.set("action", form.dataset.renew);
    for (const name of ["consent", "quote", "quoted"]) body.delete(name);
    try {
      const answer = await fetch(location.href, { method: "POST", body, redirect: "error" });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (mine !== turn) return;
      const price = page.querySelector("[data-quote]");
      if (!answer.ok || !price) throw new Error("there is no price");
      document.querySelector("[data-quote]").replaceWith(document.adoptNode(price));
      ended.hidden = true;
      compare();
      enhance(price);
      watch();
    } catch {
      if (mine === turn) ended.hidden = false;
    }
  };

  const due = () => {
    if (document.hidden) {
      // Nobody looks: the next look has a new price.
      ended.hidden = false;
      document.addEventListener("visibilitychange", due, { once: true });
    } else if (++unasked <= MOST) {
      renew();
    } else {
      ended.hidden = false;
    }
  };

  const watch = () => {
    clearTimeout(timer);
    const until = document.querySelector("[data-quote] [data-until]");
    if (!until) return;
    timer = setTimeout(due, Math.max(LEAST, new Date(until.dataset.until) - Date.now()));
  };

  form.addEventListener("input", (event) => {
    if (event.target.name !== "amount") return;
    unasked = 0;
    clearTimeout(timer);
    timer = setTimeout(renew, TYPED);
  });
  watch();
})();
