import { createHash } from 'node:crypto'
import { LosslessNumber, stringify } from 'lossless-json'
import type { Permit } from '../breaker.ts'
import type { MerchantAccount } from '../config.ts'
import { shortenAmount } from '../money.ts'
import { NO_TRACING, type Step, type StepPlan, type Tracing } from '../trace.ts'
import type { Breakers } from './breakers.ts'
import { type ExchangeResult, exchange, openPool } from './exchange.ts'
import {
  type Answer,
  type ListedPayment,
  readPaymentsAnswer,
  readRefundAnswer,
} from './messages.ts'
import { computeSecureHash, type WireParams } from './signature.ts'

export type GatewaySettings = {
  baseUrl: string
  paygatePath: string
  prefix: string
  encoding: 'json' | 'form'
  /** One call, connecting and reading included. */
  timeoutMs: number
  maxConcurrency: number
  /** Names left out of the hash of a REFUND request. */
  refundHashExclude: readonly string[]
  accounts: readonly MerchantAccount[]
  /** Calls pause while the gateway does not answer. */
  breakers: Breakers
  /** The gateway is told of no trace: it is somebody else's. */
  tracing?: Tracing
  /** Told of every call that was made, for metrics. */
  onCall?: (command: Command, outcome: Outcome['kind'], durationMs: number) => void
}

export type Command = 'QUERY_PT' | 'REFUND'

/**
 * What is known after a call, in the classes that decide about money:
 * `answered` code 0, `rejected` a valid answer with another code, `unavailable` nothing was written,
 * `unknown` anything else once a byte may have left.
 */
export type Outcome<T = unknown> =
  | { kind: 'answered'; value: T; message: string }
  | { kind: 'rejected'; code: string; message: string }
  /** `paused`: calls of the account pause, and this one was not even tried. */
  | { kind: 'unavailable'; reason: string; paused?: true }
  | { kind: 'unknown'; reason: string }

/** Every way a call can end. */
export const OUTCOMES = [
  'answered',
  'rejected',
  'unavailable',
  'unknown',
] as const satisfies Outcome['kind'][]

/** The facts of a call, as they are kept for proof. */
export type CallRecord = {
  command: Command
  bodySha256: Buffer
  durationMs: number
  httpStatus: number | undefined
}

export type Call<T> = { outcome: Outcome<T>; record: CallRecord }

/** A call whose bytes are settled, so that they can be recorded before they leave. */
export type PreparedCall<T> = {
  /** SHA-256 of the bytes that `send` writes. */
  bodySha256: Buffer
  /**
   * Sends once, without any repetition. Never rejects.
   * @param permit the breaker's, where it was asked for before
   */
  send(signal?: AbortSignal, permit?: Permit): Promise<Call<T>>
}

/** A refund as the gateway is asked for it. */
export type RefundOrder = {
  merchantCode: string
  /** The wire's request id: the same in every attempt. */
  refundId: string
  paymentId: string
  /** A decimal string. */
  amount: string
  /** The members in the order of the specification: their Base64 text enters the hash. */
  receiver?: { accountName: string; accountNumber: string; swiftCode: string } | undefined
}

export type GatewayClient = {
  /** The payments of a transaction (QUERY_PT, specification 4.3.1). Never rejects. */
  queryPayments(
    query: { merchantCode: string; transactionId: string },
    signal?: AbortSignal,
  ): Promise<Call<ListedPayment[]>>
  /** A refund (REFUND, specification 4.3.2), not sent yet; answered with the gateway's id, if it gave one. */
  prepareRefund(order: RefundOrder): PreparedCall<string | undefined>
  close(): Promise<void>
}

const OPERATIONS = { QUERY_PT: 'query', REFUND: 'refund' } as const

const PAUSED = {
  kind: 'unavailable',
  reason: 'calls pause: the gateway failed several times in a row',
  paused: true,
} as const

