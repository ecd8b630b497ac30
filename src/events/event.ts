import type { Scope } from '../access/keys.ts'
import { toIso } from '../db/client.ts'

/** Everything the feed and webhooks tell, with the scope it takes to be told: that of the object's own route. */
export const EVENT_SCOPES = {
  'payment.created': 'payments:read',
  'payment.updated': 'payments:read',
  'transaction.final': 'payments:read',
  'refund.created': 'refunds:read',
  'refund.updated': 'refunds:read',
  'sync.abandoned': 'payments:read',
  'discrepancy.found': 'ops',
} as const satisfies Record<string, Scope>

export type EventType = keyof typeof EVENT_SCOPES

/** An event as it is stored; `data` is JSON text. */
export type EventRow = {
  /** Its place in the feed, and the cursor of a reader who has read it. */
  id: number
  merchantCode: string
  transactionId: string
  type: string
  data: string
  at: string
}

/** The event as readers and receivers get it, as JSON text: its data is passed on as it was written. */
export function writeEvent({ id, type, at, transactionId, data }: EventRow): string {
  const head = JSON.stringify({ id: String(id), type, timestamp: toIso(at), transactionId })
  return `${head.slice(0, -1)},"data":${data}}`
}
