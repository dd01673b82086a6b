// The script of the dashboard. The server writes every page; this script keeps it up to date, sends actions to the API and
// remembers drafts. Without it the pages can be read, but not used.
//
//   stream (one per browser) ▸ which tasks changed ▸ request the main part again ▸ change only what differs
//
// @ts-check

/** @typedef {{ok: boolean, data: any, warnings?: string[]}} Envelope */
/** @typedef {{detail: string, code: string, suggestion?: string, problems?: {field: string, problem: string}[]}} Problem */
/** @typedef {{side: "old" | "new", line: number, path: string, code: string, text: string}} Comment */

/**
 * @template {Element} [T=HTMLElement]
 * @param {string} selector
 * @param {ParentNode} [within]
 * @returns {T | null}
 */
const find = (selector, within = document) => /** @type {T | null} */ (within.querySelector(selector));

/**
 * @template {Element} [T=HTMLElement]
 * @param {string} selector
 * @param {ParentNode} [within]
 * @returns {T[]}
 */
const findAll = (selector, within = document) =>
  /** @type {T[]} */ (/** @type {unknown} */ ([...within.querySelectorAll(selector)]));

/** @param {string} id */
const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

const main = byId("main");
const dialog = /** @type {HTMLDialogElement} */ (byId("dialog"));

/**
 * An element with text, made without HTML.
 * @param {string} name
 * @param {Record<string, string>} [attributes]
 * @param {...(Node | string)} children
 */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// --- Messages to the user

let toastTimer = 0;

/** @param {string} text @param {boolean} [hasFailed] */
function toast(text, hasFailed = false) {
  const box = byId("toast");
  box.textContent = text;
  box.classList.toggle("failed", hasFailed);
  box.hidden = false;
  clearTimeout(toastTimer);
  // What has failed stays until something else happens.
  if (!hasFailed) toastTimer = window.setTimeout(() => (box.hidden = true), 6000);
}

/**
 * Asks a question; the promise is whether it was confirmed.
 * @param {string} question
 * @param {string} [detail]
 * @returns {Promise<boolean>}
 */
function confirmed(question, detail) {
  const yes = element("button", { type: "button", class: "careful" }, "Yes");
  const no = element("button", { type: "button", autofocus: "" }, "No");
  dialog.replaceChildren(
    element("h2", { id: "dialog-title" }, question),
    ...(detail ? [element("p", {}, detail)] : []),
    element("div", { class: "actions" }, no, yes),
  );
  dialog.showModal();
  return new Promise((resolve) => {
    let answer = false;
    yes.onclick = () => ((answer = true), dialog.close());
    no.onclick = () => dialog.close();
    dialog.addEventListener("close", () => resolve(answer), { once: true });
  });
}

// --- Requests

/** @type {Promise<string | null> | null} */
let csrfToken = null;

function token() {
  csrfToken ??= fetch("/api/v1/session").then(async (response) => {
    if (!response.ok) throw new Error("This browser is not signed in any more.");
    return /** @type {Envelope} */ (await response.json()).data.csrf_token;
  });
  csrfToken.catch(() => (csrfToken = null));
  return csrfToken;
}

/**
 * Sends an action. A missing consent is asked for.
 * @param {string} path
 * @param {Record<string, unknown>} input
 * @returns {Promise<Envelope | null>} null: the user did not consent
 */
async function act(path, input) {
  const response = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-CSRF-Token": (await token()) ?? "" },
    body: JSON.stringify(input),
  });
  if (response.ok) return response.json();
  const problem = await problemOf(response);
  const consent = problem.problems?.[0]?.field ?? (path.endsWith("/apply") ? "force" : "");
  if (response.status === 428 && consent && !(consent in input)) {
    if (!(await confirmed("Go on?", problem.detail))) return null;
    return act(path, { ...input, [consent]: true });
  }
  const further = problem.problems?.map(({ field, problem }) => `${field} ${problem}`) ?? [];
  throw new Error([problem.detail, ...further, problem.suggestion].filter(Boolean).join(" "));
}

/** @param {Response} response @returns {Promise<Problem>} */
async function problemOf(response) {
  const text = await response.text();
  try {
    return JSON.parse(text);
  } catch {
    return { detail: text.trim() || `The server answered with ${response.status}.`, code: "" };
  }
}

/**
 * The main part of a page.
 * @param {string} path
 * @returns {Promise<HTMLElement>}
 */
