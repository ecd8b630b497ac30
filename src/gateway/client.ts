import { createHash } from 'node:crypto'
import { LosslessNumber } from 'lossless-json'
import type { Pool } from 'undici'
import type { Config } from '../config/config.ts'
import { shortenAmount } from '../money.ts'
import type { Encryption } from '../platform/crypto/encryption.ts'
import { type ExchangeResult, exchange, openPool } from '../platform/outbound/exchange.ts'
import { NO_TRACING, type Tracing } from '../platform/telemetry/tracing.ts'
import { formatBody, readPaymentsAnswer, readRefundAnswer } from './answers.ts'
import { type Breakers, runGuarded } from './breakers.ts'
import { writeParams } from './parse-body.ts'
import { computeSecureHash, type WireParams } from './signature.ts'
import type {
  GatewayAnswer,
  GatewayCall,
  GatewayCommand,
  GatewayOutcome,
  OutcomeKind,
  PaymentList,
  PreparedCall,
  Read,
} from './types.ts'

export type GatewaySettings = {
  config: Config
  baseUrl: string
  breakers: Breakers
  encryption: Pick<Encryption, 'fingerprint'>
  /** No trace context is sent to the gateway, which is a third party. */
  tracing?: Tracing
  onCall?: (command: GatewayCommand, outcome: OutcomeKind, durationMs: number) => void
}

type RefundOrder = {
  merchantCode: string
  /** The request id on the wire, the same in every attempt. */
  refundId: string
  paymentId: string
  amount: string
  /** In the order of the specification, because the Base64 text of its JSON enters the hash. */
  receiver?: { accountName: string; accountNumber: string; swiftCode: string } | undefined
}

/** Answers carry no signature; they are trusted because of TLS to the configured host. */
export function createGatewayClient(settings: GatewaySettings) {
  const { config } = settings
  const { GATEWAY_FIELD_PREFIX: prefix, GATEWAY_MAX_CONCURRENCY: connections } = config
  const base = new URL(settings.baseUrl)
  const pool = openPool(base.origin, { connections, timeoutMs: config.GATEWAY_TIMEOUT_MS })
  const path = base.pathname.replace(/\/$/, '') + config.GATEWAY_PAYGATE_PATH
  const wire = { pool, base, path, inFlight: 0 }
  return {
    /**
     * Queries the payments of a transaction (QUERY_PT, specification 4.3.1). Never rejects.
     * @throws Error when the merchant account is not in the settings
     */
    queryPayments(
      { merchantCode, transactionId }: { merchantCode: string; transactionId: string },
      signal?: AbortSignal,
    ): Promise<GatewayCall<PaymentList>> {
      return prepareCall(settings, wire, {
        command: 'QUERY_PT',
        merchantCode,
        fields: { TransactionID: transactionId },
        exclude: [],
        read: (body) => readPaymentsAnswer(body, prefix),
      }).send(signal)
    },
    /**
     * Prepares a refund (REFUND, specification 4.3.2). The answer is the gateway's id of it, if any.
     * @throws Error when the merchant account is not in the settings
     */
    prepareRefund(order: RefundOrder): PreparedCall<string | undefined> {
      const { merchantCode, refundId, paymentId, amount, receiver } = order
      return prepareCall(settings, wire, {
        command: 'REFUND',
        merchantCode,
        fields: {
          RequestID: refundId,
          PaymentID: paymentId,
          Amount: new LosslessNumber(shortenAmount(amount)),
          Receiver: receiver && Buffer.from(JSON.stringify(receiver)).toString('base64'),
        },
        exclude: config.GATEWAY_REFUND_HASH_EXCLUDE,
        read: (body) => readRefundAnswer(body, prefix),
      })
    },
    close: () => pool.destroy(),
  }
}

export type GatewayClient = ReturnType<typeof createGatewayClient>

type Wire = { pool: Pool; base: URL; path: string; inFlight: number }

type CallRequest<T> = {
  command: GatewayCommand
  merchantCode: string
  /** By name without prefix. Undefined ones are omitted. */
  fields: WireParams
  exclude: readonly string[]
  read: (body: Buffer) => Read<GatewayAnswer<T>>
}

const OPERATIONS = { QUERY_PT: 'query', REFUND: 'refund' } as const

const PAUSED = {
  kind: 'unavailable',
  reason: 'calls are paused: the gateway failed several times in a row',
  paused: true,
} as const

const NO_SLOT: ExchangeResult = { kind: 'unavailable', reason: 'all call slots are in use' }

