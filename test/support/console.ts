import { addPerson, type NewPerson } from '../../src/access/people.ts'
import { createSignInLink, signIn } from '../../src/access/sessions.ts'
import { ROLES, type Role } from '../../src/access/types.ts'
import { makeFormToken, TOKEN_FIELD } from '../../src/console/session.ts'
import { createRateLimiter } from '../../src/platform/concurrency/rate-limiter.ts'
import { runInTransaction } from '../../src/platform/postgres/transaction.ts'
import { createLog } from '../../src/platform/telemetry/log.ts'
import type { TestDatabase } from './database.ts'
import type { Rig } from './service.ts'

type Database = Pick<TestDatabase, 'sql'>

/** A signed-in person. */
export type Visitor = { personId: string; name: string; token: string }

let added = 0

/** Adds a person; each name differs. */
export async function addTestPerson(
  { sql }: Database,
  {
    name = `Person ${++added}`,
    roles = ['viewer'],
    merchants = ['*'],
    email = null,
    timeZone = null,
    language = null,
  }: Partial<NewPerson> = {},
): Promise<{ personId: string; name: string }> {
  const person = await runInTransaction(sql, (tx) =>
    addPerson(tx, { name, email, roles, merchants, timeZone, language }),
  )
  if (person.kind !== 'added') throw new Error(`the ${person.by} of ${name} is taken`)
  return { personId: person.id, name }
}

/** Makes a sign-in link for a person. @returns its token */
export async function makeLink({ sql }: Database, personId: string): Promise<string> {
  return (await runInTransaction(sql, (tx) => createSignInLink(tx, personId))).token
}

/** Opens a session for a person, as a sign-in link does. @returns its token */
export async function openTestSession(database: Database, personId: string): Promise<string> {
  const opened = await signIn(
    { db: database, rates: createRateLimiter(), log: createLog('silent') },
    {
      token: await makeLink(database, personId),
      address: '192.0.2.1',
      userAgent: 'test',
      requestId: 'test',
    },
  )
  if (opened.kind !== 'opened') throw new Error(`the sign-in was ${opened.kind}`)
  return opened.token
}

/** Adds a person and opens a session for them. */
export async function addVisitor(
  database: Database,
  given: Parameters<typeof addTestPerson>[1] = {},
): Promise<Visitor> {
  const person = await addTestPerson(database, given)
  return { ...person, token: await openTestSession(database, person.personId) }
}

/** Requests a page as a browser would in which this person is signed in; redirects are not followed. */
export function visitAs(
  { service }: Pick<Rig, 'service'>,
  { token }: Pick<Visitor, 'token'>,
  path: string,
  init: RequestInit = {},
): Promise<Response> {
  const headers = new Headers(init.headers)
  headers.set('cookie', [`session=${token}`, headers.get('cookie')].filter(Boolean).join('; '))
  if (!headers.has('accept')) headers.set('accept', 'text/html')
  return fetch(service.url + path, { redirect: 'manual', ...init, headers })
}

/** Sends a form of the console as the browser of this person does, with a form token of the session. */
export function submitAs(
  rig: Pick<Rig, 'service'>,
  visitor: Pick<Visitor, 'token'>,
  path: string,
  fields: Readonly<Record<string, string>> = {},
): Promise<Response> {
  return visitAs(rig, visitor, path, {
    method: 'POST',
    headers: { 'sec-fetch-site': 'same-origin' },
    body: new URLSearchParams({ [TOKEN_FIELD]: makeFormToken(visitor.token), ...fields }),
  })
}

/** Where a form led that was carried out, without the proof of its notice, which differs each time. */
export const dropProof = (location: string | null): string | undefined =>
  location?.replace(/(notice=\w+)\.[^#]*/, '$1')

/** Where a form led that was not carried out: its page, which shows what was typed and what is wrong. */
export async function followBack(
  rig: Pick<Rig, 'service'>,
  visitor: Pick<Visitor, 'token'>,
  response: Response,
): Promise<Response> {
  const location = response.headers.get('location') ?? ''
  const isBack = response.status === 303 && /[?&]kept=[\w-]+/.test(location)
  if (!isBack) throw new Error(`the form was answered with ${response.status} ${location}`)
  return await visitAs(rig, visitor, location)
}

/** A signed-in person of each role, with every account. */
export async function addVisitors(database: Database): Promise<Record<Role, Visitor>> {
  const visitors = await Promise.all(
    ROLES.map(async (role) => [role, await addVisitor(database, { roles: [role] })] as const),
  )
  return Object.fromEntries(visitors) as Record<Role, Visitor>
}

/** Sends a form that is not carried out, and returns its page, which says why. */
export async function submitBack(...given: Parameters<typeof submitAs>): Promise<Response> {
  const [rig, visitor] = given
  return await followBack(rig, visitor, await submitAs(...given))
}
