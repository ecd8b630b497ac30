import { readdirSync, readFileSync } from 'node:fs'
import { beforeEach, describe, expect, it } from 'vitest'
import { DISCREPANCY_KINDS } from '../../../src/discrepancies/kinds.ts'
import { Discrepancy } from '../../../src/discrepancies/routes.ts'
import { recordDiscrepancies } from '../../../src/discrepancies/store.ts'
import { checkMissingAccounts } from '../../../src/maintenance/missing-accounts.ts'
import { recheckFinal } from '../../../src/maintenance/rechecks.ts'
import { MOVES, type MoveName, type RefundStatus } from '../../../src/refunds/lifecycle.ts'
import { contradicts } from '../../../src/sync/find-disagreements.ts'
import { readNotifiedPayments } from '../../../src/sync/name-transaction.ts'
import { syncDue } from '../../../src/sync/sync-due.ts'
import { expectInvalid, readAll, readPage } from '../../support/api.ts'
import { ageOmission, makeEntry, startListingGateway } from '../../support/listing-gateway.ts'
import { payOrder } from '../../support/orders.ts'
import { done } from '../../support/people.ts'
import { MERCHANT } from '../../support/service.ts'
import { makeTransaction, notifyOf, registerDue, syncAgain } from '../../support/sync.ts'
import { useFreshLab } from '../../support/use-started.ts'

const DAY_MS = 86_400_000
const NEVER = { outcome: 'never_happened', reason: 'asked the portal' }

const lab = useFreshLab()
/** The transaction of the current test: the gateway keeps its data between tests. */
let tests = 0
let id = ''
beforeEach(() => {
  tests += 1
  id = `T-D${tests}`
})

const list = (query = '') => lab.api(`/v1/discrepancies${query}`)
const read = async (query = '') =>
  (await readPage(await list(query))).data.map((one) => Discrepancy.strict().parse(one))

/** Reads the only discrepancy: its kind, both sides, and whether it is open. */
async function readOnly(kind: string) {
  const [one, ...others] = await read(`?kind=${kind}`)
  if (!one || others.length > 0) throw new Error(`not exactly one ${kind}`)
  return { ...one, open: one.resolvedAt === null }
}
const kinds = async () => (await read()).map(({ kind }) => kind).sort()

/** Sends a refund of 30, and delivers its notifications in turn, with a sync after each. */
async function sendNotified(...codes: number[]) {
  const { payment, refundId } = await lab.openSent()
  for (const code of codes) {
    await lab.passNotified(payment, refundId, '30', { code })
  }
  return refundId
}

/** Plants a defect of the rules. @returns what mends it */
function forbid(name: MoveName, from: readonly RefundStatus[]) {
  const rule: { from: readonly RefundStatus[] } = MOVES[name]
  const kept = rule.from
  Object.assign(rule, { from })
  return () => void Object.assign(rule, { from: kept })
}

async function finish(payments: Parameters<typeof makeTransaction>[2] = [{}]) {
  await makeTransaction(lab, id, payments)
  await registerDue(lab, id)
  await syncAgain(lab, id)
}
const patch = (paymentId: string, to: object) => lab.control('PATCH', `/payments/${paymentId}`, to)

async function readMetric(name: string): Promise<number> {
  const text = await (await fetch(`${lab.service.url}/metrics`)).text()
  const line = text.split('\n').find((one) => one.startsWith(`${name} `))
  return Number(line?.split(' ').at(-1) ?? 0)
}

