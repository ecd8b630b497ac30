import { beforeAll, describe, expect, it } from 'vitest'
import { listSessions } from '../../src/access/sessions.ts'
import { ROLES, type Role } from '../../src/access/types.ts'
import { createApp } from '../../src/app.ts'
import { makeFormToken, TOKEN_FIELD } from '../../src/console/session.ts'
import { readRows, type Tenant, useTwoAccounts, waitUntilIdle } from '../support/accounts.ts'
import { addVisitor, submitAs, type Visitor, visitAs } from '../support/console.ts'
import { CONSOLE_ROUTES, type RouteIds, type RouteRow } from './console-routes.ts'

const accounts = useTwoAccounts()

/** Before the sign-in; covered by `test/console/sign-in`. */
const WAY_IN = [
  'GET /console/sign-in',
  'GET /console/sign-in/:token',
  'POST /console/sign-in/:token',
]

const rows = Object.entries(CONSOLE_ROUTES)

/** All rows after the last refused requests, unless something else has been done since. */
let lastState: string[] | undefined

/** A person with the roles, who sees one account only. */
const sign = (tenant: Tenant, ...roles: Role[]) => {
  lastState = undefined
  return addVisitor(accounts.rig.database, { roles, merchants: [tenant.merchantCode] })
}

/** People of the first account: one of each role, and two who have all. */
const byRole = new Map<Role, Visitor>()
let everyRole: Visitor
let neighbour: Visitor
beforeAll(async () => {
  for (const role of ROLES) byRole.set(role, await sign(accounts.mine, role))
  everyRole = await sign(accounts.mine, ...ROLES)
  neighbour = await sign(accounts.mine, ...ROLES)
})

/** The person of a role; a new one for what ends the session of who asks. */
async function find(row: RouteRow, role: Role): Promise<Visitor> {
  const found = row.isOwn ? undefined : byRole.get(role)
  return found ?? (await sign(accounts.mine, role))
}

/** People whom nobody may change here, one of each account. */
const bystanders = new Map<Tenant, Promise<Visitor>>()

function findBystander(tenant: Tenant): Promise<Visitor> {
  const found = bystanders.get(tenant) ?? sign(tenant, 'viewer')
  bystanders.set(tenant, found)
  return found
}

/** The ids of an account's objects, with a person of that account. */
async function listIds(tenant: Tenant, subject?: Visitor): Promise<RouteIds> {
  const person = subject ?? (await findBystander(tenant))
  const [session] = await listSessions(accounts.rig.database.sql, person.personId)
  const { merchantCode, transactionId, paymentId, refundId, discrepancyId, endpointId } = tenant
  const objects = { merchantCode, transactionId, paymentId, refundId, discrepancyId, endpointId }
  return { ...objects, personId: person.personId, sessionId: session?.id ?? '' }
}

function fillPath(route: string, row: RouteRow, ids: RouteIds): string {
  const values = new Map(Object.entries({ ...ids, merchant: ids.merchantCode }))
  const [, pattern = ''] = route.split(' ')
  return pattern.replaceAll(/:(\w+)/g, (_, name: string) =>
    encodeURIComponent(values.get(name === 'id' ? (row.id ?? '') : name) ?? ''),
  )
}

/** Sends what a route expects, as the browser of this person does; `odd` stands in its path as `ODD`. */
function send(visitor: Visitor, route: string, row: RouteRow, ids: RouteIds, odd = '') {
  const path = fillPath(route, row, ids).replace('ODD', odd)
  if (route.startsWith('GET ')) return visitAs(accounts.rig, visitor, path)
  return submitAs(accounts.rig, visitor, path, row.fields?.(ids))
}

/** What the accounts, and all people and their sessions, are. */
async function readState(): Promise<string[]> {
  const { rig, mine, theirs } = accounts
  const people = await rig.database.sql<{ row: string }[]>`
    select concat_ws(' ', p.id, p.name, p.roles, p.merchants, s.id, s.ended_at) as row
    from actors p left join sessions s on s.person_id = p.id order by 1`
  return [...(await readRows(rig, [mine, theirs])), ...people.map(({ row }) => row)]
}

