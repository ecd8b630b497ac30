import { randomUUID } from 'node:crypto'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { RefundPreview } from '../../../../src/refunds/view.ts'
import { expectInvalid, expectProblem } from '../../../support/api.ts'
import {
  addCappedKey,
  ask,
  countRows,
  expectRefused,
  expectTaken,
  MASKED,
  RECEIVER,
  seedPaid,
} from '../../../support/ask.ts'
import { emptyTables } from '../../../support/database.ts'
import { withConfig } from '../../../support/service.ts'
import { useRig } from '../../../support/use-started.ts'

const rig = useRig({ settings: { ROLE: 'web' } })
let url: string
beforeAll(() => {
  url = rig.service.url
})
beforeEach(() => emptyTables(rig.database))

const preview = (id: string, body: unknown = {}, key?: string) =>
  ask({ url, query: '?dryRun=true', idempotencyKey: null, ...(key ? { key } : {}) }, id, body)

async function read(response: Response) {
  const text = await response.text()
  expect({ status: response.status, text }).toMatchObject({ status: 200 })
  expect(response.headers.get('location')).toBeNull()
  return RefundPreview.strict().parse(JSON.parse(text))
}

describe('a preview', () => {
  it('returns what would be sent and what would be left, with the number masked', async () => {
    const { id } = await seedPaid(rig.database, { amount: '100', paymentMethod: 'QR' })
    await expectTaken(await ask({ url }, id, { amount: '20', receiver: RECEIVER }))
    const body = { amount: 30.5, receiver: RECEIVER, reason: 'returned' }
    expect(await read(await preview(id, body))).toEqual({
      wouldSend: { amount: '30.5', currency: 'CLF', paymentId: id, receiver: MASKED },
      refundableAmount: '80',
      refundableAfter: '49.5',
      hints: [],
    })
  })

  it('without an amount would send all that is left', async () => {
    const { id } = await seedPaid(rig.database, { amount: '100', refundedAmount: '0.25' })
    const { wouldSend, refundableAfter } = await read(await preview(id, ''))
    expect(wouldSend).toEqual({ amount: '99.75', currency: 'CLF', paymentId: id })
    expect(Number(refundableAfter)).toBe(0)
  })

  it('stores nothing, also under a key with caps', async () => {
    const key = randomUUID()
    await addCappedKey(rig.database, key, { dailyMax: '100' })
    const { id } = await seedPaid(rig.database)
    const before = await countRows(rig.database)
    await read(await preview(id, { amount: '60' }))
    await read(await preview(id, { amount: '60' }, key))
    expect(await countRows(rig.database)).toEqual(before)
    await read(await preview(id, { amount: '60' }, key))
  })

  it('does not use up an idempotency key sent with it', async () => {
    const { id } = await seedPaid(rig.database)
    const given = { url, idempotencyKey: 'previewed' }
    await read(await ask({ ...given, query: '?dryRun=true' }, id, { amount: '60' }))
    await expectTaken(await ask({ ...given, query: '?dryRun=false' }, id, { amount: '50' }))
  })

  it('is refused as the refund would be', async () => {
    const key = randomUUID()
    await addCappedKey(rig.database, key, { max: '50', dailyMax: '60' })
    const { id } = await seedPaid(rig.database)
    const failed = await seedPaid(rig.database, { status: 'FAILED' })
    const scanned = await seedPaid(rig.database, { paymentMethod: 'QR' })
    await expectRefused(await preview('NOBODY'), 404, 'payment_not_found')
    await expectRefused(await preview(failed.id), 409, 'payment_not_refundable')
    await expectRefused(await preview(scanned.id), 422, 'receiver_required')
    const tooMuch = await preview(id, { amount: '101' })
    const problem = await expectRefused(tooMuch, 409, 'exceeds_refundable')
    expect(problem.refundableAmount).toBe('100')
    await expectInvalid(await preview(id, { amount: '-1' }), 'amount')
    await expectProblem(await preview(id, '{'), 400, 'invalid_json')
    const capped = await preview(id, { amount: '51' }, key)
    expect(await expectRefused(capped, 403, 'refund_cap_exceeded')).toMatchObject({
      leftToday: '60',
    })
    const disabled = await withConfig(rig, { REFUNDS_ENABLED: false }, () => preview(id))
    await expectRefused(disabled, 403, 'refunds_disabled')
  })

  it('is refused when dryRun is neither true nor false', async () => {
    const { id } = await seedPaid(rig.database)
    await expectInvalid(await ask({ url, query: '?dryRun=yes' }, id), 'dryRun')
    expect((await countRows(rig.database)).refunds).toBe(0)
  })
})
