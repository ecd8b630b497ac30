import { z } from 'zod'
import type { Scope } from '../access/keys.ts'
import type { OrderIds } from '../db/order-facts.ts'
import { DomainError } from '../errors.ts'
import type { Encryption, Place } from '../platform/crypto/encryption.ts'
import { toIso } from '../platform/postgres/row-set.ts'

/**
 * Every event type of the feed and of webhooks, with the scope that reads it. Events of discrepancies go to every
 * reader of payments, because the payments they concern may be wrong, those that name a refund only to readers of
 * refunds; listing discrepancies takes `ops`. Events of a webhook endpoint have its id in place of a transaction's:
 * that orders them.
 */
export const EVENT_SCOPES = {
  'payment.created': 'payments:read',
  'payment.updated': 'payments:read',
  'transaction.paid': 'payments:read',
  'transaction.updated': 'payments:read',
  'transaction.final': 'payments:read',
  'refund.created': 'refunds:read',
  'refund.updated': 'refunds:read',
  'external_refund.found': 'refunds:read',
  'external_refund.updated': 'refunds:read',
  'sync.abandoned': 'payments:read',
  'discrepancy.found': 'payments:read',
  'discrepancy.updated': 'payments:read',
  'webhook_endpoint.failing': 'webhooks:write',
  'webhook_endpoint.disabled': 'webhooks:write',
  'webhook_endpoint.recovered': 'webhooks:write',
} as const satisfies Record<string, Scope>

export type EventType = keyof typeof EVENT_SCOPES

export function isEventType(type: string): type is EventType {
  return Object.hasOwn(EVENT_SCOPES, type)
}

export const EVENT_TYPES: readonly EventType[] = Object.keys(EVENT_SCOPES).filter(isEventType)

/** Makes an event of an older version from one of the newest. */
type Rewrite = (event: object) => object

/**
 * The versions of events, the newest first: it is written as it is stored. A change that readers would notice adds one,
 * and says how an event of the version before is made of a newer one.
 */
export const API_VERSIONS = new Map<string, Rewrite | undefined>([['2026-11', undefined]])

/** The version of the feed, and of endpoints that are registered now. */
export function getApiVersion(): string {
  const [newest = ''] = API_VERSIONS.keys()
  return newest
}

/** An event as it is stored; `data` is JSON text, and the ids of the order are those in it. */
export type EventRow = {
  /** Its position in the feed, and the cursor that continues after it. */
  id: number
  merchantCode: string
  transactionId: string
  type: string
  data: string
  at: string
  /** It is about a discrepancy that names a refund. */
  namesRefund: boolean
} & OrderIds

/** The columns of `OrderIds`, for statements that read `events` as `alias`. */
export function listOrderIds(alias: string): string {
  return `${alias}.data ->> 'orderId' as "orderId", ${alias}.data ->> 'merchantTxnId' as "merchantTxnId"`
}

/**
 * Returns an event as readers and webhook endpoints get it, as JSON text. Its data is passed on unchanged,
 * except for a refund's receiver, which is encrypted at rest.
 */
export function serializeEvent(
  encryption: Pick<Encryption, 'decrypt'>,
  { id, type, at, data, ...event }: Omit<EventRow, 'namesRefund'>,
  apiVersion = getApiVersion(),
): string {
  const { transactionId, merchantCode, orderId, merchantTxnId } = event
  const order = { transactionId, merchantCode, orderId, merchantTxnId }
  const head = { id: String(id), type, apiVersion, timestamp: toIso(at), ...order }
  const text = `${JSON.stringify(head).slice(0, -1)},"data":${decryptReceiver(encryption, data)}}`
  const rewrite = API_VERSIONS.get(apiVersion)
  return rewrite ? JSON.stringify(rewrite(JSON.parse(text))) : text
}

/** Where the encrypted receiver was stored that the events of a refund copy. */
function placeShown(refundId: string): Place {
  return { column: 'refunds.receiver_shown', row: refundId }
}

/** Only a hint: a refund's metadata has names of the merchant's own. */
const SEALED_MEMBER = ',"sealed":"'

const Sealed = z.looseObject({
  id: z.string(),
  receiver: z.looseObject({ sealed: z.string() }),
})

/** Decrypts the receiver; one encrypted under another key is left out, what is stored in clear beside it stays. */
function decryptReceiver(encryption: Pick<Encryption, 'decrypt'>, data: string): string {
  if (!data.includes(SEALED_MEMBER)) return data
  const { success, data: object } = Sealed.safeParse(JSON.parse(data))
  if (!success) return data
  const { sealed, ...unreadable } = object.receiver
  const receiver = decrypt(encryption, sealed, object.id) ?? unreadable
  return JSON.stringify({ ...object, receiver })
}

/**
 * Encrypts the receiver in the data of an event again, with the active key. Everything else keeps its bytes.
 * @returns undefined when there is nothing to encrypt again, null when the receiver cannot be read
 */
export function resealEvent(encryption: Encryption, data: string): string | undefined | null {
  if (!data.includes(SEALED_MEMBER)) return undefined
  const { success, data: object } = Sealed.safeParse(JSON.parse(data))
  if (!success) return undefined
  const { id, receiver } = object
  const sealed = Buffer.from(receiver.sealed, 'base64')
  const activeHead = encryption.getActiveHead()
  if (sealed.subarray(0, activeHead.length).equals(activeHead)) return undefined
  const place = placeShown(id)
  try {
    const again = encryption.encrypt(encryption.decrypt(sealed, place), place)
    const member = `${SEALED_MEMBER}${again.toString('base64')}"`
    return data.replace(`${SEALED_MEMBER}${receiver.sealed}"`, member)
  } catch {
    return null
  }
}

function decrypt(encryption: Pick<Encryption, 'decrypt'>, sealed: string, id: string): unknown {
  try {
    return JSON.parse(encryption.decrypt(Buffer.from(sealed, 'base64'), placeShown(id)))
  } catch (error) {
    if (error instanceof DomainError) throw error
    return undefined
  }
}
