import type { Context } from '../context.ts'
import { byTransaction, type TransactionKey } from '../db/transaction-key.ts'
import { listShownMembers, type ShownMember } from '../gateway/stored-body.ts'
import { hideSecretsInText, maskCardText } from '../platform/crypto/masking.ts'
import { toIso } from '../platform/postgres/row-set.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { selectKey, selectRefundAttempts, selectRefundNotifications } from './due.ts'

/** A stored message of the gateway, masked, without its hash, and cut to what a person can read. */
export type ReceivedMessage = {
  id: string
  /** When it was first received, or when the call that it answers was made. */
  at: string
  type: 'notification' | 'query' | 'refund'
  /** Only for a notification that can be parsed. */
  members: ShownMember[] | undefined
  /** Any other message; empty if the answer had no content. */
  text: string
}

type Row = { id: string; at: string; type: ReceivedMessage['type']; text: string | null }

const MAX_TEXT = 4_000

/** Newest first. @param withRefunds includes the messages about the transaction's refunds */
export async function readMessages(
  { db: { sql } }: Pick<Context, 'db'>,
  transaction: TransactionKey,
  withRefunds: boolean,
  limit: number,
): Promise<ReceivedMessage[]> {
  const key = selectKey(sql, transaction)
  // A literal, because the planner expects many rows for a parameter.
  const most = sql.unsafe(String(limit))
  const rows = await sql<Row[]>`
    select id::text, at::text, type, left(text, ${MAX_TEXT}) as text from (
      select first_received_at as at, id, 'notification' as type, body as text
      from ${key} cross join lateral (
        select * from ipn_events as e where ${sql.unsafe(byTransaction('e'))} desc, e.first_received_at desc
        fetch first ${most} rows with ties) as e
      union all
      select sent_at, id, 'query', concat_ws(E'\n', received, jsonb_pretty(answer))
      from ${key} cross join lateral (
        select * from gateway_calls as g where ${sql.unsafe(byTransaction('g'))} desc, g.sent_at desc
        fetch first ${most} rows with ties) as g
      ${withRefunds ? selectOfRefunds(sql, transaction) : sql``}
    ) as messages
    order by messages.at desc, messages.id desc limit ${limit}`
  return rows.map(({ id, at, type, text }) => {
    const members = type === 'notification' ? listShownMembers(text ?? '') : undefined
    const hidden = members ? '' : hideSecretsInText(maskCardText(text ?? ''))
    return { id, at: toIso(at), type, members, text: hidden }
  })
}

function selectOfRefunds(sql: Sql, transaction: TransactionKey) {
  return sql`
    union all
    select first_received_at, id, 'notification', body
    from (${selectRefundNotifications(sql, transaction)}) as e
    union all
    select a.recorded_at, a.id, 'refund', a.received from ${selectRefundAttempts(sql, transaction)}`
}
