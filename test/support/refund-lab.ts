import type { RefundRow } from '../../src/refunds/lifecycle.ts'
import { lockRefundRows } from '../../src/refunds/lock-refunds.ts'
import { syncDue } from '../../src/sync/sync-due.ts'
import { withKey } from './api.ts'
import { type RefundRig, startRefundRig } from './refunds.ts'
import { MERCHANT, postIpn, type RigOptions, signIpn } from './service.ts'
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

/** A refund rig whose syncs the test runs itself: nothing happens between two calls of the test. */
export type RefundLab = RefundRig & {
  /** Creates a payment known to the service, in an idle transaction. */
  open(options?: LabPaymentOptions): Promise<LabPayment>
  /** Requests a refund, without a sync. */
  ask(payment: LabPayment, amount: string): Promise<string>
  /** Syncs the transaction once, with all of its refunds due and no other transaction due. */
  pass(payment: LabPayment): Promise<void>
  /** Requests a refund, and syncs once to send it. */
  send(payment: LabPayment, amount: string): Promise<string>
  /** Opens a payment of 100, and requests a refund of 30 of it, without a sync. */
  openAsked(): Promise<LabRefund>
  /** The same, and syncs once to send it; by default no fault hinders that. */
  openSent(fault?: string, more?: object): Promise<LabRefund>
  /** Notifies, shows or settles as the methods of that name do, and syncs. */
  passNotified(...notified: Parameters<RefundLab['notify']>): Promise<void>
  passShowing(payment: LabPayment, refundedAmount: string | null): Promise<void>
  passSettled(payment: LabPayment, refundId: string): Promise<void>
  /** Syncs, and once more `REFUND_CONFIRM_FAILED_MS` later: two answers, apart. */
  passTwice(payment: LabPayment, refundId: string): Promise<void>
  row(refundId: string): Promise<RefundRow>
  /** The stored status of a refund, `sending` included. */
  status(refundId: string): Promise<RefundRow['status']>
  /** What is left to refund of a payment. */
  left(payment: { id: string }): Promise<string>
  /** Posts JSON to a path below `/v1`. */
  post(path: string, body: object, key?: string): Promise<Response>
  /** Moves the times of a refund's attempts, of its failure and of what answers have shown of it back by `ms`. */
  age(refundId: string, ms: number): Promise<void>
  /** Kinds of the payment's discrepancies, oldest first. */
  disagreements(payment: LabPayment): Promise<string[]>
  /** Delivers the gateway's notification of a refund, and requires its acknowledgement. */
  notify(
    payment: LabPayment,
    refundId: string,
    amount: string,
    overrides?: NotificationOverrides,
  ): Promise<void>
  /** Settles a refund at the gateway; its notification, if the mode sends any, is acknowledged. */
  settle(refundId: string, outcome?: 'success' | 'failure'): Promise<void>
  mode(mode: object): Promise<void>
  fault(kind: string, more?: object): Promise<void>
  /** Makes QUERY_PT show this refunded amount instead of the actual one; null for the actual one. */
  show(payment: LabPayment, refundedAmount: string | null): Promise<void>
  /** No longer lists the payment, in two answers a minute apart. */
  lose(payment: LabPayment): Promise<void>
}

const SILENT = { guardsBalance: false, settleMs: null, ipn: 'never' } as const

export async function startRefundLab(options: RigOptions = {}): Promise<RefundLab> {
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
  const mode = async (more: object) => {
    await rig.control('PUT', '/refund-mode', { ...SILENT, ...more })
  }
  const pass = (payment: LabPayment) => syncOnce(rig, payment)
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
  const ask = async ({ id }: LabPayment, amount: string) =>
    (await rig.refund(id, { amount })).body.id
  const openAsked = async () => {
    const payment = await openPayment(rig)
    return { payment, refundId: await ask(payment, '30') }
  }
  const settle = async (refundId: string, outcome = 'success') => {
    await rig.control('POST', `/refunds/${refundId}/settle`, { outcome })
  }
  const fault = async (kind: string, more: object = {}) => {
    await rig.control('POST', '/faults', { command: 'REFUND', kind, times: 1, ...more })
  }
  const show = async ({ id }: LabPayment, refundedAmount: string | null) => {
    await rig.control('PATCH', `/payments/${id}`, { refundedAmountShown: refundedAmount })
  }
  return {
    ...rig,
    open: (payment) => openPayment(rig, payment),
    ask,
    pass,
    async send(payment, amount) {
      const refundId = await ask(payment, amount)
      await pass(payment)
      return refundId
    },
    openAsked,
    async openSent(kind, more) {
      const asked = await openAsked()
      if (kind) await fault(kind, more)
      await pass(asked.payment)
      return asked
    },
    async passNotified(payment, ...notified) {
      await notifyRefund(rig, payment, ...notified)
      await pass(payment)
    },
    async passShowing(payment, refundedAmount) {
      await show(payment, refundedAmount)
      await pass(payment)
    },
    async passSettled(payment, refundId) {
      await settle(refundId)
      await pass(payment)
    },
    row: (refundId) => readRow(rig, refundId),
    status: async (refundId) => (await readRow(rig, refundId)).status,
    left: async ({ id }) => (await rig.payment(id)).refundableAmount,
    post: (path, body, key) =>
      fetch(`${rig.service.url}/v1${path}`, {
        method: 'POST',
        ...withKey(key, { 'content-type': 'application/json' }),
        body: JSON.stringify(body),
      }),
    age,
    async passTwice(payment, refundId) {
      await pass(payment)
      await age(refundId, rig.service.ctx.config.REFUND_CONFIRM_FAILED_MS)
      await pass(payment)
    },
    async disagreements({ id }) {
      const rows = await sql<{ kind: string }[]>`
        select kind from discrepancies where payment_id = ${id} order by id`
      return rows.map(({ kind }) => kind)
    },
    notify: (...notification) => notifyRefund(rig, ...notification),
    settle,
    mode,
    fault,
    show,
    async lose(payment) {
      await rig.control('PATCH', `/payments/${payment.id}`, { listed: false })
      await pass(payment)
      await sql`
        update payments set unlisted_since = unlisted_since - interval '1 min'
        where payment_id = ${payment.id}`
      await pass(payment)
    },
  }
}

type LabPaymentOptions = { amount?: string; paymentMethod?: string; paymentId?: string }

async function openPayment(
  rig: RefundRig,
  {
    amount = '100',
    paymentMethod = 'CC',
    paymentId: id = `P-${crypto.randomUUID()}`,
  }: LabPaymentOptions = {},
): Promise<LabPayment> {
  const transactionId = `T-${crypto.randomUUID()}`
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
