import { recordWrite } from '../access/audit.ts'
import type { Access } from '../access/types.ts'
import type { Context } from '../context.ts'
import { SYNC_DUE, TRANSACTIONS_REGISTERED } from '../db/names.ts'
import {
  byTransaction,
  formatTransactionKey,
  selectKeys,
  type TransactionKey,
} from '../db/transaction-key.ts'
import { DomainError, invalidField, requireOnly } from '../errors.ts'
import { CLOCK } from '../platform/postgres/clock.ts'
import { notifyAfterCommit } from '../platform/postgres/notify.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { MAKE_DUE_AGAIN, makeDue } from './due.ts'

/** Limits on unconfirmed transactions. They are queried after all others, so more would only lengthen the queue. */
export const MAX_WAITING = { ofKey: 200, ofAccount: 1_000 }

const RETRY_AFTER_S = 5

/**
 * Makes a transaction due now, also one that was abandoned. Registers one whose notification never came, which stays
 * unconfirmed until the gateway knows it.
 * @returns the merchant code under which it was found or registered
 * @throws DomainError `ambiguous_merchant`, `too_many_unconfirmed`, `invalid_request` when it is new and the
 * caller holds several accounts, `merchant_not_found` when it holds none or the account is not in the settings
 */
export async function requestSync(
  { db: { sql }, log, config, tracing }: Pick<Context, 'db' | 'log' | 'config' | 'tracing'>,
  access: Access,
  merchants: readonly string[],
  transactionId: string,
): Promise<string> {
  return await runInTransaction(sql, async (tx) => {
    const known = await tx<{ merchantCode: string; unconfirmed: boolean }[]>`
      select t.merchant_code as "merchantCode", t.unconfirmed from (
        select merchant_code, ${transactionId}::text as transaction_id
        from json_array_elements_text(${JSON.stringify(merchants)}::json) as merchant_code
      ) as k cross join lateral (
        select merchant_code, unconfirmed from transactions as t
        where ${tx.unsafe(byTransaction('t'))} limit 1) as t`
    const merchantCode = resolveOwner(config, merchants, known, transactionId)
    if (known[0]?.unconfirmed !== false) await requireRoom(tx, access, merchantCode)
    tracing.remember(formatTransactionKey({ merchantCode, transactionId }))
    await tx`
      insert into transactions as t (merchant_code, transaction_id, unconfirmed, asked_by, due_at)
      values (${merchantCode}, ${transactionId}, true, ${access.chainId}, now())
      on conflict (merchant_code, transaction_id) do update
        set ${tx.unsafe(MAKE_DUE_AGAIN)}, asked_by = excluded.asked_by`
    notifyAfterCommit(tx, SYNC_DUE)
    notifyAfterCommit(tx, TRANSACTIONS_REGISTERED, transactionId)
    const operation = 'POST /v1/transactions/{transactionId}/sync'
    await recordWrite(tx, log, access, { operation, merchantCode, objectId: transactionId })
    return merchantCode
  })
}

function resolveOwner(
  { accounts }: Context['config'],
  merchants: readonly string[],
  known: readonly { merchantCode: string }[],
  transactionId: string,
): string {
  const owner = known.length > 0 ? requireOnly(known, 'transaction', transactionId) : undefined
  const merchantCode = owner?.merchantCode ?? merchants[0]
  if (merchantCode === undefined) {
    throw new DomainError('merchant_not_found', 'This key has no access to that merchant account')
  }
  if (!owner && merchants.length > 1) {
    const what = 'the key holds several merchant accounts, and none has this transaction'
    throw invalidField('merchantCode', `is required: ${what}`)
  }
  if (accounts.some((account) => account.merchantCode === merchantCode)) return merchantCode
  const what = 'is no longer in the settings: the gateway cannot be queried'
  throw new DomainError('merchant_not_found', `The merchant account ${merchantCode} ${what}`)
}

/** Concurrent requests do not see each other, so the limits may be exceeded slightly. */
async function requireRoom(tx: Tx, { chainId }: Access, merchantCode: string): Promise<void> {
  const [waiting] = await tx<{ ofKey: number; ofAccount: number }[]>`
    select count(*) filter (where asked_by = ${chainId})::int as "ofKey", count(*)::int as "ofAccount" from (
      select asked_by from transactions as t
      where t.merchant_code = ${merchantCode} and t.due_at <= now() and t.unconfirmed
      order by t.due_at limit ${MAX_WAITING.ofAccount}) as t`
  const { ofKey = 0, ofAccount = 0 } = waiting ?? {}
  if (ofKey < MAX_WAITING.ofKey && ofAccount < MAX_WAITING.ofAccount) return
  const [whose, count] =
    ofKey < MAX_WAITING.ofKey ? ['The account', ofAccount] : ['This key', ofKey]
  const detail = `${whose} has ${count} transactions waiting for their query that no notification has named`
  throw new DomainError('too_many_unconfirmed', detail, { retryAfterS: RETRY_AFTER_S })
}

/**
 * Makes known transactions due, also abandoned ones, and restarts their retries.
 * @returns how many of the keys are those of transactions
 */
export async function requeueTransactions(
  tx: Tx,
  keys: readonly TransactionKey[],
): Promise<number> {
  // Locked in the order of the keys, as in every commit of several, so that two cannot deadlock.
  const locked = await tx<TransactionKey[]>`
    select t.merchant_code as "merchantCode", t.transaction_id as "transactionId"
    from (
      select merchant_code, transaction_id from ${selectKeys(tx, keys)}
      order by merchant_code, transaction_id
    ) as k cross join lateral (
      select merchant_code, transaction_id from transactions as t
      where ${tx.unsafe(byTransaction('t'))} limit 1 for update) as t`
  await tx`
    update transactions as t set ${makeDue(tx)}
    from ${selectKeys(tx, locked)}, ${tx.unsafe(CLOCK)}
    where t.merchant_code = k.merchant_code and t.transaction_id = k.transaction_id`
  notifyAfterCommit(tx, SYNC_DUE)
  return locked.length
}
