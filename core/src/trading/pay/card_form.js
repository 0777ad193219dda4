// Has the provider's form charge the card. What it says to the payer stands in the page.
(() => {
  "use strict";
  const form = document.getElementById("card-form");
  const button = form.querySelector("button");
  const notice = document.getElementById("card-notice");
  const texts = form.dataset;

  const say = (text) => {
    notice.textContent = text;
    notice.hidden = text === "";
  };

  if (typeof Stripe !== "function") {
    say(texts.unavailable);
    return;
  }
  const provider = Stripe(texts.publicKey);
  const card = provider.elements().create("card");
  card.mount("#card-element");
  button.disabled = false;

  const charge = async () => {
    try {
      return await provider.confirmCardPayment(texts.clientToken, { payment_method: { card } });
    } catch {
      // Such as a form that nothing was typed into: no attempt was made.
      return {};
    }
  };

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    say("");
    const { paymentIntent, error } = await charge();
    // An attempt after one that succeeded is an error that carries the payment.
    const payment = paymentIntent || (error && error.payment_intent) || {};
    if (payment.status === "succeeded" || payment.status === "processing") {
      location.replace(`${location.pathname}?payment=made`);
      return;
    }
    const reason = error && typeof error.message === "string" ? `${error.message} ` : "";
    say(reason + texts.refused);
    button.disabled = false;
  });
})();
