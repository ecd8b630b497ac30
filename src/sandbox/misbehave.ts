import { once } from 'node:events'
import type { HttpBindings } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import type { Context } from 'hono'
import { type Answer, refuseWithCode } from './codes.ts'
import type { Fault } from './faults.ts'
import type { CallEntry } from './journal.ts'
import type { SandboxState } from './state.ts'
import { writeAnswer } from './wire.ts'

type GatewayContext = Context<{ Bindings: HttpBindings }>

type Misbehaviour = {
  c: GatewayContext
  state: SandboxState
  entry: CallEntry
  fault: Fault
  /** Checks and executes the request; a kind that never calls it does no work. */
  work: () => Promise<Answer>
}

/** Answers as the specification says (4.3): HTTP 200 and JSON, whatever the code. */
export function sendAnswer(
  c: GatewayContext,
  state: SandboxState,
  entry: CallEntry,
  answer: Answer,
): Response {
  entry.code = answer.code
  return c.body(writeEntryAnswer(state, entry, answer), 200, {
    'content-type': 'application/json; charset=utf-8',
  })
}

/** Treats one request as the fault says; which kinds do the work is the point of the fault. */
export async function misbehave(given: Misbehaviour): Promise<Response> {
  const { c, state, entry, fault, work } = given
  switch (fault.kind) {
    case 'delay':
      if (!(await state.background.wait(fault.delayMs))) return resetConnection(c)
      return sendAnswer(c, state, entry, await work())
    case 'http500':
      return c.text('Internal Server Error', 500)
    case 'reset':
      return resetConnection(c)
    case 'garbage':
      return c.html('<html><body>Service temporarily unavailable</body></html>')
    case 'code':
      return sendAnswer(c, state, entry, refuseWithCode(fault.code))
    case 'truncate':
      return sendHalf(c, writeEntryAnswer(state, entry, await work()))
    case 'acceptThenReset':
      await work()
      return resetConnection(c)
    case 'acceptThenHang':
      await work()
      return holdConnection(c)
    case 'acceptThenCode':
      await work()
      return sendAnswer(c, state, entry, refuseWithCode(fault.code))
  }
}

function writeEntryAnswer(state: SandboxState, { command }: CallEntry, answer: Answer): string {
  return writeAnswer(answer, { command, prefix: state.settings.fieldPrefix })
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
