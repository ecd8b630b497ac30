import type { Guard } from './guard.ts'

export const KEYS: readonly Guard[] = [
  {
    file: 'src/access/authenticate.ts',
    text: "const freshness = c.req.method === 'GET' ? 'cached' : 'current'",
    mutation: "const freshness = c.req.method !== '' ? 'cached' : 'current'",
    test: 'test/api/access/authenticate.test.ts',
    claim:
      'without a valid key an expired or revoked key is refused for writes immediately, and for reads shortly after',
    control: 'without a valid key the scheme is case-insensitive',
  },
  {
    file: 'src/access/authenticate.ts',
    text: '    await checkNetwork(c, key, keyUses.findAddress(incoming))\n',
    mutation: '    void checkNetwork\n',
    test: 'test/process/cli/keys.test.ts',
    claim:
      'a key bound to networks is refused from others, behind a proxy or not, with an entry in the audit log',
    control:
      'a revoked key is refused from the next write on, and a second revocation is reported as such',
  },
  {
    file: 'src/access/key-changes.ts',
    text: '    on conflict (replaces) do nothing\n    returning',
    mutation: '    returning',
    test: 'test/process/cli/keys.test.ts',
    claim:
      'rotated, two keys are live until the grace is over; a second rotation in between is refused',
    control:
      'a key is created with scopes, account, caps, rate and expiry, shown once, and only its hash is stored',
  },
  {
    file: 'src/access/key-changes.ts',
    text: 'expiresAt: sql`least(${apiKeys.expiresAt}, now() + ${graceS}',
    mutation: 'expiresAt: sql`(now() + ${graceS}',
    test: 'test/api/access/keys.test.ts',
    claim:
      'the successor has the same permissions and lifetime; the old key never lives longer than before',
    control:
      'two concurrent rotations of one key: one creates the successor, the other gets its id',
  },
  {
    file: 'src/access/key-changes.ts',
    text: '      person, now() + (expires_at - created_at), id, coalesce(chain_id, id)',
    mutation: '      person, now() + (expires_at - created_at), id, id',
    test: 'test/api/access/keys.test.ts',
    claim: 'rotation does not reset the daily cap: old and new key share the total',
    control:
      'the successor has the same permissions and lifetime; the old key never lives longer than before',
  },
  {
    file: 'src/access/key-changes.ts',
    text: 'where(and(eq(apiKeys.id, id), isNull(apiKeys.revokedAt)))',
    mutation: 'where(and(eq(apiKeys.id, id), sql`(${isNull(apiKeys.revokedAt)} or true)`))',
    test: 'test/process/cli/keys.test.ts',
    claim:
      'a revoked key is refused from the next write on, and a second revocation is reported as such',
    control: 'rotated without grace, the old key ends at once',
  },
  {
    file: 'src/access/check-network.ts',
    text: '    if (isDueForRecord(`${key.id} ${network}`)) await',
    mutation: "    if (isDueForRecord(`${key.id} ${network}`) || network !== '') await",
    test: 'test/process/cli/keys.test.ts',
    claim:
      'a key bound to networks is refused from others, behind a proxy or not, with an entry in the audit log',
    control: 'rotated without grace, the old key ends at once',
  },
  {
    file: 'src/access/keys.ts',
    text: '    entries.delete(hash)\n    if (key)',
    mutation: '    if (key)',
    test: 'test/api/access/key-cache.test.ts',
    claim: "the result of a write's lookup replaces the cached one for later reads",
    control: 'an unknown key is looked up each time',
  },
  {
    file: 'src/access/keys.ts',
    text: 'return cached && now() - cached.fetchedAt < CACHE_TTL_MS ? cached.key',
    mutation: 'return cached && cached.fetchedAt < CACHE_TTL_MS + now() ? cached.key',
    test: 'test/api/access/key-cache.test.ts',
    claim:
      'a revoked key stays cached for a second at most, for reads only, and is evicted once the database lacks it',
    control: 'an unknown key is looked up each time',
  },
  {
    file: 'src/access/keys.ts',
    text: '      and revoked_at is null and (expires_at is null or expires_at > now())`\n  const keys',
    mutation: '      and (expires_at is null or expires_at > now())`\n  const keys',
    test: 'test/api/access/authenticate.test.ts',
    claim:
      'without a valid key an expired or revoked key is refused for writes immediately, and for reads shortly after',
    control: 'without a valid key the scheme is case-insensitive',
  },
  {
    file: 'src/access/keys.ts',
    text: '      and revoked_at is null and (expires_at is null or expires_at > now())`\n  const keys',
    mutation: '      and revoked_at is null`\n  const keys',
    test: 'test/api/access/authenticate.test.ts',
    claim:
      'without a valid key an expired or revoked key is refused for writes immediately, and for reads shortly after',
    control: 'without a valid key the scheme is case-insensitive',
  },
]
