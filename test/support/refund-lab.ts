import { expect } from 'vitest'
import { z } from 'zod'
import { ExternalRefund } from '../../src/refunds/external-view.ts'
import type { RefundRow } from '../../src/refunds/lifecycle.ts'
import { lockRefundRows } from '../../src/refunds/lock-refunds.ts'
import { Refund } from '../../src/refunds/view.ts'
import { syncDue } from '../../src/sync/sync-due.ts'
import { readPage, withKey } from './api.ts'
import { type RefundRig, startRefundRig } from './refunds.ts'
import { MERCHANT, postIpn, type RigOptions, signIpn, withConfig } from './service.ts'
import { waitUntil } from './wait-until.ts'

/** `REFUND_CONFIRM_FAILED_MS`, `REFUND_RESOLVE_FOR_MS` and `REFUND_RESEND_AFTER_MS` of a lab. */
export const [CONFIRM_MS, RESOLVE_MS, RESEND_MS] = [600_000, 259_200_000, 30_000]

export type LabPayment = { id: string; transactionId: string }
export type LabRefund = { payment: LabPayment; refundId: string }

/** Members of a refund notification that differ from the refund. */
export type NotificationOverrides = {
  code?: string | number
  amount?: number
  paymentId?: string
  requestId?: string
  merchantCode?: string
  secret?: string
  message?: string
  fee?: string | number
  /** The notification's own transaction id. */
  reference?: string
}

/** What is expected of a refund: facts of its row, how often it was sent, and what is left of its payment. */
export type RefundFacts = Partial<RefundRow> & { sent?: number; left?: string }

/** A refund rig whose syncs the test runs itself: nothing happens between two calls of the test. */
export type RefundLab = Awaited<ReturnType<typeof startRefundLab>>

const SILENT = { guardsBalance: false, settleMs: null, ipn: 'never' } as const

