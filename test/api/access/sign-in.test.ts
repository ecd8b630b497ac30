import { expect, it } from 'vitest'
import { hashKey } from '../../../src/access/keys.ts'
import { endPerson } from '../../../src/access/people.ts'
import {
  FAILURES_OF_NETWORK,
  findSession,
  listSessions,
  recordUse,
  SIGN_INS_OF_PERSON,
  signIn,
} from '../../../src/access/sessions.ts'
import { createRateLimiter } from '../../../src/platform/concurrency/rate-limiter.ts'
import { runInTransaction } from '../../../src/platform/postgres/transaction.ts'
import { createLog } from '../../../src/platform/telemetry/log.ts'
import { addTestPerson, addVisitor, makeLink } from '../../support/console.ts'
import { waitUntilBlocked, whileUncommitted } from '../../support/locks.ts'
import { useTestDatabase } from '../../support/use-started.ts'

const database = useTestDatabase()

const clock = { at: 0 }
const rates = createRateLimiter({ now: () => clock.at })

let networks = 0
/** An address of a network that no other test uses. */
const newAddress = () => `198.51.100.${++networks}`

const open = (token: string, more: Partial<Parameters<typeof signIn>[1]> = {}) =>
  signIn(
    { db: database, rates, log: createLog('silent') },
    { token, address: newAddress(), userAgent: 'b', requestId: 'r', ...more },
  )

const countSessions = async (personId: string) =>
  (await listSessions(database.sql, personId)).length

it('a link opens one session, even if it is used twenty times at the same moment', async () => {
  const { personId } = await addTestPerson(database)
  const link = await makeLink(database, personId)
  const answers = await Promise.all(Array.from({ length: 20 }, () => open(link)))
  expect(answers.filter(({ kind }) => kind === 'opened')).toHaveLength(1)
  expect(answers.filter(({ kind }) => kind === 'refused')).toHaveLength(19)
  expect(await countSessions(personId)).toBe(1)
  expect(await open(link)).toEqual({ kind: 'refused' })
})

it('neither the token of a link nor that of a session is stored, and both differ', async () => {
  const { personId } = await addTestPerson(database)
  const link = await makeLink(database, personId)
  const opened = await open(link)
  if (opened.kind !== 'opened') throw new Error(opened.kind)
  expect(opened.token).toMatch(/^[\w-]{43}$/)
  expect(opened.token).not.toBe(link)
  const [rows] = await database.sql<{ text: string }[]>`
    select coalesce(string_agg(row::text, ''), '') as text from (
      select to_jsonb(s) as row from sessions s
      union all select to_jsonb(a) from audit_entries a) as rows`
  for (const secret of [link, opened.token]) expect(rows?.text).not.toContain(secret)
})

it.each([
  [
    'an expired link',
    (hash: Buffer) => database.sql`
    update sessions set link_until = now() where link_hash = ${hash}`,
  ],
  [
    'a link that was ended',
    (hash: Buffer) => database.sql`
    update sessions set ended_at = now() where link_hash = ${hash}`,
  ],
  [
    'a link of a person whose access has ended',
    (hash: Buffer) => database.sql`
    update actors set ended_at = now()
    where id = (select person_id from sessions where link_hash = ${hash})`,
  ],
])('%s opens nothing', async (_, spoil) => {
  const { personId } = await addTestPerson(database)
  const link = await makeLink(database, personId)
  await spoil(hashKey(link))
  expect(await open(link)).toEqual({ kind: 'refused' })
  expect(await countSessions(personId)).toBe(0)
})

it('a session that is opened while the person is being ended, is not', async () => {
  const { personId } = await addTestPerson(database)
  const link = await makeLink(database, personId)
  const result = await whileUncommitted(
    database,
    (held) => endPerson(held, personId),
    async (commit) => {
      const opening = open(link)
      await waitUntilBlocked(database)
      await commit()
      return await opening
    },
  )
  expect(result).toEqual({ kind: 'refused' })
})

it('an end of the access that begins during a sign-in waits for it, and ends its session', async () => {
  const { personId } = await addTestPerson(database)
  const link = await makeLink(database, personId)
  const planted = await addVisitor(database)
  const opened = await whileUncommitted(
    database,
    // The last row that the sign-in writes.
    (held) => held`select from sessions where token_hash = ${hashKey(planted.token)} for update`,
    async (commit) => {
      const opening = open(link, { replaces: planted.token })
      await waitUntilBlocked(database)
      const ending = runInTransaction(database.sql, (tx) => endPerson(tx, personId))
      await waitUntilBlocked(database, 2)
      await commit()
      await ending
      return await opening
    },
  )
  expect(opened.kind).toBe('opened')
  const left = await database.sql`
    select from sessions where person_id = ${personId} and ended_at is null`
  expect(left).toHaveLength(0)
})

