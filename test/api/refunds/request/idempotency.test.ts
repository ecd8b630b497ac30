import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { OTHER, writeMerchantsFile } from '../../../support/api.ts'
import {
  ask,
  countRows,
  expectRefused,
  expectTaken,
  MASKED,
  moveTo,
  RECEIVER,
  seedPaid,
} from '../../../support/ask.ts'
import { borrowRig } from '../../../support/borrow-rig.ts'
import {
  addKey,
  MERCHANT,
  type Rig,
  startTestService,
  withConfig,
} from '../../../support/service.ts'

const THEIRS = 'key-bound-to-the-other-account-0123456789'
const accounts = [MERCHANT, OTHER]
const file = writeMerchantsFile(accounts)

let rig: Rig
let url: string
beforeAll(async () => {
  const settings = { ROLE: 'web', MERCHANTS_FILE: file.path }
  rig = await borrowRig({ settings, sandbox: { accounts } })
  url = rig.service.url
  await addKey(rig.database, THEIRS, ['refunds:write', 'refunds:read'], OTHER.merchantCode)
})
afterAll(async () => {
  await rig.stop()
  file.remove()
})

describe('the same key again', () => {
  it('gets the same response, with the refund as it is now, and stores nothing', async () => {
    const { id } = await seedPaid(rig.database)
    const body = { amount: '10', reason: 'returned', receiver: RECEIVER }
    const first = await expectTaken(await ask({ url, idempotencyKey: 'again-1' }, id, body))
    await moveTo(rig.database, first.id, 'failed')
    const before = await countRows(rig.database)
    const again = await expectTaken(await ask({ url, idempotencyKey: 'again-1' }, id, body), true)
    expect(await countRows(rig.database)).toEqual(before)
    expect(again).toMatchObject({ id: first.id, status: 'failed', receiver: MASKED })
    expect(again.failure).toEqual({ source: 'gateway', code: '33', message: 'refused' })
  })

  it.each([
    ['"10000"', '10000'],
    ['10000', '"10000.00"'],
    ['10000.00', '"10000"'],
    ['1e4', '"10000.0000"'],
  ])('with the amount %s is replayed by %s', async (first, second) => {
    const { id } = await seedPaid(rig.database, { amount: '50000' })
    const idempotencyKey = `same ${first} ${second.replaceAll('"', '')}`
    const taken = await expectTaken(await ask({ url, idempotencyKey }, id, `{"amount":${first}}`))
    const body = `{"amount":${second}}`
    const again = await expectTaken(await ask({ url, idempotencyKey }, id, body), true)
    expect(again.id).toBe(taken.id)
  })

  it('is the same with and without the quotes of a structured-field string', async () => {
    const { id } = await seedPaid(rig.database)
    const quoted = await ask({ url, idempotencyKey: '"a \\"b\\" \\\\c"' }, id, { amount: '1' })
    const { id: refundId } = await expectTaken(quoted)
    const bare = await ask({ url, idempotencyKey: 'a "b" \\c' }, id, { amount: '1' })
    expect((await expectTaken(bare, true)).id).toBe(refundId)
  })

  it('with different whitespace around reason and name is the same request', async () => {
    const { id } = await seedPaid(rig.database)
    const body = { amount: '1', reason: 'returned', receiver: RECEIVER }
    await expectTaken(await ask({ url, idempotencyKey: 'spaces' }, id, body))
    const receiver = { ...RECEIVER, accountName: ` ${RECEIVER.accountName} ` }
    const spaced = { ...body, reason: ' returned ', receiver }
    await expectTaken(await ask({ url, idempotencyKey: 'spaces' }, id, spaced), true)
  })

  it.each<[string, object]>([
    ['amount', { amount: '10.01' }],
    ['amount left out', { amount: undefined }],
    ['reason', { reason: 'broken' }],
    ['reason left out', { reason: undefined }],
    ['receiver left out', { receiver: undefined }],
    ["receiver's name", { receiver: { ...RECEIVER, accountName: 'NGUYEN VAN B' } }],
    ["receiver's number", { receiver: { ...RECEIVER, accountNumber: '123456780' } }],
    ["receiver's bank", { receiver: { ...RECEIVER, swiftCode: 'ASCBVNVXXXX' } }],
  ])('with another %s is refused', async (what, more) => {
    const { id } = await seedPaid(rig.database)
    const body = { amount: '10', reason: 'returned', receiver: RECEIVER }
    const idempotencyKey = `other ${what}`
    await expectTaken(await ask({ url, idempotencyKey }, id, body))
    const response = await ask({ url, idempotencyKey }, id, { ...body, ...more })
    await expectRefused(response, 422, 'idempotency_key_reused')
  })

  it('for another payment is refused', async () => {
    const one = await seedPaid(rig.database)
    const two = await seedPaid(rig.database)
    await expectTaken(await ask({ url, idempotencyKey: 'two' }, one.id, { amount: '10' }))
    const response = await ask({ url, idempotencyKey: 'two' }, two.id, { amount: '10' })
    await expectRefused(response, 422, 'idempotency_key_reused')
  })

  it('is case-sensitive', async () => {
    const { id } = await seedPaid(rig.database)
    const first = await expectTaken(await ask({ url, idempotencyKey: 'Case' }, id, { amount: '1' }))
    const next = await expectTaken(await ask({ url, idempotencyKey: 'case' }, id, { amount: '1' }))
    expect(next.id).not.toBe(first.id)
  })
})

