import { createHash } from 'node:crypto'
import { request } from 'undici'
import { z } from 'zod'
import { takeFault } from '../faults/take-fault.ts'
import { type IpnEntry, recordEntry } from '../journal.ts'
import type { SandboxState } from '../state.ts'

/** A signed notification. `transactionId` is `svc_TransactionID`: for a refund the refund's own id. */
export type IpnMessage = {
  merchantCode: string
  transactionId: string
  requestId: string | null
  body: string
}

/**
 * Sends each copy after `delayMs`; with `shuffle` at a random moment within `delayMs`. `fields` replace members of the
 * notification before it is signed, by names without prefix; null leaves one out.
 */
export type DeliveryPlan = {
  copies: number
  delayMs: number
  shuffle: boolean
  fields?: Readonly<Record<string, unknown>> | undefined
}

export const ONCE: DeliveryPlan = { copies: 1, delayMs: 0, shuffle: false }

const acknowledgement = z.object({ respcode: z.number() })

/**
 * Delivers a notification to the current IPN URL; does nothing if none is set. Resolves after the
 * first attempt of each copy. Copies that are not acknowledged (HTTP 200, `respcode` 0) are retried in
 * the background on the sandbox's schedule. Never throws.
 */
export async function deliverIpn(
  state: SandboxState,
  message: IpnMessage,
  { copies, delayMs, shuffle }: DeliveryPlan,
): Promise<void> {
  const url = state.ipnUrl
  if (url === undefined) return
  const deliverCopy = async () => {
    const waitMs = shuffle ? Math.floor(state.deliveryRandom() * delayMs) : delayMs
    if (!(await state.background.wait(waitMs))) return
    if (await attemptDelivery(state, message, url, 1)) return
    state.background.run(() => retryDelivery(state, message, url))
  }
  await Promise.all(Array.from({ length: copies }, deliverCopy))
}

async function retryDelivery(state: SandboxState, message: IpnMessage, url: string) {
  let attempt = 1
  for (const waitMs of state.settings.ipnRetryMs) {
    attempt += 1
    if (!(await state.background.wait(waitMs))) return
    if (await attemptDelivery(state, message, url, attempt)) return
  }
}

/** Returns `true` if the delivery has ended. A fault other than `delay` drops the copy for good. */
async function attemptDelivery(
  state: SandboxState,
  { body, ...ids }: IpnMessage,
  url: string,
  attempt: number,
): Promise<boolean> {
  const fault = takeFault(state.faults, 'ipn', state.deliveryRandom)
  const entry = recordEntry<IpnEntry>(state.journal, {
    command: 'ipn',
    at: new Date().toISOString(),
    outcome: fault?.kind ?? 'sending',
    url,
    attempt,
    status: null,
    respcode: null,
    ...ids,
    rawBodySha256: createHash('sha256').update(body).digest('hex'),
  })
  if (fault !== undefined && fault.kind !== 'delay') return true
  if (fault !== undefined && !(await state.background.wait(fault.delayMs))) return true
  try {
    const { status, text } = await post(state, url, body)
    entry.status = status
    entry.respcode = readRespcode(text)
    entry.outcome = status === 200 && entry.respcode === 0 ? 'acknowledged' : 'refused'
  } catch {
    entry.outcome = 'unanswered'
  }
  return entry.outcome === 'acknowledged'
}

async function post({ agent }: SandboxState, url: string, body: string) {
  const response = await request(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json; charset=utf-8' },
    body,
    dispatcher: agent,
  })
  return { status: response.statusCode, text: await response.body.text() }
}

function readRespcode(text: string): number | null {
  try {
    return acknowledgement.safeParse(JSON.parse(text)).data?.respcode ?? null
  } catch {
    return null
  }
}
