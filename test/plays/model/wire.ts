import type { Context } from '../../../src/context.ts'
import type { PreparedCall } from '../../../src/gateway/types.ts'
import type { FaultKind } from '../../../src/sandbox/input.ts'
import type { SandboxState } from '../../../src/sandbox/state.ts'

/** What happens to the next REFUND between our process and the gateway. */
export type SendFate =
  | { kind: 'through' }
  /** The connection is refused: no byte is written. */
  | { kind: 'unreachable' }
  /** The process dies with the attempt recorded and its result unrecorded. */
  | { kind: 'dieBefore' }
  | { kind: 'dieAfter' }
  /** The process sleeps for longer than its lease may last. */
  | { kind: 'pauseBefore' }
  | { kind: 'pauseAfter' }
  /** The gateway does the work and never answers; the call is aborted. */
  | { kind: 'hang' }
  /** It settles, and its notification arrives, before its own answer does. */
  | { kind: 'early' }
  | { kind: 'fault'; fault: PlayedFault; code?: number }

type PlayedFault = Extract<
  FaultKind,
  'reset' | 'http500' | 'garbage' | 'truncate' | 'acceptThenReset' | 'acceptThenCode' | 'code'
>

/** A moment of a pass: the query's answer has arrived, the attempt is being recorded, its bytes are about to leave. */
export type Moment = 'answered' | 'recording' | 'leaving'

/** What somebody else does at a moment of the next pass. */
export type Meanwhile = {
  at: Moment
  /** @param refundId the refund that is being sent; undefined before */
  run(refundId: string | undefined): Promise<void>
  /** Set when it has begun. While an attempt is being recorded it waits for the locks of that commit. */
  done: Promise<void> | undefined
}

/** A process that holds a claim and sleeps. */
export type Pause = {
  /** The refund that is sent when it wakes. */
  refundId: string | undefined
  wake(): void
  /** Its round, which ends after it woke. */
  round: Promise<unknown>
}

/** The connection between the service and the gateway: counts requests that may have been sent, and loses answers. */
export type Wire = {
  fate: SendFate
  /** The next query's answer is held back by a sleeping process. */
  pauseQuery: boolean
  meanwhile: Meanwhile | undefined
  /** How often a refund may have been sent. */
  sends: Map<string, number>
  /** Called before bytes may leave. */
  onSend: (refundId: string) => void
  /** Called when the gateway has answered with a code that is not 0. */
  onRefused: (refundId: string, code: string) => void
  /** Called before a query; what it returns is called with the refunded amounts of the payments that the answer lists. */
  onQuery: () => (refunded: ReadonlyMap<string, string>) => void
  /** Called when a fate has been met. */
  onFate: (deed: FateDeed) => void
  /** Called by a process that falls asleep. */
  onPause: (pause: Omit<Pause, 'round'>) => void
  /** Called for a refund that the gateway accepts although it answers with a failure code. */
  onDenied: (refundId: string, code: string) => void
  /** Settles a refund and delivers its notification. */
  settleEarly: (refundId: string) => Promise<void>
}

export class ProcessDiedError extends Error {}

export function makeWire(): Wire {
  return {
    fate: { kind: 'through' },
    pauseQuery: false,
    sends: new Map(),
    meanwhile: undefined,
    onSend: () => {},
    onRefused: () => {},
    onQuery: () => () => {},
    onFate: () => {},
    onPause: () => {},
    onDenied: () => {},
    settleEarly: () => Promise.resolve(),
  }
}

/** What is counted when a fate is met. */
export type FateDeed = `sent: ${Exclude<SendFate['kind'], 'fault'> | PlayedFault}`

async function begin(wire: Wire, at: Moment, refundId: string | undefined): Promise<void> {
  const { meanwhile } = wire
  if (meanwhile?.at !== at || meanwhile.done) return
  meanwhile.done = meanwhile.run(refundId)
  if (at !== 'recording') await meanwhile.done
}

/** A gateway client whose calls go over the wire. */
export function tapGateway(
  gateway: Context['gateway'],
  wire: Wire,
  sandbox: SandboxState,
): Context['gateway'] {
  return {
    ...gateway,
    async queryPayments(query, signal) {
      const noteAnswer = wire.onQuery()
      const call = await gateway.queryPayments(query, signal)
      if (call.outcome.kind === 'answered') {
        const { payments } = call.outcome.value
        noteAnswer(new Map(payments.map((one) => [one.id, one.refundedAmount])))
      }
      await begin(wire, 'answered', undefined)
      if (wire.pauseQuery) {
        wire.pauseQuery = false
        await sleepUntilWoken(wire, undefined)
      }
      return call
    },
    prepareRefund(order) {
      const prepared = gateway.prepareRefund(order)
      void begin(wire, 'recording', order.refundId)
      const send = () => sendByFate(wire, sandbox, order.refundId, prepared)
      return { ...prepared, send }
    },
  }
}

async function sendByFate(
  wire: Wire,
  sandbox: SandboxState,
  refundId: string,
  prepared: PreparedCall<string | undefined>,
) {
  const { fate } = wire
  wire.fate = { kind: 'through' }
  wire.onFate(`sent: ${fate.kind === 'fault' ? fate.fault : fate.kind}`)
  await begin(wire, 'leaving', refundId)
  const sendNow = async (signal?: AbortSignal) => {
    wire.sends.set(refundId, (wire.sends.get(refundId) ?? 0) + 1)
    wire.onSend(refundId)
    const call = await prepared.send(signal)
    if (call.outcome.kind === 'rejected') wire.onRefused(refundId, call.outcome.code)
    return call
  }
  switch (fate.kind) {
    case 'unreachable': {
      const { bodyHmac } = prepared
      return {
        outcome: { kind: 'unavailable' as const, reason: 'ECONNREFUSED' },
        record: { command: 'REFUND' as const, bodyHmac, durationMs: 0, httpStatus: undefined },
      }
    }
    case 'dieBefore':
      throw new ProcessDiedError()
    case 'dieAfter':
      await sendNow()
      throw new ProcessDiedError()
    case 'pauseBefore':
      await sleepUntilWoken(wire, refundId)
      return await sendNow()
    case 'pauseAfter': {
      const call = await sendNow()
      await sleepUntilWoken(wire, undefined)
      return call
    }
    case 'hang': {
      const patience = new AbortController()
      sandbox.faults.push(makeFault('acceptThenHang'))
      const seen = sandbox.journal.length
      const call = sendNow(patience.signal)
      while (!sandbox.journal.slice(seen).some(isWorked)) await nextTurn()
      patience.abort()
      return await call
    }
    case 'early': {
      const call = await sendNow()
      await wire.settleEarly(refundId)
      return call
    }
    case 'fault':
      if (fate.fault === 'acceptThenCode') wire.onDenied(refundId, String(fate.code ?? 1))
      sandbox.faults.push(makeFault(fate.fault, fate.code))
      return await sendNow()
    case 'through':
      return await sendNow()
  }
}

function makeFault(kind: FaultKind, code = 1) {
  return { command: 'REFUND' as const, kind, times: 1, probability: 1, delayMs: 0, code }
}

function isWorked(entry: SandboxState['journal'][number]): boolean {
  return 'workCode' in entry && entry.workCode !== null
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

function sleepUntilWoken(wire: Wire, refundId: string | undefined): Promise<void> {
  return new Promise((resolve) => wire.onPause({ refundId, wake: resolve }))
}
