import { beforeAll, describe, expect, it } from 'vitest'
import { RECEIVER } from '../../support/ask.ts'
import { addVisitor, type Visitor, visitAs } from '../../support/console.ts'
import { cutPart, readText } from '../../support/read-html.ts'
import { addKey, MERCHANT } from '../../support/service.ts'
import { useRefundLab } from '../../support/use-started.ts'

const lab = useRefundLab()
let operator: Visitor
let viewer: Visitor
beforeAll(async () => {
  operator = await addVisitor(lab.database, { roles: ['operator'] })
  viewer = await addVisitor(lab.database)
})

const pathOf = (transactionId: string) =>
  `/console/transactions/${MERCHANT.merchantCode}/${transactionId}`

async function read(transactionId: string, who = operator, query = ''): Promise<string> {
  const response = await visitAs(lab, who, pathOf(transactionId) + query)
  const html = await response.text()
  expect({ status: response.status, html }).toMatchObject({ status: 200 })
  return html
}

describe('the story of a refunded payment', () => {
  let html = ''
  let technical = ''
  let history = ''
  let refundId = ''
  let payment = { id: '', transactionId: '' }
  beforeAll(async () => {
    payment = await lab.open({ amount: '250000', paymentMethod: 'QR' })
    const body = { amount: '150000', reason: 'Returned <b>goods</b>', receiver: RECEIVER }
    refundId = (await lab.refund(payment.id, { ...body, onBehalfOf: 'Tran Thi B' })).body.id
    await lab.pass(payment)
    await lab.notify(payment, refundId, '150000', { reference: 'FT26326', fee: '3300' })
    await lab.settle(refundId)
    await lab.pass(payment)
    html = await read(payment.transactionId)
    technical = await read(payment.transactionId, operator, '?view=technical')
    history = await read(payment.transactionId, operator, '?view=history')
  })

  it('begins with the state and the amounts in words', () => {
    expect(readText(cutPart(html, 'state'))).toContain('Paid, 150,000 of 250,000 refunded')
  })

  it('shows the payment with what is left', () => {
    const text = readText(cutPart(html, 'payments'))
    expect(text).toContain('Amount Method Refunded Can still be refunded')
    expect(text).toContain(`${payment.id} Succeeded 250,000 QR code 150,000 100,000`)
  })

  it('shows the refund: who asked and why, where it went, its reference, and what is next', () => {
    const text = readText(cutPart(html, 'refunds'))
    expect(text).toContain('Refund of 150,000 Refunded')
    expect(text).toContain('Nothing. The gateway has paid it out')
    expect(text).toContain('first, for Tran Thi B Returned <b>goods</b>')
    expect(text).toContain('Receiver NGUYEN VAN A, •••• 6789, ASCBVNVX')
    expect(text).toContain("Gateway's reference FT26326")
    expect(cutPart(html, 'refunds')).toContain(
      `/console/refunds/${MERCHANT.merchantCode}/${refundId}"`,
    )
  })

  it('tells who did what, and what came of it, without what only the service did', () => {
    const text = readText(cutPart(history, 'history'))
    expect(text).toMatch(/first : Asked for a refund Refund of 150,000/)
    expect(text).toMatch(/Refund \S+: Status: .* → Refunded/)
    expect(text.indexOf('Asked for a refund')).toBeLessThan(text.indexOf('→ Refunded'))
    expect(text).not.toContain('asked the gateway, and got its answer')
  })

  it('tells what came over the wire, and what the service made of it', () => {
    const text = readText(cutPart(technical, 'timeline'))
    expect(text).toContain('Service : asked the gateway, and got its answer')
    expect(text).toContain('Gateway : notified a refund')
    expect(text).toContain('Service : sent the refund, and the gateway accepted it')
    expect(text).toContain('Waiting to be sent')
    expect(text).toContain('with API key first')
    expect(text).toMatch(/Refund \S+: Status: .* → Refunded/)
  })

  it('shows the messages as received, without their hash', () => {
    const part = cutPart(technical, 'messages')
    const text = readText(part)
    expect(text).toContain('svc_Command REFUND')
    expect(text).toContain('svc_SecureHash ***')
    expect(text).toContain('Answer about the payments')
    expect(text).toContain('"refundedAmount"')
    expect(technical).not.toMatch(/[0-9a-f]{64}/i)
    expect(readText(cutPart(technical, 'raw'))).toContain('"refundedAmount": "150000"')
  })

  it('never shows the whole account number', () => {
    expect(html + history + technical).not.toContain(RECEIVER.accountNumber)
  })

  it('says that all sources agree', () => {
    expect(readText(cutPart(html, 'discrepancies'))).toContain('All sources agree')
  })
})

