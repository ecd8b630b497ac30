import { describe, expect, it } from 'vitest'
import { ROLES, type Role } from '../../../src/access/roles.ts'
import { listSessions } from '../../../src/access/sessions.ts'
import { createApp } from '../../../src/app.ts'
import { makeFormToken } from '../../../src/console/forms/form-token.ts'
import { TOKEN_FIELD } from '../../../src/console/forms/protect-forms.ts'
import { type Tenant, useTwoAccounts } from '../../support/accounts.ts'
import { addVisitor, submitAs, type Visitor, visitAs } from '../../support/console.ts'
import { ROUTE_ROWS, type RouteIds, type RouteRow } from './route-rows.ts'

const accounts = useTwoAccounts()

/** Before the sign-in; covered by `test/console/sign-in`. */
const WAY_IN = [
  'GET /console/sign-in',
  'GET /console/sign-in/:token',
  'POST /console/sign-in/:token',
]

const rows = Object.entries(ROUTE_ROWS)
const forms = rows.filter(([route]) => route.startsWith('POST '))

/** A person with the roles, who sees one account only. */
const sign = (tenant: Tenant, ...roles: Role[]) =>
  addVisitor(accounts.rig.database, { roles, merchants: [tenant.merchantCode] })

async function findSessionId({ personId }: Visitor): Promise<string> {
  const [session] = await listSessions(accounts.rig.database.sql, personId)
  return session?.id ?? ''
}

/** The ids of an account's objects, with a person of that account, who is a new one each time. */
async function listIds(tenant: Tenant, subject?: Visitor): Promise<RouteIds> {
  const person = subject ?? (await sign(tenant, 'viewer'))
  const { merchantCode, transactionId, paymentId, refundId, discrepancyId, endpointId } = tenant
  const objects = { merchantCode, transactionId, paymentId, refundId, discrepancyId, endpointId }
  return { ...objects, personId: person.personId, sessionId: await findSessionId(person) }
}

function fillPath(route: string, row: RouteRow, ids: RouteIds): string {
  const values = new Map(Object.entries({ ...ids, merchant: ids.merchantCode }))
  const [, pattern = ''] = route.split(' ')
  return pattern.replaceAll(/:(\w+)/g, (_, name: string) =>
    encodeURIComponent(values.get(name === 'id' ? (row.id ?? '') : name) ?? ''),
  )
}

/** Sends what a route expects, as the browser of this person does. */
function send(visitor: Visitor, route: string, row: RouteRow, ids: RouteIds): Promise<Response> {
  const path = fillPath(route, row, ids)
  if (route.startsWith('GET ')) return visitAs(accounts.rig, visitor, path)
  return submitAs(accounts.rig, visitor, path, row.fields?.(ids))
}

const countWrites = async () => {
  const [row] = await accounts.rig.database.sql<{ n: number }[]>`
    select count(*) as n from audit_entries where outcome = 'done' and operation <> 'sign in'`
  return row?.n
}

it('every route of the console has a row', () => {
  const served = createApp(accounts.rig.service.ctx)
    .routes.filter(({ path, method }) => path.startsWith('/console') && method !== 'ALL')
    .map(({ method, path }) => `${method} ${path}`)
    .filter((route) => !route.includes('/assets/') && !WAY_IN.includes(route))
  expect([...new Set(served)].toSorted()).toEqual(Object.keys(ROUTE_ROWS).toSorted())
})

describe.each(rows)('%s', (route, row) => {
  it.each(ROLES)('is refused to the role %s unless it is one of its own', async (role) => {
    const visitor = await sign(accounts.mine, role)
    const ids = await listIds(accounts.mine, row.isOwn ? visitor : undefined)
    const before = await countWrites()
    const { status } = await send(visitor, route, row, ids)
    if (!row.roles.includes(role)) {
      expect([status, await countWrites()]).toEqual([403, before])
      return
    }
    expect(status).toBeLessThan(500)
    expect([403, 404, 405]).not.toContain(status)
  })

  it('finds nothing of an account that the person may not see', async () => {
    const { mine, theirs } = accounts
    const visitor = await sign(mine, ...ROLES)
    const own = await listIds(mine)
    const foreign = await listIds(theirs)
    const before = await countWrites()
    const mixed = { ...foreign, merchantCode: own.merchantCode }
    const tried: RouteIds[] = row.isNew ? [foreign] : [foreign, mixed]
    for (const ids of tried) {
      const path = fillPath(route, row, ids)
      if (path === fillPath(route, row, own) && row.fields === undefined) {
        // A list, or a page of one's own: nothing of the other account is on it.
        if (!route.startsWith('GET ')) continue
        const text = await (await send(visitor, route, row, ids)).text()
        for (const secret of [theirs.transactionId, theirs.refundId, foreign.personId]) {
          expect(text).not.toContain(secret)
        }
        continue
      }
      const { status } = await send(visitor, route, row, ids)
      expect([404, 422]).toContain(status)
    }
    expect(await countWrites()).toBe(before)
  })

  it('leads to the sign-in page without a session', async () => {
    const ids = await listIds(accounts.mine)
    const nobody = { personId: '', name: '', token: 'x'.repeat(43) }
    const response = await send(nobody, route, row, ids)
    expect([response.status, response.headers.get('location')]).toEqual([303, '/console/sign-in'])
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

describe.each(FORGERIES)('with %s', (_, site, token) => {
  it.each(forms)('%s is refused, and nothing is done', async (route, row) => {
    const visitor = await sign(accounts.mine, ...ROLES)
    const other = await sign(accounts.mine, ...ROLES)
    const ids = await listIds(accounts.mine, row.isOwn ? visitor : undefined)
    const fields = new URLSearchParams(row.fields?.(ids))
    if (token !== 'none') {
      fields.set(TOKEN_FIELD, makeFormToken((token === 'own' ? visitor : other).token))
    }
    const before = await countWrites()
    const { status } = await visitAs(accounts.rig, visitor, fillPath(route, row, ids), {
      method: 'POST',
      headers: site === undefined ? {} : { 'sec-fetch-site': site },
      body: fields,
    })
    expect([status, await countWrites()]).toEqual([403, before])
    expect((await visitAs(accounts.rig, visitor, '/console/account')).status).toBe(200)
  })
})

it('a refused write of a person stands in the audit log, under the name of the person', async () => {
  const visitor = await sign(accounts.mine, 'viewer')
  const route = 'POST /console/people/:personId/end'
  const ids = await listIds(accounts.mine)
  await send(visitor, route, ROUTE_ROWS[route] ?? { roles: [] }, ids)
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

it('a wrong method gets 405 with the right ones, an unknown page 404', async () => {
  const visitor = await sign(accounts.mine, 'viewer')
  const wrong = await visitAs(accounts.rig, visitor, '/console/sign-out')
  expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'POST'])
  expect(await wrong.text()).toContain('<h1>')
  const unknown = await visitAs(accounts.rig, visitor, '/console/nowhere')
  expect(unknown.status).toBe(404)
  expect(await unknown.text()).toContain('Nothing here')
})
