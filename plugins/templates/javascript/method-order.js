// One payment method first, the others in the order of the edge.

import { about, logged, optional, setting } from "./rampart-policy.js";

export const meta = about("method-order", {
  name: "example/@name@",
  version: "1.0.0",
  summary: "One payment method first, the others in the order of the edge.",
  settings: [
    optional("first", "text", "the method to show first; bankTransfer if not set"),
    optional("hide", "texts", "methods not to show"),
  ],
});

export const methodOrder = {
  rank: logged((context, config, { methods }) => {
    const first = setting(config, "first", "bankTransfer");
    const hide = setting(config, "hide", []);
    const shown = [];
    const hidden = [];
    for (const { id } of methods) {
      if (hide.includes(id)) {
        hidden.push(id);
      } else if (id === first) {
        shown.push({ id, badge: "recommended" });
      }
    }
    return { shown, hidden, rule: shown.length > 0 ? "preferred-first" : "as-given" };
  }),
};