async function fragment(path) {
  const response = await fetch(path, { headers: { "X-Fragment": "main" }, cache: "no-store" });
  const type = response.headers.get("Content-Type") ?? "";
  if (response.status === 401 || !type.startsWith("text/html")) throw new Error((await problemOf(response)).detail);
  const parsed = new DOMParser().parseFromString(await response.text(), "text/html");
  return /** @type {HTMLElement} */ (parsed.querySelector("main") ?? parsed.body);
}

// --- Changing only what differs

/** What the user has begun to write or has opened is not changed. @param {Element} old @param {Element} given */
function isInUse(old, given) {
  if (old.hasAttribute("data-own")) return true;
  if (old instanceof HTMLTextAreaElement || old instanceof HTMLSelectElement) return true;
  if (old instanceof HTMLInputElement) return old.type !== "hidden";
  const selection = document.getSelection();
  const isSelected = selection && !selection.isCollapsed && selection.containsNode(old, true);
  return Boolean(isSelected) && !given.querySelector("[data-key]");
}

/** @param {Element} node */
const keyOf = (node) => node.getAttribute("data-key") ?? (node.id || null);

/** @param {Element} old @param {Element} given */
function changeAttributes(old, given) {
  for (const { name } of [...old.attributes]) {
    // Whether a part is open is up to the user.
    const isOpen = name === "open" && old instanceof HTMLDetailsElement;
    const isOfUser = isOpen || name === "tabindex" || name.startsWith("data-of-user");
    if (!given.hasAttribute(name) && !isOfUser) old.removeAttribute(name);
  }
  for (const { name, value } of [...given.attributes]) {
    if (name === "open" && old instanceof HTMLDetailsElement) continue;
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
}

/** Makes `old` what `given` is, and keeps focus, selection, scrolling and drafts. @param {Element} old @param {Element} given */
function change(old, given) {
  if (old.isEqualNode(given) || isInUse(old, given)) return;
  changeAttributes(old, given);
  /** @type {Map<string, Element>} */
  const known = new Map();
  for (const child of old.children) {
    const key = keyOf(child);
    if (key !== null) known.set(key, child);
  }
  let place = old.firstChild;
  const next = () => {
    while (place instanceof Element && place.hasAttribute("data-own")) place = place.nextSibling;
    return place;
  };
  for (const node of [...given.childNodes]) {
    const key = node instanceof Element ? keyOf(node) : null;
    const match = key !== null ? known.get(key) : undefined;
    const here = next();
    if (match && node instanceof Element && match.nodeName === node.nodeName) {
      known.delete(/** @type {string} */ (key));
      if (match === here) place = match.nextSibling;
      else old.insertBefore(match, here);
      change(match, node);
    } else if (here && key === null && here.nodeName === node.nodeName && !(here instanceof Element && keyOf(here) !== null)) {
      place = here.nextSibling;
      if (here instanceof Element && node instanceof Element) change(here, node);
      else if (here.nodeValue !== node.nodeValue) here.nodeValue = node.nodeValue;
    } else {
      old.insertBefore(document.importNode(node, true), here);
    }
  }
  while (next()) {
    const rest = /** @type {ChildNode} */ (place);
    place = rest.nextSibling;
    rest.remove();
  }
}

// --- Keeping the page up to date

const SHORTEST_PAUSE_MS = 400;
let isRefreshing = false;
let isStale = false;

/** Soon, and again if something changes meanwhile. A slow page is requested less often. */
async function refresh() {
  isStale = true;
  if (isRefreshing || document.hidden) return;
  isRefreshing = true;
  try {
    while (isStale && !document.hidden) {
      isStale = false;
      const begin = performance.now();
      await replaceMain();
      const took = performance.now() - begin;
      await new Promise((resolve) => setTimeout(resolve, Math.max(SHORTEST_PAUSE_MS, 4 * took)));
    }
  } finally {
    isRefreshing = false;
  }
}

async function replaceMain() {
  try {
    const given = await fragment(location.pathname + location.search);
    change(main, given);
    onChanged();
  } catch (error) {
    showConnection(false, error instanceof Error && !(error instanceof TypeError) ? error.message : "");
  }
}

/** After each change of the page. */
function onChanged() {
  document.title = `${main.dataset.title ?? ""} · mcp-delegator`;
  tellTimes();
  restoreDrafts();
  showChosen();
  prepareDiff();
}

/** @param {string[]} ids of tasks; none: everything may have changed */
function onTasksChanged(ids) {
  const live = main.dataset.live ?? "";
  const isShown = live === "all" || (live !== "" && live.split(" ").some((id) => ids.includes(id)));
  if (live !== "" && (ids.length === 0 || isShown)) void refresh();
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden && isStale) void refresh();
});

