import type { Context as HttpContext } from 'hono'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { Context } from '../context.ts'
import { compileNetworks, findClientAddress } from '../http/address.ts'
import type { AppEnv } from '../http/app-env.ts'
import { type Room, readBody } from '../http/body.ts'
import { createRouter } from '../http/input.ts'
import { describeMethod } from '../http/route.ts'
import type { Step, StepPlan } from '../trace.ts'
import { declareNotifications } from './declare.ts'
import { InboxFullError } from './inbox.ts'
import { createOffenders } from './offenders.ts'
import { type Delivery, receiveNotification } from './receive.ts'

const MAX_BODY_BYTES = 64 * 1024
/** In a storm one line stands for all of a verdict that were refused since the last (ms). */
const LOG_EVERY_MS = 1_000

const STATUS = { stored: 200, malformed: 400, bad_signature: 401, unknown_merchant: 404 } as const

/** Everything that is decided about a notification; only what is stored is acknowledged. */
const VERDICTS = [
  'stored',
  'malformed',
  'bad_signature',
  'unknown_merchant',
  'method',
  'address',
  'content_type',
  'too_large',
  'too_slow',
  'throttled',
  'overloaded',
  'store_failed',
] as const

type Answer = {
  status: ContentfulStatusCode
  verdict: (typeof VERDICTS)[number]
  why?: string
  headers?: Record<string, string>
}

/** More than the database takes: nothing is wrong with the notification, and a moment later it is taken. */
const OVERLOADED = {
  status: 503,
  verdict: 'overloaded',
  why: 'not stored, send it again',
  headers: { 'retry-after': '1' },
} satisfies Answer

/**
 * `POST /ipn`, the gateway's side. `respcode` 0 acknowledges receipt, after the commit and never
 * before; anything else makes the gateway send again.
 * @param room shared with everything else that reads bodies
 */
