import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { createApp } from '../../../src/app.ts'
import { LISTS, ONES, sendRow } from '../../support/account-routes.ts'
import {
  askRefund,
  callAs,
  registerEndpoint,
  SHARED,
  useTwoAccounts,
  waitUntilIdle,
} from '../../support/accounts.ts'
import { openEventStream, readEvents } from '../../support/feed.ts'
import { waitUntil } from '../../support/wait-until.ts'

const accounts = useTwoAccounts()
beforeEach(() => waitUntilIdle(accounts.rig, accounts.theirs))

let sent = 0
afterAll(() => console.log(`${sent} requests for objects of another account`))

/** What the other account has, as text: none of it may change. */
async function snapshot(): Promise<string[]> {
  const { database } = accounts.rig
  const tables = [
    'transactions',
    'payments',
    'refunds',
    'refund_attempts',
    'refund_reviews',
    'changes',
  ]
  const more = [
    'discrepancies',
    'foreign_refunds',
    'hold_changes',
    'ipn_events',
    'gateway_calls',
    'merchant_accounts',
  ]
  const rows = await Promise.all(
    [...tables, ...more].map(
      (table) => database.sql<{ row: string }[]>`
        select to_jsonb(t)::text as row from ${database.sql(table)} t
        where merchant_code = ${accounts.theirs.merchantCode} order by 1`,
    ),
  )
  const endpoints = await database.sql<{ row: string }[]>`
    select concat_ws(' ', id, url, types, secret, previous_secret, disabled_at) as row from webhook_endpoints
    where merchant_code = ${accounts.theirs.merchantCode} order by 1`
  return [...rows.flat(), ...endpoints].map(({ row }) => row)
}

/** Runs attacks, and requires that nothing of the other account has changed. */
async function withoutEffect(attack: () => Promise<void>): Promise<void> {
  const before = await snapshot()
  await attack()
  expect(await snapshot()).toEqual(before)
}

/** Requires a refusal that shows nothing but what the request held. */
async function expectNothing(what: string, response: Response): Promise<void> {
  sent += 1
  const body = await response.text()
  expect([what, response.status, body]).toEqual([
    what,
    expect.toSatisfy((status: number) => [400, 404, 405, 422].includes(status)),
    expect.not.stringMatching(/"(amount|paidAmount|payments|receiver|url|secret)":/),
  ])
}

const rows = Object.entries(ONES)
const isSync = (route: string) => route.endsWith('/sync')

describe('every route for one object, with an id of the other account:', () => {
  const queries = () => {
    const { mine, theirs } = accounts
    return [
      '',
      `?merchantCode=${theirs.merchantCode}`,
      `?merchantCode=${mine.merchantCode}&merchantCode=${theirs.merchantCode}`,
      `?merchantCode=${theirs.merchantCode.toLowerCase()}`,
      '?merchantCode=*',
      '?merchantCode=%25',
      `?merchantCode[]=${theirs.merchantCode}`,
    ]
  }

  it.each(rows)('%s', async (route, row) => {
    const { rig, mine, theirs } = accounts
    await withoutEffect(async () => {
      for (const query of queries()) {
        // Alone it registers a transaction of that id in the caller's own account.
        if (isSync(route) && query === '') continue
        await expectNothing(`${route}${query}`, await sendRow(rig, mine, route, theirs, row, query))
      }
    })
  })

  it('also where the request carries the ETag of its owner, or names the account in a header', async () => {
    const { rig, mine, theirs } = accounts
    const path = `/v1/transactions/${theirs.transactionId}`
    const etag = (await callAs(rig, theirs, path)).headers.get('etag') ?? ''
    expect(etag).not.toBe('')
    const { merchantCode } = theirs
    const headers = [
      { 'if-none-match': etag },
      { 'if-none-match': '*' },
      { 'x-merchant-code': merchantCode, merchantcode: merchantCode },
      { 'x-original-url': path, 'x-rewrite-url': path },
      { 'x-http-method-override': 'GET' },
    ]
    for (const one of headers) {
      for (const query of ['', '?wait=0', '?wait=1']) {
        const response = await callAs(rig, mine, path + query, { headers: one })
        await expectNothing(`${JSON.stringify(one)} ${query}`, response)
      }
    }
    for (const method of ['HEAD', 'OPTIONS', 'TRACE-', 'PUT', 'DELETE', 'PATCH']) {
      await expectNothing(method, await callAs(rig, mine, path, { method }))
    }
  })

  it('also where the id is written in another way', async () => {
    const { rig, mine, theirs } = accounts
    const { refundId, transactionId, paymentId } = theirs
    const paths = [
      `/v1/refunds/${refundId.toUpperCase()}`,
      `/v1/refunds/%7B${refundId}%7D`,
      `/v1/refunds/${refundId.replaceAll('-', '')}`,
      `/v1/refunds/urn:uuid:${refundId}`,
      `/v1/transactions/${transactionId}%00`,
      `/v1/transactions/%20${transactionId}`,
      `/v1/transactions/${mine.transactionId}%2f..%2f${transactionId}`,
      `/v1/transactions/${mine.transactionId}/../${transactionId}`,
      `/v1/payments/${paymentId}%27%20or%20%271%27=%271`,
      `/v1/payments/${encodeURIComponent(`${theirs.merchantCode}/${paymentId}`)}`,
      `//v1/payments/${paymentId}`,
      `/v1/./payments/${paymentId}`,
      `/V1/payments/${paymentId}`,
    ]
    for (const path of paths) await expectNothing(path, await callAs(rig, mine, path))
  })
})

