import { z } from '@hono/zod-openapi'
import { parse } from 'lossless-json'
import type { Context } from '../context.ts'
import { Time } from '../http/fields.ts'
import { toIso } from '../platform/postgres/row-set.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { listTransactionsOfPayment } from '../transactions/move-payments.ts'
import { Indication, readIndications } from './evidence.ts'
import type { RefundRecord } from './find.ts'

const Removed = z
  .strictObject({ removed: z.literal(true) })
  .openapi({ description: 'Removed after `RETENTION_DAYS`' })

/** Card data and credentials are masked in it. */
const Received = z.unknown().openapi({
  description:
    'What the gateway sent, at most 64 KiB: `members` of an answer, or the `text` of one that cannot be read; `omittedBytes` counts what is left out. Card data, tokens and account numbers are masked. Null for nothing',
})

const ProofSnapshot = z.union([
  z.strictObject({
    queriedAt: Time,
    payments: z
      .unknown()
      .openapi({ description: 'The payments as listed by the gateway, with all their members' }),
    received: Received.openapi({ description: 'The other members of the answer, or null' }),
  }),
  Removed,
])

const ProofAttempt = z.strictObject({
  at: Time.openapi({ description: 'When the attempt was recorded, before it was sent' }),
  bodyHmac: z.string().openapi({
    description: 'HMAC-SHA-256 of the bytes sent under a key of this service, hexadecimal',
  }),
  outcome: z.string().nullable().openapi({
    description:
      'answered, rejected, unavailable (no byte was sent) or unknown; null while in progress',
  }),
  code: z.string().nullable(),
  message: z
    .string()
    .nullable()
    .openapi({ description: "The gateway's message, or why there is no valid answer" }),
  httpStatus: z.int().nullable(),
  durationMs: z.int().nullable(),
  received: Received,
  snapshotBefore: ProofSnapshot.nullable(),
})

const ProofNotification = z.union([
  z.strictObject({
    receivedAt: Time,
    deliveries: z.int(),
    signature: z.string(),
    code: z.string().nullable(),
  }),
  Removed,
])

const ProofTransition = z.strictObject({
  at: Time,
  from: z.string().nullable(),
  to: z.string(),
  cause: z.string(),
  notification: ProofNotification.nullable(),
  snapshot: ProofSnapshot.nullable(),
})

/** The evidence for a refund's status, for an accountant or the gateway's support. */
export const Proof = z
  .strictObject({
    requestId: z
      .string()
      .openapi({ description: 'The request id sent to the gateway, the same in every attempt' }),
    requestedBy: z.string().openapi({ description: 'The name of the API key, or of the person' }),
    requestedAt: Time,
    reason: z.string().nullable(),
    attempts: z.array(ProofAttempt),
    transitions: z.array(ProofTransition),
    notifications: z
      .array(z.strictObject({ cause: z.string(), notification: ProofNotification }))
      .openapi({
        description:
          'Notifications of the refund that speak for or against it and changed no status by themselves',
      }),
    indications: z
      .array(Indication)
      .openapi({ description: 'Everything that speaks for its success or against it' }),
    evidence: z.string().openapi({ description: 'The reason for the current status' }),
    discrepancies: z.array(
      z.strictObject({ at: Time, kind: z.string(), ours: z.string(), theirs: z.string() }),
    ),
  })
  .openapi('RefundProof')

export type RefundProof = z.infer<typeof Proof>

export async function readProof(
  ctx: Pick<Context, 'db'>,
  { refund }: RefundRecord,
): Promise<RefundProof> {
  const { sql } = ctx.db
  const attempts = await readAttempts(sql, refund)
  const transactionIds = (await listTransactionsOfPayment(sql, refund)).map(
    (of) => of.transactionId,
  )
  const history = await readHistory(sql, refund, transactionIds)
  const transitions = history.filter(({ field }) => field === 'status')
  const notifications = history.filter(({ field }) => field === 'notification')
  const discrepancies = await readDiscrepancies(sql, refund, transactionIds)
  const indications = await readIndications(ctx, refund, attempts, transitions)
  return {
    requestId: refund.refundId,
    requestedBy: refund.requestedBy,
    requestedAt: toIso(refund.requestedAt),
    reason: refund.reason,
    attempts: attempts.map(({ queriedAt, payments, rest, received, at, ...facts }) => ({
      ...facts,
      at: toIso(at),
      received: showReceived(received),
      snapshotBefore: showSnapshot(true, { queriedAt, payments, rest }),
    })),
    transitions: transitions.map((one) => ({
      ...{ at: toIso(one.at), from: one.from, to: one.to, cause: one.cause },
      notification: one.notified ? showNotification(one) : null,
      snapshot: showSnapshot(one.queried, one),
    })),
    notifications: notifications.map((one) => ({
      cause: one.cause,
      notification: showNotification(one),
    })),
    indications,
    evidence: transitions.at(-1)?.cause ?? 'requested',
    discrepancies: discrepancies.map(({ at, ...rest }) => ({ ...rest, at: toIso(at) })),
  }
}

