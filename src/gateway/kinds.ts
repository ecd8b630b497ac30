import type { WireParams } from './signature.ts'

/** The signed messages, each with names of its own that stay out of the hash. */
export const KINDS = ['ipn', 'refund-ipn', 'query', 'refund-request'] as const

export type Kind = (typeof KINDS)[number]

const TITLES: Record<Kind, string> = {
  ipn: 'payment notification',
  'refund-ipn': 'refund notification',
  query: 'QUERY_PT request',
  'refund-request': 'REFUND request',
}

/** A kind in words for people. */
export function nameKind(kind: Kind): string {
  return TITLES[kind]
}

/**
 * The kind of a message by its command. A refund's request and its notification share one; only the
 * notification tells a result. Any other command is a payment's notification, as the service reads it.
 */
export function detectKind(params: WireParams, prefix: string): Kind {
  switch (params[`${prefix}_Command`]) {
    case 'QUERY_PT':
      return 'query'
    case 'REFUND':
      return Object.hasOwn(params, `${prefix}_ResponseCode`) ? 'refund-ipn' : 'refund-request'
    default:
      return 'ipn'
  }
}

/** The names, without prefix, that a kind leaves out of its hash. */
export function listExcluded(
  kind: Kind,
  rules: { ipnHashExclude: readonly string[]; refundHashExclude: readonly string[] },
): readonly string[] {
  if (kind === 'ipn') return rules.ipnHashExclude
  return kind === 'refund-request' ? rules.refundHashExclude : []
}
