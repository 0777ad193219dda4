const fromText = (text) =>
  Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
const toText = (bytes) =>
  btoa(String.fromCharCode(...new Uint8Array(bytes ?? [])))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
const credentials = (ids) => ids.map((id) => ({ type: "public-key", id: fromText(id) }));
const ceremonies = {
  create: async ({ challenge, rp, user, algorithms, known }) => {
    const { response } = await navigator.credentials.create({
      publicKey: {
        challenge: fromText(challenge),
        rp,
        user: { ...user, id: fromText(user.id) },
        pubKeyCredParams: algorithms.map((alg) => ({ type: "public-key", alg })),
        excludeCredentials: credentials(known),
        authenticatorSelection: { residentKey: "required", userVerification: "required" },
        attestation: "none",
      },
    });
    return {
      clientData: toText(response.clientDataJSON),
      authenticatorData: toText(response.getAuthenticatorData()),
      publicKey: toText(response.getPublicKey()),
    };
  },
  get: async ({ challenge, rp, known }) => {
    const { rawId, response } = await navigator.credentials.get({
      publicKey: {
        challenge: fromText(challenge),
        rpId: rp.id,
        allowCredentials: credentials(known),
        userVerification: "required",
      },
    });
    return {
      credential: toText(rawId),
      clientData: toText(response.clientDataJSON),
      authenticatorData: toText(response.authenticatorData),
      signature: toText(response.signature),
      userHandle: toText(response.userHandle),
    };
  },
};
// Browsers make passkeys for a name, never for an address.
if (window.PublicKeyCredential && !/^[\d.]+$|^\[/.test(location.hostname)) {
  for (const place of document.querySelectorAll("[data-passkey]")) place.hidden = false;
  for (const note of document.querySelectorAll("[data-no-passkey]")) note.hidden = true;
  for (const form of document.querySelectorAll("form[data-ceremony]")) {
    const [button, failed] = [form.querySelector("button"), form.querySelector("[role=alert]")];
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      button.disabled = true;
      failed.textContent = "";
      try {
        const answer = await ceremonies[form.dataset.ceremony](JSON.parse(form.dataset.options));
        for (const [name, value] of Object.entries(answer)) form.elements[name].value = value;
        form.submit();
      } catch {
        failed.textContent = failed.dataset.text;
        button.disabled = false;
      }
    });
  }
}
