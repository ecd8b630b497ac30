import { once } from 'node:events'
import type { HttpBindings } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import type { Context } from 'hono'
import type { SandboxState } from '../state.ts'
import type { Fault } from './faults.ts'

type GatewayContext = Context<{ Bindings: HttpBindings }>

/** One request and how it is answered; `T` is what its work comes to. */
export type Exchange<T> = {
  c: GatewayContext
  state: SandboxState
  /** Checks and executes the request; a kind that never calls it does no work. */
  work: () => Promise<T>
  refuse: (code: number) => T
  send: (answer: T) => Response
  write: (answer: T) => string
}

/** Whether a fault's code, for cards and tokens, is an HTTP status. */
export function isErrorStatus(code: number): boolean {
  return code >= 400 && code <= 599
}

/** Treats one request as the fault says; which kinds do the work is the point of the fault. */
export async function followFault<T>(fault: Fault, exchange: Exchange<T>): Promise<Response> {
  const { c, state, work, refuse, send, write } = exchange
  switch (fault.kind) {
    case 'delay':
      if (!(await state.background.wait(fault.delayMs))) return resetConnection(c)
      return send(await work())
    case 'http500':
      return c.text('Internal Server Error', 500)
    case 'reset':
      return resetConnection(c)
    case 'garbage':
      return c.html('<html><body>Service temporarily unavailable</body></html>')
    case 'code':
      return send(refuse(fault.code))
    case 'truncate':
      return sendHalf(c, write(await work()))
    case 'acceptThenReset':
      await work()
      return resetConnection(c)
    case 'acceptThenHang':
      await work()
      return holdConnection(c)
    case 'acceptThenCode':
      await work()
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

/** The header promises the whole body, so a client can tell that half of it is missing. */
function sendHalf({ env: { outgoing } }: GatewayContext, text: string): Response {
  const body = Buffer.from(text)
  outgoing.writeHead(200, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': body.length,
  })
  outgoing.write(body.subarray(0, body.length >> 1), () => outgoing.destroy())
  return RESPONSE_ALREADY_SENT
}
