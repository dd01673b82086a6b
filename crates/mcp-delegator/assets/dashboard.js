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

const toastBox = byId("toast");
let toastTimer = 0;

/** @param {string} text @param {boolean} [hasFailed] */
function toast(text, hasFailed = false) {
  // Behind an open dialog it could neither be read nor be announced.
  (dialog.open ? dialog : document.body).append(toastBox);
  toastBox.classList.toggle("failed", hasFailed);
  toastBox.textContent = text;
  clearTimeout(toastTimer);
  // What has failed stays until something else happens.
  if (!hasFailed) toastTimer = window.setTimeout(() => (toastBox.textContent = ""), 6000);
}

dialog.addEventListener("close", () => document.body.append(toastBox));
toastBox.addEventListener("click", () => toast(""));
document.addEventListener("keydown", ({ key }) => key === "Escape" && toast(""));

/** @param {unknown} error */
const failed = (error) => toast(error instanceof Error ? error.message : String(error), true);

/** @param {number} count @param {string} word */
const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

const MAX_NAMED = 10;

/** The first of many texts. @param {string[]} texts */
function nameList(texts) {
  const named = texts.slice(0, MAX_NAMED).map((text) => element("li", {}, text));
  const rest = texts.length - named.length;
  return element("ul", {}, ...named, ...(rest > 0 ? [element("li", {}, `and ${rest} more`)] : []));
}

/**
 * Asks a question; the promise is whether it was confirmed.
 * @param {{question: string, verb: string, no?: string, details?: Element[]}} question
 * @returns {Promise<boolean>}
 */
function confirmed({ question, verb, no: otherwise = "No", details = [] }) {
  const yes = element("button", { type: "button", class: "careful" }, verb);
  const no = element("button", { type: "button", autofocus: "" }, otherwise);
  const title = element("h2", { id: "dialog-title" }, question);
  dialog.replaceChildren(title, ...details, element("div", { class: "actions" }, no, yes));
  dialog.showModal();
  return new Promise((resolve) => {
    let answer = false;
    yes.onclick = () => ((answer = true), dialog.close());
    no.onclick = () => dialog.close();
    dialog.addEventListener("close", () => resolve(answer), { once: true });
  });
}

// --- Requests

const SIGNED_OUT = "Signed out. Run mcp-delegator dashboard for a new link.";
/** A connection that is gone may never answer. */
const PATIENCE_MS = 60_000;

/** The server could not be reached, or has not answered in time. */
class NoAnswer extends Error {}

/**
 * A request whose errors are in our words.
 * @param {string} path
 * @param {RequestInit} [options]
 */
async function request(path, options = {}) {
  try {
    return await fetch(path, { ...options, signal: AbortSignal.timeout(PATIENCE_MS) });
  } catch (error) {
    const isLate = error instanceof DOMException && error.name === "TimeoutError";
    const cause = isLate ? "The server has not answered within 60 seconds." : "The server cannot be reached: it does not run, or there is no network.";
    const advice = options.method === "POST" ? "The action may have happened: look at the task before you repeat it." : "Try again later.";
    throw new NoAnswer(`${cause} ${advice}`);
  }
}

/** @type {Promise<string | null> | null} */
let csrfToken = null;

function token() {
  csrfToken ??= request("/api/v1/session").then(async (response) => {
    if (!response.ok) throw new Error(SIGNED_OUT);
    return /** @type {Envelope} */ (await response.json()).data.csrf_token;
  });
  csrfToken.catch(() => (csrfToken = null));
  return csrfToken;
}

/** @param {string} path @param {Record<string, unknown>} input */
async function post(path, input) {
  const headers = { "Content-Type": "application/json", "X-CSRF-Token": (await token()) ?? "" };
  return request(path, { method: "POST", headers, body: JSON.stringify(input) });
}

/**
 * Sends an action. A missing consent is asked for.
 * @param {string} path
 * @param {Record<string, unknown>} input
 * @returns {Promise<Envelope | null>} null: the user did not consent
 */
async function act(path, input) {
  let response = await post(path, input);
  if (response.status === 403) {
    // The token may be that of an earlier session of this browser; a refused action has changed nothing.
    csrfToken = null;
    response = await post(path, input);
  }
  if (response.ok) return response.json();
  const problem = await problemOf(response);
  const consent = problem.problems?.[0]?.field ?? (path.endsWith("/apply") ? "force" : "");
  if (response.status === 428 && consent && !(consent in input)) {
    if (!(await confirmed({ question: "Go on?", verb: "Go on", details: [element("p", {}, problem.detail)] }))) return null;
    return act(path, { ...input, [consent]: true });
  }
  const further = problem.problems?.map(({ field, problem }) => `${field} ${problem}`) ?? [];
  throw new Error([problem.detail, ...further, problem.suggestion].filter(Boolean).join(" "));
}

