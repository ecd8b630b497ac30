import { LosslessNumber } from 'lossless-json'
import { z } from 'zod'
import { isPositive, parseAmount } from '../money.ts'

/** A JSON number, which lossless-json keeps as text. */
const jsonNumber = z
  .instanceof(LosslessNumber, { error: 'expected a number' })
  .transform(({ value }) => Number(value))

const countOrMs = jsonNumber.pipe(z.number().int().min(0).max(86_400_000))

/** A response code that means failure: any but 0 (specification 7). */
const failureCode = jsonNumber.pipe(
  z
    .number()
    .int()
    .refine((code) => code !== 0, 'a failure has a code other than 0'),
)

/** An amount as a text or a JSON number. Its digits are kept. */
const decimalAmount = z
  .union([z.string(), z.instanceof(LosslessNumber)], { error: 'expected an amount' })
  .transform((given, context) => {
    const amount = parseAmount(String(given))
    if (amount !== undefined) return amount
    context.addIssue({
      code: 'custom',
      message: 'expected an amount: at most 18 digits before and 4 after the point',
    })
    return z.NEVER
  })

const positiveAmount = decimalAmount.refine(isPositive, 'expected an amount above 0')

const text = z.string().min(1)
const id = text.max(128)
const members = z.record(z.string(), z.unknown())

export const COMMANDS = ['QUERY_PT', 'REFUND', 'cards', 'token', 'ipn', '*'] as const
export const FAULT_KINDS = [
  'garbage',
  'http500',
  'reset',
  'delay',
  'truncate',
  'code',
  'acceptThenReset',
  'acceptThenHang',
  'acceptThenCode',
] as const

/** The default delay: noticeable to a person, and below all time-outs. */
const DELAY_MS = 1_000

/** The body of `POST /sandbox/faults`. Without `times` a fault applies until the faults are cleared. */
export const faultInput = z
  .strictObject({
    command: z.enum(COMMANDS),
    kind: z.enum(FAULT_KINDS),
    times: countOrMs.pipe(z.number().min(1)).optional(),
    probability: jsonNumber.pipe(z.number().min(0).max(1)).default(1),
    delayMs: countOrMs.optional(),
    code: failureCode.default(1),
  })
  .refine(({ kind, delayMs }) => kind !== 'delay' || delayMs !== 0, {
    path: ['delayMs'],
    message: 'a delay needs delayMs above 0',
  })
  .transform(({ delayMs, ...fault }) => ({
    ...fault,
    delayMs: delayMs ?? (fault.kind === 'delay' ? DELAY_MS : 0),
  }))

export type Fault = z.output<typeof faultInput>
export type FaultKind = Fault['kind']

/** The body of `PUT /sandbox/refund-mode`. It replaces the mode; omitted members take their default. */
export const refundModeInput = z.strictObject({
  ipn: z.enum(['normal', 'early', 'late', 'twice', 'never']).default('normal'),
  /** Refuse a request id that an accepted refund has used. */
  dedupes: z.boolean().default(true),
  /** Refuse an amount above the remaining balance. */
  guardsBalance: z.boolean().default(true),
  /** Include refunds that have not settled in the `refundedAmount` of QUERY_PT. */
  countsUnsettled: z.boolean().default(false),
  /** The fee in the notifications of refunds. */
  fee: decimalAmount.default('0'),
  /** Milliseconds until an accepted refund settles. Null leaves that to a control request. */
  settleMs: countOrMs.nullable().optional(),
})

/** `lateMs` is the time from settlement to a late notification. */
export type RefundMode = Omit<z.output<typeof refundModeInput>, 'settleMs'> & {
  settleMs: number | null
  lateMs: number
}

const fieldValue = z.union([
  z.string(),
  z.boolean(),
  z.null(),
  z.instanceof(LosslessNumber),
  z.array(z.union([z.string(), z.boolean(), z.instanceof(LosslessNumber)])),
])

/**
 * How notifications are sent: each copy after `delayMs`, or with `shuffle` at a random moment within it. `fields`
 * replace members before the notification is signed, by their names without prefix; null leaves one out.
 */
export const deliveryPlanInput = z.strictObject({
  copies: countOrMs.pipe(z.number().min(1).max(10_000)).default(1),
  delayMs: countOrMs.default(0),
  shuffle: z.boolean().default(false),
  fields: z.record(z.string().regex(/^\w{1,64}$/), fieldValue).optional(),
})

export type DeliveryPlan = z.output<typeof deliveryPlanInput>

const planOrNone = z.union([deliveryPlanInput, z.literal(false)])

