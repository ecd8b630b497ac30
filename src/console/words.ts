import { count, listTexts, nameIn, t } from './view.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

/** Formats a length of time in its largest unit, rounded down: `3 days`. Up to two days it is in hours. */
export function formatDuration(ms: number): string {
  if (ms >= 2 * DAY_MS) return count('durations.days', Math.floor(ms / DAY_MS))
  if (ms >= HOUR_MS) return count('durations.hours', Math.floor(ms / HOUR_MS))
  return ms >= MINUTE_MS
    ? count('durations.minutes', Math.floor(ms / MINUTE_MS))
    : t('durations.moment')
}

/** Formats the time left until something, rounded up, so that it is over when the words promise it. */
export function formatTimeLeft(ms: number): string {
  const unit = ms > DAY_MS ? DAY_MS : ms > HOUR_MS ? HOUR_MS : MINUTE_MS
  return formatDuration(Math.ceil(ms / unit) * unit)
}

/** What a kind of discrepancy means, in words; one of a later release is named as it is stored. */
export function nameKind(kind: string): string {
  return nameIn('discrepancies.kinds', kind)
}

/** One side of a discrepancy: who or what it comes from, in words, and what that is. */
export function describeSide({ source, says: words }: { source: string; says: string }): string {
  return withMore(nameSource(source), words)
}

/** Who or what a side comes from, in words; one of a later release is named as it is stored. */
export function nameSource(source: string): string {
  return nameIn('discrepancies.sources', source)
}

/** Names a decided outcome in words. */
export function nameOutcome(outcome: string): string {
  return nameKnown('decisions.outcomes', outcome)
}

/** A value in words; one that is not documented is shown as it came, and said to be. */
export function nameKnown(group: string, value: string): string {
  const [, known] = listTexts(group).find(([name]) => name === value) ?? []
  return known ?? (value === '' ? t('states.notStated') : t('states.unknown', { value }))
}

/** Adds what else is known to a text, e.g. the reason. */
export function withMore(text: string, more: string | null): string {
  return more ? `${text}: ${more}` : text
}

/** The refusal of a refund as the gateway or the service names it. */
export function describeFailureCode({ code, message }: { code: string; message: string }): string {
  return message === '' ? code : `${message} (${code})`
}

/** Who asked for a refund, and for whom. */
export function nameRequester(refund: { requestedBy: string; onBehalfOf: string | null }): string {
  const { requestedBy: name, onBehalfOf } = refund
  return onBehalfOf === null ? name : t('refunds.requester', { name, onBehalfOf })
}
