import { gatewayCalls } from '../db/schema.ts'
import { pickColumns, rowSet } from '../platform/postgres/row-set.ts'
import type { Tx } from '../platform/postgres/types.ts'
import type { ClaimedRow, QueryAnswer } from './types.ts'

const COLUMNS = {
  ...pickColumns(
    gatewayCalls,
    'merchantCode',
    'transactionId',
    'command',
    'bodyHmac',
    'bodyKeyId',
    'sentAt',
    'durationMs',
    'outcome',
    'httpStatus',
    'code',
    'message',
    'received',
  ),
  id: 'bigint',
  // As text: the members of the answer are kept as the gateway wrote them.
  answer: 'text',
}

const CODES = { answered: '0', unavailable: null, unknown: null }

/** Records queries as evidence, whatever their outcome, under the ids that `lockClaimed` reserved. */
export async function recordCalls(
  tx: Tx,
  calls: readonly (Pick<QueryAnswer, 'claim' | 'call'> & { row: ClaimedRow })[],
): Promise<void> {
  if (calls.length === 0) return
  const rows = calls.map(({ claim, call: { outcome, record }, row }) => ({
    ...claim,
    ...record,
    id: row.callId,
    sentAt: row.asOf,
    outcome: outcome.kind,
    code: outcome.kind === 'rejected' ? outcome.code : CODES[outcome.kind],
    message: 'message' in outcome ? outcome.message : outcome.reason,
    answer: outcome.kind === 'answered' ? outcome.value.json : null,
    bodyHmac: `\\x${record.bodyHmac.value.toString('hex')}`,
    bodyKeyId: record.bodyHmac.keyId,
  }))
  await tx`
    insert into gateway_calls (id, merchant_code, transaction_id, command, body_hmac, body_key_id,
      sent_at, duration_ms, outcome, http_status, code, message, answer, received)
    select id, merchant_code, transaction_id, command, body_hmac, body_key_id, sent_at,
      duration_ms, outcome, http_status, code, message, answer::jsonb, received
    from ${rowSet(tx, 'c', COLUMNS, rows)}`
}
