import { setTimeout as pause } from 'node:timers/promises'
import {
  AbortError,
  type Client,
  ExceedsRefundableError,
  IpnProcessorError,
  type PreparedRefund,
  type PreparedSurplusRefund,
  ProblemError,
  type RefundStatus,
  type RequestedRefund,
  type Transaction,
  type TransactionState,
} from '@ipn-processor/client'
import { Big } from 'big.js'
import { Hono } from 'hono'
import { Webhook } from 'standardwebhooks'
import { z } from 'zod'

/** An order of a customer. Amounts are decimal strings. */
export type Order = {
  id: string
  amount: string
  currency: string
  /** The gateway's id of what the customer was asked to pay. */
  transactionId: string
  /** `wrong_amount`: something was paid, but not the amount of the order in its currency. Nothing is shipped then. */
  status: TransactionState | 'wrong_amount'
  /** The state that the newest webhook reported. */
  reported?: TransactionState
  /** Set when something is paid. */
  paymentId?: string
  returns: Return[]
}

/** A return with its refund, under the shop's own number. */
type Return = {
  returnId: string
  /** Contains the idempotency key: stored before anything is sent, and resent without changes. */
  refund: PreparedRefund | PreparedSurplusRefund
  /** `requested` until the service has confirmed it; `refused` if the service refused it. */
  status: 'requested' | 'refused' | RefundStatus
  /** What the customer quotes to the bank if the money does not arrive. */
  bankReference?: string | undefined
}

/** Creates the store of orders: here a map, in production a database, which locks an order's row while it changes. */
export function createOrderBook() {
  const orders = new Map<string, Order>()
  return {
    async add(order: Omit<Order, 'id'>): Promise<Order> {
      const added = { ...structuredClone(order), id: String(orders.size + 1) }
      orders.set(added.id, added)
      return structuredClone(added)
    },
    async find(id: string): Promise<Order | undefined> {
      return structuredClone(orders.get(id))
    },
    async list(): Promise<Order[]> {
      return structuredClone([...orders.values()])
    },
    /** Resolves when the change is stored. */
    async change(id: string, apply: (order: Order) => void): Promise<Order> {
      const order = orders.get(id)
      if (!order) throw new Error(`no order ${id}`)
      apply(order)
      return structuredClone(order)
    },
  }
}

type Shop = {
  orders: ReturnType<typeof createOrderBook>
  ipn: Client
  /** Opens a checkout at the gateway: its transaction id, and the URL where the customer pays. */
  openCheckout: (amount: string) => Promise<{ transactionId: string; payAt: string }>
}

const Amount = z.string().regex(/^\d{1,15}(\.\d{1,4})?$/, 'must be a decimal like "250000"')
const OrderInput = z.strictObject({ amount: Amount })
/**
 * `returnId` is the shop's number of the return, which is made only once. Default `amount`: all; with `surplus`, all that
 * was paid for the order more than once.
 */
const ReturnInput = z.strictObject({
  returnId: z.string().min(1).max(100),
  surplus: z.boolean().default(false),
  amount: Amount.optional(),
  reason: z.string().max(500).optional(),
})
const Final = z.object({
  transactionId: z.string(),
  data: z.object({
    state: z.enum(['pending', 'paid', 'partially_refunded', 'refunded', 'failed']),
  }),
})

/** How long a customer waits for the response to a refund; it then continues in the background (ms). */
const RESPOND_WITHIN_MS = 5_000

/** Calls in the background have no time-out. */
const UNLIMITED = { timeoutMs: Number.POSITIVE_INFINITY }

/**
 * Creates the shop: its routes, `subscribe`, which registers its webhook, and `resume`, which continues the work that
 * was open when it stopped.
 */
