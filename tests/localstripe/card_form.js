
// As the provider's script does, a card is first charged, and authenticated only where that is asked for.
(() => {
  const plain = Stripe;
  Stripe = (key) => {
    const provider = plain(key);
    const authenticate = provider.confirmCardPayment;
    provider.confirmCardPayment = async (secret, data) => {
      const intent = secret.match(/^(pi_\w+)_secret_/)[1];
      const response = await fetch(`${LOCALSTRIPE_BASE_API}/v1/payment_intents/${intent}/confirm`, {
        method: "POST",
        body: JSON.stringify({
          key,
          client_secret: secret,
          payment_method_data: { type: "card", card: data.payment_method.card.value.card },
        }),
      });
      const body = await response.json();
      if (body.error) return { error: body.error };
      return body.status === "requires_action" ? authenticate(secret) : { paymentIntent: body };
    };
    return provider;
  };
})();
