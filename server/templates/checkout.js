// Optional: shows progress, submits only once, counts down, prints, and polls the payment's status.
(() => {
  // Not `reload`, which would send a form again, and without a fragment, which would only scroll.
  const again = () => location.replace(location.pathname + location.search);
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
    // Hides the fields for which the chosen way does not ask.
    const show = () => {
      const way = form.querySelector("[name=paymentMethod]:checked")?.value;
      for (const field of form.querySelectorAll("[data-ways]")) {
        field.hidden = Boolean(way) && !field.dataset.ways.split(" ").includes(way);
      }
    };
    form.addEventListener("change", show);
    show();
    // Restored from the back/forward cache: reload the current state.
    addEventListener("pageshow", (event) => {
      if (event.persisted) again();
    });
  }
  const isBangla = document.documentElement.lang === "bn";
  const left = document.getElementById("left");
  if (left) {
    // The server counts the seconds, so that a wrong clock here does not matter.
    const end = Date.now() + left.dataset.left * 1000;
    const tick = () => {
      const seconds = Math.ceil((end - Date.now()) / 1000);
      if (seconds <= 0) return again();
      const [h, m, s] = [seconds / 3600, (seconds / 60) % 60, seconds % 60].map(Math.floor);
      const two = (number) => String(number).padStart(2, "0");
      const text = h ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
      left.querySelector("b").textContent = isBangla ? text.replace(/\d/g, (digit) => "০১২৩৪৫৬৭৮৯"[digit]) : text;
      left.hidden = false;
      setTimeout(tick, 500);
    };
    tick();
  }
  const print = document.getElementById("print");
  if (print) {
    print.hidden = false;
    print.addEventListener("click", () => window.print());
  }
  const waiting = document.querySelector("[data-poll]");
  if (waiting) {
    let delay = 2000;
    const poll = async () => {
      try {
        const response = await fetch(waiting.dataset.poll, { cache: "no-store" });
        if (response.ok && (await response.json()).status !== "processing") {
          again();
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
