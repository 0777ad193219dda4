// Follows the order of the page: shows the page's new content when the order's state is another one.
// Without script, the page is loaded again instead.
(() => {
  "use strict";
  // Pauses in milliseconds: before the next stream, and before another try where there is none.
  const NEXT = 1000;
  const RETRY = 5000;

  const show = async () => {
    const answer = await fetch(location.href, { cache: "no-store", redirect: "manual" });
    // An edge that is away or busy has no page: what is shown stays until the next try.
    if (answer.status === 429 || answer.status >= 500) throw new Error("there is no page");
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    const content = next.querySelector("main");
    if (!answer.ok || !content || next.querySelector("script[src]")) {
      // Such as the way back to the shop, or a provider's form, which has scripts of its own.
      location.replace(location.href);
      return;
    }
    const shown = document.querySelector("main");
    const focused = shown.contains(document.activeElement) || document.activeElement === document.body;
    shown.replaceWith(document.adoptNode(content));
    document.title = next.title;
    enhance(content);
    if (focused) {
      // Where the reader was is gone; screen readers tell what stands there now.
      const heading = content.querySelector("h1");
      heading.tabIndex = -1;
      heading.focus({ preventScroll: true });
    }
  };

  const follow = () => {
    const followed = document.querySelector("[data-state]");
    if (!followed) return;
    const events = new EventSource(`${location.pathname}/events`);
    const again = (pause) => {
      events.close();
      setTimeout(follow, pause);
    };
    events.addEventListener("state", async (event) => {
      if (event.data === followed.dataset.state) return;
      events.close();
      try {
        await show();
        again(NEXT);
      } catch {
        again(RETRY);
      }
    });
    events.addEventListener("error", () => {
      if (events.readyState === EventSource.CLOSED) again(RETRY);
    });
  };

  follow();
})();
