// Shows that the server cannot be reached instead of an error of the browser. Only the style, the script and the icon are
// stored; no page and no data ever is.
// @ts-check
/// <reference lib="webworker" />

const SHELL = ["/ui/assets/dashboard.css", "/ui/assets/dashboard.js", "/ui/assets/icon.svg"];
const worker = /** @type {ServiceWorkerGlobalScope} */ (/** @type {unknown} */ (self));

const OFFLINE = `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Not connected · mcp-delegator</title><link rel="stylesheet" href="/ui/assets/dashboard.css">
<body class="signed-out"><main><h1>Not connected</h1><p>The dashboard does not run, or this device cannot reach it. Tasks keep running.</p>
<pre>mcp-delegator dashboard</pre><p><a href="">Try again</a></p></main></body></html>`;

worker.addEventListener("install", (event) => {
  event.waitUntil(caches.open("shell").then((cache) => cache.addAll(SHELL)).then(() => worker.skipWaiting()));
});

worker.addEventListener("activate", (event) => event.waitUntil(worker.clients.claim()));

worker.addEventListener("fetch", (event) => {
  const { request } = event;
  const path = new URL(request.url).pathname;
  if (request.method !== "GET") return;
  if (request.mode === "navigate") {
    const headers = { "Content-Type": "text/html; charset=utf-8" };
    event.respondWith(fetch(request).catch(() => new Response(OFFLINE, { status: 503, headers })));
  } else if (SHELL.includes(path)) {
    event.respondWith(
      fetch(request)
        .then(async (response) => {
          if (response.ok) await (await caches.open("shell")).put(request, response.clone());
          return response;
        })
        .catch(async () => (await caches.match(request)) ?? Response.error()),
    );
  }
});
