import { stringify } from 'lossless-json'
import type { BreakerPermit } from '../platform/concurrency/circuit-breaker.ts'
import type { Encryption } from '../platform/crypto/encryption.ts'
import {
  type ActiveSpan,
  NO_TRACING,
  type SpanOptions,
  type Tracing,
} from '../platform/telemetry/tracing.ts'
import { computeBodyHmac } from './body-hmac.ts'
import type { Breakers } from './breakers.ts'
import { formatUnread } from './read-answer.ts'
import { computeSecureHash, type WireParams } from './signature.ts'
import type { PostResult, Transport } from './transport.ts'
import type {
  GatewayCall,
  GatewayCommand,
  GatewayOutcome,
  OutcomeKind,
  PreparedCall,
  ReadAnswer,
} from './types.ts'

export type CallSettings = {
  /** The wire prefix without its underscore, e.g. `svc`. */
  prefix: string
  encoding: 'json' | 'form'
  /** Calls are paused while the gateway does not answer. */
  breakers: Breakers
  /** Makes the HMACs of request bodies. */
  encryption: Pick<Encryption, 'fingerprint'>
  /** Traces calls in this process; no trace context is sent to the gateway, which is a third party. */
  tracing?: Tracing
  /** Called after every call that was made, for metrics. */
  onCall?: (command: GatewayCommand, outcome: OutcomeKind, durationMs: number) => void
}

export type CallRequest<T> = {
  command: GatewayCommand
  merchantCode: string
  /** Parameters by name without prefix; undefined ones are omitted. */
  fields: WireParams
  /** Names, without prefix, that stay out of the hash. */
  exclude: readonly string[]
  secret: string
  read: (body: Buffer) => ReadAnswer<T>
}

const OPERATIONS = { QUERY_PT: 'query', REFUND: 'refund' } as const

const PAUSED = {
  kind: 'unavailable',
  reason: 'calls are paused: the gateway failed several times in a row',
  paused: true,
} as const

/**
 * Signs and encodes a request without sending it.
 * @throws NotSignableError when a field is a nested object
 */
export function prepareCall<T>(
  settings: CallSettings,
  transport: Transport,
  request: CallRequest<T>,
): PreparedCall<T> {
  const { breakers, tracing = NO_TRACING } = settings
  const { command, merchantCode, read } = request
  const body = encodeBody(signFields(request, settings.prefix), settings.encoding)
  const bodyHmac = computeBodyHmac(settings.encryption, body)
  const record = { command, bodyHmac, httpStatus: undefined }

  async function sendWithPermit(
    permit: BreakerPermit,
    signal: AbortSignal | undefined,
    span: ActiveSpan,
  ): Promise<GatewayCall<T>> {
    const started = performance.now()
    const result = await transport.post(body, signal)
    const durationMs = performance.now() - started
    const { outcome, received } = classify(result, read)
    settings.onCall?.(command, outcome.kind, durationMs)
    const isInconclusive = signal?.aborted === true || result.kind === 'no_slot'
    endPermit(permit, outcome.kind, isInconclusive)
    const httpStatus = 'status' in result ? result.status : undefined
    describeResult(span, outcome.kind, httpStatus)
    return {
      outcome,
      record: { ...record, durationMs: Math.round(durationMs), httpStatus, received },
    }
  }

  return {
    bodyHmac,
    async send(signal, given) {
      const permit = given ?? breakers.of(merchantCode, OPERATIONS[command]).tryAcquire()
      if (!permit) return { outcome: PAUSED, record: { ...record, durationMs: 0 } }
      return await tracing.run(
        () => describeCall(transport, command, merchantCode),
        (span) => sendWithPermit(permit, signal, span),
      )
    },
  }
}

function signFields(
  { command, merchantCode, fields, exclude, secret }: CallRequest<unknown>,
  prefix: string,
): WireParams {
  const named = { Command: command, MerchantCode: merchantCode, ...fields, Version: '1' }
  const present = Object.entries(named).filter(([, value]) => value !== undefined)
  const params = Object.fromEntries(present.map(([name, value]) => [`${prefix}_${name}`, value]))
  const hash = computeSecureHash(params, secret, { prefix, exclude })
  return { ...params, [`${prefix}_SecureHash`]: hash }
}

function encodeBody(params: WireParams, encoding: 'json' | 'form'): string {
  if (encoding === 'json') return stringify(params) ?? ''
  const form = new URLSearchParams()
  for (const [name, value] of Object.entries(params)) form.append(name, String(value))
  return form.toString()
}

/** Only a call that wrote no byte is `unavailable`; whatever cannot be read after that is `unknown`. */
function classify<T>(
  result: PostResult,
  read: (body: Buffer) => ReadAnswer<T>,
): { outcome: GatewayOutcome<T>; received: string | undefined } {
  if (result.kind !== 'answer') {
    const kind = result.kind === 'no_slot' ? 'unavailable' : result.kind
    const part = 'part' in result && result.part ? formatUnread(result.part) : undefined
    return { outcome: { kind, reason: result.reason }, received: part }
  }
  const { status, body } = result
  if (status < 200 || status > 299) {
    const outcome = { kind: 'unknown' as const, reason: `HTTP status ${status}` }
    return { outcome, received: formatUnread(body) }
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
function describeCall(
  { base, path }: Transport,
  command: GatewayCommand,
  merchantCode: string,
): SpanOptions {
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

function describeResult(
  span: ActiveSpan,
  outcome: OutcomeKind,
  httpStatus: number | undefined,
): void {
  if (httpStatus !== undefined) span.setAttributes({ 'http.response.status_code': httpStatus })
  span.setAttributes({ 'gateway.outcome': outcome })
  if (outcome === 'unavailable' || outcome === 'unknown') span.fail(outcome)
}
