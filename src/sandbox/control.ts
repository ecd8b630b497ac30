import { type Context, Hono } from 'hono'
import { isNumber, LosslessNumber, parse } from 'lossless-json'
import { z } from 'zod'
import { addAmounts, compareAmounts } from '../money.ts'
import { putCard, showCard } from './cards.ts'
import { listEntries } from './exchange.ts'
import {
  ControlError,
  cardInput,
  deliveryPlanInput,
  faultInput,
  paymentChange,
  portalRefundInput,
  readInput,
  refundModeInput,
  refundNotificationInput,
  seedInput,
  settlementInput,
  type TransactionInput,
  tokenModeInput,
  transactionInput,
} from './input.ts'
import {
  addTransaction,
  makeRefundMode,
  refundAtPortal,
  settleRefund,
  showPayment,
  showRefund,
  showTransaction,
} from './ledger.ts'
import { sendPaymentIpn, sendRefundIpn } from './notify.ts'
import { seedSandbox } from './seed.ts'
import {
  findMerchant,
  findPayment,
  findRefunds,
  findTransaction,
  type ObjectKey,
  type SandboxState,
} from './state.ts'
import { expireTokens } from './tokens.ts'
import { answerWithCode, isForm, JSON_TYPE, readFields, writeJson } from './wire.ts'

/** The object that the path names, in the account of `?merchantCode=`, and the query. */
type Target = ObjectKey & { query: Readonly<Record<string, string>> }

type Status = 200 | 201 | 202 | 204
type Reply = readonly [status: Status, shown?: unknown]

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

function route<T>(
  method: Method,
  path: string,
  schema: z.ZodType<T> | null,
  act: (state: SandboxState, target: Target, input: T) => Reply,
) {
  const read = (readBody: () => unknown) => readInput(schema ?? z.custom<T>(), schema && readBody())
  return {
    method,
    path,
    run: (state: SandboxState, target: Target, readBody: () => unknown) =>
      act(state, target, read(readBody)),
  }
}

/** The control routes under `/sandbox`. No answer waits for notifications. */
const ROUTES = [
  route('POST', '/transactions', transactionInput, makeTransaction),
  route('GET', '/transactions/:id', null, (state, target) => [
    200,
    showTransaction(findTransaction(state, target)),
  ]),
  route('POST', '/transactions/:id/ipn', deliveryPlanInput, (state, target, plan) => {
    const transaction = findTransaction(state, target)
    state.background.run(() => sendPaymentIpn(state, transaction, plan))
    return [202, showTransaction(transaction)]
  }),
  route('PATCH', '/payments/:id', paymentChange, (state, target, change) => {
    const payment = Object.assign(findPayment(state, target), change)
    if (target.query.ipn === 'true') {
      state.background.run(() => sendPaymentIpn(state, payment.transaction))
    }
    return [200, showPayment(payment)]
  }),
  route('POST', '/payments/:id/portal-refund', portalRefundInput, (state, target, input) => {
    const { refund, notified } = refundAtPortal(state, findPayment(state, target), input)
    state.background.run(() => notified)
    return [201, showRefund(refund)]
  }),
  route('POST', '/refunds/:id/ipn', refundNotificationInput, (state, target, input) => {
    const { code, message, ...plan } = input
    const refund = findRefunds(state, target).at(-1)
    if (refund === undefined) throw new ControlError(404, 'requestId', `unknown: ${target.id}`)
    const outcome = answerWithCode(code ?? (refund.status === 'failed' ? 1 : 0))
    const notified = { ...outcome, message: message ?? outcome.message }
    state.background.run(() => sendRefundIpn(state, refund, notified, plan))
    return [202, showRefund(refund)]
  }),
  route('POST', '/refunds/:id/settle', settlementInput, (state, target, { outcome, code }) => {
    const found = findRefunds(state, target)
    const refund = found.find(({ status }) => status === 'accepted')
    if (refund === undefined) {
      throw new ControlError(409, 'requestId', `the refund has ended: ${found.at(-1)?.status}`)
    }
    const failureCode = outcome === 'failure' ? code : undefined
    state.background.run(() => settleRefund(state, refund, failureCode))
    return [200, showRefund(refund)]
  }),
  route('PUT', '/refund-mode', refundModeInput, (state, _, input) => {
    state.refundMode = makeRefundMode(input, state.settings.refundMs)
    return [200, state.refundMode]
  }),
  route('POST', '/cards', cardInput, (state, _, input) => {
    const merchant = findMerchant(state, input.merchantCode)
    const { card, isNew } = putCard(state, merchant, input)
    return [isNew ? 201 : 200, showCard(merchant, { ...card, raw: {} })]
  }),
  route('PUT', '/token-mode', tokenModeInput, (state, _, mode) => {
    state.tokens.mode = mode
    return [200, mode]
  }),
  route('POST', '/tokens/expire', null, ({ tokens }) => [200, { expired: expireTokens(tokens) }]),
  route('POST', '/faults', faultInput, (state, _, fault) => {
    state.faults.push(fault)
    return [201, fault]
  }),
  route('DELETE', '/faults', null, ({ faults }) => {
    faults.length = 0
    return [204]
  }),
  route('GET', '/calls', null, (state, { query }) => [
    200,
    { data: listEntries(state, query.command) },
  ]),
  route('GET', '/ledger', null, ({ ledger }) => [200, { data: ledger }]),
  route('POST', '/seed', seedInput, (state, _, input) => {
    const { population, transactions } = seedSandbox(state, input)
    const { ipn } = input
    if (ipn !== false) {
      for (const one of transactions) state.background.run(() => sendPaymentIpn(state, one, ipn))
    }
    return [201, population]
  }),
]

