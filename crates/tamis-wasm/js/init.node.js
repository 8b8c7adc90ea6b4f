// In Node.js the library is loaded when it is imported, so that there is nothing left to do.
export { Filter, plan } from "./node.js";

export default async function init() {}

export function initSync() {}