export async function startRefundLab(options: RigOptions = {}) {
  const rig = await startRefundRig({
    ...options,
    settings: {
      ROLE: 'web',
      GATEWAY_TIMEOUT_MS: '5000',
      REFUND_RESEND_AFTER_MS: String(RESEND_MS),
      ...options.settings,
    },
    refundMode: SILENT,
  })
  const { sql } = rig.database
  /** Creates a payment known to the service, in an idle transaction. */
  const open = (payment?: LabPaymentOptions) => openPayment(rig, payment)
  /** Syncs the transaction once, with all of its refunds due and no other transaction due. */
  const pass = (payment: LabPayment) => syncOnce(rig, payment)
  /** Requests a refund, without a sync. */
  const ask = async ({ id }: LabPayment, amount: string) =>
    (await rig.refund(id, { amount })).body.id
  /** Requests a refund, and syncs once to send it. */
  const send = async (payment: LabPayment, amount: string) => {
    const refundId = await ask(payment, amount)
    await pass(payment)
    return refundId
  }
  /** Opens a payment of 100, and requests a refund of 30 of it, without a sync. */
  const openAsked = async (): Promise<LabRefund> => {
    const payment = await open()
    return { payment, refundId: await ask(payment, '30') }
  }
  const fault = async (kind: string, more: object = {}) => {
    await rig.control('POST', '/faults', { command: 'REFUND', kind, times: 1, ...more })
  }
  /** The same, and syncs once to send it; by default no fault hinders that. */
  const openSent = async (kind?: string, more?: object): Promise<LabRefund> => {
    const asked = await openAsked()
    if (kind) await fault(kind, more)
    await pass(asked.payment)
    return asked
  }
  /** Changes a payment at the gateway. */
  const change = async ({ id }: LabPayment, to: object) => {
    await rig.control('PATCH', `/payments/${id}`, to)
  }
  /** Makes QUERY_PT show this refunded amount instead of the actual one; null for the actual one. */
  const show = (payment: LabPayment, refundedAmount: string | null) =>
    change(payment, { refundedAmountShown: refundedAmount })
  const passShowing = async (payment: LabPayment, refundedAmount: string | null) => {
    await show(payment, refundedAmount)
    await pass(payment)
  }
  /** Settles a refund at the gateway; its notification, if the mode sends any, is acknowledged. */
  const settle = async (refundId: string, outcome: 'success' | 'failure' = 'success') => {
    await rig.control('POST', `/refunds/${refundId}/settle`, { outcome })
  }
  /** Delivers the gateway's notification of a refund, and requires its acknowledgement. */
  const notify = (
    payment: LabPayment,
    refundId: string,
    amount: string,
    overrides?: NotificationOverrides,
  ) => notifyRefund(rig, payment, refundId, amount, overrides)
  /** Notifies as `notify` does, and syncs. */
  const passNotified = async (payment: LabPayment, ...notified: Notified) => {
    await notify(payment, ...notified)
    await pass(payment)
  }
  /** Moves the times of a refund's attempts, of its failure and of what answers have shown of it back by `ms`. */
  const age = async (refundId: string, ms: number) => {
    await sql`
      update refunds set
        first_sent_at = first_sent_at - ${ms}::float8 * interval '1 millisecond',
        last_sent_at = last_sent_at - ${ms}::float8 * interval '1 millisecond',
        refused_at = refused_at - ${ms}::float8 * interval '1 millisecond',
        failure_notified_at = failure_notified_at - ${ms}::float8 * interval '1 millisecond',
        no_growth_since = no_growth_since - ${ms}::float8 * interval '1 millisecond',
        return_seen_at = return_seen_at - ${ms}::float8 * interval '1 millisecond',
        resolved_at = resolved_at - ${ms}::float8 * interval '1 millisecond'
      where refund_id = ${refundId}`
    await sql`
      update payments set refunded_fell_at = refunded_fell_at - ${ms}::float8 * interval '1 millisecond'
      where payment_id = (select payment_id from refunds where refund_id = ${refundId})`
  }
  /** Syncs, and once more `REFUND_CONFIRM_FAILED_MS` later: two answers, apart. */
  const passTwice = async (payment: LabPayment, refundId: string) => {
    await pass(payment)
    await age(refundId, rig.service.ctx.config.REFUND_CONFIRM_FAILED_MS)
    await pass(payment)
  }
  const row = (refundId: string) => readRow(rig, refundId)
  /** What is left to refund of a payment. */
  const left = async ({ id }: { id: string }) => (await rig.payment(id)).refundableAmount
  /** Requires this stored status of a refund, `sending` included, and these facts. */
  const expectRefund = async (
    refundId: string,
    status: RefundRow['status'],
    { sent, left: rest, ...facts }: RefundFacts = {},
  ) => {
    const stored = await row(refundId)
    const seen = {
      ...stored,
      ...(sent === undefined ? {} : { sent: await rig.sent(refundId) }),
      ...(rest === undefined ? {} : { left: await left({ id: stored.paymentId }) }),
    }
    expect(seen).toMatchObject({
      ...{ status, ...facts },
      ...(sent === undefined ? {} : { sent }),
      ...(rest === undefined ? {} : { left: rest }),
    })
  }
  return {
    ...rig,
    ...{ open, ask, send, pass, openAsked, openSent, fault, change, show, passShowing },
    ...{ settle, notify, passNotified, age, passTwice, row, left, expectRefund },
    /** The same, and the refunded amount shows it, from which its success is inferred. */
    async openInferred(...fault: Parameters<typeof openSent>): Promise<LabRefund> {
      const sent = await openSent(...fault)
      await passShowing(sent.payment, '30')
      await expectRefund(sent.refundId, 'succeeded', { inferred: true })
      return sent
    },
    /** The same, and its success is notified, and the refunded amount shows it: it is matched. */
    async openMatched(): Promise<LabRefund> {
      const sent = await openSent()
      await show(sent.payment, '30')
      await passNotified(sent.payment, sent.refundId, '30')
      await expectRefund(sent.refundId, 'succeeded', { matched: true, inferred: false })
      return sent
    },
    /** Delivers a verified success of 30 with a member that no table lists. */
    async notifyUndocumented({ id }: LabPayment, requestId = 'portal-1', channel = 'portal') {
      const members = {
        ...{ svc_Command: 'REFUND', svc_RequestID: requestId, svc_PaymentID: id },
        ...{ svc_Amount: 30, svc_ResponseCode: 0, svc_Channel: channel },
      }
      const { status } = await postIpn(rig.service.url, signIpn(members, { exclude: [] }))
      if (status !== 200) throw new Error(`the notification was answered with ${status}`)
    },
    async passSettled(payment: LabPayment, refundId: string) {
      await settle(refundId)
      await pass(payment)
    },
    /** Syncs while new refunds are disabled. */
    passUnsent: (payment: LabPayment) =>
      withConfig(rig, { REFUNDS_ENABLED: false }, () => pass(payment)),
    /** A refund at the gateway's portal of which no notification arrives; it also stands for what a lost row has sent. */
    async refundAtPortal({ id }: LabPayment, amount: string) {
      await rig.control('POST', `/payments/${id}/portal-refund`, { amount })
    },
    async mode(mode: object) {
      await rig.control('PUT', '/refund-mode', { ...SILENT, ...mode })
    },
    /** No longer lists the payment, in two answers a minute apart. */
    async lose(payment: LabPayment) {
      await change(payment, { listed: false })
      await pass(payment)
      await sql`
        update payments set unlisted_since = unlisted_since - interval '1 min'
        where payment_id = ${payment.id}`
      await pass(payment)
    },
    /** The payment was first seen with this much refunded, long ago. */
    async seeFirst({ id }: LabPayment, refundedAmount: string) {
      await sql`
        update payments set refunded_at_first = ${refundedAmount}, refunded_amount = ${refundedAmount}
        where payment_id = ${id}`
    },
    /** Moves the time of its request back. */
    async ageRequest(refundId: string, ms: number) {
      await sql`
        update refunds set requested_at = requested_at - ${ms}::float8 * interval '1 millisecond'
        where refund_id = ${refundId}`
    },
    /** The record of its attempt is lost, as in a failover to a standby that lagged. */
    async loseAttempt(refundId: string) {
      await sql`delete from refund_attempts where refund_id = ${refundId}`
      await sql`
        update refunds set status = 'pending', attempts = 0, first_sent_at = null, last_sent_at = null,
          first_sent_number = null, refunded_before = null, gateway_refund_id = null
        where refund_id = ${refundId}`
    },
    /** The commits that stored and sent it are lost. */
    async loseRow(refundId: string) {
      for (const table of ['refund_attempts', 'changes', 'refunds']) {
        await sql`delete from ${sql(table)} where refund_id = ${refundId}`
      }
    },
    /** The stored status of a refund, `sending` included. */
    status: async (refundId: string) => (await row(refundId)).status,
    async proof(refundId: string) {
      const response = await rig.api(`/v1/refunds/${refundId}?include=proof`)
      const { proof } = Refund.strict().parse(await response.json())
      return proof ?? expect.fail('no proof')
    },
    async timeline({ transactionId }: { transactionId: string }) {
      return (await readPage(await rig.api(`/v1/transactions/${transactionId}/timeline`))).data
    },
    /** The newest event about something with this id, which is not published yet. */
    async lastEvent(id: string) {
      const [event] = await sql<{ type: string; data: Record<string, unknown> }[]>`
        select type, data from event_outbox where data ->> 'id' = ${id} order by event_outbox.id desc limit 1`
      return event
    },
    /** The external refunds of a payment, newest first. */
    async external({ id }: Pick<LabPayment, 'id'>) {
      const { data } = await readPage(await rig.api(`/v1/payments/${id}/external-refunds`))
      return z.array(ExternalRefund).parse(data)
    },
    /** Kinds of the payment's discrepancies, oldest first. */
    async disagreements({ id }: LabPayment, { onlyOpen = false } = {}): Promise<string[]> {
      const rows = await sql<{ kind: string }[]>`
        select kind from discrepancies
        where payment_id = ${id} and (resolved_at is null or ${!onlyOpen}) order by id`
      return rows.map(({ kind }) => kind)
    },
    /** Posts JSON to a path below `/v1`. */
    post: (path: string, body: object, key?: string) =>
      fetch(`${rig.service.url}/v1${path}`, {
        method: 'POST',
        ...withKey(key, { 'content-type': 'application/json' }),
        body: JSON.stringify(body),
      }),
  }
}