/** A client of the gateway with one pool of connections. Answers are trusted by TLS: they carry no signature. */
export function createGatewayClient(settings: GatewaySettings): GatewayClient {
  const { prefix, encoding, timeoutMs, maxConcurrency, tracing = NO_TRACING } = settings
  const base = new URL(settings.baseUrl)
  const path = base.pathname.replace(/\/$/, '') + settings.paygatePath
  const secrets = new Map(settings.accounts.map((one) => [one.merchantCode, one.secret]))
  const pool = openPool(base.origin, { connections: maxConcurrency, timeoutMs })
  let inFlight = 0

  function prepare<T>(
    command: Command,
    merchantCode: string,
    fields: WireParams,
    exclude: readonly string[],
    read: (body: Buffer) => Answer<T>,
  ): PreparedCall<T> {
    const secret = secrets.get(merchantCode)
    if (secret === undefined) throw new Error(`no account ${merchantCode} in the settings`)
    const params = addPrefix({
      Command: command,
      MerchantCode: merchantCode,
      ...fields,
      Version: '1',
    })
    const hash = computeSecureHash(params, secret, { prefix, exclude })
    const body = encode({ ...params, [`${prefix}_SecureHash`]: hash })
    const bodySha256 = createHash('sha256').update(body).digest()
    const record = { command, bodySha256, httpStatus: undefined }
    const describe = () => describeCall(base, path, command, merchantCode)

    async function sendWith(
      permit: Permit,
      signal: AbortSignal | undefined,
      step: Step,
    ): Promise<Call<T>> {
      const started = performance.now()
      const result = await sendOnce(body, signal)
      const durationMs = performance.now() - started
      const outcome =
        result.kind === 'answer'
          ? judge(result, read)
          : {
              kind: result.kind === 'no_slot' ? ('unavailable' as const) : result.kind,
              reason: result.reason,
            }
      settings.onCall?.(command, outcome.kind, durationMs)
      if (signal?.aborted || result.kind === 'no_slot') permit.forgo()
      else if (outcome.kind === 'answered' || outcome.kind === 'rejected') permit.succeed()
      else permit.fail()
      const httpStatus = 'status' in result ? result.status : undefined
      if (httpStatus !== undefined) step.note({ 'http.response.status_code': httpStatus })
      step.note({ 'gateway.outcome': outcome.kind })
      if (outcome.kind === 'unavailable' || outcome.kind === 'unknown') step.fail(outcome.kind)
      return { outcome, record: { ...record, durationMs: Math.round(durationMs), httpStatus } }
    }

    return {
      bodySha256,
      async send(signal, given) {
        const permit = given ?? settings.breakers.of(merchantCode, OPERATIONS[command]).enter()
        if (!permit) return { outcome: PAUSED, record: { ...record, durationMs: 0 } }
        return await tracing.run(describe, (step) => sendWith(permit, signal, step))
      },
    }
  }

  function addPrefix(fields: WireParams): WireParams {
    const present = Object.entries(fields).filter(([, value]) => value !== undefined)
    return Object.fromEntries(present.map(([name, value]) => [`${prefix}_${name}`, value]))
  }

  async function sendOnce(
    body: string,
    signal: AbortSignal | undefined,
  ): Promise<ExchangeResult | { kind: 'no_slot'; reason: string }> {
    if (inFlight >= maxConcurrency) return { kind: 'no_slot', reason: 'every call slot is taken' }
    inFlight += 1
    try {
      const headers = {
        'content-type':
          encoding === 'json' ? 'application/json' : 'application/x-www-form-urlencoded',
        accept: 'application/json',
      }
      return await exchange(pool, { path, method: 'POST', headers, body, timeoutMs, signal })
    } finally {
      inFlight -= 1
    }
  }

  function encode(params: Record<string, unknown>): string {
    if (encoding === 'json') return stringify(params) ?? ''
    const form = new URLSearchParams()
    for (const [name, value] of Object.entries(params)) form.append(name, String(value))
    return form.toString()
  }

  return {
    queryPayments({ merchantCode, transactionId }, signal) {
      const fields = { TransactionID: transactionId }
      const read = (body: Buffer) => readPaymentsAnswer(body, prefix)
      return prepare('QUERY_PT', merchantCode, fields, [], read).send(signal)
    },
    prepareRefund({ merchantCode, refundId, paymentId, amount, receiver }) {
      const fields = {
        RequestID: refundId,
        PaymentID: paymentId,
        Amount: new LosslessNumber(shortenAmount(amount)),
        Receiver: receiver && Buffer.from(JSON.stringify(receiver)).toString('base64'),
      }
      const read = (body: Buffer) => readRefundAnswer(body, prefix)
      return prepare('REFUND', merchantCode, fields, settings.refundHashExclude, read)
    },
    close: () => pool.destroy(),
  }
}

/** What a trace says of a call: where it went and what it asked for, nothing of what it held. */
function describeCall(base: URL, path: string, command: Command, merchantCode: string): StepPlan {
  return {
    name: command,
    kind: 'client',
    attributes: {
      'http.request.method': 'POST',
      'server.address': base.hostname,
      'server.port': Number(base.port) || (base.protocol === 'https:' ? 443 : 80),
      'url.path': path,
      'gateway.command': command,
      'ipn.merchant_code': merchantCode,
    },
  }
}

function judge<T>(
  { status, body }: { status: number; body: Buffer },
  read: (body: Buffer) => Answer<T>,
): Outcome<T> {
  if (status < 200 || status > 299) return { kind: 'unknown', reason: `HTTP status ${status}` }
  const answer = read(body)
  return answer.kind === 'none' ? { kind: 'unknown', reason: answer.reason } : answer
}
