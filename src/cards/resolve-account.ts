import { narrowMerchants } from '../access/authenticate.ts'
import { EVERY_MERCHANT } from '../access/keys.ts'
import type { Access } from '../access/types.ts'
import type { Config } from '../config/config.ts'
import { DomainError } from '../errors.ts'

/** The account of a read: whose token is sent, and whose cards may be returned. */
export type CardAccount = {
  /** The account whose token is sent; undefined where accounts share one. */
  merchantCode: string | undefined
  /** The accounts whose cards may be returned; `any` where there is only one, however the gateway spells its code. */
  owners: readonly string[] | 'any'
}

/**
 * Resolves the account of a request: the key's, or the one that the request names. A token shared by several
 * accounts cannot separate them, so a key bound to one account may not use it.
 * @throws DomainError `merchant_not_found`, `ambiguous_merchant`, `cards_token_shared` or `cards_not_configured`
 */
export function resolveAccount(
  { accounts, sharedToken }: Pick<Config, 'accounts' | 'sharedToken'>,
  access: Access,
  merchantCode: string | undefined,
): CardAccount {
  if (sharedToken && access.merchantCode !== EVERY_MERCHANT) {
    throw new DomainError(
      'cards_token_shared',
      'Several accounts share one access token for cards: use a key for all accounts',
    )
  }
  const codes = narrowMerchants(access, merchantCode)
  if (codes.length === 0) {
    throw new DomainError('merchant_not_found', 'This key has no such merchant account')
  }
  const configured = accounts.filter((account) => codes.includes(account.merchantCode))
  const [account, ...others] = configured
  if (account && sharedToken) {
    return { merchantCode: undefined, owners: configured.map((one) => one.merchantCode) }
  }
  if (others.length > 0) {
    throw new DomainError(
      'ambiguous_merchant',
      'This key has several merchant accounts: name one with ?merchantCode=',
    )
  }
  if (!account?.token) {
    throw new DomainError(
      'cards_not_configured',
      account
        ? `The account ${account.merchantCode} has no access token for cards: set GATEWAY_ACCESS_TOKEN, or GATEWAY_CLIENT_ID and GATEWAY_CLIENT_SECRET, or the same members of the account in MERCHANTS_FILE`
        : 'The account is no longer in the settings, so the gateway cannot be queried',
    )
  }
  const { merchantCode: code } = account
  return { merchantCode: code, owners: accounts.length === 1 ? 'any' : [code] }
}
