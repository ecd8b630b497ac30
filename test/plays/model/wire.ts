import { setImmediate } from 'node:timers/promises'
import type { Context } from '../../../src/context.ts'
import type { PreparedCall } from '../../../src/gateway/types.ts'
import type { FaultKind } from '../../../src/sandbox/input.ts'
import type { SandboxState } from '../../../src/sandbox/state.ts'
import {
  deliverNotification,
  findOpen,
  note,
  noteFailure,
  SCHEDULE,
  settle,
  type World,
} from './world.ts'

/** What the gateway, or the way to it, does to a REFUND. */
type PlayedFault = Extract<
  FaultKind,
  'reset' | 'http500' | 'garbage' | 'truncate' | 'acceptThenReset' | 'acceptThenCode' | 'code'
>

/** What happens to the next REFUND between our process and the gateway; a refusal has a code. */
export type SendFate = {
  kind:
    | PlayedFault
    | 'through'
    /** The connection is refused: no byte is written. */
    | 'unreachable'
    /** The process dies with the attempt recorded and its result unrecorded. */
    | 'dieBefore'
    | 'dieAfter'
    /** The process sleeps for longer than its lease may last. */
    | 'pauseBefore'
    | 'pauseAfter'
    /** The gateway does the work and never answers; the call is aborted. */
    | 'hang'
    /** It settles, and its notification arrives, before its own answer does. */
    | 'early'
  code?: number
}

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

class ProcessDiedError extends Error {}

/** What somebody else does begins at its moment; while an attempt is being recorded nobody waits for it. */
async function begin(
  { meanwhile }: World,
  at: Moment,
  refundId: string | undefined,
): Promise<void> {
  if (meanwhile?.at !== at || meanwhile.done) return
  meanwhile.done = meanwhile.run(refundId)
  if (at !== 'recording') await meanwhile.done
}

/** The gateway as the account's process reaches it: counts requests that may have been sent, and loses answers. */
export function tapGateway(world: World, gateway: Context['gateway']): Context['gateway'] {
  return {
    ...gateway,
    async queryPayments(query, signal) {
      const at = world.clockMs
      const call = await gateway.queryPayments(query, signal)
      if (call.outcome.kind === 'answered') {
        const { payments } = call.outcome.value
        const refunded = new Map(payments.map((one) => [one.id, one.refundedAmount]))
        world.told.answers.push({ at, refunded })
      }
      await begin(world, 'answered', undefined)
      if (world.pausesQuery) {
        world.pausesQuery = false
        await sleepUntilWoken(world, undefined)
      }
      return call
    },
    prepareRefund(order) {
      const prepared = gateway.prepareRefund(order)
      void begin(world, 'recording', order.refundId)
      return { ...prepared, send: () => sendByFate(world, order.refundId, prepared) }
    },
  }
}

async function sendByFate(
  world: World,
  refundId: string,
  prepared: PreparedCall<string | undefined>,
) {
  const {
    fate: { kind, code = 1 },
    ctx,
  } = world
  const { faults, journal } = world.stage.rig.sandbox.state
  world.fate = { kind: 'through' }
  note(world, `sent: ${kind}`)
  await begin(world, 'leaving', refundId)
  const sendNow = async (signal?: AbortSignal) => {
    noteSend(world, refundId)
    const call = await prepared.send(signal)
    const { outcome } = call
    if (outcome.kind === 'rejected') noteFailure(world, refundId, outcome.code, 'answer')
    return call
  }
  switch (kind) {
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
      await sleepUntilWoken(world, refundId)
      return await sendNow()
    case 'pauseAfter': {
      const call = await sendNow()
      await sleepUntilWoken(world, undefined)
      return call
    }
    case 'hang': {
      const patience = new AbortController()
      faults.push(makeFault('acceptThenHang'))
      const seen = journal.length
      const call = sendNow(patience.signal)
      while (!journal.slice(seen).some(isWorked)) await setImmediate()
      patience.abort()
      return await call
    }
    case 'early': {
      const call = await sendNow()
      const refund = findOpen(world).find(({ requestId }) => requestId === refundId)
      if (!refund) return call
      await settle(world, refund)
      await deliverNotification(world, refund)
      return call
    }
    case 'through':
      return await sendNow()
    default: {
      const final: readonly string[] = ctx.config.GATEWAY_REFUND_FINAL_CODES
      // The gateway accepts it, although it answers with a failure.
      if (kind === 'acceptThenCode' && final.includes(String(code))) {
        world.deniedUntil.set(refundId, world.clockMs + SCHEDULE.confirmMs - 10_000)
      }
      faults.push(makeFault(kind, code))
      return await sendNow()
    }
  }
}

/** The service may rely on the gateway's memory for `REFUND_RESEND_FOR_MS`, except for rows it lost. */
function noteSend(world: World, refundId: string): void {
  const { sends, firstSends, told, clockMs } = world
  sends.set(refundId, (sends.get(refundId) ?? 0) + 1)
  const first = firstSends.get(refundId)
  if (first === undefined) {
    firstSends.set(refundId, clockMs)
    const of = world.asked.find(({ id }) => id === refundId)?.paymentId ?? ''
    told.baselines.set(refundId, told.answers.at(-1)?.refunded.get(of) ?? '0')
  } else if (!world.restored && clockMs - first >= SCHEDULE.resendForMs) {
    world.repeatedLate.add(refundId)
  }
}

function makeFault(kind: FaultKind, code = 1) {
  return { command: 'REFUND' as const, kind, times: 1, probability: 1, delayMs: 0, code }
}

function isWorked(entry: SandboxState['journal'][number]): boolean {
  return 'workCode' in entry && entry.workCode !== null
}

function sleepUntilWoken(world: World, refundId: string | undefined): Promise<void> {
  return new Promise((resolve) => world.onPause({ refundId, wake: resolve }))
}