/** Plays requests that are all refused, and requires that nothing has changed. */
async function withoutEffect(attack: () => Promise<void>): Promise<void> {
  const { rig, mine, theirs } = accounts
  if (!lastState) for (const owner of [mine, theirs]) await waitUntilIdle(rig, owner)
  const before = lastState ?? (await readState())
  await attack()
  lastState = await readState()
  expect(lastState).toEqual(before)
}

it('every route of the console has a row, and every row is a route', () => {
  const served = createApp(accounts.rig.service.ctx)
    .routes.filter(({ path, method }) => path.startsWith('/console') && method !== 'ALL')
    .map(({ method, path }) => `${method} ${path}`)
    .filter((route) => !route.includes('/assets/') && !WAY_IN.includes(route))
  expect([...new Set(served)].toSorted()).toEqual(Object.keys(CONSOLE_ROUTES).toSorted())
})

it('every form of a page leads to a route', async () => {
  const ids = await listIds(accounts.mine)
  const known = Object.keys(CONSOLE_ROUTES)
    .filter((route) => route.startsWith('POST '))
    .map((route) => new RegExp(`^${route.slice('POST '.length).replaceAll(/:\w+/g, '[^/]+')}$`))
  const found = new Set<string>()
  for (const [route, row] of rows) {
    if (!route.startsWith('GET ')) continue
    const html = await (await send(everyRole, route, row, ids)).text()
    const forms = [...html.matchAll(/<form method="post" action="([^"]*)"/g)]
    const actions = forms.flatMap(([, action]) => action ?? [])
    for (const action of actions) found.add(action)
    const lost = actions.filter((action) => !known.some((one) => one.test(action)))
    expect([route, lost]).toEqual([route, []])
  }
  expect(found.size).toBeGreaterThan(10)
})

describe.each(rows)('%s', (route, row) => {
  it('is refused to every role that is not one of its own', async () => {
    const ids = await listIds(accounts.mine)
    const refused = ROLES.filter((role) => !row.roles.includes(role))
    await withoutEffect(async () => {
      for (const role of refused) {
        const { status } = await send(await find(row, role), route, row, ids)
        expect([role, status]).toEqual([role, 403])
      }
    })
  })

  it.each(row.roles)('is served to the role %s', async (role) => {
    const visitor = await find(row, role)
    const ids = await listIds(
      accounts.mine,
      row.isOwn ? visitor : await sign(accounts.mine, 'viewer'),
    )
    const { status } = await send(visitor, route, row, ids)
    lastState = undefined
    expect(status).toBeLessThan(500)
    expect([403, 404, 405]).not.toContain(status)
  })

  it('finds nothing of an account that the person may not see', async () => {
    const { mine, theirs } = accounts
    const own = await listIds(mine)
    const foreign = await listIds(theirs)
    const mixed = { ...foreign, merchantCode: own.merchantCode }
    await withoutEffect(async () => {
      for (const ids of row.isNew ? [foreign] : [foreign, mixed]) {
        const path = fillPath(route, row, ids)
        if (path === fillPath(route, row, own) && (row.fields === undefined || row.isOwn)) {
          // A list, or a page of one's own: nothing of the other account is on it.
          if (!route.startsWith('GET ')) continue
          const text = await (await send(everyRole, route, row, ids)).text()
          for (const secret of [theirs.transactionId, theirs.refundId, foreign.personId]) {
            expect(text).not.toContain(secret)
          }
          continue
        }
        const { status, headers } = await send(everyRole, route, row, ids)
        const isBack = status === 303 && headers.get('location')?.includes('kept=')
        expect([404, isBack ? 303 : 404]).toContain(status)
      }
    })
  })

  it('finds nothing under an odd id', async () => {
    const [, pattern = ''] = route.split(' ')
    const [param = ''] = pattern.match(/:(id|refundId|endpointId|personId)\b/) ?? []
    if (param === '' || row.isNew) return
    const ids = await listIds(accounts.mine)
    const path = pattern.replace(param, 'ODD')
    await withoutEffect(async () => {
      for (const odd of [
        'x',
        '%00',
        '-1',
        '9'.repeat(20),
        '11111111-1111-1111-1111-111111111111',
      ]) {
        const response = await send(everyRole, route.replace(pattern, path), row, ids, odd)
        expect([odd, response.status]).toEqual([odd, 404])
      }
    })
  })

  it('leads to the sign-in page without a session', async () => {
    const ids = await listIds(accounts.mine)
    const nobody = { personId: '', name: '', token: 'x'.repeat(43) }
    await withoutEffect(async () => {
      const { status, headers } = await send(nobody, route, row, ids)
      expect([status, headers.get('location')]).toEqual([303, '/console/sign-in'])
    })
  })
})

