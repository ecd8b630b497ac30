import { isLosslessNumber, stringify } from 'lossless-json'
import { narrowMerchants } from '../access/authenticate.ts'
import type { Access } from '../access/types.ts'
import { takeCallPermit } from '../accounts/call-limit.ts'
import type { Config } from '../config/config.ts'
import { DomainError } from '../errors.ts'
import type { CardOutcome } from '../gateway/cards.ts'
import type { CardsContext } from './cache.ts'

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
  if (sharedToken && !access.coversAll) {
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

export type CardLanguage = 'vi' | 'en' | undefined

/** The language of the answer, and the id of the API request for the log. */
type ReadOptions = { language: CardLanguage; requestId: string }

/** Filters by the names of the specification. */
export type CardFilters = Readonly<Record<string, string | undefined>>

/**
 * Reads one card from the gateway (specification 4.1). Apart from the short-lived cache nothing is stored.
 * @returns the JSON text of the gateway's envelope, masked
 * @throws DomainError `card_not_found`, also for another account's card, or the reason for a failed read
 */
export async function readCard(
  ctx: CardsContext,
  account: CardAccount,
  virtualCardRequestId: string,
  { language, requestId }: ReadOptions,
): Promise<string> {
  const key = JSON.stringify([account, virtualCardRequestId, language])
  return await ctx.cardCache.get(key, async () => {
    const { merchantCode } = account
    await requireCallPermit(ctx, account)
    const outcome = await ctx.cards.readCards({ merchantCode, virtualCardRequestId, language })
    if (outcome.kind !== 'answered') throw refuseRead(ctx, account, outcome, requestId)
    const [owner] = outcome.owners
    if (!isOwned(account, owner)) {
      ctx.log.warn(
        { merchantCode, requestId },
        "the gateway returned another account's card; it was withheld",
      )
      throw new DomainError('card_not_found', 'No such virtual card')
    }
    return stringify(outcome.envelope) ?? ''
  })
}

/**
 * Reads a page of cards from the gateway (specification 4.2). Cards of other accounts are left out; the totals
 * are the gateway's.
 * @returns the JSON text of the gateway's envelope, masked
 * @throws DomainError the reason for a failed read
 */
export async function listCards(
  ctx: CardsContext,
  account: CardAccount,
  query: CardFilters,
  { language, requestId }: ReadOptions,
): Promise<string> {
  const key = JSON.stringify([account, Object.entries(query).toSorted(), language])
  return await ctx.cardCache.get(key, async () => {
    const { merchantCode } = account
    await requireCallPermit(ctx, account)
    const outcome = await ctx.cards.readCards({ merchantCode, query, language })
    if (outcome.kind !== 'answered') throw refuseRead(ctx, account, outcome, requestId)
    const { envelope, owners } = outcome
    const foreign = owners.filter((owner) => !isOwned(account, owner)).length
    if (foreign === 0) return stringify(envelope) ?? ''
    ctx.log.warn(
      { merchantCode, foreign, requestId },
      'the gateway listed cards of other accounts; they were left out',
    )
    const { data } = envelope
    const docs = isRecord(data) && Array.isArray(data.docs) ? data.docs : []
    const own = docs.filter((_, nth) => isOwned(account, owners[nth]))
    return stringify({ ...envelope, data: { ...(isRecord(data) ? data : {}), docs: own } }) ?? ''
  })
}

/** Reads with a shared token count for no account. */
async function requireCallPermit(ctx: CardsContext, { merchantCode }: CardAccount): Promise<void> {
  if (merchantCode === undefined || (await takeCallPermit(ctx, merchantCode))) return
  throw new DomainError('unavailable', 'This account has reached its limit GATEWAY_RATE_PER_S')
}

/** A card without a merchant code belongs to the token's account; with a shared token, to none. */
function isOwned({ merchantCode, owners }: CardAccount, owner: string | undefined): boolean {
  if (owners === 'any') return true
  return owner === undefined ? merchantCode !== undefined : owners.includes(owner)
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !isLosslessNumber(value)
}

type RefusedRead = Extract<CardOutcome, { kind: 'refused' }>

/** Logs a failed read and returns the error for the caller; the gateway's message is already masked. */
function refuseRead(
  { log }: Pick<CardsContext, 'log'>,
  { merchantCode }: CardAccount,
  outcome: Exclude<CardOutcome, { kind: 'answered' }>,
  requestId: string,
): DomainError {
  if (outcome.kind === 'missing') {
    return new DomainError('card_not_found', outcome.message || 'No such virtual card')
  }
  // The breaker tells of a gateway that fails, and its caller of a request that is refused; a token is the operator's.
  const level = outcome.kind === 'unauthorized' ? 'warn' : 'info'
  log[level]({ merchantCode, ...outcome, requestId }, 'cards could not be read')
  switch (outcome.kind) {
    case 'unauthorized': {
      const detail = outcome.refused
        ? 'The gateway refused the access token for cards: check its settings'
        : 'No access token for cards is available from the gateway'
      return new DomainError('gateway_token_refused', detail)
    }
    case 'paused': {
      const detail = 'The gateway failed several times in a row: card reads are paused'
      return new DomainError('unavailable', detail)
    }
    case 'failed':
      return outcome.timedOut
        ? new DomainError('gateway_timeout', 'The gateway did not answer in time')
        : new DomainError('gateway_failed', 'The gateway gave no valid answer')
    case 'refused':
      return explainRefusal(outcome)
  }
}

function explainRefusal({ status, code, message }: RefusedRead): DomainError {
  const suffix = message === '' ? '' : `: ${message}`
  if (status === 400 || status === 422) {
    return new DomainError('invalid_request', `The gateway rejected the request${suffix}`)
  }
  if (status === 429) {
    return new DomainError('unavailable', `The gateway is limiting requests${suffix}`)
  }
  if (code === undefined) {
    return new DomainError('gateway_refused', `The gateway refused the request${suffix}`)
  }
  const detail = `The gateway refused the request with code ${code}${suffix}`
  return new DomainError('card_refused', detail, { extra: { gatewayCode: code } })
}
