import type { ServerResponse } from 'node:http'
import type { Context } from '../context.ts'
import { SECURITY_HEADERS } from '../http/raw-response.ts'
import type { VERDICTS } from '../metrics.ts'
import { createThrottle } from '../platform/concurrency/rate-limiter.ts'
import { noteOutage } from '../platform/telemetry/outage-log.ts'

type Verdict = (typeof VERDICTS)[number]

/** The reason is sent as `respmsg` and logged. Where a notification may be valid, it asks to send it again. */
const REFUSALS = {
  malformed: [400, 'refused'],
  bad_signature: [401, 'refused'],
  recut: [401, 'recut: other notifications with this hash were received'],
  address: [403, 'address not allowed'],
  unknown_merchant: [404, 'refused'],
  method: [405, 'refused'],
  too_slow: [408, 'the body did not arrive in time'],
  too_large: [413, 'the body is larger than 64 KiB'],
  content_type: [415, 'send application/json or application/x-www-form-urlencoded'],
  throttled: [429, 'too many malformed or wrongly signed notifications from this network'],
  store_failed: [500, 'not stored, send it again'],
  overloaded: [503, 'not stored, send it again'],
} as const satisfies Record<Exclude<Verdict, 'stored'>, readonly [status: number, why: string]>

export type IpnAnswer = {
  status: number
  verdict: Verdict
  why?: string
  headers?: Record<string, string>
  error?: unknown
}

export const STORED: IpnAnswer = { status: 200, verdict: 'stored' }

/** A connection cannot be reused when the body of its request was not read to the end. */
export const CLOSE = { connection: 'close' }

export function retryAfter(ms: number) {
  return { 'retry-after': String(Math.ceil(ms / 1000)) }
}

export function refuse(
  verdict: keyof typeof REFUSALS,
  why?: string,
  headers = verdict === 'overloaded' || verdict === 'store_failed' ? retryAfter(1_000) : {},
): IpnAnswer {
  const [status, reason] = REFUSALS[verdict]
  return { status, verdict, why: why ?? reason, headers }
}

/** Names and values alternate: the form that Node's HTTP server writes fastest. */
const FIXED_LINES = [...Object.entries(SECURITY_HEADERS).flat(), 'content-type', 'application/json']
const RECEIVED = JSON.stringify({ respcode: 0, respmsg: 'received' })

export function sendAnswer(
  response: ServerResponse,
  { status, verdict, why, headers }: IpnAnswer,
  requestId: string,
  stopping: boolean,
): void {
  const body = verdict === 'stored' ? RECEIVED : JSON.stringify({ respcode: 1, respmsg: why })
  const length = String(Buffer.byteLength(body))
  const lines = [...FIXED_LINES, 'content-length', length, 'x-request-id', requestId]
  if (headers) lines.push(...Object.entries(headers).flat())
  // Otherwise a client that keeps its connection open delays the shutdown by seconds.
  if (stopping) lines.push('connection', 'close')
  response.writeHead(status, lines)
  response.end(body)
}

/** Logs at most one refusal a second for each verdict, with the number of those it suppressed. */
export function createRefusalLog({ log }: Pick<Context, 'log'>) {
  const throttle = createThrottle(1_000)
  return (answer: IpnAnswer, sender: { address: string; requestId: string }): void => {
    const { verdict, why, error: err } = answer
    if (err !== undefined && noteOutage(log, err, 'notifications')) return
    const suppressed = throttle(verdict)
    if (!suppressed) return
    if (err === undefined)
      log.warn({ verdict, why, ...sender, ...suppressed }, 'notification refused')
    else log.error({ err, ...sender, ...suppressed }, NOT_STORED)
  }
}

const NOT_STORED = 'a notification could not be stored; the gateway has to send it again'

export function warnOfUnsigned({ config, log }: Pick<Context, 'config' | 'log'>): void {
  const { IPN_SIGNATURE: rule, ROLE } = config
  if (rule === 'required' || ROLE === 'worker') return
  const accepted = rule === 'off' ? 'every notification' : 'notifications without a hash'
  const risk = 'anyone who reaches /ipn can make the service query and store'
  log.warn(`IPN_SIGNATURE=${rule} accepts ${accepted}: ${risk}; set it to required`)
}