describe('every list', () => {
  const filters = () => {
    const { theirs } = accounts
    return [
      `merchantCode=${theirs.merchantCode}`,
      'merchantCode=*',
      `transactionId=${theirs.transactionId}`,
      `paymentId=${theirs.paymentId}`,
      `orderId=${theirs.transactionId}`,
      `merchantTxnId=${theirs.transactionId}`,
      `amount=${theirs.sharedAmount}`,
      `q=${theirs.transactionId}`,
      `q=${theirs.refundId}`,
      `q=${theirs.sharedAmount}`,
      'limit=200',
    ]
  }

  it.each([...Object.keys(LISTS), 'GET /v1/search', 'GET /v1/events'])(
    '%s shows nothing of the other account, with filters and cursors of its own',
    async (route) => {
      const { rig, mine, theirs } = accounts
      const path = route.replace('GET ', '')
      const list = await callAs(rig, theirs, `${path}?limit=1`)
      const { nextCursor } = list.status === 200 ? JSON.parse(await list.text()) : {}
      const cursors = nextCursor ? [`cursor=${nextCursor}`, `after=${nextCursor}`, 'after=0'] : []
      for (const filter of [...filters(), ...cursors]) {
        for (const accept of ['application/json', 'text/csv']) {
          sent += 1
          const response = await callAs(rig, mine, `${path}?${filter}`, { headers: { accept } })
          const body = await response.text()
          if (response.status !== 200) continue
          for (const id of [
            theirs.merchantCode,
            theirs.paymentId,
            theirs.refundId,
            theirs.endpointId,
          ]) {
            expect([filter, body]).toEqual([filter, expect.not.stringContaining(id)])
          }
        }
      }
    },
  )
})

it("an idempotency key of the other account replays nothing, and its payment stays another's", async () => {
  const { rig, mine, theirs } = accounts
  await withoutEffect(async () => {
    const key = 'set-up-THEIRS'
    await expectNothing('their payment', await askRefund(rig, mine, theirs.paymentId, key))
    const own = await askRefund(rig, mine, mine.paymentId, key)
    sent += 1
    expect([own.status, own.headers.get('idempotent-replayed')]).toEqual([202, null])
    expect(await own.text()).not.toContain(theirs.refundId)
    await waitUntilIdle(rig, mine)
  })
})

it('a hold of the other account, its payment or its refund cannot be set', async () => {
  const { rig, mine, theirs } = accounts
  await withoutEffect(async () => {
    for (const target of [
      `merchant/${theirs.merchantCode}`,
      `payment/${theirs.paymentId}`,
      `refund/${theirs.refundId}`,
    ]) {
      for (const method of ['PUT', 'DELETE']) {
        const init = { method, body: JSON.stringify({ reason: 'an attack' }) }
        await expectNothing(target, await callAs(rig, mine, `/v1/holds/${target}`, init))
      }
    }
  })
})

it('a webhook endpoint cannot be registered for the other account, or for all', async () => {
  const { rig, mine, theirs } = accounts
  await withoutEffect(async () => {
    for (const code of [theirs.merchantCode, '*', `${mine.merchantCode},${theirs.merchantCode}`]) {
      await expectNothing(code, await registerEndpoint(rig, mine, `?merchantCode=${code}`))
    }
  })
})

it('the feed and its stream carry nothing of the other account while that is busy', async () => {
  const { rig, mine, theirs } = accounts
  const asMine = (path: string, init?: RequestInit) => callAs(rig, mine, path, init)
  const stream = await openEventStream({ api: asMine }, '?after=0')
  try {
    const theirTaken = await askRefund(rig, theirs, SHARED.paymentId, 'busy')
    expect(theirTaken.status).toBe(202)
    await waitUntilIdle(rig, theirs)
    const taken = await askRefund(rig, mine, SHARED.paymentId, 'busy')
    const { id } = JSON.parse(await taken.text())
    const isThere = () => JSON.stringify(stream.messages).includes(id)
    await waitUntil(async () => isThere(), { what: "the caller's own refund in the stream" })
    const seen = JSON.stringify(stream.messages)
    sent += 1
    expect(seen).toContain(mine.merchantCode)
    expect(seen).not.toContain(theirs.merchantCode)
    const { data } = await readEvents(await asMine('/v1/events?after=0&limit=200'))
    expect(new Set(data.map((event) => event.data.merchantCode))).toEqual(
      new Set([mine.merchantCode]),
    )
  } finally {
    stream.leave()
    await stream.ended
  }
})

it('every route that has an account was attacked', () => {
  const served = createApp(accounts.rig.service.ctx)
    .routes.filter(({ method, path }) => /^\/v\d/.test(path) && method !== 'ALL')
    .map(({ method, path }) => `${method} ${path}`)
  const attacked = [
    ...Object.keys(ONES),
    ...Object.keys(LISTS),
    'GET /v1/search',
    'GET /v1/events',
    'GET /v1/events/stream',
    'POST /v1/webhook-endpoints',
  ]
  // Cards are those of the gateway's token: `test/accounts/routes.test.ts`; the deletion of endpoints is there, too.
  const elsewhere = ['GET /v2/vc/virtual-cards', 'DELETE /v1/webhook-endpoints/:endpointId']
  expect([...new Set(served)].sort()).toEqual([...attacked, ...elsewhere].sort())
  expect(sent).toBeGreaterThan(41)
})
