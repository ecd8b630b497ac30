import { recordWrite } from '../access/audit.ts'
import type { Access } from '../access/authenticate.ts'
import type { Context } from '../context.ts'
import { makeDue, SYNC_DUE } from '../db/due.ts'
import { runInTransaction } from '../db/transaction.ts'
import { DomainError } from '../errors.ts'

const ASKING = 'POST /v1/transactions/{transactionId}/sync'

/**
 * Makes a transaction due now, in its own commit. One whose notification never came is registered;
 * one that was abandoned is taken up again.
 * @param merchants the accounts the asker may act for
 * @returns the account it was found or registered under
 * @throws DomainError `ambiguous_merchant` when several accounts have it,
 *   `invalid_request` when it is new and several could
 */
export async function requestSync(
  ctx: Context,
  access: Access,
  merchants: readonly string[],
  transactionId: string,
): Promise<string> {
  return await runInTransaction(ctx.sql, async (tx) => {
    const known = await tx<{ merchantCode: string }[]>`
      select merchant_code as "merchantCode" from transactions
      where merchant_code = any(${[...merchants]}) and transaction_id = ${transactionId}`
    if (known.length > 1) {
      throw new DomainError(
        'ambiguous_merchant',
        'Several merchant accounts have this id: name one with merchantCode',
      )
    }
    const merchantCode = known[0]?.merchantCode ?? merchants[0]
    if (merchantCode === undefined) {
      throw new DomainError('merchant_not_found', 'This key holds no such merchant account')
    }
    if (known.length === 0 && merchants.length > 1) {
      const message =
        'is needed, because the key holds several accounts and none knows this transaction'
      throw new DomainError('invalid_request', `merchantCode: ${message}`, {
        errors: [{ path: 'merchantCode', message }],
      })
    }
    if (!ctx.config.accounts.some((account) => account.merchantCode === merchantCode)) {
      throw new DomainError(
        'merchant_not_found',
        `The account ${merchantCode} is not in the settings any more: the gateway cannot be asked`,
      )
    }
    ctx.tracing.remember(merchantCode, transactionId)
    await tx`
      insert into transactions as t (merchant_code, transaction_id, due_at)
      values (${merchantCode}, ${transactionId}, now())
      on conflict (merchant_code, transaction_id) do update set ${makeDue(ctx.sql)}`
    await tx`select pg_notify(${SYNC_DUE}, '')`
    await recordWrite(tx, access, { operation: ASKING, merchantCode, objectId: transactionId })
    return merchantCode
  })
}
