import { describe, expect, it } from 'vitest'
import { type SandboxRig, SHOP, useMerchant, useSandbox } from '../../support/sandbox.ts'

const PAYMENT = { amount: '150000', paymentMethod: 'QR', status: 'SUCCESS' }

const readPage = async ({ url }: SandboxRig, path = '/') => (await fetch(url + path)).text()

const submit = ({ url }: SandboxRig, fields: Record<string, string>, headers = {}) =>
  fetch(url, { method: 'POST', body: new URLSearchParams(fields), headers, redirect: 'manual' })

/** Submits the form and reads the page it redirects to. */
async function pay(rig: SandboxRig, fields: Record<string, string> = PAYMENT): Promise<string> {
  const answer = await submit(rig, fields)
  expect(answer.status).toBe(303)
  const location = answer.headers.get('location') ?? ''
  expect(location).toMatch(/^\/\?made=\d{12}[A-Z]{6}$/)
  return readPage(rig, location)
}

describe('the start page', () => {
  it('shows the notification URL, the merchant and the routes', async () => {
    const page = await readPage(await useSandbox({ ipnUrl: 'http://127.0.0.1:9/ipn' }))
    for (const text of ['http://127.0.0.1:9/ipn', 'UFLIYL', '/api/v1/paygate/svcpay']) {
      expect(page).toContain(text)
    }
    expect(page).toMatch(/\/v2\/auth\/oauth2\/token.*sandbox-UFLIYL.*\/sandbox\/faults/s)
    expect(page).not.toContain(SHOP.secret)
  })

  it('lists transactions, payments, refunds, cards and the journal, the newest 20', async () => {
    const rig = await useSandbox()
    await rig.control('POST', '/seed', { seed: 1, transactions: 100 })
    await rig.readCards('/VC-UFLIYL-0003')
    const page = await readPage(rig)
    for (const title of ['Transactions', 'Payments', 'Refunds', 'Journal', 'Virtual cards']) {
      expect(page).toContain(`<h2>${title} <small>`)
    }
    expect(page).toContain('newest 20 of 100')
    expect(page).toMatch(
      /cards, detail<\/span><\/td><td data-label="subject"><span>VC-UFLIYL-0003</,
    )
    expect(page.match(/<tr>/g)?.length).toBeLessThan(110)
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
    const page = await readPage(rig, `/?made=${encodeURIComponent(evil)}`)
    expect(page).toContain('&lt;script&gt;alert(1)')
    expect(page).not.toContain('<script')
    const refused = await submit(rig, { ...PAYMENT, amount: evil })
    expect(await refused.text()).not.toContain('<script')
  })

  it('shows no unmasked member of a card', async () => {
    const rig = await useSandbox()
    const raw = { cardData: { cardNumber: '4111111111111111' } }
    await rig.control('POST', '/cards', { raw })
    expect(await readPage(rig)).not.toContain('4111111111111111')
  })
})

describe('the form', () => {
  it('makes a payment, sends its notification and reports the delivery', async () => {
    const { ipnUrl, received } = await useMerchant()
    const page = await pay(await useSandbox({ ipnUrl }), { ...PAYMENT, amount: '10000.50' })
    expect(received).toEqual([expect.stringContaining('"svc_Amount":10000.50,')])
    expect(page).toMatch(/Transaction \d{12}[A-Z]{6} was created\./)
    expect(page).toContain(`Notification to ${ipnUrl}: delivered and acknowledged`)
    expect(page).toContain('<span>10000.50 VND</span>')
  })

  it('shows how a notification was refused', async () => {
    const { ipnUrl, answers } = await useMerchant()
    answers.push({ status: 401, body: '{"respcode":1}' })
    const page = await pay(await useSandbox({ ipnUrl, ipnRetryMs: [3_600_000] }))
    expect(page).toContain('not acknowledged (HTTP 401, respcode 1); will be retried')
  })

  it('reports a missing response, a drop by a fault, and a missing notification URL', async () => {
    const rig = await useSandbox()
    expect(await pay(rig)).toContain('No notification was sent: no notification URL is set.')
    rig.setIpnUrl('http://127.0.0.1:9/ipn')
    expect(await pay(rig)).toContain('no response (is the service running?)')
    await rig.control('POST', '/faults', { command: 'ipn', kind: 'reset' })
    expect(await pay(rig)).toContain('dropped by the fault &quot;reset&quot;')
  })

  it('names the invalid field and makes no payment', async () => {
    const rig = await useSandbox()
    for (const amount of ['0', '-1', '1.23456', 'much']) {
      const answer = await submit(rig, { ...PAYMENT, amount })
      expect(answer.status).toBe(422)
      const page = await answer.text()
      expect(page).toContain('No payment was made. amount: expected an amount')
      expect(page).toContain(`value="${amount}"`)
    }
    expect((await submit(rig, { ...PAYMENT, status: 'PAID' })).status).toBe(422)
    expect(await readPage(rig)).toMatch(/<h2>Transactions<\/h2>\s*<p class="soft">None yet/)
  })
})

describe('a page of another site', () => {
  const foreign = [{ origin: 'https://evil.example' }, { origin: 'null' }]

  it.each(foreign)('%o makes no payment and controls nothing', async (headers) => {
    const rig = await useSandbox()
    expect((await submit(rig, PAYMENT, headers)).status).toBe(403)
    const body = JSON.stringify({ payments: [], ipn: false })
    const to = `${rig.url}/sandbox/transactions`
    expect((await fetch(to, { method: 'POST', body, headers })).status).toBe(403)
    expect(await readPage(rig)).toMatch(/<h2>Transactions<\/h2>\s*<p class="soft">None yet/)
  })

  it('is not the start page itself', async () => {
    const rig = await useSandbox()
    expect((await submit(rig, PAYMENT, { origin: rig.url })).status).toBe(303)
  })
})
