// The page of `stakes label` within a cell: forms and keys go to the kernel as `sent`, and what to show comes as `shown`.
// It lives in a shadow root, so that neither its style nor its names meet those of the notebook.

const PATIENCE = 1000; // milliseconds between looks while rows are ranked

// Whether the notebook is dark where the card stands: the first background that is not transparent. Colours may be
// written as rgb(..), oklch(..), color(..), so one is painted, and the pixel read.
function isDark(element) {
  const brush = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d");
  for (let each = element; each; each = each.parentElement || (each.getRootNode() || {}).host) {
    brush.clearRect(0, 0, 1, 1);
    brush.fillStyle = getComputedStyle(each).backgroundColor;
    brush.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = brush.getImageData(0, 0, 1, 1).data;
    if (alpha > 0) return 0.299 * red + 0.587 * green + 0.114 * blue < 128;
  }
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

function render({ model, el }) {
  const host = document.createElement("div");
  host.setAttribute("data-lm-suppress-shortcuts", "true"); // a key here is none of JupyterLab's
  const root = host.attachShadow({ mode: "open" });
  const style = document.createElement("style");
  style.textContent =
    model.get("style_sheet") +
    ".body { container-type: inline-size; border: 1px solid var(--line); border-radius: var(--radius); overflow: hidden; }" +
    "main.desk { grid-template-columns: minmax(0, 1fr) 17rem; padding: 1rem; gap: 1rem; }";
  const body = document.createElement("div");
  body.className = "body";
  body.innerHTML =
    '<div id="head"></div><p id="live" role="status" aria-live="polite" class="unseen"></p>' +
    '<main class="desk"><div id="work"></div><aside id="panel" aria-label="What labels are worth"></aside></main>';
  root.append(style, body);
  el.append(host);
  const by = (id) => root.getElementById(id);
  let sending = null; // the number of what the kernel has not answered yet
  let timer = null;
  let shown = false;

  function send(act, form) {
    if (sending !== null) return false;
    sending = Date.now() + Math.random();
    model.set("sent", { number: sending, act, form });
    model.save_changes();
    return true;
  }

  function freeze(is) {
    for (const button of by("work").querySelectorAll("button")) {
      if (is) button.dataset.was = button.disabled ? "1" : "";
      button.disabled = is || button.dataset.was === "1";
    }
  }

  function change(form, button) {
    const path = (button && button.getAttribute("formaction")) || form.getAttribute("action");
    const fields = Object.fromEntries(new FormData(form));
    if (button && button.name) fields[button.name] = button.value;
    if (!send(path.slice(1), fields)) return;
    if (button) button.classList.add("pressed");
    freeze(true);
  }

  function focusCard() {
    const box = by("number") || by("row-title");
    if (box) box.focus({ preventScroll: true });
  }

  function show() {
    const answer = model.get("shown");
    const ours = sending !== null && answer.answers === sending;
    if (ours) sending = null;
    host.toggleAttribute("data-dark", isDark(el));
    if (answer.act === "guess") {
      if (by("guessed")) by("guessed").textContent = answer.notice;
      if (by("guess")) by("guess").hidden = true;
    } else if (!answer.good) {
      freeze(false);
      for (const button of root.querySelectorAll(".pressed")) button.classList.remove("pressed");
      const notice = by("notice");
      if (notice) {
        notice.hidden = false;
        notice.classList.add("wrong");
        notice.textContent = answer.notice;
      }
      if (by("number")) by("number").select();
    } else {
      by("head").innerHTML = answer.head;
      by("panel").innerHTML = answer.panel;
      // A look leaves a row alone on which somebody may be typing.
      if (!shown || answer.act !== "look" || by("work").querySelector("[data-wait]")) {
        by("work").innerHTML = answer.work;
        if (ours && answer.act !== "look") focusCard();
      }
    }
    shown = true;
    const title = by("row-title");
    if (answer.notice) by("live").textContent = answer.notice + (answer.good && title ? ` Now: ${title.textContent}` : "");
    clearTimeout(timer);
    if (answer.waiting) timer = setTimeout(look, PATIENCE);
  }

  function look() {
    if (!send("look", {})) timer = setTimeout(look, PATIENCE);
  }

  root.addEventListener("submit", (event) => {
    event.preventDefault();
    change(event.target, event.submitter);
  });

  root.addEventListener("click", (event) => {
    const guess = event.target.closest("#guess");
    const place = event.target.closest("[data-act]");
    const link = event.target.closest("a[href]");
    if (link) event.preventDefault();
    if (guess) send("guess", { row: guess.dataset.row });
    else if (place) send(place.dataset.act, {});
    else if (link && link.getAttribute("href") === "/settle") send("to settle", {});
    else if (!event.target.closest("button, input, a, summary") && event.target.closest("#work")) focusCard();
  });

  root.addEventListener("keydown", (event) => {
    event.stopPropagation(); // a letter here is no command of the notebook
    const target = event.target;
    const typing = target.matches("input, textarea, select") && target.type !== "hidden";
    if ((event.ctrlKey || event.metaKey) && !event.shiftKey && event.key.toLowerCase() === "z") {
      if (typing && target.value) return; // the box undoes what was typed
      const undo = by("undo");
      if (undo && !undo.querySelector("button").disabled) {
        event.preventDefault();
        change(undo, null);
      }
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || !by("card")) return;
    if (typing && (target.id !== "number" || !/^[a-z]$/i.test(event.key) || target.value)) return;
    const key = event.key.toLowerCase();
    for (const button of by("card").querySelectorAll("button[data-key]")) {
      if (button.dataset.key === key && !button.disabled) {
        event.preventDefault();
        change(by("card"), button);
        return;
      }
    }
  });

  model.on("change:shown", show);
  show();
  return () => {
    clearTimeout(timer);
    model.off("change:shown", show);
  };
}

export default { render };
