// First the payment method that has succeeded most often in the user's country, the cheaper one among
// equals. The others stay in the order of the host.
//
// - `assumed`: the success rate of a method with too few payments to tell, in parts per million
// - `hide-below`: methods known to succeed less often are not shown, in parts per million

import { about, logged, optional, setting } from "../rampart-policy.js";

const DEFAULT_ASSUMED = 900_000;
const PPM_PER_PERCENT = 10_000;

export const meta = about("method-order", {
  name: "rampart/success-order",
  version: "1.0.0",
  summary: "First the payment method that succeeds most often; those that seldom do are hidden.",
  settings: [
    optional("assumed", "integer", "success rate where it is not known, in ppm"),
    optional("hide-below", "integer", "success rate below which a method is hidden, in ppm"),
  ],
});

export const methodOrder = {
  rank: logged((context, config, { methods }) => {
    const assumed = setting(config, "assumed", DEFAULT_ASSUMED);
    const hideBelow = setting(config, "hide-below", 0);
    const hidden = [];
    let best;
    for (const { id, successRate, cost } of methods) {
      if (successRate !== null && successRate < hideBelow) {
        hidden.push(id);
        continue;
      }
      // Whole percents: less says nothing.
      const percent = Math.floor((successRate ?? assumed) / PPM_PER_PERCENT);
      const method = { id, percent, cost: cost ?? Infinity };
      if (best === undefined || isBetter(method, best)) {
        best = method;
      }
    }
    const shown = best === undefined ? [] : [{ id: best.id, badge: "recommended" }];
    return { shown, hidden, rule: "by-success" };
  }),
};

function isBetter(method, other) {
  return method.percent > other.percent || (method.percent === other.percent && method.cost < other.cost);
}
