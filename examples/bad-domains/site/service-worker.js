import init, { Filter } from "./tamis/init.js";
import { isBad } from "./domain.js";

// A worker is ended when it is idle and started again for the next request. The browser's cache has the list then.
let list;
async function loaded() {
  await init();
  return Filter.fetch(new URL("bad-domains.tamis", import.meta.url));
}

self.addEventListener("install", (event) => {
  event.waitUntil((list ??= loaded()));
  self.skipWaiting();
});
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("fetch", (event) => {
  const { hostname, origin } = new URL(event.request.url);
  if (origin === location.origin) return;
  event.respondWith(answer(hostname, event.request));
});

async function answer(hostname, request) {
  if (isBad(await (list ??= loaded()), hostname)) return new Response("This domain is on the list.", { status: 451 });
  return fetch(request);
}
