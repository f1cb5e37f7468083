// Tells of what is newly asked, while a page that lists it is open and where the visitor allowed it.
"use strict";
(() => {
  const bar = document.querySelector(".top");
  if (!bar || !("Notification" in window)) return;
  const chinese = document.documentElement.lang.startsWith("zh");
  const words = chinese ? { allow: "允许通知", asked: "有事请你决定" } : { allow: "Allow notifications", asked: "Something is asked of you" };

  // Key by key; a page lists what is asked by data-asked, the first page by the articles of its section.
  function asked() {
    const found = new Map();
    for (const one of document.querySelectorAll("main [data-asked], main section[aria-labelledby=asked] [data-key]")) {
      const text = one.querySelector("strong") || one;
      found.set(one.dataset.asked || one.dataset.key, text.textContent.trim().slice(0, 200));
    }
    return found;
  }
  let known = asked();
  document.addEventListener("becket:shown", () => {
    const now = asked();
    if (Notification.permission === "granted") {
      for (const [key, text] of now) {
        if (known.has(key)) continue;
        const told = new Notification(words.asked, { body: text, tag: `becket-${key}`, icon: "/static/icon.svg" });
        told.onclick = () => { window.focus(); told.close(); };
      }
    }
    known = now;
  });

  if (Notification.permission === "default") {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet";
    button.textContent = words.allow;
    button.addEventListener("click", async () => { await Notification.requestPermission(); button.remove(); });
    bar.append(button);
  }
})();
