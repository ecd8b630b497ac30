import type { Attempt, SentAttempt } from './types.ts'

/**
 * Sends a refund whose attempt is recorded and committed, once. Never rejects. A worker that stalled after
 * recording it sends nothing: its lease may expire during the call, and the next worker would send as well.
 * @param signal cuts the call short when the process stops
 */
export async function sendAttempt(attempt: Attempt, signal: AbortSignal): Promise<SentAttempt> {
  const { prepared, permit } = attempt
  if (performance.now() < permit.sendBefore) {
    return { attempt, call: await prepared.send(signal, permit.breaker) }
  }
  permit.breaker.release()
  const reason = 'the lease would have expired during the call'
  const record = { command: 'REFUND' as const, bodyHmac: prepared.bodyHmac, durationMs: 0 }
  return {
    attempt,
    call: {
      outcome: { kind: 'unavailable', reason },
      record: { ...record, httpStatus: undefined },
    },
  }
}