describe('refunds', () => {
  it('made elsewhere are listed by themselves', async () => {
    const payment = await lab.open()
    await lab.notify(payment, 'portal-7', '40', {})
    await lab.show(payment, '40')
    await lab.pass(payment)
    const text = readText(cutPart(await read(payment.transactionId), 'refunds'))
    expect(text).toContain('Refunds made elsewhere')
    expect(text).toContain('40 Refunded')
    expect(text).toContain('portal-7')
  })
})

describe('beside the payments', () => {
  it('stand the other transactions of the order, and a warning when both are paid', async () => {
    const [one, other] = [await lab.open(), await lab.open()]
    await lab.database.sql`
      update transactions set order_id = 'DH-BOTH', order_verified = true, same_order = array[${other.transactionId}]
      where transaction_id = ${one.transactionId}`
    await lab.database.sql`
      update transactions set order_id = 'DH-BOTH', order_verified = true
      where transaction_id = ${other.transactionId}`
    const html = await read(one.transactionId)
    expect(cutPart(html, 'order')).toContain(`href="${pathOf(other.transactionId)}"`)
    expect(readText(cutPart(html, 'order'))).not.toContain(one.transactionId)
    expect(readText(cutPart(html, 'state'))).toContain('paid by another transaction as well')
  })

  it('stand the webhooks that were sent for it, of its own account only, with their results', async () => {
    const payment = await lab.open()
    const { sql } = lab.database
    const { transactionId } = payment
    const [endpoint] = await sql<{ id: string }[]>`
      insert into webhook_endpoints (key_chain_id, merchant_code, url, types, api_version, secret, cursor)
      values (gen_random_uuid(), '*', 'https://shop.example/hooks?token=hidden', '{payment.UFLIYL}', '', '', 0) returning id`
    const events = await sql<{ id: number; merchant: string }[]>`
      insert into events (merchant_code, transaction_id, type, data, at)
      select m, ${transactionId}, 'payment.' || m, '{}', now()
      from unnest(array[${MERCHANT.merchantCode}, 'OTHER1', ${MERCHANT.merchantCode}, ${MERCHANT.merchantCode}]::text[]) as m
      returning id, merchant_code as merchant`
    const [ours, others, waiting] = events
    for (const [event, error] of [
      [ours, null],
      [others, null],
      [ours, 'status 500'],
    ] as const) {
      await sql`
        insert into webhook_attempts (merchant_code, endpoint_id, event_id, type, transaction_id, attempt, sent_at,
          duration_ms, http_status, error)
        values ('*', ${endpoint?.id ?? ''}, ${event?.id ?? 0}, 'x', ${transactionId}, 1, now(), 5,
          ${error === null ? 200 : 500}, ${error})`
    }
    await sql`
      insert into webhook_retries (endpoint_id, event_id, merchant_code, transaction_id)
      values (${endpoint?.id ?? ''}, ${waiting?.id ?? 0}, ${MERCHANT.merchantCode}, ${transactionId})`
    // The last event is one that the endpoint has not reached.
    await sql`update webhook_endpoints set cursor = ${waiting?.id ?? 0} where id = ${endpoint?.id ?? ''}`
    const text = readText(
      cutPart(await read(transactionId, operator, '?view=technical'), 'webhooks'),
    )
    expect(text.split('shop.example Not sent yet')).toHaveLength(3)
    expect(text).toContain('payment.UFLIYL shop.example Attempt 1 failed: status 500')
    expect(text).toContain('payment.UFLIYL shop.example Accepted (200)')
    expect(text).not.toContain('OTHER1')
    expect(text).not.toContain('hidden')
  })

  it('stands where the sources disagree, for operators', async () => {
    const payment = await lab.open()
    await lab.show(payment, '40')
    await lab.pass(payment)
    const text = readText(cutPart(await read(payment.transactionId), 'discrepancies'))
    expect(text).toContain('More was refunded than any known refund explains')
    expect(text).toContain('Open')
    const theirs = await read(payment.transactionId, viewer)
    expect(readText(cutPart(theirs, 'discrepancies'))).toBe('')
  })
})

