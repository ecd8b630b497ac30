import type { SignatureVerdict } from '../gateway/signature.ts'
import type { FaultKind } from './faults/faults.ts'

/** A request to the gateway operations. `code` was answered; `workCode` is what the work came to. */
export type CallEntry = {
  command: string
  at: string
  outcome: 'received' | 'answered' | FaultKind
  code: number | null
  workCode: number | null
  merchantCode: string | null
  transactionId: string | null
  paymentId: string | null
  requestId: string | null
  signature: SignatureVerdict | 'unchecked'
  rawBodySha256: string
  params: Readonly<Record<string, unknown>>
}

/** One attempt to deliver a notification. `status` and `respcode` are null when no answer came. */
export type DeliveryEntry = {
  command: 'ipn'
  at: string
  outcome: 'sending' | 'acknowledged' | 'refused' | 'unanswered' | FaultKind
  url: string
  attempt: number
  status: number | null
  respcode: number | null
  merchantCode: string
  transactionId: string
  requestId: string | null
  rawBodySha256: string
}

/**
 * A request for virtual cards. `status` and `code` (the envelope's) were answered; `workCode` is what
 * the work came to. Of the token only what it was worth is kept.
 */
export type CardsEntry = {
  command: 'cards'
  at: string
  outcome: 'received' | 'answered' | FaultKind
  operation: 'detail' | 'list'
  status: number | null
  code: number | null
  workCode: number | null
  token: 'accepted' | 'missing' | 'unknown' | 'expired'
  virtualCardRequestId: string | null
  query: Readonly<Record<string, string>>
  language: string | null
}

/** A request for a token; the client is named only when it is known. */
export type TokenEntry = {
  command: 'token'
  at: string
  outcome: 'received' | 'answered' | FaultKind
  status: number | null
  workStatus: number | null
  clientId: string | null
}

export type JournalEntry = CallEntry | DeliveryEntry | CardsEntry | TokenEntry

export type Journal = { entries: JournalEntry[]; limit: number }

/** Adds an entry, forgetting the oldest past the limit. The entry may be completed later in place. */
export function recordEntry<T extends JournalEntry>(journal: Journal, entry: T): T {
  journal.entries.push(entry)
  if (journal.entries.length > journal.limit) journal.entries.shift()
  return entry
}

/** The entries of one command, or all of them, oldest first. */
export function listEntries(journal: Journal, command?: string): JournalEntry[] {
  return command === undefined
    ? [...journal.entries]
    : journal.entries.filter((entry) => entry.command === command)
}
