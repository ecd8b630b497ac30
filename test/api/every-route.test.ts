import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { SCOPES } from '../../src/access/keys.ts'
import { createApp } from '../../src/app.ts'
import {
  callAs,
  readRows,
  SHARED,
  type Tenant,
  useTwoAccounts,
  waitUntilIdle,
} from '../support/accounts.ts'
import { expectInvalid, expectProblem, NO_IDS } from '../support/api.ts'
import { addKey, KEY } from '../support/service.ts'
import { fillPath, type Ids, ONES, ROUTES, type Route, sendRow } from './routes.ts'

type Asker = { key: string }
const ALL = { key: KEY }

const accounts = useTwoAccounts()
beforeEach(async () => {
  for (const owner of [accounts.mine, accounts.theirs]) await waitUntilIdle(accounts.rig, owner)
})

const keyOf = (kind: 'only' | 'all-but', scope: string) => `key-with-${kind}-${scope}-0123456789`
beforeAll(async () => {
  const { merchantCode } = accounts.mine
  const { database } = accounts.rig
  for (const scope of SCOPES) {
    await addKey(database, keyOf('only', scope), [scope], merchantCode)
    const others = SCOPES.filter((one) => one !== scope)
    await addKey(database, keyOf('all-but', scope), others, merchantCode)
  }
})

function send(asker: Asker, route: string, row: Route, ids: Partial<Ids>, query = '') {
  const path = fillPath(route, row, ids) + query
  // One for each of the routes that take a key: the body of another would be refused under it.
  const idempotencyKey = `${route.split('/').at(-1)} of ${ids.paymentId?.slice(0, 50)}`
  return sendRow(accounts.rig, `Bearer ${asker.key}`, route, row, path, idempotencyKey)
}

/** All rows after the last refused requests, unless something else has been asked since. */
let lastRows: string[] | undefined

/** Plays requests that are all refused, and requires that no row of either account has changed. */
async function withoutEffect(attack: () => Promise<void>): Promise<void> {
  const { rig, mine, theirs } = accounts
  const before = lastRows ?? (await readRows(rig, [mine, theirs]))
  await attack()
  lastRows = await readRows(rig, [mine, theirs])
  expect(lastRows).toEqual(before)
}

/** Requires a refusal that shows nothing but what the request held. */
async function expectNothing(what: string, response: Response): Promise<void> {
  expect([what, response.status, await response.text()]).toEqual([
    what,
    expect.toSatisfy((status: number) => [400, 404, 405, 422].includes(status)),
    expect.not.stringMatching(/"(amount|paidAmount|payments|receiver|url|secret)":/),
  ])
}

const add = (query: string, more: string) => `${query}${query === '' ? '?' : '&'}${more}`
const name = (query: string, merchantCode: string) => add(query, `merchantCode=${merchantCode}`)
const isSync = (route: string) => route.endsWith('/sync')

it('every route has a row, and every row is a route', () => {
  const served = createApp(accounts.rig.service.ctx)
    .routes.filter(({ method, path }) => /^\/v\d/.test(path) && method !== 'ALL')
    .map(({ method, path }) => `${method} ${path}`)
  expect([...new Set(served)].sort()).toEqual(Object.keys(ROUTES).sort())
})

