import { z } from 'zod'
import type { Scope } from '../access/keys.ts'
import { toIso } from '../db/client.ts'
import type { Sealer } from '../seal.ts'

/**
 * Everything the feed and webhooks tell, with the scope it takes to be told. A discrepancy is told to whoever
 * reads payments, because what they read may be wrong; listing them all is for operators.
 */
export const EVENT_SCOPES = {
  'payment.created': 'payments:read',
  'payment.updated': 'payments:read',
  'transaction.final': 'payments:read',
  'refund.created': 'refunds:read',
  'refund.updated': 'refunds:read',
  'sync.abandoned': 'payments:read',
  'discrepancy.found': 'payments:read',
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

/**
 * The event as readers and receivers get it, as JSON text: its data is passed on as it was written, but
 * for a receiver, which is encrypted at rest.
 */
export function writeEvent(
  sealer: Sealer,
  { id, type, at, transactionId, data }: Omit<EventRow, 'merchantCode'>,
): string {
  const head = JSON.stringify({ id: String(id), type, timestamp: toIso(at), transactionId })
  return `${head.slice(0, -1)},"data":${openReceiver(sealer, data)}}`
}

/** In no text of a merchant's: quotes in it are escaped. */
const SEALED_MEMBER = ',"sealed":"'

const Sealed = z.looseObject({
  id: z.string(),
  receiver: z.looseObject({ sealed: z.string() }),
})

/** What stands beside the sealed receiver is shown when it was sealed with another key. */
function openReceiver(sealer: Sealer, data: string): string {
  if (!data.includes(SEALED_MEMBER)) return data
  const object = Sealed.parse(JSON.parse(data))
  const { sealed, ...unreadable } = object.receiver
  const receiver = unseal(sealer, sealed, object.id) ?? unreadable
  return JSON.stringify({ ...object, receiver })
}

function unseal(sealer: Sealer, sealed: string, id: string): unknown {
  try {
    return JSON.parse(sealer.open(Buffer.from(sealed, 'base64'), id))
  } catch {
    return undefined
  }
}