export function createShop(shop: Shop) {
  const { orders, ipn, openCheckout } = shop
  let webhook: Webhook | undefined
  const app = new Hono()

  app.onError((error, c) => {
    if (error instanceof z.ZodError) return c.json({ error: z.prettifyError(error) }, 422)
    if (error instanceof SyntaxError) return c.json({ error: 'the body is not JSON' }, 400)
    console.error(error)
    return c.json({ error: 'internal error' }, 500)
  })

  app.post('/orders', async (c) => {
    const { amount } = OrderInput.parse(await c.req.json())
    const { transactionId, payAt } = await openCheckout(amount)
    const unpaid = { currency: 'VND', status: 'pending' as const, returns: [] }
    const order = await orders.add({ amount, transactionId, ...unpaid })
    runInBackground(trackPayment(shop, order))
    return c.json({ ...order, payAt }, 201)
  })

  app.get('/orders/:id', async (c) => {
    const order = await orders.find(c.req.param('id'))
    return order ? c.json(order) : c.json({ error: 'no such order' }, 404)
  })

  app.post('/orders/:id/refund', async (c) => {
    const input = ReturnInput.parse(await c.req.json())
    const order = await orders.find(c.req.param('id'))
    if (!order) return c.json({ error: 'no such order' }, 404)
    if (!order.paymentId) return c.json({ error: 'the order is not paid' }, 409)
    const one = await storeReturn(shop, order, order.paymentId, input)
    try {
      await sendReturn(shop, order, one, RESPOND_WITHIN_MS)
    } catch (error) {
      if (isRefusal(error)) return c.json({ error: explain(error) }, 409)
      // The request may have arrived: it continues in the background, under the same key.
      if (!(error instanceof IpnProcessorError)) throw error
    }
    runInBackground(trackReturn(shop, order, one))
    return c.json(await orders.find(order.id), 202)
  })

  app.post('/hooks', async (c) => {
    const body = await c.req.text() // the exact bytes that arrived
    let event: unknown
    try {
      event = webhook?.verify(body, c.req.header())
    } catch {
      return c.json({ error: 'not signed with our secret' }, 400)
    }
    if (event === undefined) return c.json({ error: 'not registered yet' }, 503)
    const final = Final.safeParse(event)
    // A test of the endpoint, or an event of another type: taken, and nothing to do.
    if (!final.success) return c.body(null, 204)
    const { transactionId, data } = final.data
    const order = (await orders.list()).find((one) => one.transactionId === transactionId)
    // The same event can arrive more than once: storing its state again changes nothing.
    if (order)
      await orders.change(order.id, (stored) => Object.assign(stored, { reported: data.state }))
    return c.body(null, 204)
  })

  return {
    app,
    /** In production, store the secret: it is shown only once. */
    async subscribe(shopUrl: string): Promise<void> {
      const endpoint = { url: `${shopUrl}/hooks`, types: ['transaction.final' as const] }
      webhook = new Webhook((await ipn.webhookEndpoints.create(endpoint)).secret)
    },
    /** Call this at every start. */
    async resume(): Promise<void> {
      for (const order of await orders.list()) {
        if (order.status === 'pending') runInBackground(trackPayment(shop, order))
        const open = order.returns.filter(({ status }) => !ENDED.includes(status))
        for (const one of open) runInBackground(trackReturn(shop, order, one))
      }
    },
  }
}

/** What `needs_review` leads to, a person decides: the next start asks again. */
const ENDED = ['refused', 'succeeded', 'failed', 'returned']

/**
 * Waits until the transaction is final, paid or not, and stores the result with the order. The order is found by the
 * transaction id of its own checkout, never by the order id of a notification.
 */
async function trackPayment({ orders, ipn }: Shop, order: Order): Promise<void> {
  const options = { ...UNLIMITED, untilKnown: true }
  const transaction = await ipn.transactions.wait(order.transactionId, options)
  const payment = transaction.payments.find(({ status }) => status === 'SUCCESS')
  await orders.change(order.id, (stored) => {
    stored.status = readStatus(stored, transaction)
    if (payment) stored.paymentId = payment.id
  })
}

