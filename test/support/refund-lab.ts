import type { RefundRow } from '../../src/refunds/rows.ts'
import { lockRefunds } from '../../src/refunds/rows.ts'
import { syncDue } from '../../src/sync/sync-due.ts'
import { emptyTables } from './database.ts'
import { type RefundRig, startRefundRig } from './refunds.ts'
import { MERCHANT, postIpn, type RigOptions, signIpn } from './service.ts'
import { waitUntil } from './wait-until.ts'

export type LabPayment = { id: string; transactionId: string }

/** What a refund's notification says where it differs from the truth about the refund. */
export type Told = {
  code?: string | number
  amount?: number
  paymentId?: string
  requestId?: string
  merchantCode?: string
  secret?: string
  message?: string
}

/** A refund rig whose passes are driven by hand: nothing moves between two calls of the test. */
export type RefundLab = RefundRig & {
  /** A payment that the service knows, of a transaction that rests. */
  open(options?: { amount?: string; paymentMethod?: string }): Promise<LabPayment>
  /** Asks for a refund without letting a pass see it. */
  ask(payment: LabPayment, amount: string): Promise<string>
  /** One pass over the transaction, everything in it being due; no other one is. */
  pass(payment: LabPayment): Promise<void>
  /** Asks, and lets one pass send it. */
  send(payment: LabPayment, amount: string): Promise<string>
  row(refundId: string): Promise<RefundRow>
  /** Everything that happened to a refund happened that much earlier. */
  age(refundId: string, ms: number): Promise<void>
  /** Kinds of the disagreements about a payment, oldest first. */
  disagreements(payment: LabPayment): Promise<string[]>
  /** The gateway's own notification about a refund, acknowledged. */
  tell(payment: LabPayment, refundId: string, amount: string, told?: Told): Promise<void>
  /** The gateway ends a refund; its notification, if the mode sends any, is acknowledged. */
  settle(refundId: string, outcome?: 'success' | 'failure'): Promise<void>
  mode(mode: object): Promise<void>
  fault(kind: string, more?: object): Promise<void>
  /** What QUERY_PT shows instead of the truth; null for the truth. */
  show(payment: LabPayment, refundedAmount: string | null): Promise<void>
  /** Empties the books between two tests. */
  clear(): Promise<void>
}

const SILENT = { guardsBalance: false, settleMs: null, ipn: 'never' }

export async function startRefundLab(options: RigOptions = {}): Promise<RefundLab> {
  const rig = await startRefundRig({
    ...options,
    settings: { ROLE: 'web', REFUND_RESEND_AFTER_MS: '30000', ...options.settings },
  })
  const { sql } = rig.database
  const mode = async (more: object) => {
    await rig.control('PUT', '/refund-mode', { ...SILENT, ...more })
  }
  await mode({})

  async function pass({ transactionId }: LabPayment): Promise<void> {
    await sql`
      update refunds set due_at = now() - interval '1 s'
      where transaction_id = ${transactionId} and due_at is not null`
    await sql`
      update transactions set due_at = now() + case when transaction_id = ${transactionId}
        then interval '-1 s' else interval '1 hour' end
      where transaction_id = ${transactionId} or (due_at is not null and lease_id is null)`
    if ((await syncDue(rig.service.ctx)) !== 1) throw new Error(`${transactionId} was not claimed`)
  }
  async function ask({ id }: LabPayment, amount: string): Promise<string> {
    return (await rig.refund(id, { amount })).body.id
  }
  async function row(refundId: string): Promise<RefundRow> {
    const [found] = await sql<{ transactionId: string; asOf: string }[]>`
      select transaction_id as "transactionId", clock_timestamp()::text as "asOf"
      from refunds where refund_id = ${refundId}`
    if (!found) throw new Error(`no refund ${refundId}`)
    const key = { merchantCode: MERCHANT.merchantCode, transactionId: found.transactionId }
    const rows = await sql.begin((tx) => lockRefunds(tx, key, found.asOf))
    const [one] = rows.filter((each) => each.refundId === refundId)
    if (!one) throw new Error(`no refund ${refundId}`)
    return one
  }

  return {
    ...rig,
    async open({ amount = '100', paymentMethod = 'CC' } = {}) {
      const transactionId = `T-${crypto.randomUUID()}`
      const id = `P-${crypto.randomUUID()}`
      const payments = [{ id, amount, paymentMethod, status: 'SUCCESS' }]
      await rig.control('POST', '/transactions', { transactionId, payments, ipn: false })
      await sql`
        insert into transactions (merchant_code, transaction_id)
        values (${MERCHANT.merchantCode}, ${transactionId})`
      await pass({ id, transactionId })
      return { id, transactionId }
    },
    ask,
    pass,
    async send(payment, amount) {
      const refundId = await ask(payment, amount)
      await pass(payment)
      return refundId
    },
    row,
    async age(refundId, ms) {
      await sql`
        update refunds set
          first_sent_at = first_sent_at - ${ms}::float8 * interval '1 millisecond',
          last_sent_at = last_sent_at - ${ms}::float8 * interval '1 millisecond',
          refused_at = refused_at - ${ms}::float8 * interval '1 millisecond'
        where refund_id = ${refundId}`
    },
    async disagreements({ id }) {
      const rows = await sql<{ kind: string }[]>`
        select kind from discrepancies where payment_id = ${id} order by id`
      return rows.map(({ kind }) => kind)
    },
    async tell(payment, refundId, amount, told = {}) {
      const { merchantCode = MERCHANT.merchantCode, secret = MERCHANT.secret } = told
      const body = signIpn(
        {
          svc_MerchantCode: merchantCode,
          svc_Command: 'REFUND',
          svc_RequestID: told.requestId ?? refundId,
          svc_TransactionID: `R-${refundId.slice(0, 8)}`,
          svc_PaymentID: told.paymentId ?? payment.id,
          svc_Amount: told.amount ?? Number(amount),
          svc_ResponseCode: told.code ?? 0,
          svc_ResponseMsg: told.message ?? 'told',
        },
        { secret, exclude: [] },
      )
      const { status } = await postIpn(rig.service.url, body)
      if (status !== 200) throw new Error(`the notification got ${status}`)
    },
    async settle(refundId, outcome = 'success') {
      await rig.control('POST', `/refunds/${refundId}/settle`, { outcome })
    },
    mode,
    async fault(kind, more = {}) {
      await rig.control('POST', '/faults', { command: 'REFUND', kind, times: 1, ...more })
    },
    async show({ id }, refundedAmount) {
      await rig.control('PATCH', `/payments/${id}`, { refundedAmountShown: refundedAmount })
    },
    async clear() {
      await rig.control('DELETE', '/faults')
      await mode({})
      await emptyTables(rig.database)
    },
  }
}

/** Waits until the gateway has received that many REFUND calls under this id. */
export async function waitForSent(rig: RefundRig, refundId: string, n = 1): Promise<void> {
  await waitUntil(async () => (await rig.sent(refundId)) >= n, { what: `REFUND ${refundId}` })
}