/** How a request of another page looks: by what the browser says of it, and whether it has a token. */
const FORGERIES: [name: string, site: string | undefined, token: 'own' | 'none' | "another's"][] = [
  ['a form on another site', 'cross-site', 'own'],
  ['a form on a neighbouring host', 'same-site', 'own'],
  ['a form opened from an address bar', 'none', 'own'],
  ['no browser that states the origin', undefined, 'own'],
  ['a script on a page of this origin that knows no token', 'same-origin', 'none'],
  ['the token of another session', 'same-origin', "another's"],
]

const forms = rows.filter(([route]) => route.startsWith('POST '))

it.each(forms)('%s refuses every forged form', async (route, row) => {
  const ids = await listIds(accounts.mine, row.isOwn ? everyRole : undefined)
  await withoutEffect(async () => {
    for (const [name, site, token] of FORGERIES) {
      const fields = new URLSearchParams(row.fields?.(ids))
      const tokenOf = token === 'own' ? everyRole : neighbour
      if (token !== 'none') fields.set(TOKEN_FIELD, makeFormToken(tokenOf.token))
      const { status } = await visitAs(accounts.rig, everyRole, fillPath(route, row, ids), {
        method: 'POST',
        headers: site === undefined ? {} : { 'sec-fetch-site': site },
        body: fields,
      })
      expect([name, status]).toEqual([name, 403])
    }
  })
  expect((await visitAs(accounts.rig, everyRole, '/console/account')).status).toBe(200)
})

it('a refused write of a person stands in the audit log, under the name of the person', async () => {
  const visitor = await sign(accounts.mine, 'viewer')
  const ids = await listIds(accounts.mine)
  await submitAs(accounts.rig, visitor, `/console/people/${ids.personId}/end`)
  const entries = await accounts.rig.database.sql`
    select operation, outcome, object_id as id from audit_entries where actor = ${visitor.name}
      and outcome <> 'done'`
  expect(entries).toEqual([
    {
      operation: 'POST /console/people/{personId}/end',
      outcome: 'scope_missing',
      id: ids.personId,
    },
  ])
})

it('a page is not read where only forms are sent', async () => {
  const pages = new Set(Object.keys(CONSOLE_ROUTES).filter((route) => route.startsWith('GET ')))
  const onlySent = forms.filter(([route]) => !pages.has(route.replace('POST', 'GET')))
  expect(onlySent).not.toEqual([])
  for (const [route, row] of onlySent) {
    const path = fillPath(route, row, await listIds(accounts.mine))
    const response = await visitAs(accounts.rig, everyRole, path)
    expect([path, response.status, response.headers.get('allow')]).toEqual([path, 405, 'POST'])
    expect(await response.text()).toContain('<h1>')
  }
})

it('an unknown page is not found', async () => {
  const unknown = await visitAs(accounts.rig, everyRole, '/console/nowhere')
  expect(unknown.status).toBe(404)
  expect(await unknown.text()).toContain('Nothing here')
})
