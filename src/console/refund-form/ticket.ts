import { randomBytes } from 'node:crypto'
import { z } from '@hono/zod-openapi'
import type { Encryption } from '../../platform/crypto/encryption.ts'
import type { Receiver } from '../../refunds/receiver.ts'

/** What a form was shown for: it travels with the form, signed, and is good for one refund. */
export type Ticket = {
  /** The idempotency key, made when the form is shown: the form makes at most one refund, however often it is sent. */
  key: string
  /** For `expectedVersion`. */
  version: string
  /** What was left to refund (decimal string), and the newest refund: they show what has changed since. */
  left: string
  lastRefundId: string | null
}

/** Whose form it is, and of what: a ticket is good for no other person and no other form. */
export type TicketOwner = { personId: string; path: string }

/** A refund as it is requested; an amount left out stands for all that is left. */
export type PreparedRefund = {
  amount: string | undefined
  receiver: Receiver | undefined
  reason: string
}

/** A refund as a preview showed it. */
export type PreviewedContent = PreparedRefund & { amount: string }

type Signer = Pick<Encryption, 'fingerprint' | 'checkFingerprint'>

const SignedTicket = z.tuple([z.string(), z.string(), z.string(), z.string().nullable()])
const SignedRefund = z.tuple([
  z.string(),
  z.tuple([z.string(), z.string(), z.string()]).nullable(),
  z.string(),
])

/** Content, the id of the key that signs it, and the signature; the longest receiver and reason fit. */
const TOKEN = /^([\w-]{1,8000})\.([\w-]{1,64})\.([\w-]{43})$/

/** Makes the ticket of a form, with a new key. */
export function createTicket(shown: Omit<Ticket, 'key'>): Ticket {
  return { ...shown, key: `console-${randomBytes(18).toString('base64url')}` }
}

/** Signs a ticket for its hidden field. */
export function signTicket(signer: Signer, owner: TicketOwner, ticket: Ticket): string {
  const { key, version, left, lastRefundId } = ticket
  return sign(signer, describeOwner(owner), [key, version, left, lastRefundId])
}

/**
 * Reads a ticket.
 * @returns undefined for one that was changed, belongs to another person or form, or was signed with a key that is gone
 */
export function readTicket(signer: Signer, owner: TicketOwner, token: string): Ticket | undefined {
  const content = readSigned(signer, describeOwner(owner), token)
  if (content === undefined) return undefined
  const [key, version, left, lastRefundId] = SignedTicket.parse(content)
  return { key, version, left, lastRefundId }
}

/** Signs what the preview of a ticket shows: nothing else can be confirmed with it. */
export function signPreview(signer: Signer, ticket: string, refund: PreviewedContent): string {
  const { amount, receiver, reason } = refund
  const to = receiver && [receiver.accountName, receiver.accountNumber, receiver.swiftCode]
  return sign(signer, ['refund preview', ticket], [amount, to ?? null, reason])
}

/**
 * Reads what the preview of a ticket showed.
 * @returns undefined for one that was changed, or belongs to another ticket
 */
export function readPreview(
  signer: Signer,
  ticket: string,
  token: string,
): PreviewedContent | undefined {
  const content = readSigned(signer, ['refund preview', ticket], token)
  if (content === undefined) return undefined
  const [amount, to, reason] = SignedRefund.parse(content)
  const [accountName, accountNumber, swiftCode] = to ?? []
  const receiver =
    accountName !== undefined && accountNumber !== undefined && swiftCode !== undefined
      ? { accountName, accountNumber, swiftCode }
      : undefined
  return { amount, receiver, reason }
}

function describeOwner({ personId, path }: TicketOwner): readonly string[] {
  return ['refund form', personId, path]
}

/** @param context what the content is signed for: it is read for nothing else */
function sign(signer: Signer, context: readonly string[], content: unknown): string {
  const payload = Buffer.from(JSON.stringify(content)).toString('base64url')
  const { value, keyId } = signer.fingerprint(JSON.stringify([...context, payload]))
  return `${payload}.${keyId}.${value.toString('base64url')}`
}

function readSigned(signer: Signer, context: readonly string[], token: string): unknown {
  const [, payload, keyId, mac] = TOKEN.exec(token) ?? []
  if (payload === undefined || keyId === undefined || mac === undefined) return undefined
  const text = JSON.stringify([...context, payload])
  const value = Buffer.from(mac, 'base64url')
  if (signer.checkFingerprint(text, { value, keyId }) !== 'same') return undefined
  return JSON.parse(Buffer.from(payload, 'base64url').toString('utf8'))
}
