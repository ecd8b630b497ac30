import { once } from 'node:events'
import type { HttpBindings } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import type { Context } from 'hono'
import type { Fault } from './input.ts'
import type { JournalEntry, SandboxState } from './state.ts'
import { JSON_TYPE } from './wire.ts'

export type GatewayContext = Context<{ Bindings: HttpBindings }>

/** Adds an entry, which callers complete in place. Beyond the limit, the oldest one is dropped. */
export function recordEntry(
  { journal, settings }: SandboxState,
  members: Omit<JournalEntry, 'at'>,
): JournalEntry {
  const entry = { ...members, at: new Date().toISOString() }
  journal.push(entry)
  if (journal.length > settings.journalLimit) journal.shift()
  return entry
}

export function listEntries({ journal }: SandboxState, command?: string): JournalEntry[] {
  return journal.filter((entry) => command === undefined || entry.command === command)
}

/** Takes the oldest fault that matches the command and whose probability is met, and counts down its `times`. */
export function takeFault(
  { faults }: SandboxState,
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

export type Answer = {
  status: number
  code: number
  body: string
  headers?: Readonly<Record<string, string>>
}

type Endpoint = {
  entry: Omit<JournalEntry, 'at' | 'outcome'>
  /** Checks and executes the request. A fault that does not call it leaves the state unchanged. */
  work: () => Answer | Promise<Answer>
  refuse: (code: number) => Answer
}

/** Records a request in the journal and answers it with the result of its work, or as a fault requires. */
export async function exchange(
  state: SandboxState,
  c: GatewayContext,
  { entry: members, work, refuse }: Endpoint,
): Promise<Response> {
  const fault = takeFault(state, members.command, state.random)
  const outcome = fault?.kind ?? 'received'
  const entry = recordEntry(state, { ...members, outcome })
  const execute = async () => {
    const answer = await work()
    if (entry.workStatus !== undefined) entry.workStatus = answer.status
    if (entry.workCode !== undefined) entry.workCode = answer.code
    return answer
  }
  const send = ({ status, code, body, headers }: Answer) => {
    if (entry.status !== undefined) entry.status = status
    if (entry.code !== undefined) entry.code = code
    return new Response(body, { status, headers: { ...JSON_TYPE, ...headers } })
  }
  switch (fault?.kind) {
    case undefined: {
      const answer = await execute()
      entry.outcome = 'answered'
      return send(answer)
    }
    case 'delay':
      if (!(await state.background.wait(fault.delayMs))) return resetConnection(c)
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
      return sendHalf(c, await execute())
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

/** Sends half of the body with the `content-length` of all of it, so that clients can detect the truncation. */
function sendHalf({ env: { outgoing } }: GatewayContext, answer: Answer): Response {
  const body = Buffer.from(answer.body)
  outgoing.writeHead(200, { ...JSON_TYPE, 'content-length': body.length })
  outgoing.write(body.subarray(0, body.length >> 1), () => outgoing.destroy())
  return RESPONSE_ALREADY_SENT
}

/** For cards and tokens, such a code of a fault is the HTTP status. */
export function isErrorStatus(code: number): boolean {
  return code >= 400 && code <= 599
}
