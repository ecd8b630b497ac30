import { inspect } from 'node:util'
import { expect, onTestFinished } from 'vitest'
import { Problem } from '../../../src/http/problems.ts'
import type { Service } from '../../../src/service.ts'
import { withKey } from '../../support/api.ts'
import { emptyTables, type TestDatabase } from '../../support/database.ts'
import { startTestService } from '../../support/service.ts'
import { type Got, openSender } from './send.ts'

const SETTINGS = {
  ROLE: 'web',
  IPN_ACCEPT_GET: 'true',
  TRUSTED_PROXIES: '127.0.0.1/32',
  GATEWAY_ACCESS_TOKEN: 'TOKEN-1',
}

/** A service of one test, whose errors in the log are kept. */
export async function startStage(database: TestDatabase, gatewayUrl = 'http://127.0.0.1:1') {
  await emptyTables(database)
  const service = await startTestService(database, gatewayUrl, { settings: SETTINGS })
  onTestFinished(() => service.stop())
  const errors: string[] = []
  service.ctx.log.error = (...said: unknown[]) => void errors.push(inspect(said))
  return { service, errors, send: openSender(service.url) }
}

/** Nothing waits in the service, and it answers as ever. */
export async function expectWell({ url, ctx }: Service): Promise<void> {
  expect(ctx.inbox.readGauges()).toEqual({ waiting: 0, characters: 0 })
  expect(ctx.transactionWaiters.count()).toBe(0)
  expect(ctx.callSlots.held()).toBe(0)
  expect((await fetch(`${url}/readyz`)).status).toBe(200)
  expect((await fetch(`${url}/v1/transactions`, withKey())).status).toBe(200)
}

/** Our trouble, said on purpose: none of it is a fault of the input's. */
const MARKED = ['gateway_refused', 'gateway_failed', 'gateway_timeout', 'gateway_token_refused']

/** An answer of the API's: no 5xx but marked ones, and every refusal is a problem with its code. */
export function expectOwn({ status, headers, text }: Got, method: string): void {
  expect(status).toBeGreaterThanOrEqual(200)
  if (status < 400) return
  expect({ type: headers['content-type'], status, text }).toMatchObject({
    type: 'application/problem+json',
  })
  const problem = method === 'HEAD' ? undefined : Problem.loose().parse(JSON.parse(text))
  if (problem) expect(problem.status).toBe(status)
  if (status >= 500) expect(MARKED).toContain(problem?.code)
}
