import init, { Filter } from "./tamis/init.js";
import { isBad } from "./domain.js";

let list;
async function loaded() {
  await init();
  return Filter.fetch(chrome.runtime.getURL("bad-domains.tamis"));
}

/// Asked by the extension's page, and for every tab.
async function check(address) {
  list ??= loaded();
  return isBad(await list, new URL(address).hostname);
}

chrome.tabs.onUpdated.addListener(async (tabId, { url }) => {
  if (!url?.startsWith("http")) return;
  const bad = await check(url);
  await chrome.action.setBadgeText({ tabId, text: bad ? "!" : "" });
});

chrome.runtime.onMessage.addListener(({ address }, sender, reply) => {
  check(address).then(
    (bad) => reply({ bad }),
    (error) => reply({ error: error.message }),
  );
  return true; // the answer comes later
});
