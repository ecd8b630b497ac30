import { setTimeout as sleep } from 'node:timers/promises'
import type { Started } from './processes.ts'

/** What a gateway has counted since `resetCalls`. */
export type Calls = { QUERY_PT: number; REFUND: number; marks: number[] }

const POLL_MS = 10

export async function resetCalls(gateway: Started): Promise<void> {
  await (await fetch(`${gateway.url}/calls`, { method: 'POST' })).arrayBuffer()
}

/** Waits until the gateway has had so many calls of a command: asking it costs the database nothing. */
export async function untilCalled(
  gateway: Started,
  command: 'QUERY_PT' | 'REFUND',
  count: number,
): Promise<Calls> {
  for (;;) {
    const answer = await fetch(`${gateway.url}/calls`)
    const calls: Calls = JSON.parse(await answer.text())
    if (calls[command] >= count) return calls
    await sleep(POLL_MS)
  }
}
