// Keeps the page that is open as it would be if it were loaded now. Nothing here decides anything.
"use strict";
(() => {
  const main = document.getElementById("main"), banner = document.getElementById("live");
  const chinese = document.documentElement.lang.startsWith("zh");
  const words = chinese
    ? { lost: "连接已断开，正在重新连接…", s: "秒", min: "分", h: "小时", d: "天" }
    : { lost: "The connection is lost; trying again…", s: "s", min: "min", h: "h", d: "d" };

  // Changes what differs and leaves what people hold: focus, what they typed, what they opened, where they scrolled.
  function same(a, b) {
    return a.nodeType === b.nodeType && a.nodeName === b.nodeName &&
      (a.nodeType !== 1 || (a.id === b.id && (a.dataset.key || "") === (b.dataset.key || "")));
  }
  function morph(from, to) {
    if (from.isEqualNode(to)) return;
    if (from.nodeType !== 1) { if (from.nodeValue !== to.nodeValue) from.nodeValue = to.nodeValue; return; }
    const keeps = from.nodeName === "DETAILS" ? ["open"] : from.nodeName === "INPUT" || from.nodeName === "TEXTAREA" ? ["value", "checked"] : [];
    for (const { name, value } of [...to.attributes]) if (!keeps.includes(name) && from.getAttribute(name) !== value) from.setAttribute(name, value);
    for (const { name } of [...from.attributes]) if (!keeps.includes(name) && !to.hasAttribute(name)) from.removeAttribute(name);
    if (from.nodeName === "TEXTAREA" || from.hasAttribute("data-mine")) return;
    children(from, to);
  }
  function children(from, to) {
    let here = from.firstChild;
    for (const next of [...to.childNodes]) {
      let found = here;
      while (found && !same(found, next)) found = found.nextSibling;
      if (!found) { from.insertBefore(next, here); continue; }
      while (here !== found) { const gone = here; here = here.nextSibling; gone.remove(); }
      morph(found, next);
      here = found.nextSibling;
    }
    while (here) { const gone = here; here = here.nextSibling; gone.remove(); }
  }

  function show(told) {
    const fresh = document.createElement("main");
    fresh.innerHTML = told.html;
    const log = document.querySelector("[data-follow]");
    const atEnd = log && log.scrollTop + log.clientHeight >= log.scrollHeight - 4;
    children(main, fresh);
    const now = document.querySelector("[data-follow]");
    if (now && (atEnd || !log)) now.scrollTop = now.scrollHeight;
    document.title = told.title;
    tick();
    document.dispatchEvent(new CustomEvent("becket:shown"));
  }

  function trouble(text) { banner.textContent = text; banner.hidden = !text; }

  // Times count on by themselves.
  function ago(seconds) {
    if (seconds < 60) return `${Math.max(0, Math.floor(seconds))} ${words.s}`;
    if (seconds < 3600) return `${Math.floor(seconds / 60)} ${words.min}`;
    if (seconds < 86400) return `${Math.floor(seconds / 3600)} ${words.h} ${Math.floor(seconds % 3600 / 60)} ${words.min}`;
    return `${Math.floor(seconds / 86400)} ${words.d}`;
  }
  function tick() {
    for (const one of document.querySelectorAll("time[data-since]")) {
      const said = ago(Date.now() / 1000 - Number(one.dataset.since));
      if (one.textContent !== said) { one.title = one.title || one.getAttribute("datetime"); one.textContent = said; }
    }
  }
  tick();
  setInterval(tick, 1000);
  for (const log of document.querySelectorAll("[data-follow]")) log.scrollTop = log.scrollHeight;

  if (main && document.body.dataset.path) {
    const path = encodeURIComponent(document.body.dataset.path + location.search);
    let source;
    const open = () => {
      source = new EventSource(`/live?path=${path}`);
      source.addEventListener("main", (event) => { trouble(""); show(JSON.parse(event.data)); });
      source.addEventListener("trouble", (event) => trouble(JSON.parse(event.data).why));
      source.onopen = () => trouble("");
      source.onerror = () => {
        trouble(words.lost);
        // A browser gives up where the answer was an error, as while the front is being started again.
        if (source.readyState === EventSource.CLOSED) setTimeout(again, 1000 + Math.random() * 1000);
      };
    };
    // Whoever is not let in any more is led to the login.
    const again = () => fetch(location.href, { redirect: "manual" })
      .then((answer) => answer.type === "opaqueredirect" ? location.reload() : open(), open);
    open();

    // A browser has six connections for all tabs of a site: those that nobody sees let go of theirs, and catch up when
    // they are seen again. Where the visitor wants to be told of news, one of them goes on listening.
    let release;
    const rest = () => {
      if (!document.hidden) return;
      const told = window.Notification && Notification.permission === "granted" && navigator.locks;
      if (!told) source.close();
      else navigator.locks.request("becket-listens", { ifAvailable: true }, (lock) =>
        lock ? new Promise((done) => { release = done; }) : source.close());
    };
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) { setTimeout(rest, 5000); return; }
      if (release) { release(); release = undefined; }
      if (source.readyState === EventSource.CLOSED) open();
    });
  }
})();
