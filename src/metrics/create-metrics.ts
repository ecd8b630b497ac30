import { createRegistry } from '../platform/telemetry/metrics.ts'
import { PACKAGE } from '../version.ts'
import { createAccessMetrics } from './access.ts'
import { createAuditMetrics } from './audit.ts'
import { createFeedMetrics } from './feed.ts'
import { createGatewayMetrics } from './gateway.ts'
import { createHttpMetrics } from './http.ts'
import { createIpnMetrics } from './ipn.ts'
import { createRefundMetrics } from './refunds.ts'
import { createRuntimeMetrics } from './runtime.ts'
import { createSyncMetrics } from './sync.ts'
import { createWebhookMetrics } from './webhooks.ts'

export type Metrics = ReturnType<typeof createMetrics>

/**
 * Creates the service's metrics in a registry of their own. Durations are in seconds. Code that knows the values
 * of a label sets each of them to 0 at start, so that an alert on an increase sees the first occurrence.
 */
export function createMetrics() {
  const registry = createRegistry('ipn_processor', PACKAGE.version)
  return {
    registry,
    ...createRuntimeMetrics(registry),
    ...createHttpMetrics(registry),
    ...createAccessMetrics(registry),
    ...createIpnMetrics(registry),
    ...createSyncMetrics(registry),
    ...createGatewayMetrics(registry),
    ...createRefundMetrics(registry),
    ...createFeedMetrics(registry),
    ...createWebhookMetrics(registry),
    ...createAuditMetrics(registry),
  }
}