describe.each(Object.entries(ROUTES))('%s', (route, row) => {
  const { queries = [''] } = row

  it('is refused without a valid key, with a Bearer challenge', async () => {
    const { rig, mine } = accounts
    const { key } = mine
    await withoutEffect(async () => {
      for (const authorization of [undefined, `Bearer ${key}x`]) {
        for (const query of queries) {
          const path = fillPath(route, row, mine) + query
          const response = await sendRow(rig, authorization, route, row, path)
          expect(response.headers.get('www-authenticate')).toBe('Bearer')
          await expectProblem(response, 401, 'unauthenticated')
        }
      }
    })
  })

  it('is refused to a key that has every scope but its own', async () => {
    const key = keyOf('all-but', row.scope)
    await withoutEffect(async () => {
      for (const query of queries) {
        const response = await send({ key }, route, row, accounts.mine, query)
        await expectProblem(response, 403, 'scope_missing')
      }
    })
  })

  // What an endpoint is told takes more: `test/api/webhooks/owners.test.ts`.
  it.runIf(row.scope !== 'webhooks:write')('takes no other scope', async () => {
    lastRows = undefined
    const asker = { key: keyOf('only', row.scope) }
    const response = await send(asker, route, row, accounts.mine, queries.at(-1))
    expect([401, 403]).not.toContain(response.status)
    await response.body?.cancel()
  })

  it('refuses a parameter that it does not know, by its name', async () => {
    await withoutEffect(async () => {
      const query = add(queries[0] ?? '', 'unknown=1')
      await expectInvalid(await send(accounts.mine, route, row, accounts.mine, query), 'unknown')
    })
  })
})

/** Texts that the gateway chose, which both accounts may have. */
const OF_GATEWAY: (keyof Ids)[] = ['transactionId', 'paymentId', 'cardId']
const ofGateway = Object.entries(ONES).filter(([, { id }]) => OF_GATEWAY.includes(id))

describe.each(Object.entries(ONES))('%s', (route, row) => {
  const { queries = [''] } = row

  it('a key for one account finds nothing of the other', async () => {
    const { mine, theirs } = accounts
    const refuse = async (asker: Tenant, owner: Tenant, query: string) => {
      const named = await send(asker, route, row, owner, name(query, owner.merchantCode))
      await expectProblem(named, 404, row.naming ?? row.stranger)
      // Without a name it registers a transaction of that id in the caller's own account.
      if (isSync(route)) return
      await expectProblem(await send(asker, route, row, owner, query), 404, row.stranger)
    }
    await withoutEffect(async () => {
      for (const query of queries) {
        await refuse(mine, theirs, query)
        await refuse(theirs, mine, query)
      }
    })
  })

  it('however the request names the account', async () => {
    const { mine, theirs } = accounts
    const { merchantCode } = theirs
    const named = [
      `merchantCode=${mine.merchantCode}&merchantCode=${merchantCode}`,
      `merchantCode=${merchantCode.toLowerCase()}`,
      ...['merchantCode=*', 'merchantCode=%25', `merchantCode[]=${merchantCode}`],
    ]
    await withoutEffect(async () => {
      for (const one of named) {
        await expectNothing(one, await send(mine, route, row, theirs, `?${one}`))
      }
    })
  })

  it('however the id and the path are written', async () => {
    if (isSync(route)) return
    const { rig, mine, theirs } = accounts
    await withoutEffect(async () => {
      for (const id of spell(theirs[row.id], mine[row.id], theirs.merchantCode)) {
        await expectNothing(id, await send(mine, route, row, { ...theirs, [row.id]: id }))
      }
      const path = fillPath(route, row, theirs)
      for (const one of [`/${path}`, path.replace('/', '/./'), path.replace('/v', '/V')]) {
        await expectNothing(one, await sendRow(rig, `Bearer ${mine.key}`, route, row, one))
      }
    })
  })

  it('an id that nothing has is not found', async () => {
    if (isSync(route)) return
    await withoutEffect(async () => {
      for (const id of [...NO_IDS, '0', '9'.repeat(30)]) {
        const response = await send(accounts.mine, route, row, { [row.id]: id })
        const isInvalid = OF_GATEWAY.includes(row.id) && (id === '%00' || id.length > 1_000)
        if (isInvalid) await expectProblem(response, 422, 'invalid_request')
        else await expectProblem(response, 404, row.stranger)
      }
    })
  })

  it('the owner is served, whether it names itself or not', async () => {
    lastRows = undefined
    const { rig, mine, theirs } = accounts
    const serve = async (asker: Asker, owner: Tenant, query: string) => {
      const ids = { ...owner, ...(await row.prepare?.(rig, owner)) }
      expect((await send(asker, route, row, ids, query)).status).toBe(row.owner)
    }
    for (const owner of [mine, theirs]) {
      await serve(owner, owner, '')
      await serve(owner, owner, name('', owner.merchantCode))
      // Cards are read from the gateway, which requires an account.
      if (row.id !== 'cardId') await serve(ALL, owner, '')
    }
  })
})