function prepareCall<T>(
  settings: GatewaySettings,
  wire: Wire,
  request: CallRequest<T>,
): PreparedCall<T> {
  const { config, breakers, tracing = NO_TRACING, encryption } = settings
  const { command, merchantCode, read } = request
  const body = writeParams(signFields(config, request), config.GATEWAY_ENCODING)
  const digest = createHash('sha256').update(body).digest('hex')
  // The label separates this from other values under the same key. Stored values depend on it.
  const bodyHmac = encryption.fingerprint(`gateway request body\0${digest}`)

  async function call(signal: AbortSignal | undefined) {
    const started = performance.now()
    const hasSlot = wire.inFlight < config.GATEWAY_MAX_CONCURRENCY
    const result = hasSlot ? await post(config, wire, body, signal) : NO_SLOT
    const ms = performance.now() - started
    const { answer: outcome, received } = classify(result, read)
    const { kind } = outcome
    settings.onCall?.(command, kind, ms)
    const httpStatus = 'status' in result ? result.status : undefined
    const record = { command, bodyHmac, durationMs: Math.round(ms), httpStatus, received }
    const isFailed = kind === 'unavailable' || kind === 'unknown'
    const isIgnored = signal?.aborted === true || !hasSlot
    const reason = 'reason' in outcome ? outcome.reason : undefined
    return { value: { outcome, record }, outcome: kind, reason, httpStatus, isFailed, isIgnored }
  }

  return {
    bodyHmac,
    async send(signal, given) {
      const permit = given ?? breakers.of(merchantCode, OPERATIONS[command]).tryAcquire()
      if (permit) {
        const describe = () => describeCall(wire, command, merchantCode)
        return await runGuarded(permit, tracing, describe, () => call(signal))
      }
      const record = { command, bodyHmac, durationMs: 0, httpStatus: undefined }
      return { outcome: PAUSED, record }
    },
  }
}

/**
 * Completes and signs the parameters of a call (specification 4.3, 5.2).
 * @throws Error when the account is not in the settings
 */
export function signFields(
  { accounts, GATEWAY_FIELD_PREFIX: prefix }: Pick<Config, 'accounts' | 'GATEWAY_FIELD_PREFIX'>,
  { command, merchantCode, fields, exclude }: Omit<CallRequest<unknown>, 'read'>,
): WireParams {
  const account = accounts.find((one) => one.merchantCode === merchantCode)
  if (!account) throw new Error(`no account ${merchantCode} in the settings`)
  const named = { Command: command, MerchantCode: merchantCode, ...fields, Version: '1' }
  const present = Object.entries(named).filter(([, value]) => value !== undefined)
  const params = Object.fromEntries(present.map(([name, value]) => [`${prefix}_${name}`, value]))
  const hash = computeSecureHash(params, account.secret, { prefix, exclude })
  return { ...params, [`${prefix}_SecureHash`]: hash }
}

async function post(
  { GATEWAY_ENCODING: encoding, GATEWAY_TIMEOUT_MS: timeoutMs }: Config,
  wire: Wire,
  body: string,
  signal: AbortSignal | undefined,
): Promise<ExchangeResult> {
  const { pool, path } = wire
  const headers = writeHeaders(encoding)
  wire.inFlight += 1
  try {
    return await exchange(pool, { path, method: 'POST', headers, body, timeoutMs, signal })
  } finally {
    wire.inFlight -= 1
  }
}

export function writeHeaders(encoding: 'json' | 'form') {
  const type = encoding === 'json' ? 'json' : 'x-www-form-urlencoded'
  return { 'content-type': `application/${type}`, accept: 'application/json' }
}

/** Only a call that wrote no byte is `unavailable`. After that, whatever cannot be read is `unknown`. */
function classify<T>(
  result: ExchangeResult,
  read: CallRequest<T>['read'],
): Read<GatewayOutcome<T>> {
  if (result.kind !== 'answer') {
    const part = 'part' in result && result.part ? formatBody(result.part) : undefined
    return { answer: { kind: result.kind, reason: result.reason }, received: part }
  }
  const { status, body } = result
  if (status < 200 || status > 299) {
    const answer = { kind: 'unknown', reason: `HTTP status ${status}` } as const
    return { answer, received: formatBody(body) }
  }
  return read(body)
}

function describeCall({ base, path }: Wire, command: GatewayCommand, merchantCode: string) {
  const attributes = {
    'http.request.method': 'POST',
    'server.address': base.hostname,
    'server.port': Number(base.port) || (base.protocol === 'https:' ? 443 : 80),
    'url.path': path,
    'gateway.command': command,
    'ipn.merchant_code': merchantCode,
  }
  return { name: command, kind: 'client', attributes } as const
}
