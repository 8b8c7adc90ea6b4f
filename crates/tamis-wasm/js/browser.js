import init, { Filter, plan } from "./init.js";

await init();

export { Filter, plan };