export function listPaths(): string[] {
  const changing = ROUTES.filter(({ method }) => method !== 'GET')
  return [...new Set(changing.map(({ path }) => path.replace(':id', '{id}')))]
}

/** @throws ControlError 409 when portal refunds exceed their payment, if the mode guards it */
function makeTransaction(state: SandboxState, _: Target, input: TransactionInput): Reply {
  for (const [index, { amount, portalRefunds = [] }] of input.payments.entries()) {
    const sum = addAmounts(portalRefunds.map((one) => one.amount))
    if (!state.refundMode.guardsBalance || compareAmounts(sum, amount) <= 0) continue
    const path = `payments.${index}.portalRefunds`
    throw new ControlError(409, path, 'exceed the amount of the payment')
  }
  const transaction = addTransaction(state, findMerchant(state, input.merchantCode), input)
  const added = transaction.payments.slice(-input.payments.length)
  const refunds = added.flatMap((payment, index) =>
    (input.payments[index]?.portalRefunds ?? []).map((one) => refundAtPortal(state, payment, one)),
  )
  const plan = input.ipn
  state.background.run(async () => {
    await Promise.all(refunds.map(({ notified }) => notified))
    if (plan !== false) await sendPaymentIpn(state, transaction, plan)
  })
  return [201, showTransaction(transaction)]
}

/**
 * Serves the control routes to programs and to the forms of the page. A refusal is `{path, message}` with 422 for
 * invalid input, 404 for an unknown id and 409 for a conflict with the state. A form is answered with 303 to the
 * page, which shows what was done, or why nothing was.
 */
export function makeControlRoutes(state: SandboxState): Hono {
  const app = new Hono()
  for (const { method, path, run } of ROUTES) {
    app.on(method, path, async (c) => {
      const query = c.req.query()
      const target = { id: c.req.param('id') ?? '', merchantCode: query.merchantCode, query }
      const body = method === 'GET' ? '' : await c.req.text()
      // curl -d sends JSON under the content type of a form.
      const fromForm = isForm(c.req.header('content-type')) && !/^\s*([{[]|$)/.test(body)
      try {
        const reply = run(state, target, () => (fromForm ? readForm(body) : parseBody(body)))
        return fromForm ? showResult(state, c, 'good', 'Done:') : respond(c, ...reply)
      } catch (error) {
        if (!(error instanceof ControlError)) throw error
        const { status, path, message } = error
        if (!fromForm) return respond(c, status, { path, message })
        return showResult(state, c, 'bad', `Nothing was done. ${path}: ${message}.`)
      }
    })
  }
  return app
}

function respond(c: Context, status: Status | ControlError['status'], shown?: unknown): Response {
  if (status === 204) return c.body(null, 204)
  return c.body(writeJson(shown), status, JSON_TYPE)
}

function showResult(state: SandboxState, c: Context, tone: 'good' | 'bad', text: string): Response {
  const request = `${c.req.method} ${c.req.path}`
  state.formResult = { tone, text: `${text} ${request}`, at: performance.now() }
  return c.redirect('/', 303)
}

/** Parses the body of a control request; an empty one counts as `{}`. @throws ControlError 422 if it is not JSON */
export function parseBody(body: string): unknown {
  try {
    return parse(body.trim() === '' ? '{}' : body)
  } catch {
    throw new ControlError(422, '', 'the body is not JSON')
  }
}

/** A form has no types: the members that are numbers, and below those that are `true` or `false`. */
const NUMBERS = [
  ...['times', 'code', 'copies', 'delayMs', 'probability'],
  ...['settleMs', 'lifetimeS', 'seed', 'transactions'],
]
const BOOLEANS = [
  ...['dedupes', 'guardsBalance', 'countsUnsettled'],
  ...['nested', 'shuffle', 'listed', 'ipn'],
]

/** Reads a form as a JSON body. `payment_amount` is a member of the only payment; empty members are left out. */
function readForm(body: string): unknown {
  const members = [...new URLSearchParams(body)]
    .map(([name, value]): [string, string] => [name, value.trim()])
    .filter(([, value]) => value !== '')
    .map(([name, value]): [string, unknown] => {
      if (NUMBERS.includes(name) && isNumber(value)) return [name, new LosslessNumber(value)]
      const isBoolean = BOOLEANS.includes(name) && /^(true|false)$/.test(value)
      return [name, isBoolean ? value === 'true' : value]
    })
  const payment = readFields(Object.fromEntries(members), 'payment')
  const others = Object.fromEntries(members.filter(([name]) => !name.startsWith('payment_')))
  return Object.keys(payment).length === 0 ? others : { ...others, payments: [payment] }
}
