import { once } from 'node:events'
import type { HttpBindings } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import type { Context } from 'hono'
import { z } from 'zod'
import { countOrMs, failureCode, jsonNumber } from './control-input.ts'
import type { SandboxState } from './state.ts'
import type { Fault, FaultKind } from './types.ts'

/** Default `delayMs` of kind `delay`: noticeable to a person, below all time-outs. */
const DELAY_MS = 1_000

/**
 * The body of `POST /sandbox/faults`. `apply-fault.ts` defines the effect of each kind on a request,
 * `ipn/deliver-ipn.ts` the effect on a notification.
 */
export const faultInput = z
  .strictObject({
    command: z.enum(['QUERY_PT', 'REFUND', 'cards', 'token', 'ipn', '*']),
    kind: z.enum([
      'delay',
      'http500',
      'reset',
      'garbage',
      'truncate',
      'acceptThenReset',
      'acceptThenHang',
      'acceptThenCode',
      'code',
    ]),
    times: countOrMs.pipe(z.number().min(1)).optional(),
    probability: jsonNumber.pipe(z.number().min(0).max(1)).default(1),
    delayMs: countOrMs.optional(),
    code: failureCode.default(1),
  })
  .refine(({ kind, delayMs }) => kind !== 'delay' || delayMs !== 0, {
    path: ['delayMs'],
    message: 'a delay needs delayMs above 0',
  })
  .transform(({ delayMs, ...fault }) => ({
    ...fault,
    delayMs: delayMs ?? (fault.kind === 'delay' ? DELAY_MS : 0),
  }))

/**
 * Returns the first fault, in the order they were added, that matches `command` and whose probability
 * is met. Decrements its `times` and removes it at zero.
 */
export function takeFault(
  faults: Fault[],
  command: string,
  random: () => number,
): Fault | undefined {
  const index = faults.findIndex(
    (fault) =>
      (fault.command === '*' || fault.command === command) &&
      (fault.probability === 1 || random() < fault.probability),
  )
  const fault = faults[index]
  if (fault?.times !== undefined) {
    fault.times -= 1
    if (fault.times === 0) faults.splice(index, 1)
  }
  return fault
}

type GatewayContext = Context<{ Bindings: HttpBindings }>

/** A request and the ways to answer it; `T` is the result of executing it. */
export type Exchange<T> = {
  c: GatewayContext
  background: SandboxState['background']
  /** Checks and executes the request. Kinds that do not call it leave the state unchanged. */
  execute: () => Promise<T>
  refuse: (code: number) => T
  send: (answer: T) => Response
  write: (answer: T) => string
}

/** Returns whether a fault's code, for cards and tokens, is an HTTP error status. */
export function isErrorStatus(code: number): boolean {
  return code >= 400 && code <= 599
}

/** Answers a request: as the fault requires, or, without one, with its result, which the journal's entry has. */
export async function answerRequest<T>(
  fault: Fault | undefined,
  entry: { outcome: 'received' | 'answered' | FaultKind },
  exchange: Exchange<T>,
): Promise<Response> {
  if (fault) return applyFault(fault, exchange)
  const answer = await exchange.execute()
  entry.outcome = 'answered'
  return exchange.send(answer)
}

/** Answers a request as the fault requires. Kinds that execute the request do so before they fail. */
async function applyFault<T>(fault: Fault, exchange: Exchange<T>): Promise<Response> {
  const { c, background, execute, refuse, send, write } = exchange
  switch (fault.kind) {
    case 'delay':
      if (!(await background.wait(fault.delayMs))) return resetConnection(c)
      return send(await execute())
    case 'http500':
      return c.text('Internal Server Error', 500)
    case 'reset':
      return resetConnection(c)
    case 'garbage':
      return c.html('<html><body>Service temporarily unavailable</body></html>')
    case 'code':
      return send(refuse(fault.code))
    case 'truncate':
      return sendHalf(c, write(await execute()))
    case 'acceptThenReset':
      await execute()
      return resetConnection(c)
    case 'acceptThenHang':
      await execute()
      return holdConnection(c)
    case 'acceptThenCode':
      await execute()
      return send(refuse(fault.code))
  }
}

function resetConnection({ env: { incoming } }: GatewayContext): Response {
  incoming.socket.resetAndDestroy()
  return RESPONSE_ALREADY_SENT
}

async function holdConnection({ env: { outgoing } }: GatewayContext): Promise<Response> {
  if (!outgoing.destroyed) await once(outgoing, 'close')
  return RESPONSE_ALREADY_SENT
}

/** Sends half of the body under the full `content-length`, so that clients can detect the truncation. */
function sendHalf({ env: { outgoing } }: GatewayContext, text: string): Response {
  const body = Buffer.from(text)
  outgoing.writeHead(200, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': body.length,
  })
  outgoing.write(body.subarray(0, body.length >> 1), () => outgoing.destroy())
  return RESPONSE_ALREADY_SENT
}