/** @param {Response} response @returns {Promise<Problem>} */
async function problemOf(response) {
  if (response.status === 401) return { detail: SIGNED_OUT, code: "" };
  const text = await response.text();
  if (response.headers.get("Content-Type")?.startsWith("text/html")) {
    const page = new DOMParser().parseFromString(text, "text/html");
    return { detail: page.querySelector(".problem, h1, p")?.textContent ?? "", code: "" };
  }
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
  const response = await request(path, { headers: { "X-Fragment": "main" }, cache: "no-store" });
  if (!response.ok) throw new Error((await problemOf(response)).detail);
  const parsed = new DOMParser().parseFromString(await response.text(), "text/html");
  const given = find("main", parsed);
  if (!given) throw new Error("The server answered with another page.");
  return given;
}

// --- Changing only what differs

/** Something was not changed because it is selected. */
let hasSkipped = false;

/** Whether the user has written in it, has selected it, or has opened what it contains. @param {Element} old @param {Element} given */
function isInUse(old, given) {
  if (old.hasAttribute("data-own")) return true;
  if (old instanceof HTMLTextAreaElement || (old instanceof HTMLInputElement && old.type !== "hidden")) {
    changeAttributes(old, given, ["value", "checked"]);
    return true;
  }
  if (old instanceof HTMLSelectElement && old === document.activeElement) return true;
  if (old.classList.contains("content") && old.parentElement?.dataset.ofUserLoaded !== undefined) return true;
  const selection = document.getSelection();
  const isSelected = selection && !selection.isCollapsed && selection.containsNode(old, true);
  if (!isSelected || given.childElementCount > 0) return false;
  hasSkipped = true;
  return true;
}

document.addEventListener("selectionchange", () => {
  if (hasSkipped && document.getSelection()?.isCollapsed) {
    hasSkipped = false;
    void refresh();
  }
});

/** @param {Element} node */
const keyOf = (node) => node.getAttribute("data-key") ?? (node.id || node.getAttribute("aria-labelledby"));

