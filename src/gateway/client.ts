import { createHash } from 'node:crypto'
import { LosslessNumber } from 'lossless-json'
import type { Pool } from 'undici'
import type { MerchantAccount } from '../config/accounts.ts'
import { shortenAmount } from '../money.ts'
import type { BreakerPermit } from '../platform/concurrency/circuit-breaker.ts'
import type { Encryption } from '../platform/crypto/encryption.ts'
import { type ExchangeResult, exchange, openPool } from '../platform/outbound/exchange.ts'
import { NO_TRACING, type Tracing } from '../platform/telemetry/tracing.ts'
import { formatBody, readPaymentsAnswer, readRefundAnswer } from './answers.ts'
import type { Breakers } from './breakers.ts'
import { writeParams } from './parse-body.ts'
import { computeSecureHash, type WireParams } from './signature.ts'
import type {
  GatewayCall,
  GatewayCommand,
  GatewayOutcome,
  OutcomeKind,
  PaymentList,
  PreparedCall,
  ReadAnswer,
} from './types.ts'

export type GatewaySettings = {
  baseUrl: string
  /** The path of the operations, appended to that of `baseUrl`. */
  paygatePath: string
  prefix: string
  encoding: 'json' | 'form'
  /** Names, without prefix, that stay out of the hash of a REFUND request. */
  refundHashExclude: readonly string[]
  accounts: readonly MerchantAccount[]
  /** Limit of one call in ms, connecting and reading included. */
  timeoutMs: number
  maxConcurrency: number
  breakers: Breakers
  encryption: Pick<Encryption, 'fingerprint'>
  /** Traces calls in this process; no trace context is sent to the gateway, which is a third party. */
  tracing?: Tracing
  onCall?: (command: GatewayCommand, outcome: OutcomeKind, durationMs: number) => void
}

export type RefundOrder = {
  merchantCode: string
  /** The request id on the wire: the same in every attempt. */
  refundId: string
  paymentId: string
  amount: string
  /** The members in the order of the specification: their Base64 text enters the hash. */
  receiver?: { accountName: string; accountNumber: string; swiftCode: string } | undefined
}

export type GatewayClient = {
  /**
   * Queries the payments of a transaction (QUERY_PT, specification 4.3.1). Never rejects.
   * @throws Error when the merchant account is not in the settings
   */
  queryPayments(
    query: { merchantCode: string; transactionId: string },
    signal?: AbortSignal,
  ): Promise<GatewayCall<PaymentList>>
  /**
   * Prepares a refund (REFUND, specification 4.3.2) without sending it.
   * @returns a call whose answer is the gateway's refund id, if the gateway gave one
   * @throws Error when the merchant account is not in the settings
   */
  prepareRefund(order: RefundOrder): PreparedCall<string | undefined>
  close(): Promise<void>
}

/**
 * Creates a client with one pool of connections. Answers carry no signature: they are trusted because of TLS
 * to the configured host.
 */
export function createGatewayClient(settings: GatewaySettings): GatewayClient {
  const { prefix, refundHashExclude, maxConcurrency: connections, timeoutMs } = settings
  const base = new URL(settings.baseUrl)
  const pool = openPool(base.origin, { connections, timeoutMs })
  const path = base.pathname.replace(/\/$/, '') + settings.paygatePath
  const wire = { pool, base, path, inFlight: 0 }
  return {
    queryPayments({ merchantCode, transactionId }, signal) {
      return prepareCall(settings, wire, {
        command: 'QUERY_PT',
        merchantCode,
        fields: { TransactionID: transactionId },
        exclude: [],
        read: (body) => readPaymentsAnswer(body, prefix),
      }).send(signal)
    },
    prepareRefund({ merchantCode, refundId, paymentId, amount, receiver }) {
      return prepareCall(settings, wire, {
        command: 'REFUND',
        merchantCode,
        fields: {
          RequestID: refundId,
          PaymentID: paymentId,
          Amount: new LosslessNumber(shortenAmount(amount)),
          Receiver: receiver && Buffer.from(JSON.stringify(receiver)).toString('base64'),
        },
        exclude: refundHashExclude,
        read: (body) => readRefundAnswer(body, prefix),
      })
    },
    close: () => pool.destroy(),
  }
}

type Wire = { pool: Pool; base: URL; path: string; inFlight: number }

type CallRequest<T> = {
  command: GatewayCommand
  merchantCode: string
  /** Parameters by name without prefix; undefined ones are omitted. */
  fields: WireParams
  exclude: readonly string[]
  read: (body: Buffer) => ReadAnswer<T>
}

const OPERATIONS = { QUERY_PT: 'query', REFUND: 'refund' } as const

const PAUSED = {
  kind: 'unavailable',
  reason: 'calls are paused: the gateway failed several times in a row',
  paused: true,
} as const