/** Without digits: of a number in it that could be a card's, what is shown as evidence would be masked. */
const makeId = (kind: string) =>
  `${kind}-${crypto.randomUUID().replaceAll(/\d/g, (digit) => 'ghijklmnop'.charAt(Number(digit)))}`

type LabPaymentOptions = { amount?: string; paymentMethod?: string; paymentId?: string }
type Notified = [refundId: string, amount: string, overrides?: NotificationOverrides]

async function openPayment(
  rig: RefundRig,
  { amount = '100', paymentMethod = 'CC', paymentId: id = makeId('P') }: LabPaymentOptions = {},
): Promise<LabPayment> {
  const transactionId = makeId('T')
  const payments = [{ id, amount, paymentMethod, status: 'SUCCESS' }]
  await rig.control('POST', '/transactions', { transactionId, payments, ipn: false })
  await rig.database.sql`
    insert into transactions (merchant_code, transaction_id)
    values (${MERCHANT.merchantCode}, ${transactionId})`
  await syncOnce(rig, { id, transactionId })
  const [failed] = await rig.database.sql<{ error: string | null }[]>`
    select last_error as error from transactions as t where transaction_id = ${transactionId}
      and not exists (select from payments as p where p.transaction_id = t.transaction_id)`
  if (failed) throw new Error(`the query of ${transactionId} brought no payment: ${failed.error}`)
  return { id, transactionId }
}

