import type { Context as HttpContext } from 'hono'
import { matchedRoutes } from 'hono/route'
import { parseCidr } from '../config/setting-types.ts'
import { DomainError } from '../errors.ts'
import { compileNetworks, type NetworkTest, nameNetwork } from '../http/client-address.ts'
import type { HttpEnv } from '../http/problems.ts'
import type { Sql } from '../platform/postgres/types.ts'
import type { Log } from '../platform/telemetry/log.ts'
import { CLI } from '../version.ts'
import { recordEntry } from './audit.ts'
import type { ApiKey } from './keys.ts'

/** How often the refusal of a key from one network enters the audit log, at most (ms). */
const RECORD_EVERY_MS = 60_000
const MAX_REMEMBERED = 10_000

type CheckContext = { sql: Sql; log: Log }

/**
 * Checks the networks that keys are bound to. A refusal is recorded in the audit log, once a minute for each key and
 * client: whoever holds a stolen key could fill the log otherwise.
 */
export function createNetworkCheck(ctx: CheckContext, now = () => performance.now()) {
  const tests = new Map<string, NetworkTest>()
  const recorded = new Map<string, number>()

  function isAllowed(networks: readonly string[], address: string): boolean {
    const text = networks.join()
    const test = tests.get(text) ?? compileNetworks(networks.flatMap((one) => parseCidr(one) ?? []))
    if (tests.size >= MAX_REMEMBERED) tests.clear()
    tests.set(text, test)
    return test(address)
  }

  function isDueForRecord(subject: string): boolean {
    const at = now()
    const last = recorded.get(subject)
    if (last !== undefined && at - last < RECORD_EVERY_MS) return false
    if (recorded.size >= MAX_REMEMBERED) recorded.clear()
    recorded.set(subject, at)
    return true
  }

  /** @throws DomainError `network_not_allowed` */
  return async (c: HttpContext<HttpEnv>, key: ApiKey, address: string): Promise<void> => {
    if (key.networks === null || isAllowed(key.networks, address)) return
    const network = nameNetwork(address)
    if (isDueForRecord(`${key.id} ${network}`)) await recordRefusal(ctx, c, key, network)
    throw new DomainError('network_not_allowed', `This key may not be used from ${address}`)
  }
}

async function recordRefusal(
  { sql, log }: CheckContext,
  c: HttpContext<HttpEnv>,
  { id, name }: ApiKey,
  network: string,
): Promise<void> {
  const requestId = c.get('requestId')
  const route = matchedRoutes(c)
    .map(({ path }) => path)
    .findLast((path) => !path.includes('*'))
  const operation = `${c.req.method} ${(route ?? '(unknown path)').replaceAll(/:(\w+)/g, '{$1}')}`
  const refused = { keyId: id, network, operation, requestId }
  log.warn(
    refused,
    `an API key was refused outside its networks; if it was stolen, revoke it with: ${CLI} keys revoke <keyId>`,
  )
  const write = { operation, merchantCode: null, objectId: id }
  await recordEntry(sql, log, { id, name, requestId }, write, 'network_not_allowed').catch(
    (error: unknown) =>
      log.error({ err: error, ...refused }, 'the refusal could not be recorded in the audit log'),
  )
}