function prepareCall<T>(
  settings: GatewaySettings,
  wire: Wire,
  request: CallRequest<T>,
): PreparedCall<T> {
  const { breakers, tracing = NO_TRACING, encryption } = settings
  const { command, merchantCode, read } = request
  const body = writeParams(signFields(settings, request), settings.encoding)
  const digest = createHash('sha256').update(body).digest('hex')
  // Separated from all other values that are fingerprinted with the same key. Stored values depend on it.
  const bodyHmac = encryption.fingerprint(`gateway request body\0${digest}`)

  async function sendWithPermit(permit: BreakerPermit, signal: AbortSignal | undefined) {
    const started = performance.now()
    const result = await post(settings, wire, body, signal)
    const durationMs = performance.now() - started
    const { outcome, received } = classify(result, read)
    settings.onCall?.(command, outcome.kind, durationMs)
    const isInconclusive = signal?.aborted === true || result.kind === 'no_slot'
    endPermit(permit, outcome.kind, isInconclusive)
    const httpStatus = 'status' in result ? result.status : undefined
    const record = { command, bodyHmac, durationMs: Math.round(durationMs), httpStatus, received }
    return { outcome, record }
  }

  return {
    bodyHmac,
    async send(signal, given) {
      const permit = given ?? breakers.of(merchantCode, OPERATIONS[command]).tryAcquire()
      if (!permit) {
        return {
          outcome: PAUSED,
          record: { command, bodyHmac, durationMs: 0, httpStatus: undefined },
        }
      }
      const describe = () => describeCall(wire, command, merchantCode)
      return await tracing.run(describe, async (span) => {
        const call = await sendWithPermit(permit, signal)
        const { kind } = call.outcome
        const { httpStatus } = call.record
        if (httpStatus !== undefined)
          span.setAttributes({ 'http.response.status_code': httpStatus })
        span.setAttributes({ 'gateway.outcome': kind })
        if (kind === 'unavailable' || kind === 'unknown') span.fail(kind)
        return call
      })
    },
  }
}

function signFields(
  { prefix, accounts }: GatewaySettings,
  { command, merchantCode, fields, exclude }: CallRequest<unknown>,
): WireParams {
  const account = accounts.find((one) => one.merchantCode === merchantCode)
  if (!account) throw new Error(`no account ${merchantCode} in the settings`)
  const named = { Command: command, MerchantCode: merchantCode, ...fields, Version: '1' }
  const present = Object.entries(named).filter(([, value]) => value !== undefined)
  const params = Object.fromEntries(present.map(([name, value]) => [`${prefix}_${name}`, value]))
  const hash = computeSecureHash(params, account.secret, { prefix, exclude })
  return { ...params, [`${prefix}_SecureHash`]: hash }
}

/** `no_slot`: `maxConcurrency` calls are in flight, so nothing was written. */
type PostResult = ExchangeResult | { kind: 'no_slot'; reason: string }

/** Posts one body, once; a call beyond `maxConcurrency` ends at once instead of waiting. Never rejects. */
async function post(
  { encoding, timeoutMs, maxConcurrency }: GatewaySettings,
  wire: Wire,
  body: string,
  signal: AbortSignal | undefined,
): Promise<PostResult> {
  const { pool, path } = wire
  if (wire.inFlight >= maxConcurrency) {
    return { kind: 'no_slot', reason: 'all call slots are in use' }
  }
  const type = encoding === 'json' ? 'json' : 'x-www-form-urlencoded'
  const headers = { 'content-type': `application/${type}`, accept: 'application/json' }
  wire.inFlight += 1
  try {
    return await exchange(pool, { path, method: 'POST', headers, body, timeoutMs, signal })
  } finally {
    wire.inFlight -= 1
  }
}

/** Only a call that wrote no byte is `unavailable`; whatever cannot be read after that is `unknown`. */
function classify<T>(
  result: PostResult,
  read: (body: Buffer) => ReadAnswer<T>,
): { outcome: GatewayOutcome<T>; received: string | undefined } {
  if (result.kind !== 'answer') {
    const kind = result.kind === 'no_slot' ? 'unavailable' : result.kind
    const part = 'part' in result && result.part ? formatBody(result.part) : undefined
    return { outcome: { kind, reason: result.reason }, received: part }
  }
  const { status, body } = result
  if (status < 200 || status > 299) {
    const outcome = { kind: 'unknown', reason: `HTTP status ${status}` } as const
    return { outcome, received: formatBody(body) }
  }
  const { answer, received } = read(body)
  if (answer.kind !== 'invalid') return { outcome: answer, received }
  return { outcome: { kind: 'unknown', reason: answer.reason }, received }
}

/** Returns the permit. A call that was cancelled or never made does not count for the circuit breaker. */
function endPermit(permit: BreakerPermit, outcome: OutcomeKind, isInconclusive: boolean): void {
  if (isInconclusive) permit.release()
  else if (outcome === 'answered' || outcome === 'rejected') permit.succeed()
  else permit.fail()
}

/** Describes a call for its trace: address and command, none of its content. */
function describeCall({ base, path }: Wire, command: GatewayCommand, merchantCode: string) {
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
  } as const
}
