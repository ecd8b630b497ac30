import { gatewayCalls } from '../db/schema.ts'
import type { GatewayCall, PaymentList } from '../gateway/types.ts'
import { pickColumns, rowSet } from '../platform/postgres/row-set.ts'
import type { Tx } from '../platform/postgres/types.ts'
import type { Claim } from './types.ts'

const COLUMNS = {
  ...pickColumns(
    gatewayCalls,
    'merchantCode',
    'transactionId',
    'command',
    'bodySha256',
    'sentAt',
    'durationMs',
    'outcome',
    'httpStatus',
    'code',
    'message',
  ),
  // As text: the members of the answer are kept as the gateway wrote them.
  answer: 'text',
  leaseId: 'uuid',
}

const CODES = { answered: '0', unavailable: null, unknown: null }

/**
 * Records queries as evidence, whatever their outcome.
 * @returns the ids of the records, in the order of the calls
 */
export async function recordCalls(
  tx: Tx,
  calls: readonly { claim: Claim; call: GatewayCall<PaymentList>; asOf: string }[],
): Promise<number[]> {
  const rows = calls.map(({ claim, call: { outcome, record }, asOf }) => ({
    ...claim,
    ...record,
    sentAt: asOf,
    outcome: outcome.kind,
    code: outcome.kind === 'rejected' ? outcome.code : CODES[outcome.kind],
    message: 'message' in outcome ? outcome.message : outcome.reason,
    answer: outcome.kind === 'answered' ? outcome.value.json : null,
    bodySha256: `\\x${record.bodySha256.toString('hex')}`,
  }))
  const recorded = await tx<{ id: number; leaseId: string }[]>`
    with calls as materialized (
      select nextval('gateway_calls_id_seq') as id, c.* from ${rowSet(tx, 'c', COLUMNS, rows)}
    ), recorded as (
      insert into gateway_calls (id, merchant_code, transaction_id, command, body_sha256, sent_at,
        duration_ms, outcome, http_status, code, message, answer)
      select id, merchant_code, transaction_id, command, body_sha256, sent_at, duration_ms, outcome,
        http_status, code, message, answer::jsonb
      from calls
    )
    select id, lease_id as "leaseId" from calls`
  const ids = new Map(recorded.map(({ id, leaseId }) => [leaseId, id]))
  return rows.map(({ leaseId }) => {
    const id = ids.get(leaseId)
    if (id === undefined) throw new Error('a call was not recorded')
    return id
  })
}
