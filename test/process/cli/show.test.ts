import { afterAll, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { OTHER, seedPayment, seedTransaction, writeMerchantsFile } from '../../support/api.ts'
import { ask, expectTaken, RECEIVER } from '../../support/ask.ts'
import { runCli } from '../../support/cli.ts'
import { MERCHANT } from '../../support/service.ts'
import { notifyOf } from '../../support/sync.ts'
import { useRig } from '../../support/use-started.ts'

const accounts = writeMerchantsFile([MERCHANT, OTHER])
afterAll(() => accounts.remove())
const rig = useRig({ settings: { ROLE: 'web', MERCHANTS_FILE: accounts.path } })
const DATA_ENCRYPTION_KEY = Buffer.alloc(32, 7).toString('base64')
const run = (...args: string[]) =>
  runCli(['show', ...args], { DATABASE_URL: rig.database.url, DATA_ENCRYPTION_KEY })

let refundId = ''
beforeAll(async () => {
  const { database } = rig
  const facts = { orderId: 'DH1', state: 'paid' }
  await seedTransaction(database, { transactionId: 'T-1', ...facts })
  await seedTransaction(database, { transactionId: 'T-10', orderId: 'DH10', state: 'paid' })
  await seedTransaction(database, {
    transactionId: 'T-2',
    merchantCode: OTHER.merchantCode,
    ...facts,
    orderId: 'DH2',
  })
  await seedTransaction(database, { transactionId: 'T-3', orderId: 'DH2', state: 'paid' })
  await database.sql`update transactions set paid_amount = 20000000, merchant_txn_id = 'M-1' where transaction_id = 'T-1'`
  await seedPayment(database, {
    paymentId: 'P-1',
    transactionId: 'T-1',
    amount: '20000000',
    paymentMethod: 'QR',
  })
  await notifyOf(rig, 'T-1', { svc_MerchantCode: MERCHANT.merchantCode })
  const asked = { receiver: RECEIVER, amount: '10000' }
  refundId = (await expectTaken(await ask({ url: rig.service.url }, 'P-1', asked))).id
  await database.sql`
    insert into transactions (merchant_code, transaction_id, unconfirmed) values ('UFLIYL', 'ASKED-1', true)`
})

it.each(['T-1', '#DH1', 'P-1', 'refund'])('finds the transaction by %s', async (id) => {
  const { code, out, err } = await run(id === 'refund' ? refundId : id)
  expect({ code, err }).toEqual({ code: 0, err: '' })
  for (const fact of ['transactionId +T-1', 'orderId +DH1', 'merchantTxnId +M-1', 'state +paid'])
    expect(out).toMatch(new RegExp(`^${fact}$`, 'm'))
  expect(out).toMatch(/\nP-1 +SUCCESS +20000000 +0 +19990000 +VND +QR +2/)
  expect(out).toMatch(new RegExp(`\n${refundId} +pending +10000 +VND +P-1 .*•••• 6789.*`))
  expect(out).toMatch(/\n20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} +gateway +.*notif/i)
  expect(out).not.toContain(RECEIVER.accountNumber)
})

it('as JSON has the objects of the API', async () => {
  const { code, out } = await run('P-1', '--json')
  const read = async (path: string) => z.looseObject({}).parse(await (await rig.api(path)).json())
  const [transaction, timeline, refund] = await Promise.all([
    read('/v1/transactions/T-1'),
    read('/v1/transactions/T-1/timeline?limit=200'),
    read(`/v1/refunds/${refundId}`),
  ])
  expect(code).toBe(0)
  expect(JSON.parse(out)).toEqual({ transaction, refunds: [refund], timeline: timeline.data })
})

it('shows one that was only asked for', async () => {
  expect(await run('ASKED-1')).toMatchObject({
    code: 0,
    out: expect.stringContaining('unconfirmed'),
  })
})

it('lists several, and says how to choose', async () => {
  const several = await run('DH2', '--json')
  expect(several).toMatchObject({ code: 1, err: expect.stringContaining('with --merchant') })
  expect(JSON.parse(several.out).data).toMatchObject([
    { transactionId: 'T-2', merchantCode: OTHER.merchantCode, matched: 'orderId' },
    { transactionId: 'T-3', merchantCode: MERCHANT.merchantCode },
  ])
  expect((await run('DH2')).out).toMatch(/^TRANSACTION ID +MERCHANT CODE +MATCHED +ID\n/)
  const one = await run('DH2', '--merchant', OTHER.merchantCode)
  expect(one).toMatchObject({ code: 0, out: expect.stringMatching(/^transactionId +T-2$/m) })
  // What begins with the text is found only where nothing is called so.
  expect((await run('DH')).code).toBe(1)
})

it('says what to do about an id that nothing has, and about wrong use', async () => {
  expect(await run('T-9')).toMatchObject({
    code: 1,
    out: '',
    err: expect.stringMatching(/nothing has the id T-9; .*\/sync/),
  })
  expect(await run()).toMatchObject({
    code: 2,
    err: expect.stringContaining("missing required argument 'id'"),
  })
  expect(await run(' ')).toMatchObject({
    code: 2,
    err: expect.stringContaining('It is empty'),
  })
  expect(await run('T-1', '--merchant', 'UFLIYI')).toMatchObject({
    code: 2,
    err: expect.stringContaining('known accounts'),
  })
})

it('tells the story without receivers where the key is not set', async () => {
  const { code, out, err } = await runCli(['show', 'T-1'], { DATABASE_URL: rig.database.url })
  expect({ code, err }).toEqual({
    code: 0,
    err: expect.stringMatching(/^warning: receivers cannot be read: /),
  })
  expect(out).toContain('(unreadable)')
})