describe('a replay is looked up before', () => {
  it('the switch', async () => {
    const { id } = await seedPaid(rig.database)
    await expectTaken(await ask({ url, idempotencyKey: 'switch' }, id, { amount: '1' }))
    const again = await withConfig(rig, { REFUNDS_ENABLED: false }, () =>
      ask({ url, idempotencyKey: 'switch' }, id, { amount: '1' }),
    )
    await expectTaken(again, true)
  })

  it('the balance', async () => {
    const { id } = await seedPaid(rig.database)
    await expectTaken(await ask({ url, idempotencyKey: 'balance' }, id))
    await expectTaken(await ask({ url, idempotencyKey: 'balance' }, id), true)
  })

  it.each([{ status: 'FAILED' }, { missing: true }, { payment_method: 'QR' }])(
    'the state of the payment (%j)',
    async (state) => {
      const { id } = await seedPaid(rig.database)
      const idempotencyKey = `state ${JSON.stringify(state)}`
      await expectTaken(await ask({ url, idempotencyKey }, id))
      await rig.database
        .sql`update payments set ${rig.database.sql(state)} where payment_id = ${id}`
      await expectTaken(await ask({ url, idempotencyKey }, id), true)
    },
  )
})

describe('an idempotency key', () => {
  it('is free again after a refusal', async () => {
    const { id } = await seedPaid(rig.database)
    const tooMuch = await ask({ url, idempotencyKey: 'free' }, id, { amount: '101' })
    await expectRefused(tooMuch, 409, 'exceeds_refundable')
    await rig.database.sql`update payments set amount = 200 where payment_id = ${id}`
    await expectTaken(await ask({ url, idempotencyKey: 'free' }, id, { amount: '101' }))
    const other = await seedPaid(rig.database, { status: 'FAILED' })
    await expectRefused(
      await ask({ url, idempotencyKey: 'free 2' }, other.id),
      409,
      'payment_not_refundable',
    )
    await expectTaken(await ask({ url, idempotencyKey: 'free 2' }, id, { amount: '1' }))
  })

  it('of one account is not that of another', async () => {
    const mine = await seedPaid(rig.database)
    const theirs = await seedPaid(rig.database, { merchantCode: OTHER.merchantCode })
    const first = await expectTaken(
      await ask({ url, idempotencyKey: 'both' }, mine.id, { amount: '10' }),
    )
    const second = await expectTaken(
      await ask({ url, key: THEIRS, idempotencyKey: 'both' }, theirs.id, { amount: '20' }),
    )
    expect(second.id).not.toBe(first.id)
    const again = await ask({ url, key: THEIRS, idempotencyKey: 'both' }, theirs.id, {
      amount: '20',
    })
    expect((await expectTaken(again, true)).id).toBe(second.id)
  })

  it('of one account is not that of another when their payments have the same id', async () => {
    const paymentId = 'P-SAME'
    for (const { merchantCode } of accounts)
      await seedPaid(rig.database, { merchantCode, paymentId })
    const query = `?merchantCode=${MERCHANT.merchantCode}`
    const ambiguous = await ask({ url, idempotencyKey: 'same id' }, paymentId)
    await expectRefused(ambiguous, 409, 'ambiguous_merchant')
    const mine = await expectTaken(await ask({ url, idempotencyKey: 'same id', query }, paymentId))
    const theirs = await expectTaken(
      await ask({ url, key: THEIRS, idempotencyKey: 'same id' }, paymentId),
    )
    expect(theirs.id).not.toBe(mine.id)
    expect(mine.transactionId).not.toBe(theirs.transactionId)
  })
})

it('an account removed from the settings accepts no new refund, and replays the old ones', async () => {
  const { id } = await seedPaid(rig.database, { merchantCode: OTHER.merchantCode })
  await expectTaken(await ask({ url, idempotencyKey: 'left' }, id, { amount: '1' }))
  const fewer = await startTestService(rig.database, rig.sandbox.url, { settings: { ROLE: 'web' } })
  const fresh = await ask({ url: fewer.url }, id, { amount: '1' })
  const preview = await ask({ url: fewer.url, query: '?dryRun=true' }, id, { amount: '1' })
  const replay = await ask({ url: fewer.url, idempotencyKey: 'left' }, id, { amount: '1' })
  await fewer.stop()
  await expectRefused(fresh, 404, 'merchant_not_found')
  await expectRefused(preview, 404, 'merchant_not_found')
  await expectTaken(replay, true)
})
