import { z } from 'zod'
import type { Scope } from '../access/keys.ts'
import type { OrderIds } from '../db/order-facts.ts'
import { DomainError } from '../errors.ts'
import type { Encryption, Place } from '../platform/crypto/encryption.ts'
import { toIso } from '../platform/postgres/row-set.ts'

const PAYMENT = { object: 'payment', scope: 'payments:read' } as const
const TRANSACTION = { object: 'transaction', scope: 'payments:read' } as const
const REFUND = { object: 'refund', scope: 'refunds:read' } as const
const EXTERNAL_REFUND = { object: 'external_refund', scope: 'refunds:read' } as const
const DISCREPANCY = { object: 'discrepancy', scope: 'payments:read' } as const
const ENDPOINT = { object: 'webhook_endpoint', scope: 'webhooks:write' } as const

/**
 * Every event type, with what it carries and the scope that reads it. Every reader of payments gets the events of
 * discrepancies, as the payments concerned may be wrong; those that name a refund need `refunds:read` as well. The
 * events of a webhook endpoint have its id as their transaction id, which keeps them in order.
 */
export const EVENTS = {
  'payment.created': PAYMENT,
  'payment.updated': PAYMENT,
  'transaction.paid': TRANSACTION,
  'transaction.updated': TRANSACTION,
  'transaction.final': TRANSACTION,
  'refund.created': REFUND,
  'refund.updated': REFUND,
  'external_refund.found': EXTERNAL_REFUND,
  'external_refund.updated': EXTERNAL_REFUND,
  'sync.abandoned': TRANSACTION,
  'discrepancy.found': DISCREPANCY,
  'discrepancy.updated': DISCREPANCY,
  'webhook_endpoint.failing': ENDPOINT,
  'webhook_endpoint.disabled': ENDPOINT,
  'webhook_endpoint.recovered': ENDPOINT,
} as const satisfies Record<string, { object: string; scope: Scope }>

export type EventType = keyof typeof EVENTS

export function isEventType(type: string): type is EventType {
  return Object.hasOwn(EVENTS, type)
}

export const EVENT_TYPES: readonly EventType[] = Object.keys(EVENTS).filter(isEventType)

/**
 * The versions of events, newest first, with the function that rewrites a stored event. The newest needs none. Any
 * change that readers would notice adds a version.
 */
export const API_VERSIONS = new Map<string, ((event: object) => object) | undefined>([
  ['2026-11', undefined],
])

export function getApiVersion(): string {
  const [newest = ''] = API_VERSIONS.keys()
  return newest
}

/** `data` is JSON text, from which the ids of the order are taken. */
export type EventRow = {
  /** The position in the feed, which is also the cursor that continues after it. */
  id: number
  merchantCode: string
  transactionId: string
  type: string
  data: string
  at: string
  namesRefund: boolean
} & OrderIds

export function listOrderIds(alias: string): string {
  return `${alias}.data ->> 'orderId' as "orderId", ${alias}.data ->> 'merchantTxnId' as "merchantTxnId"`
}

/**
 * Writes an event for readers and webhook endpoints, as JSON text. Its data is passed on unchanged, except for the
 * receiver of a refund, which is encrypted at rest.
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

function placeShown(refundId: string): Place {
  return { column: 'refunds.receiver_shown', row: refundId }
}

/** Marks encrypted data, but other data may contain it too: merchants choose the names in a refund's metadata. */
const SEALED_MEMBER = ',"sealed":"'

const Sealed = z.looseObject({
  id: z.string(),
  receiver: z.looseObject({ sealed: z.string() }),
})

function findSealed(data: string) {
  return data.includes(SEALED_MEMBER) ? Sealed.safeParse(JSON.parse(data)).data : undefined
}

/** Decrypts the receiver. If it cannot be decrypted, only what is stored in clear beside it remains. */
function decryptReceiver(encryption: Pick<Encryption, 'decrypt'>, data: string): string {
  const object = findSealed(data)
  if (!object) return data
  const { sealed, ...unreadable } = object.receiver
  const receiver = decrypt(encryption, sealed, object.id) ?? unreadable
  return JSON.stringify({ ...object, receiver })
}

/**
 * Encrypts the receiver in the data of an event again, with the active key. Everything else keeps its bytes.
 * @returns undefined if there is nothing to do, null if the receiver cannot be decrypted
 */
export function resealEvent(encryption: Encryption, data: string): string | undefined | null {
  const object = findSealed(data)
  if (!object) return undefined
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
