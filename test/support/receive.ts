import { readConfig } from '../../src/config/config.ts'
import { createReceiveNotification } from '../../src/ipn/receive-notification.ts'
import type { Arrival } from '../../src/ipn/types.ts'
import { NO_TRACING } from '../../src/platform/telemetry/tracing.ts'
import { buildTestEnvironment } from './service.ts'

/**
 * Makes a function that reads a notification as `POST /ipn` does, without a server or a database.
 * @returns the verdict, and what would be stored
 */
export function createReader(settings: Record<string, string> = {}) {
  const arrivals: Arrival[] = []
  const receive = createReceiveNotification({
    config: readConfig(buildTestEnvironment('http://127.0.0.1:1', settings)),
    tracing: NO_TRACING,
    inbox: {
      store: async (arrival) => void arrivals.push(arrival),
      isFull: () => false,
      readGauges: () => ({ waiting: 0, characters: 0 }),
      drain: async () => {},
    },
  })
  return async (body: string, format: 'json' | 'form' = 'json') => {
    const request = { format, body, contentType: '', address: '127.0.0.1', headers: {} }
    const receipt = await receive(request)
    const [arrival] = arrivals.splice(0)
    return { receipt, arrival }
  }
}
