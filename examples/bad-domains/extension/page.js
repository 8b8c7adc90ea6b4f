const output = document.querySelector("output");

document.querySelector("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const address = new FormData(event.target).get("address");
  const { bad, error } = await chrome.runtime.sendMessage({ address });
  output.textContent = error ?? (bad ? "On the list, or one of the few that look so." : "Not on the list.");
});
