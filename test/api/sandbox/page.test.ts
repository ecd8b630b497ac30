import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type SandboxRig, SHOP, useMerchant, useSandbox } from '../../support/sandbox.ts'
import { waitUntil } from '../../support/wait-until.ts'

const PAYMENT = { id: 'P1', amount: '100', paymentMethod: 'CC', status: 'SUCCESS' }

const readPage = async ({ url }: SandboxRig, path = '/') => (await fetch(url + path)).text()

const submit = ({ url }: SandboxRig, path: string, fields: object, headers = {}) =>
  fetch(url + path, {
    method: 'POST',
    body: new URLSearchParams(Object.entries(fields)),
    headers,
    redirect: 'manual',
  })

/** Sends a form, and reads the page it leads to. */
async function send(rig: SandboxRig, path: string, fields: object): Promise<string> {
  const answer = await submit(rig, path, fields)
  expect([answer.status, answer.headers.get('location')]).toEqual([303, '/'])
  return readPage(rig)
}

/** Presses the newest button with a label, with what its form has in the page. */
async function press(rig: SandboxRig, label: string, changes: object = {}): Promise<string> {
  const forms = (await readPage(rig)).matchAll(
    /<form method="post" action="([^"]+)">(.*?)<\/form>/gs,
  )
  const found = [...forms].find(([, , inside]) => inside?.includes(`>${label}</button>`))
  const [, action = '', inside = ''] = found ?? expect.fail(`no button ${label}`)
  const inputs = inside.matchAll(/<input[^>]* name="(\w+)" value="([^"]*)"/g)
  const fields = Object.fromEntries([...inputs].map(([, name = '', value]) => [name, value]))
  return await send(rig, action.replaceAll('&amp;', '&'), { ...fields, ...changes })
}

const make = (rig: SandboxRig, payment: object = {}) =>
  rig.control('POST', '/transactions', {
    transactionId: 'T1',
    payments: [{ ...PAYMENT, ...payment }],
    ipn: false,
  })

const Payments = z.object({ payments: z.array(z.record(z.string(), z.unknown())) })
const readPayments = async (rig: SandboxRig) =>
  Payments.parse(await (await rig.control('GET', '/transactions/T1')).json()).payments

