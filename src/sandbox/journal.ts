import type { SignatureVerdict } from '../gateway/signature.ts'
import type { FaultKind } from './types.ts'

/**
 * A QUERY_PT or REFUND request. `code` is the one sent in the answer, `workCode` the result of the
 * execution; a fault makes them differ.
 */
export type PaygateEntry = {
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

/** An attempt to deliver an IPN. `status` and `respcode` are null if there was no response. */
export type IpnEntry = {
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
 * A request for virtual cards. `status` and `code` (the envelope's) were sent in the answer;
 * `workCode` is the result of the execution. Of the token only the verdict is recorded.
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

/** A request for a token. `clientId` is null for an unknown client. */
export type TokenEntry = {
  command: 'token'
  at: string
  outcome: 'received' | 'answered' | FaultKind
  status: number | null
  workStatus: number | null
  clientId: string | null
}

export type JournalEntry = PaygateEntry | IpnEntry | CardsEntry | TokenEntry

export type Journal = { entries: JournalEntry[]; limit: number }

/** Adds an entry and drops the oldest one beyond the limit. Callers complete the entry in place. */
export function recordEntry<T extends JournalEntry>(journal: Journal, entry: T): T {
  journal.entries.push(entry)
  if (journal.entries.length > journal.limit) journal.entries.shift()
  return entry
}

/** Lists the entries of one command, or all, oldest first. */
export function listEntries(journal: Journal, command?: string): JournalEntry[] {
  return command === undefined
    ? [...journal.entries]
    : journal.entries.filter((entry) => entry.command === command)
}
