import type { MerchantAccount, TokenSource } from './accounts.ts'
import type { Settings } from './settings.ts'

/** Describes a sandbox gateway with the same accounts and wire rules as the service. */
export function describeSandbox(
  settings: Settings,
  accounts: readonly MerchantAccount[],
  sharedToken: TokenSource | undefined,
) {
  return {
    accounts,
    ...(sharedToken ? { sharedToken } : {}),
    host: settings.SANDBOX_HOST,
    port: settings.SANDBOX_PORT,
    fieldPrefix: settings.GATEWAY_FIELD_PREFIX,
    paygatePath: settings.GATEWAY_PAYGATE_PATH,
    ipnHashExclude: settings.IPN_HASH_EXCLUDE,
    refundHashExclude: settings.GATEWAY_REFUND_HASH_EXCLUDE,
    refundMs: settings.SANDBOX_REFUND_MS,
    cards: {
      successCode: Number(settings.GATEWAY_CARDS_SUCCESS_CODE),
      firstPage: settings.GATEWAY_CARDS_FIRST_PAGE,
      maxPageSize: settings.GATEWAY_CARDS_MAX_PAGE_SIZE,
    },
  }
}
