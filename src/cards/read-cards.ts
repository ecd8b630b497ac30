import { stringify } from 'lossless-json'
import { z } from 'zod'
import { narrowMerchants } from '../access/authenticate.ts'
import type { Access } from '../access/types.ts'
import { takeCallPermit } from '../accounts/call-limit.ts'
import type { Config } from '../config/config.ts'
import { DomainError, type RefusalCode } from '../errors.ts'
import type { CardOutcome, CardRequest } from '../gateway/cards.ts'
import type { CardsContext } from './cache.ts'

type CardAccount = {
  /** Whose token is sent; undefined if accounts share one. */
  merchantCode: string | undefined
  /** Whose cards may be returned; `any` if there is only one account, however the gateway spells its code. */
  owners: readonly string[] | 'any'
}

/**
 * Finds the named account, or the only one of the key. Only keys for all accounts may use a shared token.
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
      `The account ${codes.join(', ')} has no access token for cards in the settings: set GATEWAY_ACCESS_TOKEN, or GATEWAY_CLIENT_ID and GATEWAY_CLIENT_SECRET, or the same members of the account in MERCHANTS_FILE`,
    )
  }
  const { merchantCode: code } = account
  return { merchantCode: code, owners: accounts.length === 1 ? 'any' : [code] }
}

/**
 * Reads cards, through the cache. A card of another account is not found, and is left out of lists.
 * @returns the JSON text of the gateway's envelope, masked
 * @throws DomainError `card_not_found`, or the reason why the read failed
 */
export async function readCards(
  ctx: CardsContext,
  account: CardAccount,
  request: Omit<CardRequest, 'merchantCode'>,
  requestId: string,
): Promise<string> {
  const { virtualCardRequestId: id, query = {}, language } = request
  const key = JSON.stringify([account, id ?? Object.entries(query).toSorted(), language])
  return await ctx.cardCache.get(key, async () => {
    const { merchantCode } = account
    await requireCallPermit(ctx, account)
    const outcome = await ctx.gateway.readCards({ merchantCode, ...request })
    if (outcome.kind !== 'answered') throw refuseRead(ctx, account, outcome, requestId)
    const { envelope, owners } = outcome
    const foreign = owners.filter((owner) => !isOwned(account, owner)).length
    if (foreign === 0) return stringify(envelope) ?? ''
    const what = 'the gateway returned cards of other accounts; they were left out'
    ctx.log.warn({ merchantCode, foreign, requestId }, what)
    if (id !== undefined) throw new DomainError('card_not_found', NO_CARD)
    const page = CardPage.parse(envelope.data)
    const docs = page.docs.filter((_, nth) => isOwned(account, owners[nth]))
    return stringify({ ...envelope, data: { ...page, docs } }) ?? ''
  })
}

const CardPage = z.looseObject({ docs: z.array(z.unknown()) })

/** Counts the call against the limit of its account; reads with a shared token belong to none. */
async function requireCallPermit(ctx: CardsContext, { merchantCode }: CardAccount): Promise<void> {
  if (merchantCode === undefined || (await takeCallPermit(ctx, merchantCode))) return
  throw new DomainError('unavailable', 'This account has reached its limit GATEWAY_RATE_PER_S')
}

/** A card without a merchant code belongs to the token's account; with a shared token, to none. */
function isOwned({ merchantCode, owners }: CardAccount, owner: string | undefined): boolean {
  if (owners === 'any') return true
  return owner === undefined ? merchantCode !== undefined : owners.includes(owner)
}

const NO_CARD = 'No such virtual card'

/** The gateway's message is already masked. */
function refuseRead(
  { log }: Pick<CardsContext, 'log'>,
  { merchantCode }: CardAccount,
  outcome: Exclude<CardOutcome, { kind: 'answered' }>,
  requestId: string,
): DomainError {
  if (outcome.kind === 'missing')
    return new DomainError('card_not_found', outcome.message || NO_CARD)
  // The breaker reports a failing gateway, and the caller learns of a refusal. Only a token needs the operator.
  const level = outcome.kind === 'unauthorized' ? 'warn' : 'info'
  log[level]({ merchantCode, ...outcome, requestId }, 'cards could not be read')
  switch (outcome.kind) {
    case 'refused':
      return explainRefusal(outcome)
    case 'paused':
      return new DomainError(
        'unavailable',
        'The gateway failed several times in a row: card reads are paused',
      )
    case 'unauthorized':
      return new DomainError(
        'gateway_token_refused',
        outcome.refused
          ? 'The gateway refused the access token for cards: check its settings'
          : 'No access token for cards is available from the gateway',
      )
    case 'failed':
      return outcome.timedOut
        ? new DomainError('gateway_timeout', 'The gateway did not answer in time')
        : new DomainError('gateway_failed', 'The gateway gave no valid answer')
  }
}

const REFUSALS: Partial<Record<number, RefusalCode>> = {
  400: 'invalid_request',
  422: 'invalid_request',
  429: 'unavailable',
}

function explainRefusal({ status, code, message }: Extract<CardOutcome, { kind: 'refused' }>) {
  const named = code === undefined ? '' : ` with code ${code}`
  const detail = `The gateway refused the request${named}${message && `: ${message}`}`
  const refusal = REFUSALS[status]
  if (refusal) return new DomainError(refusal, detail)
  if (code === undefined) return new DomainError('gateway_refused', detail)
  return new DomainError('card_refused', detail, { extra: { gatewayCode: code } })
}