/** Plays every kind: what it records, and what resolves it where that can be detected. */
const PLAYED = {
  async unexplained_growth() {
    const payment = await lab.open()
    await lab.passShowing(payment, '40.5')
    await lab.pass(payment)
    expect(await readOnly('unexplained_growth')).toMatchObject({
      paymentId: payment.id,
      ours: { source: 'service', says: 'no refund explains 40.5 of it' },
      theirs: { source: 'query', says: 'refundedAmount 40.5' },
      times: 2,
      open: true,
    })
    await lab.passShowing(payment, null)
    expect((await readOnly('unexplained_growth')).open).toBe(false)
  },
  async refunded_amount_fell() {
    const { payment, refundId } = await lab.openSent()
    await lab.settle(refundId)
    await lab.passNotified(payment, refundId, '30')
    await lab.passShowing(payment, '0')
    expect(await readOnly('refunded_amount_fell')).toMatchObject({
      ours: { says: '30 more is explained by refunds' },
      theirs: { says: 'refundedAmount 0' },
      open: true,
    })
    await lab.passShowing(payment, null)
    expect((await readOnly('refunded_amount_fell')).open).toBe(false)
    expect((await readOnly('answer_went_backwards')).open).toBe(false)
  },
  async success_after_failure() {
    const { payment, refundId } = await lab.openSent()
    await lab.notify(payment, refundId, '30', { code: 1 })
    await lab.passTwice(payment, refundId)
    await lab.passNotified(payment, refundId, '30')
    expect(await readOnly('success_after_failure')).toMatchObject({
      refundId,
      ours: { source: 'service', says: 'failed' },
      theirs: { source: 'notification', says: 'success notification' },
      open: true,
    })
  },
  async failure_after_success() {
    const refundId = await sendNotified(0, 5)
    expect(await readOnly('failure_after_success')).toMatchObject({ refundId, open: true })
    await decideAgainst(refundId)
    expect((await readOnly('failure_after_success')).open).toBe(false)
  },
  async decided_against_evidence() {
    const refundId = await sendNotified(0, 5)
    await decideAgainst(refundId)
    expect(await readOnly('decided_against_evidence')).toMatchObject({
      refundId,
      ours: { source: 'person', says: 'decided as failed by first' },
      theirs: { source: 'service', says: 'the gateway notified that it succeeded' },
      open: true,
    })
  },
  async notification_mismatch() {
    const { payment, refundId } = await lab.openSent()
    await lab.passNotified(payment, refundId, '30', { amount: 31 })
    const { ours, theirs } = await readOnly('notification_mismatch')
    expect(ours.says).toBe(`request ${refundId}, payment ${payment.id}, amount 30`)
    expect(theirs.says).toBe(`request ${refundId}, payment ${payment.id}, amount 31`)
  },
  async refund_rule_missing() {
    const { payment, refundId } = await lab.openAsked()
    const restore = forbid('accepted', [])
    await lab.pass(payment)
    restore()
    expect(await readOnly('refund_rule_missing')).toMatchObject({
      ...{ refundId, open: true },
      ours: { source: 'service', says: 'a refund that was sending' },
      theirs: { source: 'service', says: 'accepted' },
    })
    const { status, review, attempts } = await lab.row(refundId)
    expect([status, review, attempts]).toEqual(['needs_review', 'rule_missing', 1])
  },
  async refund_without_end() {
    const { payment, refundId } = await lab.openSent()
    await lab.age(refundId, 3 * DAY_MS)
    await lab.pass(payment)
    expect(await readOnly('refund_without_end')).toMatchObject({ refundId, open: true })
    await lab.passSettled(payment, refundId)
    expect((await readOnly('refund_without_end')).open).toBe(false)
  },
  async refund_without_growth() {
    const { payment, refundId } = await lab.openSent()
    await lab.passNotified(payment, refundId, '30')
    await lab.age(refundId, 3 * DAY_MS)
    await lab.pass(payment)
    expect(await readOnly('refund_without_growth')).toMatchObject({
      ...{ refundId, open: true },
      ours: { source: 'service', says: 'succeeded' },
      theirs: { source: 'query', says: 'no increase of the refunded amount shows it' },
    })
    await lab.passShowing(payment, '30')
    expect((await readOnly('refund_without_growth')).open).toBe(false)
  },
  async external_refund_unmatched() {
    const payment = await lab.open()
    await lab.show(payment, '0')
    await lab.refundAtPortal(payment, '30')
    await lab.passNotified(payment, 'portal-1', '30')
    await lab.database.sql`
      update external_refunds set first_seen_at = first_seen_at - interval '3 days'`
    await lab.pass(payment)
    expect(await readOnly('external_refund_unmatched')).toMatchObject({
      paymentId: payment.id,
      ours: { source: 'service', says: 'no increase of the refunded amount shows it' },
      theirs: { source: 'notification', says: 'success notification, request portal-1, amount 30' },
      open: true,
    })
    await lab.passShowing(payment, null)
    expect((await readOnly('external_refund_unmatched')).open).toBe(false)
  },
  async external_refund_unreadable() {
    const payment = await lab.open()
    await lab.passNotified(payment, 'portal-1', '30', { amount: 30.12345 })
    expect(await readOnly('external_refund_unreadable')).toMatchObject({
      ...{ paymentId: payment.id, open: true },
      ours: { source: 'service', says: 'nothing is reserved for it' },
      theirs: { source: 'notification', says: 'success notification, request portal-1' },
    })
  },
  async external_refund_contradicted() {
    const payment = await lab.open()
    for (const code of [0, 5]) {
      await lab.passNotified(payment, 'portal-1', '30', { code })
    }
    expect(await readOnly('external_refund_contradicted')).toMatchObject({
      paymentId: payment.id,
      ours: { source: 'service', says: 'external refund portal-1 of 30' },
      theirs: { source: 'notification', says: 'its success and its failure were both notified' },
      open: true,
    })
    const [one] = await lab.external(payment)
    await done(lab.post(`/external-refunds/${one?.id}/resolution`, NEVER))
    expect((await readOnly('external_refund_contradicted')).open).toBe(false)
  },
  async answer_went_backwards() {
    await finish([{ id: `p-${id}`, amount: '10000.50' }])
    await patch(`p-${id}`, { status: 'FAILED' })
    await syncAgain(lab, id)
    const found = await readOnly('answer_went_backwards')
    expect(found).toMatchObject({
      merchantCode: MERCHANT.merchantCode,
      transactionId: id,
      paymentId: `p-${id}`,
      refundId: null,
      ours: { source: 'earlier_query', says: 'status SUCCESS' },
      theirs: { source: 'query', says: 'status FAILED' },
      times: 1,
      open: true,
    })
    expect(found.lastSeenAt).toBe(found.firstSeenAt)
    await patch(`p-${id}`, { status: 'SUCCESS' })
    await syncAgain(lab, id)
    expect(await readOnly('answer_went_backwards')).toMatchObject({ open: false, times: 1 })
    await patch(`p-${id}`, { status: 'FAILED' })
    await syncAgain(lab, id)
    expect(await readOnly('answer_went_backwards')).toMatchObject({ open: true, times: 2 })
  },
  async payment_unreadable() {
    const gateway = await startListingGateway(lab)
    gateway.list(makeEntry('p1', { amount: 'ten' }))
    await gateway.sync(id)
    await gateway.sync(id)
    expect(await readOnly('payment_unreadable')).toMatchObject({
      paymentId: 'p1',
      ours: { says: 'not applied, because the entry has a value as its amount that is no amount' },
      theirs: { says: JSON.stringify(makeEntry('p1', { amount: 'ten' })) },
      times: 2,
      open: true,
    })
    gateway.list(makeEntry('p1'))
    await gateway.sync(id)
    expect((await readOnly('payment_unreadable')).open).toBe(false)
  },
  async amount_rounded() {
    const gateway = await startListingGateway(lab)
    gateway.list(makeEntry('p1', { amount: 0.1 + 0.2 }))
    await gateway.sync(id)
    expect(await readOnly('amount_rounded')).toMatchObject({
      paymentId: 'p1',
      ours: { says: 'amount 0.3' },
      theirs: { says: 'amount 0.30000000000000004' },
      open: true,
    })
  },
  async order_conflict() {
    await makeTransaction(lab, id, [{ amount: '10' }])
    for (const order of ['DH1', 'DH2']) {
      await notifyOf(lab, id, { svc_ResponseCode: 0, svc_OrderID: order })
    }
    await syncDue(lab.service.ctx)
    await syncAgain(lab, id)
    expect(await readOnly('order_conflict')).toMatchObject({
      transactionId: id,
      ours: { source: 'notification', says: 'order id DH1' },
      theirs: { source: 'notification', says: 'order id DH2' },
      times: 2,
      open: true,
    })
  },
  async amount_mismatch() {
    await makeTransaction(lab, id, [{ id: `p-${id}`, amount: '1000' }])
    await notifyOf(lab, id, { svc_ResponseCode: 0, svc_Amount: 250000 })
    await syncDue(lab.service.ctx)
    expect(await readOnly('amount_mismatch')).toMatchObject({
      transactionId: id,
      ours: { source: 'notification', says: 'amount 250000' },
      theirs: { source: 'query', says: 'paid 1000' },
      open: true,
    })
    await makeTransaction(lab, id, [{ id: `q-${id}`, amount: '249000' }])
    await syncAgain(lab, id)
    expect((await readOnly('amount_mismatch')).open).toBe(false)
  },
  async order_paid_twice() {
    const [first, second] = [await payOrder(lab, `O-${id}`), await payOrder(lab, `O-${id}`)]
    const found = await read('?kind=order_paid_twice')
    expect(found.map(({ theirs }) => theirs.says).sort()).toEqual([
      `also paid: ${first.transactionId}`,
      `also paid: ${second.transactionId}`,
    ])
    await patch(second.payments[0]?.id ?? '', { status: 'FAILED' })
    await syncAgain(lab, second.transactionId)
    const open = (await read('?kind=order_paid_twice')).filter((one) => one.resolvedAt === null)
    expect(open).toEqual([])
  },
  async currency_changed() {
    await makeTransaction(lab, id, [{ id: `p-${id}`, amount: '10' }])
    for (const currency of ['VND', 'USD', 'VND']) {
      await notifyOf(lab, id, { svc_ResponseCode: 0, svc_Amount: 10, svc_Currency: currency })
    }
    await syncDue(lab.service.ctx)
    await syncAgain(lab, id)
    expect(await readOnly('currency_changed')).toMatchObject({
      transactionId: id,
      ours: { source: 'service', says: 'currency VND' },
      theirs: { source: 'notification', says: 'currency USD' },
      open: true,
    })
    expect(await lab.transaction(id)).toMatchObject({ currency: 'VND', state: 'paid' })
  },
  async payment_elsewhere() {
    const gateway = await startListingGateway(lab)
    gateway.list(makeEntry('p1'))
    await gateway.sync(`${id}-first`)
    await gateway.sync(id)
    expect(await readOnly('payment_elsewhere')).toMatchObject({
      transactionId: id,
      paymentId: 'p1',
      ours: { says: `listed under transaction ${id}-first` },
      theirs: { says: `listed under transaction ${id}` },
      open: true,
    })
    await lab.database.sql`update payments set missing = true`
    await gateway.sync(id)
    expect((await readOnly('payment_elsewhere')).open).toBe(false)
  },
  async payment_moved() {
    const gateway = await startListingGateway(lab)
    gateway.list(makeEntry('p1'))
    await gateway.sync(`${id}-first`)
    await lab.database.sql`update payments set missing = true`
    await gateway.sync(id)
    expect(await readOnly('payment_moved')).toMatchObject({
      transactionId: `${id}-first`,
      paymentId: 'p1',
      ours: { source: 'earlier_query', says: `SUCCESS 10 of transaction ${id}-first` },
      theirs: { source: 'query', says: `listed under transaction ${id}` },
      open: true,
    })
  },
  async payment_missing() {
    await finish([{ id: `p-${id}`, amount: '10000.50' }])
    await patch(`p-${id}`, { listed: false })
    await syncAgain(lab, id)
    await ageOmission(lab, `p-${id}`)
    await syncAgain(lab, id)
    await syncAgain(lab, id)
    expect(await readOnly('payment_missing')).toMatchObject({
      ours: { says: 'status SUCCESS, amount 10000.50' },
      theirs: { says: 'not listed' },
      times: 1,
      open: true,
    })
    await patch(`p-${id}`, { listed: true })
    await syncAgain(lab, id)
    expect((await readOnly('payment_missing')).open).toBe(false)
  },
  async duplicate_payment() {
    await finish([
      { id: `p-${id}`, amount: '10000.50' },
      { id: `q-${id}`, amount: '0.5' },
    ])
    await syncAgain(lab, id)
    expect(await readOnly('duplicate_payment')).toMatchObject({
      transactionId: id,
      paymentId: null,
      ours: { says: 'one payment is expected' },
      theirs: { says: '2 payments succeeded, together 10001.00' },
      times: 1,
      open: true,
    })
    await patch(`q-${id}`, { status: 'FAILED' })
    await syncAgain(lab, id)
    expect((await readOnly('duplicate_payment')).open).toBe(false)
  },
  async ipn_contradicts_query() {
    await makeTransaction(lab, id, [{ id: `p-${id}`, amount: '10', status: 'FAILED' }])
    await notifyOf(lab, id, { svc_ResponseCode: 0, svc_Amount: 10 })
    await syncDue(lab.service.ctx)
    expect(await readOnly('ipn_contradicts_query')).toMatchObject({
      transactionId: id,
      ours: { source: 'notification', says: 'code 0, amount 10' },
      theirs: { source: 'query', says: 'FAILED 10' },
      open: true,
    })
    await patch(`p-${id}`, { status: 'SUCCESS' })
    await syncAgain(lab, id)
    expect((await readOnly('ipn_contradicts_query')).open).toBe(false)
  },
  async account_missing() {
    const { payment } = await lab.openSent()
    const { ctx } = lab.service
    const accounts = [{ merchantCode: 'OTHER1', secret: 'secret' }] as const
    await checkMissingAccounts({ ...ctx, config: { ...ctx.config, accounts } })
    expect(await readOnly('account_missing')).toMatchObject({
      transactionId: payment.transactionId,
      ours: { source: 'service', says: 'has refunds that have not ended' },
      theirs: { source: 'settings', says: 'the merchant account is not configured' },
      open: true,
    })
    await checkMissingAccounts(ctx)
    expect((await readOnly('account_missing')).open).toBe(false)
  },
  async ipn_missing() {
    const before = await readMetric('ipn_missing_total')
    await makeTransaction(lab, id)
    const asked = await lab.api(`/v1/transactions/${id}/sync`, { method: 'POST' })
    expect(asked.status).toBe(202)
    await syncDue(lab.service.ctx)
    await lab.database.sql`update transactions set reconcile_at = now() - interval '1 s'`
    expect(await recheckFinal(lab.service.ctx)).toBe(1)
    expect(await readOnly('ipn_missing')).toMatchObject({
      transactionId: id,
      ours: { source: 'query', says: 'state paid, known by a request to sync' },
      theirs: { source: 'notification', says: 'no notification' },
      open: true,
    })
    expect(await readMetric('ipn_missing_total')).toBe(before + 1)
    await notifyOf(lab, id)
    await syncAgain(lab, id)
    expect((await readOnly('ipn_missing')).open).toBe(false)
  },
}