describe('the page', () => {
  it('shows the notification URL, the merchant and the routes', async () => {
    const page = await readPage(await useSandbox({ ipnUrl: 'http://127.0.0.1:9/ipn' }))
    for (const text of ['http://127.0.0.1:9/ipn', 'UFLIYL', '/api/v1/paygate/svcpay']) {
      expect(page).toContain(text)
    }
    expect(page).toContain('href="http://127.0.0.1:9/docs"')
    expect(page).toMatch(/\/v2\/auth\/oauth2\/token.*sandbox-UFLIYL.*\/sandbox\/faults/s)
    expect(page).not.toContain(SHOP.secret)
  })

  it('lists what the gateway holds and was asked, the newest 20, cards masked', async () => {
    const rig = await useSandbox()
    await rig.control('POST', '/seed', { seed: 1, transactions: 100 })
    await rig.control('POST', '/cards', { raw: { cardData: { cardNumber: '4111111111111111' } } })
    await rig.readCards('/VC-UFLIYL-0003')
    const page = await readPage(rig)
    for (const title of ['Transactions', 'Payments', 'Refunds', 'Journal', 'Virtual cards']) {
      expect(page).toContain(`<h2>${title}<small> `)
    }
    expect(page).toContain('newest 20 of 100')
    expect(page).toContain(
      '<span>cards, detail</span></td><td data-label="subject"><span>VC-UFLIYL-0003<',
    )
    expect(page).toContain('answered, HTTP 200, code 1')
    expect(page.match(/<tr>/g)?.length).toBeLessThan(110)
    expect(page).not.toContain('4111111111111111')
  })

  it('loads nothing from elsewhere and needs no script', async () => {
    const { url } = await useSandbox()
    const answer = await fetch(url)
    expect(answer.headers.get('content-security-policy')).toBe(
      "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    )
    expect(answer.headers.get('referrer-policy')).toBe('same-origin')
    expect(await answer.text()).not.toMatch(/<script| on[a-z]+=| style=/)
    expect((await fetch(`${url}/style.css`)).headers.get('content-type')).toContain('text/css')
  })

  it('refreshes itself until told not to', async () => {
    const rig = await useSandbox()
    expect(await readPage(rig)).toContain('<meta http-equiv="refresh" content="5;url=/"/>')
    const still = await readPage(rig, '/?still')
    expect(still).not.toContain('http-equiv="refresh"')
    expect(still).toContain('<a href="/">')
  })

  it('links to the service that it notifies', async () => {
    const rig = await useSandbox({ ipnUrl: 'http://127.0.0.1:9/ipn' })
    expect(await readPage(rig)).toContain('href="http://127.0.0.1:9/docs"')
  })

  it('escapes values from outside', async () => {
    const rig = await useSandbox({ ipnUrl: 'http://127.0.0.1:9/"><script>' })
    const evil = '"><script>alert(1)</script>'
    await rig.control('POST', '/transactions', {
      transactionId: evil,
      orderId: evil,
      currency: evil,
      payments: [{ id: evil, amount: '1', paymentMethod: evil, status: evil }],
      ipn: false,
    })
    await rig.control('POST', '/cards', { virtualCardRequestId: evil, status: evil })
    await rig.readCards(`?status=${encodeURIComponent(evil)}`)
    await fetch(`${rig.url}/api/v1/paygate/svcpay`, {
      method: 'POST',
      body: JSON.stringify({ svc_Command: evil, svc_TransactionID: evil }),
    })
    const page = await send(rig, `/sandbox/payments/${encodeURIComponent(evil)}/portal-refund`, {
      amount: evil,
      [evil]: evil,
    })
    expect(page).toContain('&lt;script&gt;alert(1)')
    expect(page).not.toContain('<script')
  })
})

describe('the forms of the page', () => {
  it('make a payment of an order by its id, with its notification', async () => {
    const { ipnUrl, received } = await useMerchant()
    const rig = await useSandbox({ ipnUrl })
    const fields = { orderId: ' DH-7 ', payment_amount: '10000.50' }
    const more = { payment_paymentMethod: 'QR', payment_status: 'SUCCESS' }
    const page = await press(rig, 'Pay and send the notification', { ...fields, ...more })
    expect(page).toContain('Done: POST /sandbox/transactions')
    expect(page).toContain('<span>10000.50 VND</span>')
    expect(page).toContain('<span>DH-7</span>')
    await waitUntil(() => received.length === 1, { what: 'the notification' })
    expect(received[0]).toContain('"svc_Amount":10000.50,')
    await waitUntil(
      async () => (await readPage(rig)).includes('acknowledged, HTTP 200, respcode 0'),
      { what: 'the delivery in the journal' },
    )
  })

  it('refund a payment at the portal, with its notification', async () => {
    const { ipnUrl, received } = await useMerchant()
    const rig = await useSandbox({ ipnUrl })
    await make(rig)
    const page = await press(rig, 'Refund', { amount: '30' })
    expect(page).toContain('Done: POST /sandbox/payments/P1/portal-refund')
    expect(page).toContain('value="70"')
    expect(await readPayments(rig)).toMatchObject([{ refundedAmount: '30' }])
    await waitUntil(() => received.length === 1, { what: 'the notification' })
    expect(received[0]).toContain('"svc_Command":"REFUND"')
  })

  it('end an open refund, as a success and as a failure', async () => {
    const rig = await useSandbox()
    await rig.control('POST', '/seed', { seed: 1, transactions: 60 })
    const settled = await press(rig, 'Settle')
    const [, path = ''] = /Done: POST (\/sandbox\/refunds\/\S+\/settle)/.exec(settled) ?? []
    expect(await press(rig, 'Settle', { outcome: 'failure' })).toContain('Done: POST')
    expect(await readPage(rig)).toContain('<span class="bad">failed</span>')
    expect(await send(rig, path, { outcome: 'success' })).toContain(
      'Nothing was done. requestId: the refund has ended: succeeded.',
    )
  })

  it('let a payment in progress succeed, and notify again', async () => {
    const { ipnUrl, received } = await useMerchant()
    const rig = await useSandbox({ ipnUrl })
    await make(rig, { status: 'PROCESSING' })
    expect(await press(rig, 'Succeed')).toContain('Done: PATCH /sandbox/payments/P1')
    expect(await readPayments(rig)).toMatchObject([{ status: 'SUCCESS' }])
    await press(rig, 'Notify again')
    await waitUntil(() => received.length === 2, { what: 'both notifications' })
  })

  it('set faults and clear them', async () => {
    const rig = await useSandbox()
    const page = await press(rig, 'Add the fault', { command: 'ipn', kind: 'reset', times: '2' })
    expect(page).toContain('<code>ipn</code> reset, 2 times')
    expect(rig.state.faults).toMatchObject([{ command: 'ipn', kind: 'reset', times: 2 }])
    expect(await press(rig, 'Clear all faults')).toContain('Done: DELETE /sandbox/faults')
    expect(rig.state.faults).toEqual([])
  })

  it.each([
    ['/seed', { seed: '3', transactions: '2', ipn: 'false' }],
    ['/token-mode?method=PUT', { lifetimeS: '5', nested: 'true' }],
    [
      '/refund-mode?method=PUT',
      { dedupes: 'false', guardsBalance: 'true', countsUnsettled: 'true' },
    ],
    ['/payments/P1?method=PATCH', { listed: 'false' }],
    ['/transactions/T1/ipn', { shuffle: 'true', copies: '2' }],
  ])('may set every number, and what is true or false: %s with %j', async (path, fields) => {
    const rig = await useSandbox()
    await make(rig)
    expect(await send(rig, `/sandbox${path}`, fields)).toContain('Done: ')
    const { tokens, refundMode } = rig.state
    if (path.startsWith('/token')) expect(tokens.mode).toEqual({ lifetimeS: 5, nested: true })
    if (path.startsWith('/refund')) expect(refundMode).toMatchObject({ dedupes: false })
  })

  it.each([
    ['/payments/P1/portal-refund', { amount: '0' }, 'amount: expected an amount above 0.'],
    ['/payments/P1/portal-refund', { amount: '101' }, 'amount: exceeds the remaining balance'],
    ['/payments/P2/portal-refund', { amount: '1' }, 'paymentId: unknown: P2.'],
    ['/faults', { command: 'ipn', kind: 'reset', times: 'x' }, 'times: expected a number.'],
    ['/transactions', { payment_amount: 'x' }, 'payments.0.amount: expected an amount'],
  ])('%s with %j does nothing, and the page says why and stays', async (path, fields, reason) => {
    const rig = await useSandbox()
    await make(rig)
    const page = await send(rig, `/sandbox${path}`, fields)
    expect(page).toContain(`Nothing was done. ${reason}`)
    expect(page).not.toContain('http-equiv="refresh"')
    expect(await readPayments(rig)).toMatchObject([{ refundedAmount: '0' }])
  })

  it('are not needed by programs: JSON is answered with JSON, also under the content type of a form', async () => {
    const rig = await useSandbox()
    await make(rig)
    const to = `${rig.url}/sandbox/payments/P1/portal-refund`
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const answer = await fetch(to, { method: 'POST', body: ' {"amount":"1"}', headers })
    expect([answer.status, await answer.json()]).toMatchObject([201, { amount: '1' }])
    const empty = await fetch(`${rig.url}/sandbox/tokens/expire`, { method: 'POST', headers })
    expect([empty.status, await empty.json()]).toEqual([200, { expired: 0 }])
  })
})

describe('a page of another site', () => {
  const foreign = [
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { 'sec-fetch-site': 'cross-site' },
  ]

  it.each(foreign)('%o makes no payment and controls nothing', async (headers) => {
    const rig = await useSandbox()
    await make(rig)
    const refund = '/sandbox/payments/P1/portal-refund'
    expect((await submit(rig, refund, { amount: '1' }, headers)).status).toBe(403)
    const cleared = '/sandbox/faults?method=DELETE'
    expect((await submit(rig, cleared, { faults: 'all' }, headers)).status).toBe(403)
    const body = JSON.stringify({ payments: [], ipn: false })
    const to = `${rig.url}/sandbox/transactions`
    expect((await fetch(to, { method: 'POST', body, headers })).status).toBe(403)
    expect(await readPayments(rig)).toMatchObject([{ refundedAmount: '0' }])
  })

  it('is not the page itself', async () => {
    const rig = await useSandbox()
    await make(rig)
    const headers = { origin: rig.url, 'sec-fetch-site': 'same-origin' }
    const answer = await submit(rig, '/sandbox/payments/P1/portal-refund', { amount: '1' }, headers)
    expect(answer.status).toBe(303)
  })
})