it('failed sign-ins of a network are limited, and neither count those that succeed nor keep them out', async () => {
  const address = newAddress()
  const { personId } = await addTestPerson(database)
  for (let n = 0; n < 3; n += 1) {
    expect((await open(await makeLink(database, personId), { address })).kind).toBe('opened')
  }
  const guesses = Array.from({ length: FAILURES_OF_NETWORK.burst }, (_, n) =>
    open(`guess-${n}`, { address }),
  )
  expect(new Set((await Promise.all(guesses)).map(({ kind }) => kind))).toEqual(
    new Set(['refused']),
  )
  expect(await open('one more', { address })).toEqual({ kind: 'limited', waitMs: 6_000 })
  expect((await open(await makeLink(database, personId), { address })).kind).toBe('opened')
  clock.at += 6_000
  expect(await open('later', { address })).toEqual({ kind: 'refused' })
})

it('the addresses of one IPv6 network count together', async () => {
  const guess = (n: number) => open('guess', { address: `2001:db8:1:2::${n.toString(16)}` })
  for (let n = 1; n <= FAILURES_OF_NETWORK.burst; n += 1) await guess(n)
  expect((await guess(99)).kind).toBe('limited')
  expect(await open('guess', { address: '2001:db8:1:3::1' })).toEqual({ kind: 'refused' })
})

it('sign-ins of a person are limited, whatever the network, and a limited one does not use up its link', async () => {
  const { personId } = await addTestPerson(database)
  for (let n = 0; n < SIGN_INS_OF_PERSON.burst; n += 1) {
    expect((await open(await makeLink(database, personId))).kind).toBe('opened')
  }
  const link = await makeLink(database, personId)
  expect(await open(link)).toEqual({ kind: 'limited', waitMs: 3_000 })
  clock.at += 3_000
  expect((await open(link)).kind).toBe('opened')
})

it.each([
  ['idle for half an hour', 'last_used_at', '31 minutes'],
  ['twelve hours old', 'expires_at', '13 hours'],
])('a session is over when it is %s, and no request revives it', async (_, column, ago) => {
  const { token, personId } = await addVisitor(database)
  const { sql } = database
  await sql`
    update sessions set ${sql(column)} = ${sql(column)} - ${ago}::interval
    where token_hash = ${hashKey(token)}`
  const session = await findSession(sql, token)
  expect(session?.isLive).toBe(false)
  await recordUse(sql, session?.id ?? '')
  expect((await findSession(sql, token))?.isLive).toBe(false)
  expect(await countSessions(personId)).toBe(0)
})

it('a use is recorded once a minute', async () => {
  const { token } = await addVisitor(database)
  const { sql } = database
  const readLastUse = async () => {
    const [row] = await sql<{ at: string }[]>`
      select last_used_at::text as at from sessions where token_hash = ${hashKey(token)}`
    return row?.at ?? ''
  }
  const age = (seconds: number) => sql`
    update sessions set last_used_at = now() - ${seconds} * interval '1 second'
    where token_hash = ${hashKey(token)}`
  for (const [seconds, isDue] of [
    [50, false],
    [70, true],
  ] as const) {
    await age(seconds)
    const before = await readLastUse()
    const session = await findSession(sql, token)
    expect(session?.isDueForRecord).toBe(isDue)
    await recordUse(sql, session?.id ?? '')
    expect((await readLastUse()) !== before).toBe(isDue)
  }
})

it('a user agent is cut and cannot break a line', async () => {
  const { personId } = await addTestPerson(database)
  await open(await makeLink(database, personId), { userAgent: `a\nb\u0000${'c'.repeat(400)}😀` })
  const [session] = await listSessions(database.sql, personId)
  expect(session?.userAgent).toMatch(/^a b c{196}$/)
})

it('a sign-in stands in the audit log under the name of the person', async () => {
  const { personId, name } = await addTestPerson(database)
  await open(await makeLink(database, personId), { requestId: 'request-of-the-sign-in' })
  const rows = await database.sql`
    select actor, operation, outcome from audit_entries where request_id = 'request-of-the-sign-in'`
  expect(rows).toEqual([{ actor: name, operation: 'sign in', outcome: 'done' }])
})
