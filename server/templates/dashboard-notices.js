// The console's strip of notices: what the merchant must look at.
"use strict";
window.consoleNotices = ({ t, h, ask, may, when, code }) => {
  const EVERY_MS = 60_000;
  const strip = document.getElementById("notices");
  const link = (address, text) => h("a", { href: address, translate: "no" }, text);
  const ofPayment = ({ paymentId }) => link("#/payments/" + encodeURIComponent(paymentId), paymentId);
  const TEXTS = {
    endpoint_failing: (it) => t("Your endpoint {endpoint} has taken nothing since {time}.", { endpoint: link("#/webhooks", it.subject), time: when(it.since) }),
    endpoint_disabled: (it) => t("Your endpoint {endpoint} was disabled on {time}: fix it, then activate it again.", { endpoint: link("#/webhooks", it.subject), time: when(it.since) }),
    refund_due: (it) => t("The platform must send a refund of {payment} by {time}.", { payment: ofPayment(it), time: when(it.dueAt) }),
    dispute_due: (it) => t("The dispute of {payment} needs evidence by {time}.", { payment: ofPayment(it), time: when(it.dueAt) }),
    payout_waiting: (it) => t("Your payout {payout} waits for the platform since {time}.", { payout: link("#/payouts", it.subject), time: when(it.since) }),
  };
  let asked = -EVERY_MS;

  /** Shows the notices, read at most once a minute. */
  const show = async () => {
    if (!may("account:read") || performance.now() - asked < EVERY_MS) return;
    asked = performance.now();
    const { value } = await ask("GET", "/account/notices");
    strip.replaceChildren(...value.map((it) => h("p", { class: "notice" }, TEXTS[it.kind]?.(it) ?? code(`${it.kind} ${it.subject}`))));
  };
  const clear = () => {
    asked = -EVERY_MS;
    strip.replaceChildren();
  };
  return { show, clear };
};
