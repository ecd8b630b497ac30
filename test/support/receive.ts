import { readConfig } from '../../src/config/config.ts'
import { createNotificationReader } from '../../src/gateway/notification.ts'
import { buildTestEnvironment } from './service.ts'

/**
 * Makes a function that reads a notification as `POST /ipn` does, without a server or a database.
 * @returns the verdict, and what would be stored
 */
export function createReader(settings: Record<string, string> = {}) {
  const read = createNotificationReader(
    readConfig(buildTestEnvironment('http://127.0.0.1:1', settings)),
  )
  return async (body: string, format: 'json' | 'form' = 'json') => {
    const found = read(format, body)
    return 'why' in found
      ? { receipt: found, arrival: undefined }
      : { receipt: { verdict: 'stored' as const }, arrival: found }
  }
}
