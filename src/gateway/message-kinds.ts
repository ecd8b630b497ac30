import type { WireParams } from './signature.ts'

/** The signed messages, each with its own exclusions from the hash. */
export const MESSAGE_KINDS = ['ipn', 'refund-ipn', 'query', 'refund-request'] as const

export type MessageKind = (typeof MESSAGE_KINDS)[number]

const TITLES: Record<MessageKind, string> = {
  ipn: 'payment notification',
  'refund-ipn': 'refund notification',
  query: 'QUERY_PT request',
  'refund-request': 'REFUND request',
}

/** Returns a kind in words, e.g. `payment notification`. */
export function describeMessageKind(kind: MessageKind): string {
  return TITLES[kind]
}

/**
 * Returns the kind of a message by its command. A refund request and a refund notification share one, but only
 * the notification carries a response code. Any other command is a payment notification, as in `POST /ipn`.
 */
export function detectMessageKind(params: WireParams, prefix: string): MessageKind {
  switch (params[`${prefix}_Command`]) {
    case 'QUERY_PT':
      return 'query'
    case 'REFUND':
      return Object.hasOwn(params, `${prefix}_ResponseCode`) ? 'refund-ipn' : 'refund-request'
    default:
      return 'ipn'
  }
}

/** Returns the names, without prefix, that a kind of message excludes from its hash. */
export function listHashExclusions(
  kind: MessageKind,
  rules: { ipnHashExclude: readonly string[]; refundHashExclude: readonly string[] },
): readonly string[] {
  if (kind === 'ipn') return rules.ipnHashExclude
  return kind === 'refund-request' ? rules.refundHashExclude : []
}
