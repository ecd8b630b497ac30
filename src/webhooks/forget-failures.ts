import { and, eq, isNull, sql } from 'drizzle-orm'
import { webhookDeliveries, webhookEndpoints } from '../db/schema.ts'
import { build } from '../platform/postgres/drizzle.ts'
import type { Tx } from '../platform/postgres/types.ts'

/** Makes everything that waits due at once, as if nothing had failed. What is being sent keeps its lease. */
export async function forgetFailures(tx: Tx, endpointId: string): Promise<void> {
  await build(tx)
    .update(webhookEndpoints)
    .set({ failingSince: null, probeAt: null })
    .where(eq(webhookEndpoints.id, endpointId))
  await build(tx)
    .update(webhookDeliveries)
    .set({ dueAt: sql`now()`, attempts: 0, failingSince: null })
    .where(and(eq(webhookDeliveries.endpointId, endpointId), isNull(webhookDeliveries.leaseId)))
}
