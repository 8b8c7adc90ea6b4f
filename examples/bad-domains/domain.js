/// Whether a host may be on the list: it, or a domain that it is part of.
export function isBad(list, host) {
  const labels = host.replace(/\.$/, "").split(".");
  // A domain of one label, such as "com", is on no list.
  const domains = labels.slice(0, -1).map((_, i) => labels.slice(i).join("."));
  return list.hasMany(domains).includes(1);
}
