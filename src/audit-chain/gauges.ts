import type { Context } from '../context.ts'
import { listChains } from './chains.ts'

/** How much of a head's hash is its gauge: what a floating-point number holds exactly. */
const SHOWN_BYTES = 6

/**
 * Sets the gauges of the audit log's chains, from the database.
 * @throws database errors; the gauges keep their values
 */
export async function setAuditGauges({
  sql,
  metrics,
}: Pick<Context, 'sql' | 'metrics'>): Promise<void> {
  const [row] = await sql<{ lagS: number | null }[]>`
    select extract(epoch from now() - coalesce(
      (select chained_at from audit_progress),
      (select at from audit_entries order by id limit 1)))::float8 as "lagS"`
  const chains = await listChains(sql)
  clearAuditGauges({ metrics })
  metrics.auditChainLag.set(Math.max(0, row?.lagS ?? 0))
  for (const { merchantCode: merchant, headPosition, headHash } of chains) {
    metrics.auditChainPosition.set({ merchant }, headPosition)
    metrics.auditChainHash.set({ merchant }, headHash.readUIntBE(0, SHOWN_BYTES))
  }
}

/** Removes what was read from the database, while it is unavailable. */
export function clearAuditGauges({ metrics }: Pick<Context, 'metrics'>): void {
  metrics.auditChainLag.set(Number.NaN)
  metrics.auditChainPosition.reset()
  metrics.auditChainHash.reset()
}
