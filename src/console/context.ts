import type { HealthContext } from '../health/gauges.ts'
import type { WebhooksContext } from '../webhooks/context.ts'

/** The state that the pages need: that of the folders whose functions they call. */
export type ConsoleContext = HealthContext & WebhooksContext
