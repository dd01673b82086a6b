// Serves the site, searches it in Chromium and opens the first hit: node site_search.mjs TOOLS/package.json SITE
import { createReadStream } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { extname, join } from "node:path";

const [tools, site] = process.argv.slice(2);
const { chromium } = createRequire(tools)("playwright-core");
const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };

const server = createServer((request, response) => {
  const path = new URL(request.url, "http://site").pathname;
  const file = createReadStream(join(site, path.endsWith("/") ? `${path}index.html` : path));
  file.once("open", () => {
    response.setHeader("Content-Type", types[extname(path)] ?? "text/html");
    file.pipe(response);
  });
  file.once("error", () => response.writeHead(404).end());
});
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
// Its sandbox needs rights that neither root nor a user in a container has. It opens only our own pages.
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
try {
  const page = await browser.newPage();
  const errors = [];
  page.on("pageerror", (error) => errors.push(error));
  page.setDefaultTimeout(20_000);
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  await page.keyboard.press("s");
  await page.locator("#mdbook-searchbar").pressSequentially("restore point");
  const hit = page.locator("#mdbook-searchresults a", { hasText: "How long restore points are retained" }).first();
  await hit.click();
  await page.waitForURL("**/*.html?highlight=*");
  console.log(page.url(), await page.title());
  if (errors.length > 0) throw errors[0];
} finally {
  await browser.close();
  server.close();
}
