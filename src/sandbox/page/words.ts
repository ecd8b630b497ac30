import type { DeliveryEntry, JournalEntry } from '../journal.ts'
import type { SandboxState, Settings } from '../state.ts'

/** A sentence for a person, and whether it is good news. */
export type News = { tone: 'good' | 'bad' | 'soft'; text: string }

/** One line of the journal for a person: what was asked, about what, and how it ended. */
export function describeEntry(
  { settings }: SandboxState,
  entry: JournalEntry,
): { what: string; about: string; ended: News } {
  if ('attempt' in entry) {
    const what = `${entry.requestId === null ? 'payment' : 'refund'} notification, try ${entry.attempt}`
    return { what, about: entry.transactionId, ended: describeDelivery(entry, settings) }
  }
  if ('clientId' in entry) {
    const ended = describeStatus(entry.outcome, entry.status)
    return { what: 'token', about: entry.clientId ?? 'unknown client', ended }
  }
  if ('operation' in entry) {
    const about = entry.virtualCardRequestId ?? new URLSearchParams(entry.query).toString()
    return {
      what: `cards, ${entry.operation}`,
      about,
      ended: describeStatus(entry.outcome, entry.status),
    }
  }
  const { command, transactionId, paymentId, outcome, code } = entry
  const tone = code === 0 ? 'good' : 'bad'
  const ended: News =
    code === null ? describeStatus(outcome, null) : { tone, text: `answered with code ${code}` }
  return { what: command, about: transactionId ?? paymentId ?? '', ended }
}

/** What became of a notification of this transaction: of its newest attempt. */
export function describeNotification(
  { journal, ipnUrl, settings }: SandboxState,
  transactionId: string,
): { news: News; isOver: boolean } {
  const attempt = journal.entries.findLast(
    (entry): entry is DeliveryEntry =>
      entry.command === 'ipn' && 'attempt' in entry && entry.transactionId === transactionId,
  )
  if (attempt !== undefined) {
    const { tone, text } = describeDelivery(attempt, settings)
    const isOver = attempt.outcome !== 'sending' && attempt.outcome !== 'delay'
    return { news: { tone, text: `Its notification to ${attempt.url}: ${text}.` }, isOver }
  }
  const text =
    ipnUrl === undefined
      ? 'No notification was sent: no address is set.'
      : 'Its notification is not sent yet.'
  return { news: { tone: 'soft', text }, isOver: true }
}

function describeDelivery(
  { outcome, status, respcode, attempt }: DeliveryEntry,
  { ipnRetryMs }: Settings,
): News {
  const next = attempt <= ipnRetryMs.length ? 'it is tried again' : 'and it is given up'
  switch (outcome) {
    case 'acknowledged':
      return { tone: 'good', text: 'delivered, and acknowledged with respcode 0' }
    case 'refused': {
      const said = respcode === null ? 'no respcode' : `respcode ${respcode}`
      return { tone: 'bad', text: `not acknowledged (HTTP ${status}, ${said}), ${next}` }
    }
    case 'unanswered':
      return { tone: 'bad', text: `nobody answered (is the service running?), ${next}` }
    case 'sending':
    case 'delay':
      return { tone: 'soft', text: 'on its way' }
    default:
      return { tone: 'bad', text: `lost, as the fault "${outcome}" says` }
  }
}

function describeStatus(outcome: JournalEntry['outcome'], status: number | null): News {
  if (status !== null) {
    return { tone: status < 400 ? 'good' : 'bad', text: `answered with HTTP ${status}` }
  }
  return { tone: 'bad', text: `no answer, as the fault "${outcome}" says` }
}
