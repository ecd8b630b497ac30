import type { ServerResponse } from 'node:http'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { Context } from '../context.ts'
import { describeMethod } from '../http/app.ts'
import { createRequestMeter, SECURITY_HEADERS } from '../http/raw-response.ts'
import { VERDICTS } from '../metrics.ts'
import { createThrottle } from '../platform/concurrency/rate-limiter.ts'
import { noteOutage } from '../platform/telemetry/outage-log.ts'

/** The response to a notification request. */
export type IpnAnswer = {
  status: ContentfulStatusCode
  verdict: (typeof VERDICTS)[number]
  /** The reason for a refusal: sent as `respmsg`, and logged. */
  why?: string
  headers?: Record<string, string>
}

/** The database is behind: the notification itself is valid and will be accepted a moment later. */
export const OVERLOADED = {
  status: 503,
  verdict: 'overloaded',
  why: 'not stored, send it again',
  headers: { 'retry-after': '1' },
} satisfies IpnAnswer

/** After a body that was not read to its end the connection cannot be reused. */
export const CLOSE = { connection: 'close' }

export function answerThrottled(ms: number): IpnAnswer {
  const why = 'too many malformed or wrongly signed notifications from this network'
  const headers = { 'retry-after': String(Math.ceil(ms / 1000)) }
  return { status: 429, verdict: 'throttled', why, headers }
}

/** Not 429: an unread notification may be well signed, and the gateway has to send it again. */
export function answerUnread(ms: number): IpnAnswer {
  const why = 'too many notifications of this network were refused, send it again'
  const headers = { 'retry-after': String(Math.ceil(ms / 1000)), ...CLOSE }
  return { status: 503, verdict: 'throttled', why, headers }
}

/** Names and values in turn, as Node's HTTP server takes them at the least cost. */
const FIXED_LINES = [
  ...Object.entries(SECURITY_HEADERS).flat(),
  ...['content-type', 'application/json'],
]
const RECEIVED = JSON.stringify({ respcode: 0, respmsg: 'received' })

export function sendAnswer(
  response: ServerResponse,
  { status, verdict, why, headers }: IpnAnswer,
  requestId: string,
  stopping: boolean,
): void {
  const body =
    verdict === 'stored' ? RECEIVED : JSON.stringify({ respcode: 1, respmsg: why ?? 'refused' })
  const length = String(Buffer.byteLength(body))
  const lines = [...FIXED_LINES, 'content-length', length, 'x-request-id', requestId]
  if (headers) lines.push(...Object.entries(headers).flat())
  // A client that keeps its connection open would delay the stop by seconds.
  if (stopping) lines.push('connection', 'close')
  response.writeHead(status, lines)
  response.end(body)
}

/** Measures notification requests, as a request and as a notification. Their series are looked up once. */
export function createIpnMeter({ metrics }: Pick<Context, 'metrics'>) {
  const { ipnAck, ipnReceived } = metrics
  const verdicts = new Map(VERDICTS.map((verdict) => [verdict, ipnReceived.labels({ verdict })]))
  const meter = createRequestMeter(metrics, '/ipn')
  return (method: string, { status, verdict }: IpnAnswer, ms: number): void => {
    verdicts.get(verdict)?.inc()
    ipnAck.observe(ms / 1000)
    meter(describeMethod(method), status, ms)
  }
}

type Sender = { address: string; requestId: string }

type RefusalLog = {
  /** Logs a notification that could not be stored, with the error that prevented it. */
  logFailure(error: unknown, answer: IpnAnswer, sender: Sender): void
  /** Logs a refused notification. Ignores failures: `logFailure` has logged those. */
  logRefusal(answer: IpnAnswer, sender: Sender): void
}

/** Of one verdict (ms). */
const LOG_EVERY_MS = 1_000

/** Logs refused notifications: per verdict one line a second at most, with the number suppressed before it. */
export function createRefusalLog({ log }: Pick<Context, 'log'>): RefusalLog {
  const throttle = createThrottle(LOG_EVERY_MS)
  return {
    logFailure(err, { verdict }, sender) {
      if (noteOutage(log, err, 'notifications')) return
      const suppressed = throttle(verdict)
      if (!suppressed) return
      log.error(
        { err, ...sender, ...suppressed },
        'a notification could not be stored; the gateway has to send it again',
      )
    },
    logRefusal({ status, verdict, why }, sender) {
      const isRefusal = status < 500 || verdict === 'throttled'
      const suppressed = isRefusal ? throttle(verdict) : undefined
      if (suppressed) log.warn({ verdict, why, ...sender, ...suppressed }, 'notification refused')
    },
  }
}

const CONSEQUENCE = {
  required: undefined,
  optional:
    'IPN_SIGNATURE=optional accepts notifications without a hash: anyone who reaches /ipn can make the service query and store; set it to required',
  off: 'IPN_SIGNATURE=off accepts every notification, whatever its hash is: anyone who reaches /ipn can make the service query and store; set it to required',
} as const

/** Logs a warning if notifications are accepted without a verified hash. Call it at start. */
export function warnOfUnsigned({ config, log }: Pick<Context, 'config' | 'log'>): void {
  const consequence = CONSEQUENCE[config.IPN_SIGNATURE]
  if (consequence && config.ROLE !== 'worker') log.warn(consequence)
}