/** @param {boolean} isConnected @param {string} [problem] */
function showConnection(isConnected, problem = "") {
  const box = byId("connection");
  const text = isConnected ? "Live" : problem || "Not connected. Trying again …";
  if (box.textContent !== text) box.textContent = text;
  box.classList.toggle("failed", !isConnected);
}

// --- One stream for all tabs of the browser: the tab that holds the lock reads it and passes on what it says

const channel = new BroadcastChannel("mcp-delegator");
/** @typedef {{changed?: string[], isConnected?: boolean, problem?: string, question?: boolean}} News */

/** @type {News} */
let lastStatus = { isConnected: false };
let isLeader = false;

/** @param {News} news */
function onNews(news) {
  if (news.isConnected !== undefined) showConnection(news.isConnected, news.problem);
  if (news.changed) onTasksChanged(news.changed);
}

/** @param {News} news */
function publish(news) {
  if (news.isConnected !== undefined) lastStatus = news;
  channel.postMessage(news);
  onNews(news);
}

channel.onmessage = (/** @type {MessageEvent} */ { data }) => {
  if (data.question && isLeader) channel.postMessage(lastStatus);
  else onNews(data);
};

/** Changes that come together are passed on together. @type {Set<string>} */
const waiting = new Set();
let publishTimer = 0;

/** @param {string} id */
function changed(id) {
  waiting.add(id);
  publishTimer ||= window.setTimeout(() => {
    publishTimer = 0;
    publish({ changed: [...waiting] });
    waiting.clear();
  }, 100);
}

/** Resolves when the stream cannot be continued. */
function readStream() {
  return new Promise((resolve) => {
    const stream = new EventSource("/api/v1/stream");
    stream.addEventListener("snapshot", () => publish({ isConnected: true, changed: [] }));
    stream.addEventListener("change", ({ data }) => {
      const change = JSON.parse(data);
      const id = change.task?.task_id ?? change.removed;
      if (id) changed(id);
      else publish({ changed: [] });
    });
    stream.onopen = () => publish({ isConnected: true });
    stream.onerror = () => {
      publish({ isConnected: false });
      // The browser tries again by itself, unless the server has refused it.
      if (stream.readyState === EventSource.CLOSED) resolve(undefined);
    };
  });
}

