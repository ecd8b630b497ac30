import { isLosslessNumber, stringify } from 'lossless-json'
import type { Context } from '../context.ts'
import { DomainError } from '../errors.ts'
import type { CardOutcome } from '../gateway/cards.ts'
import { payCall } from '../rate.ts'
import type { CardAccount } from './choose-account.ts'

export type CardLanguage = 'vi' | 'en' | undefined

/** How it is asked for; the log names the request. */
type Asked = { language: CardLanguage; requestId: string }

/** The filters of the specification by their names there. */
export type CardFilters = Readonly<Record<string, string | undefined>>

/**
 * One card as the gateway has it now, as the JSON text of its envelope, masked (specification 4.1).
 * Nothing of it is stored but in the short cache.
 * @throws DomainError `card_not_found`, also for a card that is not the account's, or why the gateway gave none
 */
export async function readCard(
  ctx: Context,
  account: CardAccount,
  virtualCardRequestId: string,
  { language, requestId }: Asked,
): Promise<string> {
  const key = JSON.stringify([account, virtualCardRequestId, language])
  return await ctx.cardCache.get(key, async () => {
    const { merchantCode } = account
    await pay(ctx, account)
    const outcome = await ctx.cards.readCards({ merchantCode, virtualCardRequestId, language })
    if (outcome.kind !== 'answered') throw refuse(ctx, account, outcome, requestId)
    const [owner] = outcome.owners
    if (!isOwned(account, owner)) {
      ctx.log.warn(
        { merchantCode, requestId },
        'the gateway gave a card that is not of the account',
      )
      throw new DomainError('card_not_found', 'No such virtual card')
    }
    return stringify(outcome.envelope) ?? ''
  })
}

/**
 * A page of cards (specification 4.2). Cards of other accounts are left out; the totals stay the gateway's.
 * @throws DomainError why the gateway gave none
 */
export async function listCards(
  ctx: Context,
  account: CardAccount,
  query: CardFilters,
  { language, requestId }: Asked,
): Promise<string> {
  const key = JSON.stringify([account, Object.entries(query).toSorted(), language])
  return await ctx.cardCache.get(key, async () => {
    const { merchantCode } = account
    await pay(ctx, account)
    const outcome = await ctx.cards.readCards({ merchantCode, query, language })
    if (outcome.kind !== 'answered') throw refuse(ctx, account, outcome, requestId)
    const { envelope, owners } = outcome
    const foreign = owners.filter((owner) => !isOwned(account, owner)).length
    if (foreign === 0) return stringify(envelope) ?? ''
    ctx.log.warn(
      { merchantCode, foreign, requestId },
      'cards that are not of the account were left out',
    )
    const { data } = envelope
    const docs = isRecord(data) && Array.isArray(data.docs) ? data.docs : []
    const own = docs.filter((_, nth) => isOwned(account, owners[nth]))
    return stringify({ ...envelope, data: { ...(isRecord(data) ? data : {}), docs: own } }) ?? ''
  })
}

/** Reads over a shared token are no account's calls. */
async function pay(ctx: Context, { merchantCode }: CardAccount): Promise<void> {
  if (merchantCode === undefined || (await payCall(ctx, merchantCode))) return
  throw new DomainError('unavailable', 'The calls of this account have reached GATEWAY_RATE_PER_S')
}

/** A card that names no account belongs to the token's; a shared token is nobody's. */
function isOwned({ merchantCode, owners }: CardAccount, owner: string | undefined): boolean {
  return owner === undefined ? merchantCode !== undefined : owners.includes(owner)
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !isLosslessNumber(value)
}

/** What an answer that is not one means to the asker. The gateway's own words come masked. */
function refuse(
  { log }: Context,
  { merchantCode }: CardAccount,
  outcome: Exclude<CardOutcome, { kind: 'answered' }>,
  requestId: string,
): DomainError {
  if (outcome.kind === 'missing') {
    return new DomainError('card_not_found', outcome.message || 'No such virtual card')
  }
  log.warn({ merchantCode, ...outcome, requestId }, 'cards could not be read')
  if (outcome.kind === 'unauthorized') {
    const detail = outcome.refused
      ? 'The gateway refuses the access token for cards: its settings may be wrong'
      : 'No access token for cards can be had from the gateway at the moment'
    return new DomainError('gateway_token_refused', detail)
  }
  if (outcome.kind === 'paused') {
    const detail = 'The gateway failed several times in a row and is not asked at the moment'
    return new DomainError('unavailable', detail)
  }
  if (outcome.kind === 'failed') {
    return outcome.late
      ? new DomainError('gateway_timeout', 'The gateway did not answer in time')
      : new DomainError('gateway_failed', 'The gateway gave no usable answer')
  }
  const said = outcome.message === '' ? '' : `: ${outcome.message}`
  if (outcome.status === 400 || outcome.status === 422) {
    return new DomainError('invalid_request', `The gateway does not take this request${said}`)
  }
  return outcome.status === 429
    ? new DomainError('unavailable', `The gateway is asked too often${said}`)
    : new DomainError('gateway_refused', `The gateway refused to answer${said}`)
}