/**
 * A transaction that is `paid` is not enough to ship the order: it says that a payment succeeded, not how much of the
 * order it is.
 */
function readStatus(order: Order, { state, paidAmount, currency }: Transaction): Order['status'] {
  const isInFull = currency === order.currency && new Big(paidAmount).eq(order.amount)
  return state === 'paid' && !isInFull ? 'wrong_amount' : state
}

/** Stores key and parameters before anything is sent: a crash after this loses no money. */
async function storeReturn(
  { orders, ipn }: Shop,
  { id, transactionId }: Order,
  paymentId: string,
  { returnId, surplus, ...params }: z.output<typeof ReturnInput>,
): Promise<Return> {
  const request = { ...params, metadata: { orderId: id, returnId } }
  const refund = surplus
    ? ipn.refunds.prepareSurplus(transactionId, request)
    : ipn.refunds.prepare(paymentId, request)
  const added: Return = { returnId, refund, status: 'requested' }
  const { returns } = await orders.change(id, (order) => {
    if (!order.returns.some((one) => one.returnId === returnId)) order.returns.push(added)
  })
  return returns.find((one) => one.returnId === returnId) ?? added
}

/** Sends the refund of a stored return, perhaps once more, waits until it ends and stores the result. */
async function trackReturn(shop: Shop, order: Order, one: Return): Promise<void> {
  const { orders, ipn } = shop
  const { id } = await sendReturn(shop, order, one, UNLIMITED.timeoutMs)
  const ended = await ipn.refunds.wait(id, UNLIMITED)
  const transaction = await readAfter(shop, order, ended.status)
  await orders.change(order.id, (stored) => {
    stored.status = readStatus(stored, transaction)
    recordRefund(stored, one, ended.status, ended.gatewayReference)
  })
}

/** A notification may prove a refund before an answer of the gateway shows it: until then the transaction is `paid`. */
async function readAfter({ ipn }: Shop, { transactionId }: Order, refund: RefundStatus) {
  for (;;) {
    const transaction = await ipn.transactions.get(transactionId, UNLIMITED)
    if (refund !== 'succeeded' || transaction.state !== 'paid') return transaction
    await pause(200)
  }
}

/**
 * Sends the refund of a stored return, and stores its status.
 * @throws ProblemError if it is refused; after any other error the outcome is unknown
 */
async function sendReturn(
  { orders, ipn }: Shop,
  order: Order,
  one: Return,
  timeoutMs: number,
): Promise<RequestedRefund> {
  try {
    const requested = await ipn.refunds.send(one.refund, { timeoutMs })
    const { status, gatewayReference } = requested
    await orders.change(order.id, (stored) => recordRefund(stored, one, status, gatewayReference))
    return requested
  } catch (error) {
    if (isRefusal(error)) {
      await orders.change(order.id, (stored) => recordRefund(stored, one, 'refused', null))
    }
    throw error
  }
}

function recordRefund(
  { returns }: Order,
  { returnId }: Return,
  status: Return['status'],
  gatewayReference: string | null,
): void {
  const stored = returns.find((one) => one.returnId === returnId)
  if (stored) Object.assign(stored, { status, bankReference: gatewayReference ?? undefined })
}

/** Returns whether the service refused the request, and would refuse it again. */
function isRefusal(error: unknown): error is ProblemError {
  return error instanceof ProblemError && error.status < 500 && ![408, 429].includes(error.status)
}

function explain(error: Error): string {
  if (!(error instanceof ExceedsRefundableError)) return error.message
  return `at most ${error.refundableAmount} can be refunded`
}

/** The shop stops by aborting its client; `resume` continues what was waiting then. */
function runInBackground(work: Promise<void>): void {
  work.catch((error: unknown) => {
    if (!(error instanceof AbortError)) console.error(error)
  })
}