async function decideAgainst(refundId: string, expected = 200): Promise<void> {
  const decision = { outcome: 'failed', reason: 'the gateway says so', againstEvidence: true }
  const { status } = await lab.post(`/refunds/${refundId}/resolution`, decision)
  expect(status).toBe(expected)
}

it('a decision that no rule admits is not made', async () => {
  const refundId = await sendNotified(0, 5)
  const restore = forbid('decided_failed', [])
  await decideAgainst(refundId, 500)
  restore()
  await lab.expectRefund(refundId, 'needs_review', { resolution: null })
})

describe('a discrepancy', () => {
  it.each(Object.entries(PLAYED))('%s', async (kind, play) => {
    const counter = `discrepancies_total{kind="${kind}"}`
    const before = await readMetric(counter)
    await play()
    // Each of the two transactions has one.
    expect(await readMetric(counter)).toBe(before + (kind === 'order_paid_twice' ? 2 : 1))
  })

  it('of every kind is played above, and explained in the documentation', () => {
    expect(Object.keys(PLAYED).sort()).toEqual(Object.keys(DISCREPANCY_KINDS).sort())
    const pages = readdirSync('docs').filter((file) => file.endsWith('.md'))
    const files = ['README.md', ...pages.map((file) => `docs/${file}`)]
    const texts = files.map((file) => readFileSync(file, 'utf8')).join('\n')
    const explained = (kind: string) => texts.includes(`\n| \`${kind}\` |`)
    expect(Object.keys(DISCREPANCY_KINDS).filter((kind) => !explained(kind))).toEqual([])
  })

  it('about an amount or a sum that decreased, in an answer committed with others, is also recorded', async () => {
    await finish([{ id: `p-${id}`, amount: '100' }])
    await patch(`p-${id}`, { amount: '90' })
    await syncAgain(lab, id)
    const payment = { id: `p-${id}`, transactionId: id }
    await lab.passShowing(payment, '40')
    await lab.passShowing(payment, '39.99')
    const found = await read('?kind=answer_went_backwards')
    expect(found.map(({ ours, theirs }) => [ours.says, theirs.says])).toEqual([
      ['refundedAmount 40', 'refundedAmount 39.99'],
      ['amount 100', 'amount 90'],
    ])
  })

  it('is none about a deposit and the rest in one transaction: they do not exceed the amount of the order', async () => {
    await makeTransaction(lab, id, [{ amount: '30' }, { id: `q-${id}`, amount: '70' }])
    await notifyOf(lab, id, { svc_ResponseCode: 0, svc_Amount: 100 })
    await syncDue(lab.service.ctx)
    expect(await kinds()).toEqual([])
    expect(await lab.transaction(id)).toMatchObject({ duplicatePayment: true })
    await makeTransaction(lab, id, [{ id: `r-${id}`, amount: '70' }])
    await syncAgain(lab, id)
    expect(await readOnly('duplicate_payment')).toMatchObject({
      ours: { says: 'amount 100 is expected' },
      theirs: { says: '3 payments succeeded, together 170' },
      open: true,
    })
    await lab.show({ id: `r-${id}`, transactionId: id }, '70')
    await syncAgain(lab, id)
    expect((await readOnly('duplicate_payment')).open).toBe(false)
  })

  it('about two successes is over once their verified amount shows that they are a deposit and the rest', async () => {
    await finish([{ amount: '30' }, { id: `q-${id}`, amount: '70' }])
    expect((await readOnly('duplicate_payment')).open).toBe(true)
    await notifyOf(lab, id, { svc_ResponseCode: 0, svc_Amount: 100 })
    await syncAgain(lab, id)
    expect((await readOnly('duplicate_payment')).open).toBe(false)
  })

  it('about one of two payments is resolved with that one alone', async () => {
    await finish([{ id: `p-${id}` }, { id: `q-${id}`, status: 'FAILED' }])
    for (const name of ['p', 'q']) await patch(`${name}-${id}`, { listed: false })
    await syncAgain(lab, id)
    for (const name of ['p', 'q']) await ageOmission(lab, `${name}-${id}`)
    await syncAgain(lab, id)
    await patch(`q-${id}`, { listed: true })
    await syncAgain(lab, id)
    const found = await read('?kind=payment_missing')
    expect(found.map(({ paymentId, resolvedAt }) => [paymentId, resolvedAt === null])).toEqual([
      [`q-${id}`, false],
      [`p-${id}`, true],
    ])
  })

  it('is not recorded for a payment that progresses normally', async () => {
    await makeTransaction(lab, id, [{ id: `p-${id}`, amount: '100', status: 'PROCESSING' }])
    await notifyOf(lab, id, { svc_ResponseCode: 99, svc_Amount: 100 })
    await syncDue(lab.service.ctx)
    await patch(`p-${id}`, { status: 'SUCCESS' })
    await notifyOf(lab, id, { svc_ResponseCode: 0, svc_Amount: 100 })
    await syncAgain(lab, id)
    expect(await lab.transaction(id)).toMatchObject({ state: 'paid', final: true })
    expect(await kinds()).toEqual([])
  })

  it('is not recorded for a notification whose hash did not verify', async () => {
    await makeTransaction(lab, id, [{ status: 'FAILED' }])
    await notifyOf(lab, id, { svc_ResponseCode: 0 })
    await lab.database.sql`update ipn_events set verdict = 'missing'`
    await syncDue(lab.service.ctx)
    expect(await kinds()).toEqual([])
  })

  it('is searched for in the twenty newest verified notifications of a transaction, however many there are', async () => {
    const { merchantCode } = MERCHANT
    await lab.database.sql`
      insert into ipn_events (merchant_code, text_hash, kind, transaction_id, code, verdict, body,
        address, deliveries)
      select ${merchantCode}, md5(n::text)::uuid, 'payment', ${id}, n,
        case when n between 21 and 50 then 'verified' else 'missing' end, '', '', 1
      from generate_series(1, 70) as n`
    const keys = [
      { merchantCode, transactionId: 'T-NONE' },
      { merchantCode, transactionId: id },
    ]
    const notices = await lab.database.sql.begin((tx) => readNotifiedPayments(tx, keys))
    const codes = notices.map((some) => some.map(({ code }) => Number(code)).sort())
    expect(codes).toEqual([[], Array.from({ length: 20 }, (_, at) => 31 + at)])
  })

  it('recorded twice at once is one row, and two rows if its sides differ', async () => {
    const one = {
      merchantCode: MERCHANT.merchantCode,
      transactionId: id,
      kind: 'payment_missing' as const,
      paymentId: 'p',
      ours: 'amount 1',
      theirs: 'amount 2',
    }
    const { sql } = lab.database
    const record = (found: (typeof one)[]) => sql.begin((tx) => recordDiscrepancies(tx, found))
    expect(await record([one, one, { ...one, ours: 'amount 3' }])).toHaveLength(2)
    expect(await record([one])).toEqual([])
    expect((await read()).map(({ times }) => times).sort()).toEqual([1, 2])
  })
})

