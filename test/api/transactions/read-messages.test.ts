import { describe, expect, it } from 'vitest'
import { listShownMembers } from '../../../src/gateway/stored-body.ts'
import { readMessages } from '../../../src/transactions/read-messages.ts'
import { listSent } from '../../../src/webhooks/log.ts'
import { MERCHANT } from '../../support/service.ts'
import { useRefundLab } from '../../support/use-started.ts'

const lab = useRefundLab()

describe('what the gateway sent about a transaction', () => {
  it('is read newest first, and about its refunds only for readers of refunds', async () => {
    const payment = await lab.open()
    const refundId = await lab.send(payment, '10')
    await lab.notify(payment, refundId, '10')
    const key = { merchantCode: MERCHANT.merchantCode, transactionId: payment.transactionId }
    const { ctx } = lab.service
    const all = await readMessages(ctx, key, true, 10)
    expect(all.map(({ type }) => type)).toEqual(['notification', 'refund', 'query', 'query'])
    const [notification] = all
    expect(notification?.members).toContainEqual({ name: 'svc_RequestID', value: refundId })
    const without = await readMessages(ctx, key, false, 10)
    expect(without.map(({ type }) => type)).toEqual(['query', 'query'])
    expect(await readMessages(ctx, key, true, 1)).toHaveLength(1)
    const other = { ...key, merchantCode: 'OTHER1' }
    expect(await readMessages(ctx, other, true, 10)).toEqual([])
  })

  it('is shown without its hash, and without card numbers in its texts; ids stay', () => {
    const body = {
      svc_TransactionID: '4111111111111111',
      svc_Amount: 5,
      svc_ResponseMsg: 'card 4111111111111111',
      svc_SecureHash: 'abc123',
      svc_ExtData: { note: ['x'] },
    }
    const shown = Object.fromEntries(
      (listShownMembers(JSON.stringify(body)) ?? []).map(({ name, value }) => [name, value]),
    )
    expect(shown).toEqual({
      svc_TransactionID: '4111111111111111',
      svc_Amount: '5',
      svc_ResponseMsg: 'card 411111******1111',
      svc_SecureHash: '***',
      svc_ExtData: '{"note":["x"]}',
    })
    expect(listShownMembers('svc_Command=PAY&svc_SecureHash=abc123')).toEqual([
      { name: 'svc_Command', value: 'PAY' },
      { name: 'svc_SecureHash', value: '***' },
    ])
    expect(listShownMembers('{"cut":')).toBeUndefined()
  })
})

describe('the webhooks of a transaction', () => {
  it('of refunds are listed for readers of refunds only', async () => {
    const { sql } = lab.database
    const transactionId = `T-${crypto.randomUUID()}`
    const { merchantCode } = MERCHANT
    const rows = await sql<{ id: number }[]>`
      insert into events (merchant_code, transaction_id, type, data, at)
      select ${merchantCode}, ${transactionId}, type, data::json, now() from (values
        ('payment.updated', '{}'), ('refund.updated', '{}'), ('discrepancy.found', '{"refundId":"x"}'),
        ('discrepancy.found', '{"refundId":null,"kind":"ipn_missing"}')) as e (type, data) returning id`
    for (const { id } of rows) {
      await sql`
        insert into webhook_attempts (merchant_code, endpoint_id, event_id, type, transaction_id, attempt, sent_at,
          duration_ms, http_status)
        values (${merchantCode}, gen_random_uuid(), ${id}, 'x', ${transactionId}, 1, now(), 5, 200)`
    }
    const list = async (withRefunds: boolean) =>
      (await listSent(lab.service.ctx, { merchantCode, transactionId }, withRefunds, 10))
        .map(({ type }) => type)
        .toSorted()
    expect(await list(true)).toEqual([
      ...['discrepancy.found', 'discrepancy.found', 'payment.updated', 'refund.updated'],
    ])
    expect(await list(false)).toEqual(['discrepancy.found', 'payment.updated'])
  })
})