describe('the history', () => {
  it.each([
    ['before an order system asks the gateway', 0],
    ['after an order system has asked the gateway 200 times', 200],
  ])('tells who asked for a refund %s', async (_, times) => {
    const payment = await lab.open()
    const { transactionId } = payment
    await lab.ask(payment, '10')
    await lab.database.sql`
      insert into audit_entries (actor, operation, merchant_code, object_id, outcome)
      select 'first', 'POST /v1/transactions/{transactionId}/sync', ${MERCHANT.merchantCode}, ${transactionId}, 'done'
      from generate_series(1, ${times}::int)`
    const history = cutPart(await read(transactionId, operator, '?view=history'), 'history')
    expect(readText(history)).toContain('first : Asked for a refund')
    expect(readText(history).includes('first : Asked the gateway')).toBe(times > 0)
  })
})

describe('a long timeline', () => {
  it('is read page by page', async () => {
    const payment = await lab.open()
    await lab.database.sql`
      insert into changes (merchant_code, transaction_id, payment_id, field, before, after, cause, at)
      select ${MERCHANT.merchantCode}, ${payment.transactionId}, ${payment.id}, 'status', 'A' || i, 'B' || i, 'query',
        now() + i * interval '1 s'
      from generate_series(1, 70) as i`
    const technical = await read(payment.transactionId, operator, '?view=technical')
    const first = cutPart(technical, 'timeline')
    expect(readText(first)).not.toContain('A70')
    const next =
      /href="(\?[^"#]*cursor=[^"#]+)#timeline"/.exec(first)?.[1]?.replace('&amp;', '&') ?? ''
    const second = cutPart(await read(payment.transactionId, operator, next), 'timeline')
    expect(readText(second)).toContain('A70')
    expect(readText(second)).not.toContain('A1 ')
    expect(readText(second)).toContain('Back to the first entries')
  })

  it('refuses a cursor that was not issued', async () => {
    const payment = await lab.open()
    const response = await visitAs(
      lab,
      viewer,
      `${pathOf(payment.transactionId)}?view=history&cursor=nope`,
    )
    expect(response.status).toBe(422)
  })
})

describe('who may see it', () => {
  it.each([
    ['viewer', [], ['Refund this', 'Hold', 'Cancel this refund']],
    ['agent', ['/refund"', 'Cancel this refund'], ['Hold']],
    ['approver', [], ['/refund"', 'Hold', 'Cancel this refund']],
    ['operator', ['Hold the refunds of this payment'], ['/refund"']],
    ['admin', ['/refund"', 'Hold the refunds of this payment', 'Cancel this refund'], []],
  ] as const)('%s sees the buttons of the role only', async (role, shown, hidden) => {
    const payment = await lab.open()
    await lab.ask(payment, '10')
    const visitor = await addVisitor(lab.database, { roles: [role] })
    const html = await read(payment.transactionId, visitor)
    expect(html).toContain('Ask the gateway now')
    for (const one of shown) expect(html).toContain(one)
    for (const one of hidden) expect(html).not.toContain(one)
  })

  it('a key of the API opens no page', async () => {
    const payment = await lab.open()
    await addKey(lab.database, 'key-that-reads-payments-0123456789', ['payments:read'])
    const headers = { authorization: 'Bearer key-that-reads-payments-0123456789' }
    const url = lab.service.url + pathOf(payment.transactionId)
    const response = await fetch(url, { headers, redirect: 'manual' })
    expect(response.headers.get('location')).toBe('/console/sign-in')
  })
})
