import { createHash } from 'node:crypto'
import { Pool } from 'undici'
import type { MerchantAccount } from '../config.ts'
import { exchange } from './exchange.ts'
import { type Answer, type ListedPayment, readPaymentsAnswer } from './messages.ts'
import { computeSecureHash, type WireParams } from './signature.ts'

export type GatewaySettings = {
  baseUrl: string
  paygatePath: string
  prefix: string
  encoding: 'json' | 'form'
  /** One call, connecting and reading included. */
  timeoutMs: number
  maxConcurrency: number
  accounts: readonly MerchantAccount[]
  /** Told of every call, for metrics. */
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
  | { kind: 'unavailable'; reason: string }
  | { kind: 'unknown'; reason: string }

/** The facts of a call, as they are kept for proof. */
export type CallRecord = {
  command: Command
  bodySha256: Buffer
  durationMs: number
  httpStatus: number | undefined
}

export type Call<T> = { outcome: Outcome<T>; record: CallRecord }

export type GatewayClient = {
  /** The payments of a transaction (QUERY_PT, specification 4.3.1). Never rejects. */
  queryPayments(
    query: { merchantCode: string; transactionId: string },
    signal?: AbortSignal,
  ): Promise<Call<ListedPayment[]>>
  /** How many more calls may be in flight now. */
  countFreeSlots(): number
  close(): Promise<void>
}

/** A client of the gateway with one pool of connections. Answers are trusted by TLS: they carry no signature. */
export function createGatewayClient(settings: GatewaySettings): GatewayClient {
  const { prefix, encoding, timeoutMs, maxConcurrency } = settings
  const base = new URL(settings.baseUrl)
  const path = base.pathname.replace(/\/$/, '') + settings.paygatePath
  const secrets = new Map(settings.accounts.map((one) => [one.merchantCode, one.secret]))
  // The one time-out is the exchange's. A connection that is not made within it is given up with it:
  // its place in the pool would be missing for the next call.
  const pool = new Pool(base.origin, {
    connections: maxConcurrency,
    pipelining: 1,
    connect: { timeout: timeoutMs },
    headersTimeout: 0,
    bodyTimeout: 0,
  })
  let inFlight = 0

  async function call<T>(
    command: Command,
    params: WireParams,
    secret: string,
    read: (body: Buffer) => Answer<T>,
    signal: AbortSignal | undefined,
  ): Promise<Call<T>> {
    const hash = computeSecureHash(params, secret, { prefix, exclude: [] })
    const body = encode({ ...params, [`${prefix}_SecureHash`]: hash })
    const started = performance.now()
    const result =
      inFlight >= maxConcurrency
        ? { kind: 'unavailable' as const, reason: 'every call slot is taken' }
        : await send(body, signal)
    const durationMs = performance.now() - started
    const outcome = result.kind === 'answer' ? judge(result, read) : result
    settings.onCall?.(command, outcome.kind, durationMs)
    return {
      outcome,
      record: {
        command,
        bodySha256: createHash('sha256').update(body).digest(),
        durationMs: Math.round(durationMs),
        httpStatus: 'status' in result ? result.status : undefined,
      },
    }
  }

  async function send(body: string, signal: AbortSignal | undefined) {
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
    if (encoding === 'json') return JSON.stringify(params)
    const form = new URLSearchParams()
    for (const [name, value] of Object.entries(params)) form.append(name, String(value))
    return form.toString()
  }

  return {
    queryPayments({ merchantCode, transactionId }, signal) {
      const secret = secrets.get(merchantCode)
      if (secret === undefined) {
        throw new Error(`no account ${merchantCode} in the settings`)
      }
      const params = {
        [`${prefix}_Command`]: 'QUERY_PT',
        [`${prefix}_MerchantCode`]: merchantCode,
        [`${prefix}_TransactionID`]: transactionId,
        [`${prefix}_Version`]: '1',
      }
      return call('QUERY_PT', params, secret, (body) => readPaymentsAnswer(body, prefix), signal)
    },
    countFreeSlots: () => maxConcurrency - inFlight,
    close: () => pool.destroy(),
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