async function lead() {
  isLeader = true;
  for (let pause = 1000; ; pause = Math.min(2 * pause, 15_000)) {
    await readStream();
    const response = await fetch("/api/v1/session").catch(() => null);
    if (response?.status === 401) {
      publish({ isConnected: false, problem: "Signed out. Run mcp-delegator dashboard for a new link." });
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

function follow() {
  void navigator.locks?.request("mcp-delegator-stream", lead);
  if (!navigator.locks) void lead();
  channel.postMessage({ question: true });
}

// --- Times

function tellTimes() {
  const now = Date.now();
  for (const time of findAll("time[datetime]")) {
    const seconds = Math.round((now - Date.parse(time.getAttribute("datetime") ?? "")) / 1000);
    const text = seconds < 0 ? `in ${short(-seconds)}` : `${short(seconds)} ago`;
    if (time.textContent !== text) time.textContent = text;
  }
}

/** @param {number} seconds */
function short(seconds) {
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)}h`;
  return `${Math.floor(seconds / 86_400)}d`;
}

// --- What the browser remembers

/** @param {string} key @param {string | null} value */
function store(key, value) {
  try {
    if (value === null || value === "") localStorage.removeItem(key);
    else localStorage.setItem(key, value);
  } catch {
    // Storage is full or forbidden: drafts last as long as the page.
  }
}

/** @param {string} key */
function stored(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

function restoreDrafts() {
  for (const area of findAll("textarea[data-draft]")) {
    const box = /** @type {HTMLTextAreaElement} */ (area);
    if (box.value === "" && document.activeElement !== box) box.value = stored(`draft:${box.dataset.draft}`) ?? "";
  }
}

document.addEventListener("input", ({ target }) => {
  if (target instanceof HTMLTextAreaElement && target.dataset.draft) store(`draft:${target.dataset.draft}`, target.value);
});

// --- Forms

/**
 * The fields of a form as the input of a command; a field without a value is left out.
 * @param {HTMLFormElement} form
 * @param {HTMLElement | null} submitter
 */
function inputOf(form, submitter) {
  /** @type {Record<string, unknown>} */
  const input = {};
  for (const [name, value] of new FormData(form, submitter)) {
    const field = form.elements.namedItem(name);
    const kind = field instanceof HTMLElement ? field.dataset.kind : undefined;
    if (value === "") continue;
    input[name] = kind === "number" ? Number(value) : kind === "flag" ? true : value;
  }
  return input;
}

/** Where the page of a new task or group is. @param {any} data */
function pageOf(data) {
  if (data?.group_id && data?.attempts) return `/ui/groups/${data.group_id}`;
  if (data?.group?.group_id) return `/ui/groups/${data.group.group_id}`;
  return data?.task_id ? `/ui/tasks/${data.task_id}` : null;
}

/** @param {HTMLFormElement} form @param {HTMLElement | null} submitter */
async function submit(form, submitter) {
  const { action = "", confirm: question, review, done, task = "" } = form.dataset;
  const input = inputOf(form, submitter);
  if (review !== undefined) {
    input[review] = reviewText(task, String(input[review] ?? ""));
    if (input[review] === "") return toast("There is no comment yet.", true);
  }
  if (question && !(await confirmed(question))) return;
  form.toggleAttribute("data-of-user-busy", true);
  try {
    const envelope = await act(action, input);
    if (envelope === null) return;
    for (const area of findAll("textarea[data-draft]", form)) {
      /** @type {HTMLTextAreaElement} */ (area).value = "";
      store(`draft:${area.dataset.draft}`, null);
    }
    if (review !== undefined) forgetComments(task);
    if (done === "reload" && dialog.open) dialog.close();
    const page = form.hasAttribute("data-open") ? pageOf(envelope.data) : null;
    if (page) location.assign(page);
    else void refresh();
    toast(envelope.warnings?.[0] ?? "Done.");
  } catch (error) {
    toast(error instanceof Error ? error.message : String(error), true);
  } finally {
    form.toggleAttribute("data-of-user-busy", false);
  }
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!(form instanceof HTMLFormElement)) return;
  if (form.dataset.action) {
    event.preventDefault();
    if (!form.hasAttribute("data-of-user-busy")) void submit(form, event.submitter);
  } else if (form.hasAttribute("data-filter")) {
    event.preventDefault();
    const query = new URLSearchParams();
    for (const [name, value] of new FormData(form)) if (value !== "") query.append(name, String(value));
    location.assign(`${location.pathname === "/" ? "/ui/tasks" : location.pathname}?${query}`);
  }
});

document.addEventListener("change", ({ target }) => {
  const form = target instanceof HTMLSelectElement ? target.form : null;
  if (form?.hasAttribute("data-filter")) form.requestSubmit();
  if (target instanceof HTMLInputElement && target.classList.contains("choose")) showChosen();
  if (target instanceof HTMLInputElement && target.hasAttribute("data-viewed")) setViewed(target);
});

// --- Several tasks at once

const chosenBoxes = () =>
  findAll("input.choose:checked").map((box) => /** @type {HTMLInputElement} */ (box));

function showChosen() {
  const bar = find("[data-bulk]");
  if (!bar) return;
  const count = chosenBoxes().length;
  bar.hidden = count === 0;
  const text = find("[data-chosen]", bar);
  if (text) text.textContent = `${count} chosen`;
}

/** @param {boolean} isChosen */
function chooseAll(isChosen) {
  for (const box of findAll("input.choose")) /** @type {HTMLInputElement} */ (box).checked = isChosen;
  showChosen();
}

/** @param {string} action */
async function actOnEach(action) {
  const boxes = chosenBoxes();
  const question = `${action === "read" ? "Mark" : action === "cancel" ? "Cancel" : "Discard the changes of"} ${boxes.length} tasks?`;
  if (action !== "read" && !(await confirmed(question))) return;
  const input = action === "discard" ? { confirm_destructive: true } : {};
  /** @type {string[]} */
  const problems = [];
  for (const [at, box] of boxes.entries()) {
    toast(`${at + 1} of ${boxes.length} …`);
    try {
      await act(`/api/v1/tasks/${box.value}/${action}`, input);
      box.checked = false;
    } catch (error) {
      problems.push(`${box.value}: ${error instanceof Error ? error.message : error}`);
    }
  }
  showChosen();
  const done = boxes.length - problems.length;
  toast([`${done} of ${boxes.length} done.`, ...problems.slice(0, 3)].join(" "), problems.length > 0);
  void refresh();
}

// --- Clicks

/** @param {string} path */
async function showCheck(path) {
  try {
    const given = await fragment(path);
    dialog.replaceChildren(...given.childNodes);
    dialog.showModal();
  } catch (error) {
    toast(error instanceof Error ? error.message : String(error), true);
  }
}

document.addEventListener("click", (event) => {
  const target = event.target instanceof Element ? event.target : null;
  const button = /** @type {HTMLElement | null} */ (
    target?.closest("[data-copy],[data-check],[data-each],[data-choose],[data-dialog],[data-wrap],[data-close],[data-comment]")
  );
  if (!button) {
    const number = target?.closest("#diff[data-commentable] .n");
    const line = /** @type {HTMLElement | null} */ (number?.closest(".l"));
    if (line) editComment(line);
    return;
  }
  const { copy, check, each, choose } = button.dataset;
  if (copy !== undefined) {
    const copied = navigator.clipboard ? navigator.clipboard.writeText(copy) : Promise.reject();
    copied.then(() => toast("Copied."), () => toast(`The browser does not permit copying: ${copy}`, true));
  } else if (check !== undefined) void showCheck(check);
  else if (each !== undefined) void actOnEach(each);
  else if (choose !== undefined) chooseAll(choose === "all");
  else if (button.dataset.dialog === "keys") showKeys();
  else if (button.hasAttribute("data-wrap")) setWrap(stored("wrap") !== "true");
  else if (button.hasAttribute("data-close") && dialog.open) {
    event.preventDefault();
    dialog.close();
  }
});

// --- Review: comments on lines, kept until they are sent

/** @param {string} task */
const commentsKey = (task) => `comments:${task}`;

/** @param {string} task @returns {Comment[]} */
function comments(task) {
  try {
    return JSON.parse(stored(commentsKey(task)) ?? "[]");
  } catch {
    return [];
  }
}

/** @param {string} task @param {Comment[]} all */
function storeComments(task, all) {
  store(commentsKey(task), all.length > 0 ? JSON.stringify(all) : null);
}

/** @param {string} task */
function forgetComments(task) {
  store(commentsKey(task), null);
  findAll("#diff .comment").forEach((box) => box.remove());
  countComments();
}

const reviewedTask = () => find("#diff")?.dataset.task ?? "";

/** The line that a comment is on, without its text. @param {HTMLElement} line @returns {Comment} */
function placeOf(line) {
  const isNew = line.dataset.new !== undefined;
  const path = /** @type {HTMLElement | null} */ (line.closest(".file"))?.dataset.path ?? "";
  return {
    side: isNew ? "new" : "old",
    line: Number(isNew ? line.dataset.new : line.dataset.old),
    path,
    code: find("code", line)?.textContent ?? "",
    text: "",
  };
}

/** @param {Comment} one @param {Comment} other */
const isSamePlace = (one, other) => one.path === other.path && one.side === other.side && one.line === other.line;

/** @param {Comment} comment @returns {HTMLElement | null} */
function lineOf(comment) {
  const file = findAll("#diff .file").find((file) => file.dataset.path === comment.path);
  return file ? find(`.l[data-${comment.side}="${comment.line}"]`, file) : null;
}

/** @param {HTMLElement} line */
function editComment(line) {
  if (line.dataset.old === undefined && line.dataset.new === undefined) return;
  const place = placeOf(line);
  const known = commentBox(line);
  if (known) return void find("textarea", known)?.focus();
  showComment(line, comments(reviewedTask()).find((other) => isSamePlace(other, place)) ?? place);
  find("textarea", commentBox(line) ?? document)?.focus();
}

/** @param {HTMLElement} line @returns {HTMLElement | null} */
function commentBox(line) {
  // Beside each other two halves make a row, and the box stands below it.
  const next = [line.nextElementSibling, line.nextElementSibling?.nextElementSibling];
  const { side, line: number } = placeOf(line);
  const isBox = /** @param {Element | null | undefined} box */ (box) =>
    box instanceof HTMLElement && box.classList.contains("comment") && box.dataset.place === `${side}${number}`;
  return /** @type {HTMLElement | null} */ (next.find(isBox) ?? null);
}

/** @param {HTMLElement} line @param {Comment} comment */
function showComment(line, comment) {
  if (commentBox(line)) return;
  const task = reviewedTask();
  const text = /** @type {HTMLTextAreaElement} */ (
    element("textarea", { rows: "3", "aria-label": `Comment on line ${comment.line} of ${comment.path}` })
  );
  text.value = comment.text;
  const remove = element("button", { type: "button", class: "quiet" }, "Remove");
  const box = element("div", { class: "comment", "data-own": "", "data-place": `${comment.side}${comment.line}` }, text, remove);
  const save = () => {
    const others = comments(task).filter((other) => !isSamePlace(other, comment));
    const own = text.value.trim() === "" ? [] : [{ ...comment, text: text.value }];
    storeComments(task, [...others, ...own]);
    countComments();
  };
  text.oninput = save;
  text.onkeydown = (event) => {
    if (event.key === "Escape") line.focus();
  };
  remove.onclick = () => {
    text.value = "";
    save();
    box.remove();
    line.focus();
  };
  const isSplit = line.parentElement?.classList.contains("split");
  const cells = line.parentElement ? [...line.parentElement.querySelectorAll(".l")] : [];
  const isLeft = isSplit && cells.indexOf(line) % 2 === 0;
  (isLeft ? (line.nextElementSibling ?? line) : line).after(box);
}

function countComments() {
  const text = find("[data-comments]");
  const count = comments(reviewedTask()).length;
  if (text && count > 0) text.textContent = `${count} ${count === 1 ? "comment" : "comments"} on lines.`;
}

/** All comments as one message: place, quoted line, text. @param {string} task @param {string} general */
function reviewText(task, general) {
  const order = /** @param {Comment} one @param {Comment} other */ (one, other) =>
    one.path.localeCompare(other.path) || one.line - other.line;
  const parts = comments(task).sort(order).map(({ path, side, line, code, text }) => {
    const before = side === "old" ? ", before the change" : "";
    return `${path}:${line}${before}\n> ${code}\n${text.trim()}`;
  });
  return [general.trim(), ...parts].filter((part) => part !== "").join("\n\n");
}

/** @param {boolean} isWrapped */
function setWrap(isWrapped) {
  store("wrap", isWrapped ? "true" : null);
  find("#diff")?.classList.toggle("wrapped", isWrapped);
  find("[data-wrap]")?.setAttribute("aria-pressed", String(isWrapped));
}

/** @param {HTMLElement} file */
const viewedKey = (file) => `viewed:${reviewedTask()}:${file.dataset.path}`;

/** The part of a file that opens. @param {HTMLElement} file */
const partOf = (file) => /** @type {HTMLDetailsElement} */ (find("details", file));

/** @param {HTMLInputElement} box */
function setViewed(box) {
  const file = /** @type {HTMLElement | null} */ (box.closest(".file"));
  if (!file) return;
  store(viewedKey(file), box.checked ? (file.dataset.version ?? "") : null);
  partOf(file).open = !box.checked;
}

/** The lines of a large file, when it is opened. @param {HTMLDetailsElement} part */
async function loadLines(part) {
  const path = part.dataset.load;
  if (!part.open || !path || part.hasAttribute("data-of-user-loaded")) return;
  part.toggleAttribute("data-of-user-loaded", true);
  try {
    const given = find(".file .content", await fragment(path));
    const content = find(".content", part);
    if (!given || !content) return;
    content.replaceChildren(...document.importNode(given, true).childNodes);
    content.toggleAttribute("data-own", true);
    showComments();
  } catch (error) {
    part.toggleAttribute("data-of-user-loaded", false);
    toast(error instanceof Error ? error.message : String(error), true);
  }
}

function showComments() {
  for (const comment of comments(reviewedTask())) {
    const line = lineOf(comment);
    if (line) showComment(line, comment);
  }
  countComments();
}

function prepareDiff() {
  if (!find("#diff")) return;
  setWrap(stored("wrap") === "true");
  for (const file of findAll("#diff .file")) {
    const isViewed = stored(viewedKey(file)) === file.dataset.version;
    const box = /** @type {HTMLInputElement | null} */ (find("[data-viewed]", file));
    if (box && box.checked !== isViewed) {
      box.checked = isViewed;
      partOf(file).open = !isViewed;
    }
  }
  showComments();
}

document.addEventListener(
  "toggle",
  ({ target }) => {
    if (target instanceof HTMLDetailsElement && target.dataset.load) void loadLines(target);
  },
  true,
);

// --- Keys

/** @type {[string, string][]} */
const KEYS = [
  ["j, k", "next or previous task, or line of a diff"],
  ["Enter", "open the task"],
  ["x", "choose the task"],
  ["/", "search"],
  ["n", "new task"],
  ["o, d, l", "overview, changes or log of the task"],
  ["], [", "next or previous file of a diff"],
  ["c", "comment on the line"],
  ["v", "mark the file as viewed"],
  ["r", "go to the review or the message"],
  ["t", "list of tasks"],
  ["?", "these keys"],
];

function showKeys() {
  const rows = KEYS.map(([keys, text]) => element("div", {}, element("dt", {}, element("kbd", {}, keys)), element("dd", {}, text)));
  const close = element("button", { type: "button", "data-close": "", autofocus: "" }, "Close");
  dialog.replaceChildren(element("h2", { id: "dialog-title" }, "Keys"), element("dl", {}, ...rows), close);
  dialog.showModal();
}

/**
 * Moves the focus among elements that are shown.
 * @param {string} selector
 * @param {number} step
 */
function move(selector, step) {
  const all = findAll(selector).filter((item) => item.offsetParent !== null);
  const active = document.activeElement;
  let at = all.findIndex((item) => item === active || item.contains(active));
  if (at < 0 && active) {
    const follows = /** @param {HTMLElement} item */ (item) =>
      (active.compareDocumentPosition(item) & Node.DOCUMENT_POSITION_FOLLOWING) !== 0;
    const first = active === document.body ? 0 : all.findIndex(follows);
    at = first - (step > 0 ? 1 : 0);
  }
  const item = all[Math.min(Math.max(at + step, 0), all.length - 1)];
  if (!item) return;
  const inner = find("a.title", item) ?? item;
  if (inner === item && !item.hasAttribute("tabindex")) item.tabIndex = -1;
  inner.focus();
  item.scrollIntoView({ block: "nearest" });
}

/** @param {string} name */
function openTab(name) {
  const link = findAll(".tabs a").find((link) => link.textContent === name);
  link?.click();
}

const focusedFile = () => /** @type {HTMLElement | null} */ (document.activeElement?.closest(".file") ?? null);

/** @type {Record<string, () => void>} */
const ACTIONS = {
  j: () => move(find("#diff") ? "#diff .l:not(.none)" : "li.task", 1),
  k: () => move(find("#diff") ? "#diff .l:not(.none)" : "li.task", -1),
  x: () => find("input.choose", document.activeElement?.closest("li.task") ?? document.createElement("i"))?.click(),
  "/": () => find("input[type=search]")?.focus(),
  n: () => find("nav a[href='/ui/tasks/new']")?.click(),
  t: () => find("a.brand")?.click(),
  o: () => openTab("Overview"),
  d: () => openTab("Changes"),
  l: () => openTab("Log"),
  "]": () => move(".file summary", 1),
  "[": () => move(".file summary", -1),
  c: () => {
    const line = /** @type {HTMLElement | null} */ (document.activeElement?.closest("#diff[data-commentable] .l"));
    if (line) editComment(line);
  },
  v: () => find("[data-viewed]", focusedFile() ?? document.createElement("i"))?.click(),
  r: () => find("#review textarea, form[data-action] textarea")?.focus(),
  "?": showKeys,
};

document.addEventListener("keydown", (event) => {
  const target = event.target instanceof HTMLElement ? event.target : document.body;
  const isText = target.matches("textarea, select, input:not([type=checkbox])") || target.isContentEditable;
  if (isText && event.key === "Enter" && (event.ctrlKey || event.metaKey) && target instanceof HTMLTextAreaElement) {
    event.preventDefault();
    target.form?.requestSubmit();
    return;
  }
  if (isText || dialog.open || event.ctrlKey || event.metaKey || event.altKey) return;
  const action = ACTIONS[event.key];
  if (action) {
    event.preventDefault();
    action();
  }
});

// --- Start

for (const button of findAll("[data-dialog]")) button.hidden = false;
onChanged();
if (main.dataset.live) void refresh();
follow();
setInterval(tellTimes, 10_000);
if ("serviceWorker" in navigator) navigator.serviceWorker.register("/sw.js").catch(() => {});
