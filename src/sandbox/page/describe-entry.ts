import type { IpnEntry, JournalEntry } from '../journal.ts'
import type { SandboxState, Settings } from '../state.ts'

/** A text for the page, and whether it reports success, failure or neither. */
export type StyledText = { tone: 'good' | 'bad' | 'soft'; text: string }

/** Describes a journal entry for the page: what was requested, its subject and its outcome. */
export function describeEntry(
  { settings }: SandboxState,
  entry: JournalEntry,
): { action: string; subject: string; outcome: StyledText } {
  if ('attempt' in entry) {
    const action = `${entry.requestId === null ? 'payment' : 'refund'} notification, attempt ${entry.attempt}`
    return { action, subject: entry.transactionId, outcome: describeDelivery(entry, settings) }
  }
  if ('clientId' in entry) {
    const outcome = describeStatus(entry.outcome, entry.status)
    return { action: 'token', subject: entry.clientId ?? 'unknown client', outcome }
  }
  if ('operation' in entry) {
    const subject = entry.virtualCardRequestId ?? new URLSearchParams(entry.query).toString()
    const outcome = describeStatus(entry.outcome, entry.status)
    return { action: `cards, ${entry.operation}`, subject, outcome }
  }
  const { command, transactionId, paymentId, code } = entry
  const tone = code === 0 ? 'good' : 'bad'
  const outcome: StyledText =
    code === null
      ? describeStatus(entry.outcome, null)
      : { tone, text: `answered with code ${code}` }
  return { action: command, subject: transactionId ?? paymentId ?? '', outcome }
}

/** Describes the newest delivery attempt of a transaction's notification. */
export function describeNotification(
  { journal, ipnUrl, settings }: SandboxState,
  transactionId: string,
): { text: StyledText; isOver: boolean } {
  const attempt = journal.entries.findLast(
    (entry): entry is IpnEntry =>
      entry.command === 'ipn' && 'attempt' in entry && entry.transactionId === transactionId,
  )
  if (attempt !== undefined) {
    const { tone, text } = describeDelivery(attempt, settings)
    const isOver = attempt.outcome !== 'sending' && attempt.outcome !== 'delay'
    return { text: { tone, text: `Notification to ${attempt.url}: ${text}.` }, isOver }
  }
  const text =
    ipnUrl === undefined
      ? 'No notification was sent: no notification URL is set.'
      : 'The notification has not been sent yet.'
  return { text: { tone: 'soft', text }, isOver: true }
}

function describeDelivery(
  { outcome, status, respcode, attempt }: IpnEntry,
  { ipnRetryMs }: Settings,
): StyledText {
  const next = attempt <= ipnRetryMs.length ? 'will be retried' : 'no more attempts'
  switch (outcome) {
    case 'acknowledged':
      return { tone: 'good', text: 'delivered and acknowledged with respcode 0' }
    case 'refused': {
      const answer = respcode === null ? 'no respcode' : `respcode ${respcode}`
      return { tone: 'bad', text: `not acknowledged (HTTP ${status}, ${answer}); ${next}` }
    }
    case 'unanswered':
      return { tone: 'bad', text: `no response (is the service running?); ${next}` }
    case 'sending':
    case 'delay':
      return { tone: 'soft', text: 'in progress' }
    default:
      return { tone: 'bad', text: `dropped by the fault "${outcome}"` }
  }
}

function describeStatus(outcome: JournalEntry['outcome'], status: number | null): StyledText {
  if (status !== null) {
    return { tone: status < 400 ? 'good' : 'bad', text: `answered with HTTP ${status}` }
  }
  return { tone: 'bad', text: `not answered (${outcome})` }
}
