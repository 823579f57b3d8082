// Optional: shows progress, submits only once, and polls the payment's status.
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
      // Later, because a disabled button's value is not submitted.
      setTimeout(() => form.querySelectorAll("button").forEach((button) => (button.disabled = true)));
    });
    // Restored from the back/forward cache: reload the current state.
    addEventListener("pageshow", (event) => {
      if (event.persisted) location.reload();
    });
  }
  const waiting = document.querySelector("[data-poll]");
  if (waiting) {
    let delay = 2000;
    const poll = async () => {
      try {
        const response = await fetch(waiting.dataset.poll, { cache: "no-store" });
        if (response.ok && (await response.json()).status !== "processing") {
          location.reload();
          return;
        }
      } catch {
        // Offline; poll again.
      }
      delay = Math.min(delay * 1.4, 15000);
      setTimeout(poll, delay);
    };
    setTimeout(poll, delay);
  }
})();