/** @param {Element} old @param {Element} given @param {string[]} [ofUser] */
function changeAttributes(old, given, ofUser = []) {
  // Whether a part is open is up to the user.
  const isOfUser = (/** @type {string} */ name) =>
    (name === "open" && old instanceof HTMLDetailsElement) || ofUser.includes(name);
  for (const { name } of [...old.attributes]) {
    const isOurs = name === "tabindex" || name.startsWith("data-of-user");
    if (!given.hasAttribute(name) && !isOfUser(name) && !isOurs) old.removeAttribute(name);
  }
  for (const { name, value } of [...given.attributes]) {
    if (!isOfUser(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
}

/** The rows of tasks before the change, which may go to another section. @type {Map<string, Element>} */
const rows = new Map();

/** The row of a task as the page has it. @param {Element} given */
function rowLike(given) {
  const key = given.matches("li.task") ? keyOf(given) : null;
  const row = key === null ? undefined : rows.get(key);
  if (key !== null) rows.delete(key);
  return row;
}

/** What is new, with the rows that the page has. @param {Node} given */
function newNode(given) {
  const made = document.importNode(given, true);
  for (const row of made instanceof Element ? findAll("li.task", made) : []) {
    const known = rowLike(row);
    if (!known) continue;
    change(known, row);
    row.replaceWith(known);
  }
  return made;
}

/** Changes the page. An element that goes to another place loses the focus, and gets it back. @param {HTMLElement} given */
function changeMain(given) {
  const active = document.activeElement;
  for (const row of findAll("li.task", main)) rows.set(keyOf(row) ?? "", row);
  change(main, given);
  rows.clear();
  const isLost = document.activeElement === document.body && active?.isConnected;
  if (isLost && active instanceof HTMLElement) active.focus({ preventScroll: true });
}

/** Makes `old` what `given` is, and keeps selection, scrolling and drafts. @param {Element} old @param {Element} given */
function change(old, given) {
  if (old.isEqualNode(given) || isInUse(old, given)) return;
  changeAttributes(old, given);
  /** @type {Map<string, Element>} */
  const known = new Map();
  const wanted = new Set([...given.children].map(keyOf));
  for (const child of [...old.children]) {
    const key = keyOf(child);
    if (key === null || child.hasAttribute("data-own")) continue;
    // What is gone goes first: moving the others would take their focus.
    if (wanted.has(key)) known.set(key, child);
    else child.remove();
  }
  let place = old.firstChild;
  const next = () => {
    while (place instanceof Element && place.hasAttribute("data-own")) place = place.nextSibling;
    return place;
  };
  for (const node of [...given.childNodes]) {
    const key = node instanceof Element ? keyOf(node) : null;
    const match = key !== null && node instanceof Element ? (known.get(key) ?? rowLike(node)) : undefined;
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
      old.insertBefore(newNode(node), here);
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
/** Of a list in a hidden tab, whose title says how many tasks wait. */
const HIDDEN_PAUSE_MS = 15_000;
const LONGEST_PAUSE_MS = 30_000;
/** Of a page that nothing in the stream tells about. */
const POLL_MS = 10_000;
let isRefreshing = false;
let isStale = false;
let wake = () => {};

/** A hidden page of a task is not requested: its result would count as read. */
const mayRefresh = () => !document.hidden || main.dataset.live === "all";

/** Soon, and again if something changes meanwhile. A slow page, and one that fails, is requested less often. */
async function refresh() {
  isStale = true;
  if (isRefreshing || !mayRefresh()) return;
  isRefreshing = true;
  let failures = 0;
  while (isStale && mayRefresh()) {
    isStale = false;
    const begin = performance.now();
    const isDone = await replaceMain();
    failures = isDone ? 0 : failures + 1;
    isStale ||= !isDone;
    const took = performance.now() - begin;
    const pause = failures > 0 ? 1000 * 2 ** failures : document.hidden ? HIDDEN_PAUSE_MS : 4 * took;
    await rest(Math.min(Math.max(SHORTEST_PAUSE_MS, pause), LONGEST_PAUSE_MS));
  }
  isRefreshing = false;
}

/** A pause that `wake` ends. @param {number} pause */
function rest(pause) {
  return new Promise((resolve) => {
    wake = () => resolve(undefined);
    setTimeout(wake, pause);
  });
}

/** Without the rest of a pause: the page came to the front, or the connection came back. */
function refreshNow() {
  wake();
  void refresh();
}

/** Whether it could be replaced. */
async function replaceMain() {
  try {
    const given = await fragment(location.pathname + location.search);
    changeMain(given);
    onChanged();
    refreshProblem = null;
  } catch (error) {
    const isKnown = error instanceof Error && error.name === "Error" && !(error instanceof NoAnswer);
    refreshProblem = isKnown ? error.message : "";
  }
  showConnection();
  return refreshProblem === null;
}

/** What scrolls can be scrolled by keys. */
function prepareScrolling() {
  for (const box of findAll(".wide")) if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
}

/** After each change of the page. */
function onChanged() {
  document.title = `${main.dataset.title ?? ""} · mcp-delegator`;
  tellTimes();
  restoreDrafts();
  showChosen();
  prepareDiff();
  prepareScrolling();
}

/** @param {string[]} ids of tasks; none: everything may have changed */
function onTasksChanged(ids) {
  const live = main.dataset.live ?? "";
  const isShown = live === "all" || (live !== "" && live.split(" ").some((id) => ids.includes(id)));
  if (live === "") return;
  if (ids.length === 0) refreshNow();
  else if (isShown) void refresh();
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  wake();
  if (isStale) void refresh();
});

// A page that comes back from the cache of the browser is as old as its visit.
window.addEventListener("pageshow", (event) => {
  if (event.persisted) refreshNow();
});

/** Why the page could not be requested again, if that is known; null: it could. @type {string | null} */
let refreshProblem = null;

/** A page that never changes has no sign as long as nothing is wrong. */
function showConnection() {
  const box = byId("connection");
  const isConnected = lastStatus.isConnected === true && refreshProblem === null;
  const problem = lastStatus.problem || refreshProblem || "Not connected. Trying again …";
  const text = isConnected ? (main.dataset.live ? "Live" : "") : problem;
  if (box.textContent !== text) box.textContent = text;
  box.classList.toggle("failed", !isConnected);
}

// --- One stream for all tabs of the browser: the tab that holds the lock reads it and passes on what it says

const channel = new BroadcastChannel("mcp-delegator");
/** @typedef {{changed?: string[], isConnected?: boolean, problem?: string, question?: boolean, hasEnded?: boolean}} News */

/** @type {News} */
let lastStatus = { isConnected: false };
let lastNews = Date.now();
let isLeader = false;

/** @param {News} news */
function onNews(news) {
  lastNews = Date.now();
  if (news.isConnected !== undefined) {
    lastStatus = news;
    showConnection();
  }
  if (news.changed) onTasksChanged(news.changed);
}

/** @param {News} news */
function publish(news) {
  channel.postMessage(news);
  onNews(news);
}

channel.onmessage = (/** @type {MessageEvent} */ { data }) => {
  if (data.hasEnded) leave();
  else if (data.question && isLeader) channel.postMessage(lastStatus);
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

/** The server sends something at least every 15 s. */
const SILENCE_MS = 40_000;

/** Resolves when the stream cannot be continued: whether it was open. @param {AbortSignal} stolen @returns {Promise<boolean>} */
function readStream(stolen) {
  return new Promise((resolve) => {
    const stream = new EventSource("/api/v1/stream");
    let lastEvent = Date.now();
    let wasOpen = false;
    const end = () => {
      clearInterval(watch);
      stream.close();
      if (!stolen.aborted) publish({ isConnected: false });
      resolve(wasOpen);
    };
    stolen.addEventListener("abort", end, { once: true });
    // A connection can be dead without an error: a sleeping device, a broken tunnel.
    const watch = setInterval(() => Date.now() - lastEvent > SILENCE_MS && end(), 5_000);
    const on = (/** @type {string} */ name, /** @type {(data: any) => void} */ act) =>
      stream.addEventListener(name, ({ data }) => {
        lastEvent = Date.now();
        act(data);
      });
    // Other tabs take over when they hear nothing.
    on("ping", () => publish({ isConnected: true }));
    on("snapshot", () => publish({ isConnected: true, changed: [] }));
    on("change", (data) => {
      const change = JSON.parse(data);
      const id = change.task?.task_id ?? change.removed;
      if (id) changed(id);
      else publish({ changed: [] });
    });
    stream.onopen = () => {
      wasOpen = true;
      lastEvent = Date.now();
      publish({ isConnected: true });
    };
    stream.onerror = () => {
      // The browser tries again by itself, unless the server has refused it.
      if (stream.readyState === EventSource.CLOSED) end();
      else publish({ isConnected: false });
    };
  });
}

/** @param {AbortSignal} stolen */
async function lead(stolen) {
  isLeader = true;
  let pause = 1000;
  while (!stolen.aborted) {
    const wasOpen = await readStream(stolen);
    pause = wasOpen ? 1000 : Math.min(2 * pause, 15_000);
    const response = await request("/api/v1/session").catch(() => null);
    if (response?.status === 401 && !stolen.aborted) publish({ isConnected: false, problem: SIGNED_OUT });
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

/** The request for the lock that was made last. */
let lockRequest = new AbortController();

/** Waits for the lock, or takes it from a tab that is suspended. @param {boolean} [isStealing] */
async function follow(isStealing = false) {
  lockRequest.abort();
  const own = (lockRequest = new AbortController());
  const stolen = new AbortController();
  if (!navigator.locks) return lead(stolen.signal);
  try {
    const options = isStealing ? { steal: true } : { signal: own.signal };
    await navigator.locks.request("mcp-delegator-stream", options, () => lead(stolen.signal));
  } catch {
    // Its lock was taken, unless it waited for it and takes it now itself.
    if (own !== lockRequest) return;
    isLeader = false;
    stolen.abort();
    void follow();
  }
}

/** The tab that reads the stream says something at each event of the server, unless it is suspended. */
function watchLeader() {
  if (isLeader || document.hidden || Date.now() - lastNews < SILENCE_MS) return;
  lastNews = Date.now();
  void follow(true);
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

/** Keys of what a person has written or marked; the others are preferences. */
const OF_TASKS = /^(comments|draft|viewed):/;
const MAX_AGE_DAYS = 90;

const today = () => Math.floor(Date.now() / 86_400_000);

/** What the storage does not take because it is full or forbidden; empty: it was removed. @type {Map<string, string>} */
const unsaved = new Map();
let isLossAnnounced = false;

/** @param {string} key @param {string | null} value */
function store(key, value) {
  unsaved.delete(key);
  try {
    if (value === null || value === "") localStorage.removeItem(key);
    else localStorage.setItem(key, `${today()} ${value}`);
  } catch {
    unsaved.set(key, value ?? "");
    if (!isLossAnnounced) toast("The browser does not store drafts: they last only as long as this page.", true);
    isLossAnnounced = true;
  }
}

/** @param {string} key */
function stored(key) {
  const own = unsaved.get(key);
  if (own !== undefined) return own || null;
  try {
    const text = localStorage.getItem(key);
    return text && text.slice(text.indexOf(" ") + 1);
  } catch {
    return null;
  }
}

function storedKeys() {
  try {
    return [...new Set([...Object.keys(localStorage), ...unsaved.keys()])];
  } catch {
    return [...unsaved.keys()];
  }
}

/** Removes what was last written before this day. @param {number} day */
function removeOlder(day) {
  for (const key of storedKeys().filter((key) => OF_TASKS.test(key))) {
    const isNewer = !unsaved.has(key) && Number.parseInt(localStorage.getItem(key) ?? "") >= day;
    if (!isNewer) store(key, null);
  }
}

/** @typedef {HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement} Field */

/** @param {ParentNode} [within] @returns {Field[]} */
const draftFields = (within) => /** @type {Field[]} */ (findAll("[data-draft]", within));

/** @param {Field} field */
const draftKey = (field) => `draft:${field.dataset.draft}`;

/** @param {Field} field */
const isCheckbox = (field) => field instanceof HTMLInputElement && field.type === "checkbox";

/** @param {Field} field */
const valueOf = (field) => (isCheckbox(field) && !(/** @type {HTMLInputElement} */ (field).checked) ? "" : field.value);

/** @param {Field} field @param {string} value */
function setValue(field, value) {
  if (isCheckbox(field)) /** @type {HTMLInputElement} */ (field).checked = value !== "";
  else if (!(field instanceof HTMLSelectElement) || [...field.options].some((option) => option.value === value)) field.value = value;
}

function restoreDrafts() {
  for (const field of draftFields()) {
    const draft = stored(draftKey(field));
    // Values in the address are newer than a draft.
    const isGiven = !(field instanceof HTMLTextAreaElement) && location.search !== "";
    if (draft !== null && document.activeElement !== field && !isGiven) setValue(field, draft);
  }
}

document.addEventListener("input", ({ target }) => {
  const field = /** @type {Field} */ (target);
  if (field instanceof HTMLElement && field.dataset.draft) store(draftKey(field), valueOf(field));
});

/** @param {Element} box */
const isWrittenIn = (box) => document.hasFocus() && box.contains(document.activeElement);

/** What another tab has sent or written is here, too, except where the user writes. */
window.addEventListener("storage", ({ key }) => {
  if (key === commentsKey(reviewedTask())) {
    for (const box of findAll("#diff .comment")) if (!isWrittenIn(box)) box.remove();
  }
  for (const field of draftFields()) {
    if (draftKey(field) === key && !isWrittenIn(field)) setValue(field, stored(key) ?? "");
  }
  if (key?.startsWith("comments:")) showComments();
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
  // A question has one answer.
  if (submitter?.getAttribute("name") === "option") delete input.text;
  return input;
}

/** Where the page of a new task or group is. @param {any} data */
function pageOf(data) {
  if (data?.group_id && data?.attempts) return `/ui/groups/${data.group_id}`;
  if (data?.group?.group_id) return `/ui/groups/${data.group.group_id}`;
  return data?.task_id ? `/ui/tasks/${data.task_id}` : null;
}

/** No text of a task remains in the browser, in no tab. */
function leave() {
  removeOlder(Infinity);
  location.replace("/");
}

/** Says how an action ended, on the page that comes next if there is one. @param {Envelope} envelope @param {string | null} page */
function report({ data, warnings = [] }, page) {
  const warning = warnings.join(" ");
  if (page === null) return toast(warning || (typeof data?.summary === "string" ? data.summary : "Done."));
  try {
    sessionStorage.setItem("report", warning);
  } catch {
    // Forbidden: the page of the task shows its warnings, too.
  }
  location.assign(page);
}

function showReport() {
  try {
    toast(sessionStorage.getItem("report") ?? "");
    sessionStorage.removeItem("report");
  } catch {
    // Forbidden: nothing was stored either.
  }
}

/** Clears what was sent; what was written meanwhile stays. @param {Field[]} fields @param {string[]} sent */
function forgetDrafts(fields, sent) {
  for (const [at, field] of fields.entries()) {
    if (valueOf(field) !== sent[at]) continue;
    if (field instanceof HTMLTextAreaElement) field.value = "";
    store(draftKey(field), null);
  }
}

/** @param {HTMLFormElement} form @param {HTMLElement | null} submitter */
async function submit(form, submitter) {
  const { action = "", confirm: question, review, done, task = "" } = form.dataset;
  const input = inputOf(form, submitter);
  const fields = draftFields(form);
  const sent = fields.map(valueOf);
  if (review !== undefined) moveComments();
  const sentComments = comments(task);
  if (review !== undefined) {
    input[review] = reviewText(task, String(input[review] ?? ""));
    if (input[review] === "") return toast("There is no comment yet.", true);
  }
  if (question && !(await confirmed({ question, verb: question.split("?")[0] ?? "" }))) return;
  form.toggleAttribute("data-of-user-busy", true);
  try {
    const envelope = await act(action, input);
    if (envelope === null) return;
    if (action === "/api/v1/session/end") {
      channel.postMessage({ hasEnded: true });
      return leave();
    }
    forgetDrafts(fields, sent);
    if (review !== undefined) forgetComments(task, sentComments);
    if (done === "reload" && dialog.open) dialog.close();
    const page = form.hasAttribute("data-open") ? pageOf(envelope.data) : null;
    if (page === null) void refresh();
    report(envelope, page);
  } catch (error) {
    failed(error);
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

/** @param {string} action @param {HTMLInputElement[]} boxes */
function isActionConfirmed(action, boxes) {
  const verb = `${action === "cancel" ? "Cancel" : "Discard the changes of"} ${plural(boxes.length, "task")}`;
  const titles = boxes.map((box) => box.closest("li.task")?.querySelector("a.title")?.textContent ?? box.value);
  return confirmed({ question: `${verb}?`, verb, no: "Keep", details: [nameList(titles)] });
}

/** @param {string} action */
async function actOnEach(action) {
  const boxes = chosenBoxes();
  if (action !== "read" && !(await isActionConfirmed(action, boxes))) return;
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

/** @param {string} path @param {string} title */
async function showCheck(path, title) {
  const wait = element("p", { role: "status" }, "Checking …");
  const close = element("button", { type: "button", "data-close": "", autofocus: "" }, "Do nothing");
  dialog.replaceChildren(element("h2", { id: "dialog-title" }, title), wait, close);
  dialog.showModal();
  // It may have been closed meanwhile.
  const isWanted = () => dialog.open && wait.isConnected;
  try {
    const given = await fragment(path);
    if (!isWanted()) return;
    dialog.replaceChildren(...given.childNodes);
    find("[autofocus]", dialog)?.focus();
  } catch (error) {
    if (!isWanted()) return;
    dialog.close();
    failed(error);
  }
}

document.addEventListener("click", (event) => {
  const target = event.target instanceof Element ? event.target : null;
  const button = /** @type {HTMLElement | null} */ (
    target?.closest("[data-copy],[data-check],[data-each],[data-choose],[data-dialog],[data-wrap],[data-close],[data-comment]")
  );
  // The same link again is no change of the address.
  openFile(target?.closest("a[href^='#f-']")?.getAttribute("href") ?? "");
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
  } else if (check !== undefined) void showCheck(check, (button.textContent ?? "").replace(" …", ""));
  else if (each !== undefined) void actOnEach(each);
  else if (choose !== undefined) chooseAll(choose === "all");
  else if (button.dataset.dialog === "keys") showKeys();
  else if (button.hasAttribute("data-wrap")) toggleWrap();
  else if (button.hasAttribute("data-close") && dialog.open) {
    event.preventDefault();
    dialog.close();
  }
});

// --- Review: comments on lines, kept until they are sent

/** Another comparison has other lines. @param {string} task */
const commentsKey = (task) => `comments:${task}:${new URLSearchParams(location.search).get("against") ?? ""}`;

/** @param {string} task @param {string} [key] @returns {Comment[]} */
function comments(task, key = commentsKey(task)) {
  try {
    return JSON.parse(stored(key) ?? "[]");
  } catch {
    return [];
  }
}

/** @param {string} task @param {Comment[]} all */
function storeComments(task, all) {
  store(commentsKey(task), all.length > 0 ? JSON.stringify(all) : null);
}

/** @param {Comment} one @param {Comment} other */
const isSamePlace = (one, other) => one.path === other.path && one.side === other.side && one.line === other.line;

/** @param {string} task @param {Comment[]} sent */
function forgetComments(task, sent) {
  const isSent = (/** @type {Comment} */ comment) => sent.some((other) => isSamePlace(other, comment) && other.text === comment.text);
  storeComments(task, comments(task).filter((comment) => !isSent(comment)));
  findAll("#diff .comment").forEach((box) => box.remove());
  showComments();
}

const reviewedTask = () => find("#diff")?.dataset.task ?? "";

/** @param {Comment} comment */
const placeName = ({ path, side, line }) => `${side} ${line} ${path}`;

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

/** The line of a comment: that with its number, or the nearest one with the same code. @param {Comment} comment */
function lineOf(comment) {
  const file = findAll("#diff .file").find((file) => file.dataset.path === comment.path);
  if (!file) return null;
  const isSame = (/** @type {HTMLElement} */ line) => find("code", line)?.textContent === comment.code;
  const exact = find(`.l[data-${comment.side}="${comment.line}"]`, file);
  if (exact && isSame(exact)) return exact;
  const distance = (/** @type {HTMLElement} */ line) => Math.abs(placeOf(line).line - comment.line);
  const same = findAll(`.l[data-${comment.side}]`, file).filter(isSame);
  return same.sort((one, other) => distance(one) - distance(other))[0] ?? null;
}

/** The element that a comment follows: side by side, two halves make a row. @param {HTMLElement} line */
function rowEnd(line) {
  const parent = line.parentElement;
  if (!parent?.classList.contains("split")) return line;
  const cells = [...parent.children].filter((cell) => cell.classList.contains("l"));
  return cells[cells.indexOf(line) | 1] ?? line;
}

/** @param {HTMLElement} line */
function boxBelow(line) {
  const next = rowEnd(line).nextElementSibling;
  return next instanceof HTMLElement && next.matches(".comment") ? next : null;
}

/** @param {string} name */
const boxesOf = (name) => findAll("#diff .comment").filter((box) => box.dataset.place === name);

/** @param {HTMLElement} line */
function editComment(line) {
  if (line.dataset.old === undefined && line.dataset.new === undefined) return;
  line.tabIndex = -1;
  const place = placeOf(line);
  const box = boxBelow(line) ?? boxesOf(placeName(place))[0] ?? commentBox(place);
  if (!box.isConnected) rowEnd(line).after(box);
  find("textarea", box)?.focus();
}

/** @param {Comment} comment @param {string} text */
function setComment(comment, text) {
  const task = reviewedTask();
  const others = comments(task).filter((other) => !isSamePlace(other, comment));
  storeComments(task, text.trim() === "" ? others : [...others, { ...comment, text }]);
}

/** The place of each box, which changes with its line. @type {WeakMap<Element, Comment>} */
const placeOfBox = new WeakMap();

/** @param {HTMLElement} box @param {Comment} comment */
function setPlace(box, comment) {
  placeOfBox.set(box, comment);
  box.dataset.place = placeName(comment);
  find("textarea", box)?.setAttribute("aria-label", `Comment on line ${comment.line} of ${comment.path}`);
}

/** @param {Comment} comment */
function commentBox(comment) {
  const text = /** @type {HTMLTextAreaElement} */ (element("textarea", { rows: "3" }));
  text.value = comment.text;
  const remove = element("button", { type: "button", class: "quiet" }, "Remove");
  const box = element("div", { class: "comment", "data-own": "" }, text, remove);
  setPlace(box, comment);
  const place = () => placeOfBox.get(box) ?? comment;
  const focusLine = () => {
    const line = lineOf(place());
    if (line) line.tabIndex = -1;
    line?.focus();
  };
  text.oninput = () => {
    setComment(place(), text.value);
    countComments();
  };
  text.onkeydown = (event) => {
    if (event.key === "Escape") focusLine();
  };
  remove.onclick = () => {
    setComment(place(), "");
    box.remove();
    countComments();
    focusLine();
  };
  return box;
}

/** The comment with the place that its line has now. @param {Comment} comment */
function moved(comment) {
  const line = lineOf(comment);
  return line ? { ...placeOf(line), text: comment.text } : comment;
}

/** Stores where the lines of comments are after a change of the page. Two comments that come to one line become one. */
function moveComments() {
  for (const box of findAll("#diff .comment")) {
    const place = placeOfBox.get(box);
    if (place) setPlace(box, moved(place));
  }
  const before = comments(reviewedTask());
  /** @type {Map<string, Comment>} */
  const after = new Map();
  for (const comment of before.map(moved)) {
    const other = after.get(placeName(comment));
    after.set(placeName(comment), other ? { ...comment, text: `${other.text}\n${comment.text}` } : comment);
  }
  const all = [...after.values()];
  if (JSON.stringify(all) !== JSON.stringify(before)) storeComments(reviewedTask(), all);
}

/** The box of a comment; a line has at most one. @param {Comment} comment @param {HTMLElement} line */
function shownBox(comment, line) {
  const below = boxBelow(line);
  const found = [...new Set([...boxesOf(placeName(comment)), ...(below ? [below] : [])])];
  const box = found.find(isWrittenIn) ?? found[0] ?? commentBox(comment);
  const others = found.filter((other) => other !== box);
  for (const other of others) other.remove();
  setPlace(box, comment);
  const text = /** @type {HTMLTextAreaElement | null} */ (find("textarea", box));
  if (text && text.value !== comment.text && (others.length > 0 || !isWrittenIn(box))) text.value = comment.text;
  return box;
}

/** Puts each comment below its line; what has no line any more is listed in the review. */
function showComments() {
  /** @type {Comment[]} */
  const lost = [];
  for (const comment of comments(reviewedTask())) {
    const line = lineOf(comment);
    const file = findAll("#diff .file").find((file) => file.dataset.path === comment.path);
    const isFolded = file && partOf(file).dataset.load && partOf(file).dataset.ofUserLoaded === undefined;
    if (!line && !isFolded) lost.push(comment);
    if (!line) {
      for (const box of boxesOf(placeName(comment))) box.remove();
      continue;
    }
    const box = shownBox(comment, line);
    if (rowEnd(line).nextElementSibling === box) continue;
    const hadFocus = box.contains(document.activeElement);
    rowEnd(line).after(box);
    if (hadFocus) find("textarea", box)?.focus();
  }
  showLost(lost);
  countComments();
}

/** @param {Comment[]} lost */
function showLost(lost) {
  find("#review .lost")?.remove();
  if (lost.length === 0) return;
  const item = (/** @type {Comment} */ comment) => {
    const remove = element("button", { type: "button", class: "quiet" }, "Remove");
    remove.onclick = () => {
      setComment(comment, "");
      showComments();
    };
    return element("li", {}, `${comment.path}:${comment.line} `, element("code", {}, comment.code), ` ${comment.text} `, remove);
  };
  const list = element("ul", {}, ...lost.map(item));
  const box = element("div", { class: "lost", "data-own": "" }, element("p", {}, "Comments on lines that have changed:"), list);
  find("#review h2")?.after(box);
}

function countComments() {
  const text = find("[data-comments]");
  const count = comments(reviewedTask()).length;
  if (!text) return;
  text.dataset.ofUserHint ??= text.textContent ?? "";
  text.textContent = count > 0 ? `${plural(count, "comment")} on lines.` : text.dataset.ofUserHint;
  showOtherViews();
}

/** Comments on other comparisons are sent from there; links lead to them. */
function showOtherViews() {
  const task = reviewedTask();
  const links = storedKeys()
    .filter((key) => key.startsWith(`comments:${task}:`) && key !== commentsKey(task))
    .map((key) => viewLink(key.slice(`comments:${task}:`.length), comments(task, key).length));
  const found = find("#review .others");
  const box = links.length > 0 ? element("p", { class: "note others", "data-own": "" }, ...links) : null;
  if (found?.isEqualNode(box)) return;
  found?.remove();
  if (box) find("#review form > button")?.after(box);
}

/** @param {string} against @param {number} count */
function viewLink(against, count) {
  const query = new URLSearchParams(location.search);
  if (against === "") query.delete("against");
  else query.set("against", against);
  const name = against === "" ? "All changes" : against === "review" ? "Only since the review" : `the comparison with ${against}`;
  return element("a", { href: `${location.pathname}?${query}` }, `${plural(count, "more comment")} in ${name}`);
}

/** All comments as one message: place, quoted line, text. @param {string} task @param {string} general */
function reviewText(task, general) {
  const order = (/** @type {Comment} */ one, /** @type {Comment} */ other) =>
    one.path.localeCompare(other.path) || one.line - other.line;
  const parts = comments(task).sort(order).map(({ path, side, line, code, text }) => {
    const before = side === "old" ? ", before the change" : "";
    return `${path}:${line}${before}\n> ${code}\n${text.trim()}`;
  });
  return [general.trim(), ...parts].filter((part) => part !== "").join("\n\n");
}

/** On a phone, lines are wrapped unless the user chose otherwise. */
const isWrapped = () => (stored("wrap") ?? String(matchMedia("(max-width: 40rem)").matches)) === "true";

function showWrap() {
  find("#diff")?.classList.toggle("wrapped", isWrapped());
  find("[data-wrap]")?.setAttribute("aria-pressed", String(isWrapped()));
}

function toggleWrap() {
  store("wrap", String(!isWrapped()));
  showWrap();
}

/** @param {HTMLElement} file */
const viewedKey = (file) => `viewed:${find("#diff")?.dataset.owner ?? reviewedTask()}:${file.dataset.path}`;

/** The part of a file that opens. @param {HTMLElement} file */
const partOf = (file) => /** @type {HTMLDetailsElement} */ (find("details", file));

/** @param {HTMLInputElement} box */
function setViewed(box) {
  const file = /** @type {HTMLElement | null} */ (box.closest(".file"));
  if (!file) return;
  store(viewedKey(file), box.checked ? (file.dataset.version ?? "") : null);
  partOf(file).open = !box.checked;
  // From there the keys go on to the next file.
  if (box.checked) find("summary", file)?.focus();
}

/** The lines of a large file, when it is opened. @param {HTMLDetailsElement} part */
async function loadLines(part) {
  const version = part.closest(".file")?.getAttribute("data-version") ?? "";
  const path = part.dataset.load;
  if (!part.open || !path || part.dataset.ofUserLoaded === version) return;
  part.dataset.ofUserLoaded = version;
  try {
    const given = find(".file .content", await fragment(path));
    const content = find(".content", part);
    if (!given || !content) return;
    content.replaceChildren(...document.importNode(given, true).childNodes);
    moveComments();
    showComments();
  } catch (error) {
    delete part.dataset.ofUserLoaded;
    failed(error);
  }
}

/** Opens the file that a link of the list leads to. @param {string} hash */
function openFile(hash) {
  const file = document.getElementById(hash.slice(1));
  if (file?.classList.contains("file")) partOf(file).open = true;
}

window.addEventListener("hashchange", () => openFile(location.hash));

function prepareDiff() {
  if (!find("#diff")) return;
  showWrap();
  for (const file of findAll("#diff .file")) {
    const isViewed = stored(viewedKey(file)) === file.dataset.version;
    const box = /** @type {HTMLInputElement | null} */ (find("[data-viewed]", file));
    if (box && box.checked !== isViewed) {
      box.checked = isViewed;
      partOf(file).open = !isViewed;
    }
    // Lines that were loaded before may be others by now.
    if (partOf(file).dataset.ofUserLoaded !== undefined) void loadLines(partOf(file));
  }
  moveComments();
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

/** People who speak to their computer press keys by accident. */
const areKeysOn = () => stored("keys") !== "off";

function showKeys() {
  const rows = KEYS.map(([keys, text]) => element("div", {}, element("dt", {}, element("kbd", {}, keys)), element("dd", {}, text)));
  const close = element("button", { type: "button", "data-close": "", autofocus: "" }, "Close");
  const box = /** @type {HTMLInputElement} */ (element("input", { type: "checkbox" }));
  box.checked = areKeysOn();
  box.onchange = () => store("keys", box.checked ? null : "off");
  const choice = element("label", { class: "check" }, box, "Single-letter keys");
  dialog.replaceChildren(element("h2", { id: "dialog-title" }, "Keys"), element("dl", {}, ...rows), choice, close);
  dialog.showModal();
}

/**
 * Moves the focus among elements that are shown.
 * @param {string} selector
 * @param {number} step
 */
function move(selector, step) {
  const all = findAll(selector);
  const active = document.activeElement;
  let at = all.findIndex((item) => item === active || item.contains(active));
  if (at < 0) {
    const follows = (/** @type {HTMLElement} */ item) =>
      active !== null && (active.compareDocumentPosition(item) & Node.DOCUMENT_POSITION_FOLLOWING) !== 0;
    const found = active === document.body ? 0 : all.findIndex(follows);
    const first = found < 0 ? all.length : found;
    at = first - (step > 0 ? 1 : 0);
  }
  // What is folded cannot have the focus.
  do at += step;
  while (all[at] && !all[at].checkVisibility());
  const item = all[at];
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
  if (isText || dialog.open || event.ctrlKey || event.metaKey || event.altKey || !areKeysOn()) return;
  const action = ACTIONS[event.key];
  if (action) {
    event.preventDefault();
    action();
  }
});

// --- Start

for (const button of findAll("[data-dialog]")) button.hidden = false;
removeOlder(today() - MAX_AGE_DAYS);
onChanged();
openFile(location.hash);
showReport();
if (main.dataset.live) void refresh();
void follow();
channel.postMessage({ question: true });
setInterval(watchLeader, 5_000);
setInterval(tellTimes, 10_000);
setInterval(() => main.dataset.live === "poll" && void refresh(), POLL_MS);
if ("serviceWorker" in navigator) navigator.serviceWorker.register("/sw.js").catch(() => {});
