// A headless Chromium, over its WebDriver, and a server of files for it: what the tests in a browser share.
// CHROMIUM and CHROMEDRIVER name the programs, by default Debian's.
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".mjs": "text/javascript", ".json": "application/json", ".wasm": "application/wasm" };

/// Serves folders: `/name/…` from `folders.name`. The address, and what ends it.
export async function serve(folders) {
  const server = createServer(async (request, response) => {
    const [, name, ...rest] = decodeURIComponent(new URL(request.url, "http://host").pathname).split("/");
    try {
      const path = join(folders[name], normalize(`/${rest.join("/")}`));
      const body = await readFile(path);
      response.writeHead(200, { "Content-Type": TYPES[extname(path)] ?? "application/octet-stream" }).end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    address: `http://127.0.0.1:${server.address().port}`,
    end: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/// A browser. `options` are further words of its command line.
export async function browser(...options) {
  const driver = spawn(process.env.CHROMEDRIVER ?? "chromedriver", ["--port=0"], { stdio: ["ignore", "pipe", "inherit"] });
  const port = await new Promise((resolve, reject) => {
    let said = "";
    driver.stdout.on("data", (data) => {
      said += data;
      const found = /started successfully on port (\d+)/.exec(said);
      if (found) resolve(found[1]);
    });
    driver.on("error", reject);
    driver.on("exit", () => reject(new Error(`chromedriver has ended: ${said}`)));
  });
  const ask = async (method, path, body) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { method, body: body && JSON.stringify(body) });
    const { value } = await response.json();
    if (value?.error) throw new Error(`${value.error}: ${value.message}`);
    return value;
  };
  const args = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", ...options];
  const chrome = { binary: process.env.CHROMIUM ?? "/usr/bin/chromium", args };
  let session;
  try {
    const made = await ask("POST", "/session", { capabilities: { alwaysMatch: { browserName: "chrome", "goog:chromeOptions": chrome } } });
    session = `/session/${made.sessionId}`;
    await ask("POST", `${session}/timeouts`, { script: 600_000, pageLoad: 600_000 });
  } catch (error) {
    driver.kill();
    throw error;
  }
  return {
    open: (url) => ask("POST", `${session}/url`, { url }),
    /// Runs the body of an async function in the page.
    run: async (body, ...values) => {
      const script = `const done = arguments[arguments.length - 1];
        (async (...values) => { ${body} })(...Array.from(arguments).slice(0, -1)).then((value) => done({ value }), (error) => done({ error: String(error?.stack ?? error) }));`;
      const { value, error } = await ask("POST", `${session}/execute/async`, { script, args: values });
      if (error !== undefined) throw new Error(`in the page: ${error}`);
      return value;
    },
    end: async () => {
      await ask("DELETE", session).catch(() => {});
      driver.kill();
    },
  };
}