export function ipnRoutes(ctx: Context, room: Room) {
  const { IPN_ALLOW_CIDRS, TRUSTED_PROXIES, IPN_ACCEPT_GET } = ctx.config
  const isTrustedProxy = compileNetworks(TRUSTED_PROXIES)
  const isAllowed = IPN_ALLOW_CIDRS ? compileNetworks(IPN_ALLOW_CIDRS) : () => true
  const methods = IPN_ACCEPT_GET ? ['POST', 'GET'] : ['POST']
  const offenders = createOffenders()
  const pauses = new Map(VERDICTS.map((verdict) => [verdict, createPause()]))

  async function answer(c: HttpContext<AppEnv>, address: string): Promise<Answer> {
    if (!methods.includes(c.req.method)) {
      const headers = { allow: methods.join(', ') }
      return { status: 405, verdict: 'method', why: `use ${methods.join(' or ')}`, headers }
    }
    if (!isAllowed(address)) return { status: 403, verdict: 'address', why: 'address not allowed' }
    // Before its body costs memory, and its hash time.
    if (ctx.inbox.isFull()) throw new InboxFullError('too many wait for the database')
    const delivery = await readDelivery(c, address)
    if ('status' in delivery) return delivery
    const receipt = await receiveNotification(ctx, delivery)
    if (receipt.verdict === 'bad_signature') {
      const throttledMs = offenders.count(address)
      if (throttledMs > 0) return throttle(throttledMs)
    }
    return { status: STATUS[receipt.verdict], ...receipt }
  }

  async function readDelivery(c: HttpContext<AppEnv>, address: string): Promise<Delivery | Answer> {
    const headers = pickHeaders(c)
    if (c.req.method === 'GET') {
      // Whatever host it was sent to: the framework does not refuse every name that no host can have.
      const body = new URL(c.env.incoming.url ?? '', 'http://localhost').search.slice(1)
      return { format: 'form', body, contentType: '', address, headers }
    }
    const contentType = c.req.header('content-type') ?? ''
    const format = findFormat(contentType)
    if (!format) {
      const why = 'send application/json or application/x-www-form-urlencoded'
      return { status: 415, verdict: 'content_type', why }
    }
    const timeoutMs = ctx.config.bodyTimeoutMs
    const body = await readBody(c.env.incoming, { limit: MAX_BODY_BYTES, timeoutMs, room })
    const close = { connection: 'close' }
    switch (body.kind) {
      case 'too_large':
        return { status: 413, verdict: 'too_large', why: 'body over 64 KiB', headers: close }
      case 'too_slow':
        return {
          status: 408,
          verdict: 'too_slow',
          why: `no whole body in ${timeoutMs} ms`,
          headers: close,
        }
      case 'broken':
        return { status: 400, verdict: 'malformed', why: 'the body broke off', headers: close }
      case 'no_room':
        return { ...OVERLOADED, headers: { ...OVERLOADED.headers, ...close } }
    }
    const text = decodeText(body.bytes)
    if (text === undefined)
      return { status: 400, verdict: 'malformed', why: 'the body is not UTF-8 text' }
    return { format, body: text, contentType, address, headers }
  }

  /** Our trouble: the gateway has to send it again. */
  function refuse(error: unknown, address: string, requestId: string): Answer {
    const refusal =
      error instanceof InboxFullError
        ? OVERLOADED
        : ({ ...OVERLOADED, status: 500, verdict: 'store_failed' } satisfies Answer)
    const said = pauses.get(refusal.verdict)?.()
    if (said) {
      ctx.log.error(
        { err: error, address, requestId, ...said },
        'a notification could not be stored; the gateway has to send it again',
      )
    }
    return refusal
  }

  /** Whoever sends is not known yet: its trace is pointed to, and does not decide what is sampled. */
  function plan(c: HttpContext<AppEnv>): StepPlan {
    const method = describeMethod(c)
    return {
      name: `${method} /ipn`,
      kind: 'server',
      attributes: { 'http.request.method': method, 'http.route': '/ipn' },
      links: [c.req.header('traceparent')],
      requestId: c.get('requestId'),
    }
  }

  async function take(c: HttpContext<AppEnv>, step: Step) {
    const started = performance.now()
    const requestId = c.get('requestId')
    const address = findClientAddress(
      c.env.incoming.socket.remoteAddress ?? '',
      c.req.header('x-forwarded-for'),
      isTrustedProxy,
    )
    const result = await answer(c, address).catch((error: unknown) =>
      refuse(error, address, requestId),
    )
    ctx.metrics.ipnReceived.inc({ verdict: result.verdict })
    ctx.metrics.ipnAck.observe((performance.now() - started) / 1000)
    step.note({ 'http.response.status_code': result.status, 'ipn.verdict': result.verdict })
    if (result.status >= 500) step.fail(result.verdict)
    if (result.verdict === 'stored') return c.json({ respcode: 0, respmsg: 'received' })
    const { verdict, why } = result
    // What is our trouble was said where it was found.
    const said = result.status < 500 ? pauses.get(verdict)?.() : undefined
    if (said) ctx.log.warn({ verdict, why, address, requestId, ...said }, 'notification refused')
    return c.json({ respcode: 1, respmsg: result.why ?? 'refused' }, result.status, result.headers)
  }

  for (const verdict of VERDICTS) ctx.metrics.ipnReceived.inc({ verdict }, 0)
  const router = createRouter()
  for (const route of declareNotifications(ctx.config.GATEWAY_FIELD_PREFIX)) {
    router.openAPIRegistry.registerPath(route)
  }
  return router.all('/ipn', (c) =>
    ctx.tracing.run(
      () => plan(c),
      (step) => take(c, step),
    ),
  )
}

/** Says when there is to be a line again, and how many had none since the last. */
function createPause(): () => { leftOut: number } | undefined {
  let next = 0
  let leftOut = 0
  return () => {
    const now = performance.now()
    if (now < next) {
      leftOut += 1
      return undefined
    }
    const said = { leftOut }
    next = now + LOG_EVERY_MS
    leftOut = 0
    return said
  }
}

function throttle(ms: number): Answer {
  const why = 'too many notifications with a wrong or missing hash from this address'
  const headers = { 'retry-after': String(Math.ceil(ms / 1000)) }
  return { status: 429, verdict: 'throttled', why, headers }
}

function findFormat(contentType: string): 'json' | 'form' | undefined {
  const type = contentType.split(';')[0]?.trim().toLowerCase() ?? ''
  if (/^application\/([\w.-]+\+)?json$/.test(type)) return 'json'
  return type === 'application/x-www-form-urlencoded' ? 'form' : undefined
}

/** The few headers that help to find out who really called. */
function pickHeaders(c: HttpContext): Record<string, string> {
  const names = ['user-agent', 'x-forwarded-for', 'x-request-id']
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = c.req.header(name)
      return value === undefined ? [] : [[name, value.slice(0, 500)]]
    }),
  )
}

/** NUL is valid UTF-8, but no text column takes it. */
function decodeText(bytes: Buffer): string | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    return text.includes('\0') ? undefined : text
  } catch {
    return undefined
  }
}