export const refundNotificationInput = deliveryPlanInput.extend({
  code: jsonNumber.pipe(z.number().int()).optional(),
  message: z.string().optional(),
})

export const settlementInput = z.strictObject({
  outcome: z.enum(['success', 'failure']),
  code: failureCode.default(1),
})

/** The body of `POST /sandbox/payments/{id}/portal-refund`. Without `ipn` it is notified as the refund mode says. */
export const portalRefundInput = z.strictObject({
  amount: positiveAmount,
  fee: decimalAmount.optional(),
  ipn: planOrNone.optional(),
})

export type PortalRefund = z.output<typeof portalRefundInput>

/** The body of `POST /sandbox/transactions`. Statuses and methods outside the specification (2.4) are allowed. */
export const transactionInput = z.strictObject({
  transactionId: id.optional(),
  merchantCode: id.optional(),
  orderId: id.optional(),
  merchantTxnId: id.optional(),
  currency: text.default('VND'),
  amount: positiveAmount.optional(),
  extData: members.optional(),
  payToken: text.optional(),
  transAmount: decimalAmount.optional(),
  payments: z.array(
    z.strictObject({
      id: id.optional(),
      amount: decimalAmount,
      paymentMethod: text,
      status: text,
      /** Refunds made at the portal before the notification of the transaction is sent. */
      portalRefunds: z.array(portalRefundInput).optional(),
    }),
  ),
  ipn: planOrNone.optional(),
})

export type TransactionInput = z.output<typeof transactionInput>

export const paymentChange = z.strictObject({
  status: text.optional(),
  amount: decimalAmount.optional(),
  paymentMethod: text.optional(),
  refundedAmount: decimalAmount.optional(),
  refundedAmountShown: decimalAmount.nullable().optional(),
  listed: z.boolean().optional(),
})

const instant = z.iso
  .datetime({ offset: true, error: 'expected an ISO 8601 time' })
  .transform((given) => new Date(given).toISOString())

const maskedNumber = z
  .string()
  .regex(/^\d{6}\*+\d{4}$/, 'expected a masked number; use raw to send any other')
const limit = decimalAmount.transform((amount) => new LosslessNumber(amount))
const limits = z.object({ cardLimit: limit, minTransAmount: limit, maxTransAmount: limit })

/** A virtual card as it is sent (specification 2.2, 2.3), without its CVV. */
const card = z.strictObject({
  virtualCardRequestId: id,
  requestId: text,
  status: text,
  cardData: z.object({ cardNumber: maskedNumber }).catchall(z.unknown()),
  cardPolicy: limits.catchall(z.unknown()),
  extraInfo: members,
  createdAt: instant,
  updatedAt: instant,
  /** Merged into what is sent without a check, to simulate invalid or unmasked members. */
  raw: members,
})

export type SandboxCard = z.output<typeof card>

export const cardInput = card
  .extend({
    merchantCode: text,
    cardData: card.shape.cardData.exactPartial(),
    cardPolicy: card.shape.cardPolicy.exactPartial(),
  })
  .exactPartial()

export type CardInput = z.output<typeof cardInput>

/** The body of `PUT /sandbox/token-mode`. `nested` sends the members of tokens under `data`. */
export const tokenModeInput = z.strictObject({
  lifetimeS: countOrMs.default(3600),
  nested: z.boolean().default(false),
})

export type TokenMode = z.output<typeof tokenModeInput>

/** The body of `POST /sandbox/seed`. Notifications are sent only if `ipn` is given. */
export const seedInput = z.strictObject({
  seed: jsonNumber.pipe(z.number().int().min(0).max(0xffff_ffff)),
  transactions: jsonNumber.pipe(z.number().int().min(0).max(10_000)),
  merchantCode: text.optional(),
  ipn: planOrNone.default(false),
})

/** A refusal of a control request, answered with its status and `{path, message}`. */
export class ControlError extends Error {
  override readonly name = 'ControlError'
  readonly status: 404 | 409 | 422
  readonly path: string
  constructor(status: 404 | 409 | 422, path: string, message: string) {
    super(message)
    this.status = status
    this.path = path
  }
}

/** @throws ControlError 422 naming the first invalid member */
export function readInput<T>(schema: z.ZodType<T>, given: unknown): T {
  const result = schema.safeParse(given)
  if (result.success) return result.data
  const issue = result.error.issues[0]
  const unknownMember = issue?.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : []
  const path = [...(issue?.path ?? []), ...unknownMember].map(String).join('.')
  throw new ControlError(422, path, issue?.message ?? 'invalid body')
}
