const output = document.querySelector("output");

await navigator.serviceWorker.register("service-worker.js", { type: "module" });
await navigator.serviceWorker.ready;
// The first visit begins before there is a worker.
if (!navigator.serviceWorker.controller) {
  await new Promise((resolve) => navigator.serviceWorker.addEventListener("controllerchange", resolve, { once: true }));
}
output.textContent = "Ready.";

document.querySelector("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const address = new FormData(event.target).get("address");
  try {
    const { status } = await fetch(address, { mode: "no-cors" });
    output.textContent = status === 451 ? `${new URL(address).hostname} is on the list.` : `${address} was asked.`;
  } catch (error) {
    output.textContent = `${address} is not on the list, and can't be reached: ${error.message}`;
  }
});
