import { createHash } from 'node:crypto'
import { request } from 'undici'
import { z } from 'zod'
import { takeFault } from '../faults/faults.ts'
import { type DeliveryEntry, recordEntry } from '../journal.ts'
import type { SandboxState } from '../state.ts'

/** `transactionId` is `svc_TransactionID`: of a refund's notification the refund's own id. */
export type Notification = {
  merchantCode: string
  transactionId: string
  requestId: string | null
  body: string
}

/** How often and when: every copy after `delayMs`, or each at a random moment within it. */
export type DeliveryPlan = { copies: number; delayMs: number; shuffle: boolean }

export const ONCE: DeliveryPlan = { copies: 1, delayMs: 0, shuffle: false }

const acknowledgement = z.object({ respcode: z.number() })

/**
 * Delivers a notification to the address set at this moment; with none set nothing is sent. Resolves
 * after the first attempt of every copy. A copy that is not acknowledged (HTTP 200, `respcode` 0) is
 * sent again in the background on the sandbox's schedule. Never throws.
 */
export async function notify(
  state: SandboxState,
  notification: Notification,
  { copies, delayMs, shuffle }: DeliveryPlan,
): Promise<void> {
  const url = state.ipnUrl
  if (url === undefined) return
  const deliver = async () => {
    const waitMs = shuffle ? Math.floor(state.deliveryRandom() * delayMs) : delayMs
    if (!(await state.background.wait(waitMs))) return
    if (await attemptDelivery(state, notification, url, 1)) return
    state.background.run(() => retryDelivery(state, notification, url))
  }
  await Promise.all(Array.from({ length: copies }, deliver))
}

async function retryDelivery(state: SandboxState, notification: Notification, url: string) {
  let attempt = 1
  for (const waitMs of state.settings.ipnRetryMs) {
    attempt += 1
    if (!(await state.background.wait(waitMs))) return
    if (await attemptDelivery(state, notification, url, attempt)) return
  }
}

/** One attempt; `true` ends the delivery. A fault other than `delay` loses the copy for good. */
async function attemptDelivery(
  state: SandboxState,
  { body, ...about }: Notification,
  url: string,
  attempt: number,
): Promise<boolean> {
  const fault = takeFault(state.faults, 'ipn', state.deliveryRandom)
  const entry = recordEntry<DeliveryEntry>(state.journal, {
    command: 'ipn',
    at: new Date().toISOString(),
    outcome: fault?.kind ?? 'sending',
    url,
    attempt,
    status: null,
    respcode: null,
    ...about,
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

async function post(state: SandboxState, url: string, body: string) {
  const answer = await request(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json; charset=utf-8' },
    body,
    dispatcher: state.agent,
  })
  return { status: answer.statusCode, text: await answer.body.text() }
}

function readRespcode(text: string): number | null {
  try {
    return acknowledgement.safeParse(JSON.parse(text)).data?.respcode ?? null
  } catch {
    return null
  }
}