type StoredRefund = RefundRecord['refund']

/** When a query was sent, the entries of its answer, and the rest of it, as JSON. */
type SnapshotRow = { queriedAt: string | null; payments: string | null; rest: string | null }

type AttemptRow = Omit<z.infer<typeof ProofAttempt>, 'received' | 'snapshotBefore'> &
  SnapshotRow & { received: string | null }

async function readAttempts(
  sql: Sql,
  { merchantCode, refundId }: StoredRefund,
): Promise<AttemptRow[]> {
  return await sql<AttemptRow[]>`
    select a.recorded_at as at, encode(a.body_hmac, 'hex') as "bodyHmac", a.outcome, a.code, a.message,
      a.http_status as "httpStatus", a.duration_ms as "durationMs", c.sent_at as "queriedAt",
      c.answer::text as payments, c.received as rest, a.received
    from refund_attempts a left join gateway_calls c
      on c.merchant_code = a.merchant_code and c.id = a.snapshot_call_id
    where a.merchant_code = ${merchantCode} and a.refund_id = ${refundId} order by a.id`
}

type HistoryRow = Omit<z.infer<typeof ProofTransition>, 'notification' | 'snapshot'> &
  SnapshotRow & {
    field: 'status' | 'notification'
    queried: boolean
    notified: boolean
    receivedAt: string | null
    deliveries: number
    signature: string
    code: string | null
  }

async function readHistory(
  sql: Sql,
  { merchantCode, refundId }: StoredRefund,
  transactionIds: readonly string[],
): Promise<HistoryRow[]> {
  return await sql<HistoryRow[]>`
    select h.field, h.call_id is not null as queried, h.ipn_event_id is not null as notified, h.at,
      h.before as from, h.after as to, h.cause, c.sent_at as "queriedAt", c.answer::text as payments, c.received as rest,
      e.first_received_at as "receivedAt", e.deliveries, e.verdict as signature, e.code
    from changes h
      left join gateway_calls c on c.merchant_code = h.merchant_code and c.id = h.call_id
      left join ipn_events e on e.merchant_code = h.merchant_code and e.id = h.ipn_event_id
    where h.merchant_code = ${merchantCode} and h.transaction_id = any(${[...transactionIds]}::text[])
      and h.refund_id = ${refundId} and h.field in ('status', 'notification') order by h.id`
}

async function readDiscrepancies(
  sql: Sql,
  { merchantCode, refundId, paymentId }: StoredRefund,
  transactionIds: readonly string[],
): Promise<RefundProof['discrepancies']> {
  return await sql<RefundProof['discrepancies']>`
    select at, kind, ours, theirs from discrepancies
    where merchant_code = ${merchantCode} and transaction_id = any(${[...transactionIds]}::text[])
      and (refund_id = ${refundId} or (refund_id is null and payment_id = ${paymentId}))
    order by id`
}

/** Shown for a referenced record that retention has removed. */
const REMOVED = { removed: true as const }

/** @param isKnown whether there was a query */
function showSnapshot(isKnown: boolean, { queriedAt, payments, rest }: SnapshotRow) {
  if (!isKnown) return null
  if (queriedAt === null) return REMOVED
  const received = { payments: showReceived(payments), received: showReceived(rest) }
  return { queriedAt: toIso(queriedAt), ...received }
}

/** Numbers become texts, because a JSON number need not fit a double. */
function showReceived(json: string | null): unknown {
  return json === null ? null : parse(json, undefined, String)
}

function showNotification({ receivedAt, deliveries, signature, code }: HistoryRow) {
  if (receivedAt === null) return REMOVED
  return { receivedAt: toIso(receivedAt), deliveries, signature, code }
}
