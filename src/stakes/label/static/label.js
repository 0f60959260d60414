// One page, three things: keys, answers that are sent without leaving the page, and what to do when the server is gone.
"use strict";

const by = (id) => document.getElementById(id);
const RETRY = 1500; // milliseconds
const QUIET = 3000; // between looks while nothing is awaited
let sending = null; // the answer that the server has not acknowledged yet

function say(message) {
  by("live").textContent = "";
  by("live").textContent = message;
}

function who() {
  const shown = document.querySelector("header .who");
  return shown ? shown.textContent : "";
}

// How many rows are to be settled, beside the link to them.
function settling(count) {
  const link = document.querySelector('nav a[href="/settle"]');
  if (!link) return;
  link.textContent = count ? "Settle " : "Settle";
  if (!count) return;
  const shown = document.createElement("span");
  shown.className = "count";
  shown.textContent = count;
  link.append(shown);
}

function lost(is) {
  if (by("lost")) by("lost").hidden = !is;
}

// What is typed is kept in this tab until it is saved, so that a reload or a crash loses nothing.
function kept(input) {
  const card = by("card");
  return `stakes:${card ? card.dataset.row : ""}:${input.id}`;
}

function remember(event) {
  if (event.target.dataset && event.target.dataset.keep) sessionStorage.setItem(kept(event.target), event.target.value);
}

function recall() {
  for (const input of document.querySelectorAll("[data-keep]")) {
    const value = sessionStorage.getItem(kept(input));
    if (value && !input.value) input.value = value;
  }
}

function forget() {
  for (const input of document.querySelectorAll("[data-keep]")) sessionStorage.removeItem(kept(input));
}

function focusCard() {
  const box = by("number");
  if (box) box.focus();
  else if (by("row-title")) by("row-title").focus({ preventScroll: true });
}

function freeze(is) {
  for (const button of by("work").querySelectorAll("button")) {
    if (is) button.dataset.was = button.disabled ? "1" : "";
    button.disabled = is || button.dataset.was === "1";
  }
}

// Send a change until the server has answered. It answers when the change is on its disk; the same change sent twice counts once.
async function send(address, body) {
  for (;;) {
    try {
      const response = await fetch(address, {
        method: "POST",
        headers: { "Content-Type": "application/x-www-form-urlencoded", "X-Part": "1" },
        body,
      });
      lost(false);
      if (response.status >= 500) throw new Error("the server has a problem");
      return response;
    } catch (error) {
      lost(true);
      await new Promise((go) => setTimeout(go, RETRY));
    }
  }
}

async function change(form, button) {
  if (sending) return;
  const address = (button && button.getAttribute("formaction")) || form.getAttribute("action");
  const body = new URLSearchParams(new FormData(form));
  if (button && button.name) body.set(button.name, button.value);
  sending = { address, body: body.toString(), who: who() };
  sessionStorage.setItem("stakes:sending", JSON.stringify(sending));
  if (button) button.classList.add("pressed");
  freeze(true);
  const response = await send(address, sending.body);
  // who is not let in any more, or whose form is an old one, has saved nothing: it is sent once more when they are back
  if (response.status !== 401 && response.status !== 403) sessionStorage.removeItem("stakes:sending");
  if (!(response.headers.get("Content-Type") || "").startsWith("application/json")) {
    location.reload();
    return;
  }
  const answer = await response.json();
  if (answer.good) {
    forget();
    by("work").innerHTML = answer.work;
    settling(answer.to_settle);
    focusCard();
  } else {
    freeze(false);
    if (button) button.classList.remove("pressed");
    const notice = by("notice");
    notice.hidden = false;
    notice.classList.add("wrong");
    notice.textContent = answer.notice;
    const box = by("number");
    if (box) box.select();
  }
  const title = by("row-title");
  say(answer.notice + (answer.good && title ? ` Now: ${title.textContent}` : ""));
  recall();
  sending = null; // keys that were pressed before the next card was there are not for it
  look();
}

// What was on its way when the page was left is sent again, before anything else.
async function resume() {
  const before = sessionStorage.getItem("stakes:sending");
  if (!before) return;
  const { address, body, who: sender } = JSON.parse(before);
  if (sender !== who()) {
    sessionStorage.removeItem("stakes:sending"); // somebody else sits here now
    return;
  }
  const mark = document.querySelector("input[name=mark]");
  const fresh = new URLSearchParams(body);
  if (mark) fresh.set("mark", mark.value);
  await send(address, fresh.toString());
  sessionStorage.removeItem("stakes:sending");
  location.reload();
}

let looking = null;
async function look() {
  clearTimeout(looking);
  const panel = by("panel");
  if (!panel) return;
  let wait = QUIET;
  try {
    const card = by("card");
    const response = await fetch(`/panel?row=${encodeURIComponent(card ? card.dataset.row : "")}`);
    if (response.ok) {
      lost(false);
      const answer = await response.json();
      if (panel.innerHTML !== answer.panel) panel.innerHTML = answer.panel;
      settling(answer.to_settle);
      if (document.querySelector("[data-wait]") && answer.ranked) location.reload();
      if (answer.refitting || document.querySelector("[data-wait]")) wait = 1000;
    } else if (response.status === 401) {
      location.reload();
      return;
    }
  } catch (error) {
    lost(true);
    wait = RETRY;
  }
  looking = setTimeout(look, document.hidden ? 4 * wait : wait);
}

async function guess(button) {
  const response = await fetch(`/guess?row=${encodeURIComponent(button.dataset.row)}`);
  if (!response.ok) return;
  by("guessed").textContent = (await response.json()).guess;
  button.hidden = true;
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.id !== "card" && form.id !== "undo") return;
  event.preventDefault();
  change(form, event.submitter);
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("#guess");
  if (button) guess(button);
});

document.addEventListener("input", remember);

document.addEventListener("keydown", (event) => {
  const typing = event.target.matches("input, textarea, select") && event.target.type !== "hidden";
  if ((event.ctrlKey || event.metaKey) && !event.shiftKey && event.key.toLowerCase() === "z") {
    if (typing && event.target.value) return; // the box undoes what was typed
    const undo = by("undo");
    if (undo && !undo.querySelector("button").disabled) {
      event.preventDefault();
      change(undo, null);
    }
    return;
  }
  if (event.target.id === "other" && event.key === "Enter" && !event.isComposing) {
    event.preventDefault();
    if (event.target.value.trim()) change(by("card"), by("save-other"));
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || !by("card")) return;
  if (typing && (event.target.id !== "number" || !/^[a-z]$/i.test(event.key) || event.target.value)) return;
  const key = event.key.toLowerCase();
  for (const button of by("card").querySelectorAll("button[data-key]")) {
    if (button.dataset.key === key && !button.disabled) {
      event.preventDefault();
      change(by("card"), button);
      return;
    }
  }
});

document.addEventListener("DOMContentLoaded", async () => {
  if (!by("work")) return;
  recall();
  focusCard();
  await resume();
  look();
  document.documentElement.dataset.ready = "1";
});