async function syncOnce(rig: RefundRig, payment: LabPayment): Promise<void> {
  await makeDue(rig, payment)
  if ((await syncDue(rig.service.ctx)) !== 1)
    throw new Error(`${payment.transactionId} was not claimed`)
}

/** Makes a transaction due with all of its refunds, and no other. */
export async function makeDue(
  { database: { sql } }: Pick<RefundRig, 'database'>,
  { transactionId }: LabPayment,
): Promise<void> {
  await sql`
    update refunds set due_at = now() - interval '1 s'
    where transaction_id = ${transactionId} and due_at is not null`
  await sql`
    update transactions set due_at = now() + case when transaction_id = ${transactionId}
      then interval '-1 s' else interval '1 hour' end
    where transaction_id = ${transactionId} or (due_at is not null and lease_id is null)`
}

async function readRow({ database: { sql } }: RefundRig, refundId: string): Promise<RefundRow> {
  const [found] = await sql<{ transactionId: string; asOf: string }[]>`
    select transaction_id as "transactionId", clock_timestamp()::text as "asOf"
    from refunds where refund_id = ${refundId}`
  if (!found) throw new Error(`no refund ${refundId}`)
  const key = { merchantCode: MERCHANT.merchantCode, transactionId: found.transactionId }
  const rows = await sql.begin((tx) => lockRefundRows(tx, key, found.asOf))
  const row = rows.find((one) => one.refundId === refundId)
  if (!row) throw new Error(`no refund ${refundId}`)
  return row
}

async function notifyRefund(
  rig: RefundRig,
  payment: LabPayment,
  refundId: string,
  amount: string,
  overrides: NotificationOverrides = {},
): Promise<void> {
  const { merchantCode = MERCHANT.merchantCode, secret = MERCHANT.secret } = overrides
  const body = signIpn(
    {
      svc_MerchantCode: merchantCode,
      svc_Command: 'REFUND',
      svc_RequestID: overrides.requestId ?? refundId,
      svc_TransactionID: overrides.reference ?? `R-${refundId.slice(0, 8)}`,
      ...(overrides.fee === undefined ? {} : { svc_Fee: overrides.fee }),
      svc_PaymentID: overrides.paymentId ?? payment.id,
      svc_Amount: overrides.amount ?? Number(amount),
      svc_ResponseCode: overrides.code ?? 0,
      svc_ResponseMsg: overrides.message ?? 'notified',
    },
    { secret, exclude: [] },
  )
  const { status } = await postIpn(rig.service.url, body)
  if (status !== 200) throw new Error(`the notification was answered with ${status}`)
}

/** Waits until the gateway has received `n` REFUND calls with this request id. */
export async function waitForSent(rig: RefundRig, refundId: string, n = 1): Promise<void> {
  await waitUntil(async () => (await rig.sent(refundId)) >= n, { what: `REFUND ${refundId}` })
}
