-- Sets the bits of keys that were not found, if nothing has changed since they
-- were looked for: then nobody else can have added them elsewhere.
--
-- KEYS: the ledger, the string to write to, and the others that keys were
-- looked for in. ARGV: the ledger as it was; a string's bytes without its foot;
-- the feet of the others as they were; the bits.
--
-- Returns what the bits were, and nothing (0) if something has changed.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
local len = tonumber(ARGV[2])
for i = 2, #KEYS do
  local foot = redis.call('GETRANGE', KEYS[i], len, len + 10)
  if #foot ~= 10 or i > 2 and foot ~= ARGV[i] then return 0 end
end
local sets, n = {}, 0
for i = #KEYS + 1, #ARGV do
  sets[n + 1], sets[n + 2], sets[n + 3], sets[n + 4] = 'SET', 'u1', ARGV[i], '1'
  n = n + 4
end
-- The version.
sets[n + 1], sets[n + 2], sets[n + 3], sets[n + 4] = 'INCRBY', 'u32', len * 8, '1'
return redis.call('BITFIELD', KEYS[2], unpack(sets))
