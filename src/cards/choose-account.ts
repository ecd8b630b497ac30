import { type Access, narrowMerchants } from '../access/authenticate.ts'
import { EVERY_MERCHANT } from '../access/keys.ts'
import type { Config } from '../config.ts'
import { DomainError } from '../errors.ts'

/** For whom cards are read: with whose token, and whose cards may be shown. */
export type CardAccount = {
  /** The account whose token is sent; none where one is shared. */
  merchantCode: string | undefined
  /** A card of none of these is not the asker's. */
  owners: readonly string[]
}

/**
 * The account a request reads cards for: the key's, or the one that it names. One token shared by several
 * accounts cannot tell them apart, so a key bound to one of them reads no cards with it.
 * @throws DomainError `merchant_not_found`, `ambiguous_merchant`, `cards_token_shared` or `cards_not_configured`
 */
export function chooseAccount(
  { accounts, sharedToken }: Pick<Config, 'accounts' | 'sharedToken'>,
  access: Access,
  merchantCode: string | undefined,
): CardAccount {
  if (sharedToken && access.merchantCode !== EVERY_MERCHANT) {
    throw new DomainError(
      'cards_token_shared',
      'Cards are read with one access token for several accounts: only a key for all of them may',
    )
  }
  const codes = narrowMerchants(access, merchantCode)
  if (codes.length === 0) {
    throw new DomainError('merchant_not_found', 'This key holds no such merchant account')
  }
  const known = accounts.filter((account) => codes.includes(account.merchantCode))
  const [account, ...others] = known
  if (account && sharedToken) {
    return { merchantCode: undefined, owners: known.map((one) => one.merchantCode) }
  }
  if (others.length > 0) {
    throw new DomainError(
      'ambiguous_merchant',
      'This key holds several merchant accounts: name one with ?merchantCode=',
    )
  }
  if (!account?.token) {
    throw new DomainError(
      'cards_not_configured',
      account
        ? `The account ${account.merchantCode} has no access token for cards: set GATEWAY_ACCESS_TOKEN, or GATEWAY_CLIENT_ID and GATEWAY_CLIENT_SECRET, or the same of the account in MERCHANTS_FILE`
        : 'The account is not in the settings any more: the gateway cannot be asked',
    )
  }
  return { merchantCode: account.merchantCode, owners: [account.merchantCode] }
}
