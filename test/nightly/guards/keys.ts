import { type Guard, guards } from './guard.ts'

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
    text: '      throw foreign\n',
    mutation: "      if (text === '') throw foreign\n",
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
  ...guards({ file: 'src/access/key-changes.ts', test: 'test/api/access/keys.test.ts' }, [
    {
      text: 'set expires_at = least(expires_at, now() + ${graceS}',
      mutation: 'set expires_at = (now() + ${graceS}',
      claim:
        'the successor has the same permissions and lifetime; the old key never lives longer than before',
      control:
        'two concurrent rotations of one key: one creates the successor, the other gets its id',
    },
    {
      text: '    select ${tx.unsafe(INHERITED)}, ${randomUUID()}',
      mutation:
        "    select ${tx.unsafe(INHERITED.replace('chain_id', 'gen_random_uuid()'))}, ${randomUUID()}",
      claim: 'rotation does not reset the daily cap: old and new key share the total',
      control:
        'two concurrent rotations of one key: one creates the successor, the other gets its id',
    },
  ]),
  {
    file: 'src/access/key-changes.ts',
    text: 'set ended_at = now() where id = ${id} and ended_at is null`',
    mutation: 'set ended_at = now() where id = ${id}`',
    test: 'test/process/cli/keys.test.ts',
    claim:
      'a revoked key is refused from the next write on, and a second revocation is reported as such',
    control: 'rotated without grace, the old key ends at once',
  },
  {
    file: 'src/access/authenticate.ts',
    text: '      if (throttle(`${key.id} ${network}`)) await',
    mutation: "      if (throttle(`${key.id} ${network}`) || network !== '') await",
    test: 'test/process/cli/keys.test.ts',
    claim:
      'a key bound to networks is refused from others, behind a proxy or not, with an entry in the audit log',
    control: 'rotated without grace, the old key ends at once',
  },
  ...guards({ file: 'src/access/keys.ts', test: 'test/api/access/key-cache.test.ts' }, [
    {
      text: '    entries.delete(hash)\n    if (key)',
      mutation: '    if (key)',
      claim: "the result of a write's lookup replaces the cached one for later reads",
      control: 'an unknown key is looked up each time',
    },
    {
      text: 'return cached && now() - cached.fetchedAt < CACHE_TTL_MS ? cached.key',
      mutation: 'return cached && cached.fetchedAt < CACHE_TTL_MS + now() ? cached.key',
      claim:
        'a revoked key stays cached for a second at most, for reads only, and is evicted once the database lacks it',
      control: 'an unknown key is looked up each time',
    },
  ]),
  ...guards({ file: 'src/access/keys.ts', test: 'test/api/access/authenticate.test.ts' }, [
    {
      text: '`(k.ended_at is null and (k.expires_at is null or k.expires_at > clock_timestamp()))`',
      mutation: '`(k.expires_at is null or k.expires_at > clock_timestamp())`',
      claim:
        'without a valid key an expired or revoked key is refused for writes immediately, and for reads shortly after',
      control: 'without a valid key the scheme is case-insensitive',
    },
    {
      text: '`(k.ended_at is null and (k.expires_at is null or k.expires_at > clock_timestamp()))`',
      mutation: '`k.ended_at is null`',
      claim:
        'without a valid key an expired or revoked key is refused for writes immediately, and for reads shortly after',
      control: 'without a valid key the scheme is case-insensitive',
    },
  ]),
  {
    file: 'src/access/setting-keys.ts',
    text: 'if (key?.isOther) {',
    mutation: 'if (key?.isOther && key.isRevoked) {',
    test: 'test/api/access/first-key.test.ts',
    claim:
      'another API_KEY than at the last start is refused if it is the text of another key, and no key ends',
    control:
      'another API_KEY than at the last start ends its predecessor at once without a grace period',
  },
  {
    file: 'src/access/setting-keys.ts',
    text: 'if (key?.isRevoked) {',
    mutation: "if (key?.isRevoked && key.id === '') {",
    test: 'test/api/access/prepare-access.test.ts',
    claim: 'a start with the text of a revoked key says so',
    control: "a restart of the demo makes a new link, and ends the earlier one's with its session",
  },
  {
    file: 'src/access/keys.ts',
    text: " and k.chain_id is distinct from '${SETTING_CHAIN}'",
    mutation: " and '${SETTING_CHAIN}' <> ''",
    test: 'test/api/access/first-key.test.ts',
    claim:
      'another API_KEY than at the last start is not warned of as a key that ends soon: its successor is there',
    control:
      'another API_KEY than at the last start ends its predecessor at once without a grace period',
  },
  ...guards({ file: 'src/access/setting-keys.ts', test: 'test/api/access/first-key.test.ts' }, [
    {
      text: 'where k.id = live.id and k.ended_at is null',
      mutation: 'where k.id = live.id',
      claim:
        'another API_KEY than at the last start leaves alone a predecessor that is revoked meanwhile',
      control:
        'another API_KEY than at the last start ends its predecessor at once without a grace period',
    },
    {
      text: '(k.scopes <> excluded.scopes or k.expires_at is not null)',
      mutation: '(k.scopes <> excluded.scopes or true)',
      claim:
        'another API_KEY than at the last start is an entry of the audit log when it is stored or set again, and none while it stays',
      control:
        'another API_KEY than at the last start ends its predecessor at once without a grace period',
    },
    {
      text: '      await recordEntry(tx, log, SETTINGS, write)\n',
      mutation: "      if (text === '') await recordEntry(tx, log, SETTINGS, write)\n",
      claim:
        'another API_KEY than at the last start is an entry of the audit log when it is stored or set again, and none while it stays',
      control:
        'another API_KEY than at the last start ends its predecessor at once without a grace period',
    },
  ]),
  ...guards({ test: 'test/api/access/at-once.test.ts' }, [
    {
      file: 'src/access/audit.ts',
      text: '  if (actor.id !== null) await lockActor(tx, actor)\n',
      mutation: "  if (actor.id === '') await lockActor(tx, actor)\n",
      claim: 'an approval that waits for a lock is refused when its role is taken away',
      control: 'a refund request that waits for a lock is taken when nothing changes',
    },
    {
      file: 'src/refunds/request-facts.ts',
      text: '    lockActor(tx, access),',
      mutation: "    key.refundId === '' && lockActor(tx, access),",
      claim: 'a refund request that waits for a lock is refused when its key is revoked',
      control: 'a refund request that waits for a lock is taken when nothing changes',
    },
    {
      file: 'src/access/authenticate.ts',
      text: '      if (loss) throw loss\n',
      mutation: "      if (loss && text === '') throw loss\n",
      claim: 'a long poll is refused when its key is revoked',
      control: 'a refund request that waits for a lock is taken when nothing changes',
    },
  ]),
  ...guards({ file: 'src/access/authenticate.ts', test: 'test/api/access/key-limits.test.ts' }, [
    {
      text: 'return LONG_POLLS.includes(route) && Number(',
      mutation: "return route !== '' && LONG_POLLS.length > 0 && Number(",
      claim: 'only a request that is held open counts among those that wait',
      control: 'a key without a rate of its own has the default one',
    },
    {
      text: "Number(c.req.query('wait')) > 0",
      mutation: "Number(c.req.query('wait')) >= 0",
      claim: 'only a request that is held open counts among those that wait',
      control: 'a key without a rate of its own has the default one',
    },
  ]),
  {
    file: 'src/feed/open-stream.ts',
    text: '      if (await isCut()) return false\n',
    mutation: '      if ((await isCut()) && end.aborted) return false\n',
    test: 'test/api/access/at-once.test.ts',
    claim: 'a stream sends no event once its key has lost the scope',
    control: 'a refund request that waits for a lock is taken when nothing changes',
  },
  {
    file: 'src/access/principal.ts',
    text: 'if (!now || now.principal !== access.principal) {',
    mutation: 'if (!now) {',
    test: 'test/plays/approval/approval.test.ts',
    claim:
      'past the routes, the database is decided by no one whose principal is not the one that is stored',
    control:
      'past the routes, the database refuses a refund without the principal who requested it',
  },
  ...guards({ file: 'src/access/principal.ts', test: 'test/api/access/at-once.test.ts' }, [
    {
      text: '.find((one) => !granted.includes(one))',
      mutation: '.find((one) => !granted.includes(one) && granted.length === 0)',
      claim: 'a refund request that waits for a lock is refused when its key loses the scope',
      control: 'a refund request that waits for a lock is taken when nothing changes',
    },
    {
      text: ' || !access.merchants.every(covers)) {',
      mutation: ' || (!access.merchants.every(covers) && now.merchants.length === 0)) {',
      claim:
        'a refund request that waits for a lock is refused when its key of one account loses it',
      control: 'a refund request that waits for a lock is taken when nothing changes',
    },
    {
      text: 'if ((access.coversAll && !coversAll) || ',
      mutation: "if ((access.coversAll && !coversAll && access.id === '') || ",
      claim:
        'a refund request that waits for a lock is refused when its key has no more than the accounts of today',
      control: 'a refund request that waits for a lock is taken when nothing changes',
    },
    {
      text: 'const isOver = access.sessionId !== undefined && !(await lockSession(tx, access.sessionId))',
      mutation:
        "const isOver = access.sessionId === '' && !(await lockSession(tx, access.sessionId))",
      claim: 'an approval that waits for a lock is refused when its session is ended',
      control: 'an approval that waits for a lock is refused when its role is taken away',
    },
  ]),
  {
    file: 'src/access/keys.ts',
    text: 'k.expires_at > clock_timestamp()))`',
    mutation: 'k.expires_at > now()))`',
    test: 'test/api/access/at-once.test.ts',
    claim:
      'a refund request that waits for a lock is refused when its key is rotated without grace',
    control: 'a refund request that waits for a lock is taken when nothing changes',
  },
  {
    file: 'src/access/principal.ts',
    text: '  return findForeignUse(now, access.address)\n',
    mutation:
      '  return access.address === undefined ? findForeignUse(now, access.address) : undefined\n',
    test: 'test/api/access/at-once.test.ts',
    claim:
      'a refund request that waits for a lock is refused when its key is bound to other networks',
    control: 'a refund request that waits for a lock is taken when nothing changes',
  },
]
