// The page works without this. With it, it shows progress, submits once, and looks by itself how a payment went.
(() => {
  const form = document.querySelector("form");
  if (form) {
    form.addEventListener("submit", (event) => {
      if (form.dataset.sent) {
        event.preventDefault();
        return;
      }
      form.dataset.sent = "yes";
      form.querySelector(".progress").hidden = false;
      // After the browser has taken the pressed button's value along.
      setTimeout(() => form.querySelectorAll("button").forEach((button) => (button.disabled = true)));
    });
    // Back from another page with everything as it was left: ask the server how it stands.
    addEventListener("pageshow", (event) => {
      if (event.persisted) location.reload();
    });
  }
  const waiting = document.querySelector("[data-poll]");
  if (waiting) {
    let pause = 2000;
    const ask = async () => {
      try {
        const answer = await fetch(waiting.dataset.poll, { cache: "no-store" });
        if (answer.ok && (await answer.json()).status !== "processing") {
          location.reload();
          return;
        }
      } catch {
        // Offline for a moment; ask again.
      }
      pause = Math.min(pause * 1.4, 15000);
      setTimeout(ask, pause);
    };
    setTimeout(ask, pause);
  }
})();