it.each([
  ['paid, and it is', '0', ['SUCCESS'], false],
  ['paid, and one attempt failed', '0', ['FAILED', 'SUCCESS'], false],
  ['paid, and nothing was', '0', ['FAILED'], true],
  ['failed, and it did', '1', ['FAILED'], false],
  ['failed, as one attempt of two', '1', ['FAILED', 'SUCCESS'], false],
  ['failed, and none did', '1', ['SUCCESS'], true],
  ['nothing, without a code', null, ['FAILED'], false],
  ['not at its end: waiting', '9', ['FAILED'], false],
  ['not at its end: processing', '99', ['SUCCESS'], false],
] as const)('a notification reports: %s', (_, code, statuses, wrong) => {
  const payments = statuses.map((status) => ({ status }))
  expect(contradicts({ code, isOther: false }, payments)).toBe(wrong)
  expect(contradicts({ code, isOther: true }, payments)).toBe(false)
})

describe('GET /v1/discrepancies', () => {
  const seed = (merchantCode: string, kind: string, count: number) => lab.database.sql`
    insert into discrepancies (merchant_code, transaction_id, kind, ours, theirs, at)
    select ${merchantCode}, 'T-' || n, ${kind}, 'amount 1', 'amount 2', '2026-03-01T09:00:00.123456Z'
    from generate_series(1, ${count}) as n`

  it('has every row once, newest first, also with equal times, and can be filtered by kind', async () => {
    await seed(MERCHANT.merchantCode, 'payment_missing', 5)
    await seed(MERCHANT.merchantCode, 'ipn_missing', 2)
    const wanted = (await read()).map((one) => one.id)
    expect(wanted).toEqual([...wanted].sort((a, b) => Number(b) - Number(a)))
    for (const limit of ['1', '2', '3', '200']) {
      const all = await readAll((query) => list(query), { limit })
      expect(all.map((one) => one.id)).toEqual(wanted)
    }
    expect((await read('?kind=ipn_missing')).map(({ kind }) => kind)).toEqual([
      'ipn_missing',
      'ipn_missing',
    ])
  })

  it('refuses unknown parameters by name', async () => {
    await expectInvalid(await list('?kind=anything'), 'kind')
    await expectInvalid(await list('?limit=201'), 'limit')
    await expectInvalid(await list('?open=true'), 'open')
    const at = '2026-03-01 09:00:00+00'
    for (const row of ['abc', '-1', '1'.repeat(19), '']) {
      const position = Buffer.from(JSON.stringify([at, row, 'M'])).toString('base64url')
      await expectInvalid(await list(`?cursor=0.${position}`), 'cursor')
    }
  })
})
