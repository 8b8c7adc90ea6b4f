// Workers of Cloudflare and their like compile WebAssembly before they run, and get the module by importing it.
import module from "./tamis.wasm";
import { Filter, initSync, plan } from "./init.js";

initSync(module);

export { Filter, plan };
