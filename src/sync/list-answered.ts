import type { GatewayCall, PaymentList } from '../gateway/types.ts'

const NOTHING_LISTED: PaymentList = {
  payments: [],
  unreadable: [],
  rounded: [],
  json: '[]',
  omittedBytes: 0,
}

/** What the gateway listed; nothing when the query failed. */
export function listAnswered({ outcome }: GatewayCall<PaymentList>): PaymentList {
  return outcome.kind === 'answered' ? outcome.value : NOTHING_LISTED
}