describe.each(ofGateway)('%s', (route, row) => {
  it('a key for all accounts must name one if both may have the id', async () => {
    lastRows = undefined
    const { mine, theirs } = accounts
    for (const { merchantCode, ...tenant } of [mine, theirs]) {
      const ids = row.id === 'cardId' ? tenant : SHARED
      const unnamed = await send(ALL, route, row, ids)
      const problem = await expectProblem(unnamed, 409, 'ambiguous_merchant')
      expect(problem.detail).toContain('merchantCode')
      const named = await send(ALL, route, row, ids, name('', merchantCode))
      const own = await send(tenant, route, row, ids)
      expect([named.status, own.status]).toEqual([row.owner, row.owner])
      const [shown, seen] = [await readText(named), await readText(own)]
      if (route.startsWith('GET')) expect(shown).toBe(seen)
      if (row.id === 'transactionId' && row.owner < 300 && !route.endsWith('timeline')) {
        expect(JSON.parse(shown)).toMatchObject({ merchantCode, paidAmount: tenant.sharedAmount })
      }
    }
  })

  it('a key for all accounts need not name one for an id that only one has', async () => {
    // Cards are read with the token of an account, which has to be named.
    if (!route.startsWith('GET') || row.id === 'cardId') return
    for (const tenant of [accounts.mine, accounts.theirs]) {
      const unnamed = await send(ALL, route, row, tenant)
      const own = await send(tenant, route, row, tenant)
      expect([unnamed.status, await readText(unnamed)]).toEqual([row.owner, await readText(own)])
    }
  })
})

/** Writes the id of another account in the ways that a reader might take for it. */
function spell(id: string, own: string, merchantCode: string): string[] {
  const ofText = [`${id}%00`, `%20${id}`, `${own}%2f..%2f${id}`, `${own}/../${id}`]
  const asSql = `${id}%27%20or%20%271%27=%271`
  const asKey = encodeURIComponent(`${merchantCode}/${id}`)
  const ofUuid = [id.toUpperCase(), `%7B${id}%7D`, id.replaceAll('-', ''), `urn:uuid:${id}`]
  return [...ofText, asSql, asKey, ...(id.length === 36 ? ofUuid : [])]
}

/** Returns the body without the response's own id, which always differs. */
const readText = async (response: Response) =>
  (await response.text()).replace(/"svcResponseId":"[^"]*"/, '')

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
const split = (route: string) => route.split(' ')
const paths = new Set(Object.keys(ROUTES).map((route) => split(route)[1] ?? ''))

it.each([...paths])('%s refuses all other methods, and lists its own', async (path) => {
  const { rig, mine } = accounts
  const rows = Object.entries(ROUTES).filter(([route]) => split(route)[1] === path)
  const own = rows.map(([route]) => split(route)[0] ?? '')
  const allowed = own.includes('GET') ? [...own, 'HEAD'] : own
  const [, row] = rows[0] ?? []
  const filled = row && fillPath(`ANY ${path}`, row, mine)
  await withoutEffect(async () => {
    for (const method of METHODS.filter((one) => !own.includes(one))) {
      const response = await callAs(rig, mine, filled ?? '', { method })
      const allow = response.headers.get('allow')?.split(', ')
      expect(allow?.toSorted()).toEqual(allowed.toSorted())
      await expectProblem(response, 405, 'method_not_allowed')
    }
  })
})
