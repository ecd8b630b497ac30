import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { migrateDatabase } from '../../src/db/migrate.ts'
import { withKey } from '../support/api.ts'
import { makeFolder } from '../support/embedded.ts'
import { pickPort } from '../support/ports.ts'
import {
  ask,
  findPrograms,
  type PostgresServer,
  prepareServer,
} from '../support/postgres-server.ts'
import { postIpn, signIpn, startTestService } from '../support/service.ts'
import { waitUntil } from '../support/wait-until.ts'

/** A primary, and a standby that was copied from it and receives nothing more. */
async function startPair(): Promise<{ primary: PostgresServer; standby: PostgresServer }> {
  const folder = makeFolder()
  const bin = findPrograms(folder)
  const primary = prepareServer(bin, folder, Number(await pickPort()))
  const standby = prepareServer(bin, folder, Number(await pickPort()))
  onTestFinished(async () => void (await Promise.all([primary.stop(), standby.stop()])))
  await primary.create()
  await primary.start()
  await migrateDatabase(primary.url)
  await primary.run('pg_ctl', ['stop', '-m', 'fast', '-w'])
  execFileSync('cp', ['-a', `${primary.data}/.`, standby.data])
  writeFileSync(join(standby.data, 'standby.signal'), '')
  await Promise.all([primary.start(), standby.start()])
  return { primary, standby }
}

it('the service uses only the server that accepts writes, and goes on by its host list after a promotion', async () => {
  const { primary, standby } = await startPair()
  const url = `postgres://postgres@127.0.0.1:${standby.port},127.0.0.1:${primary.port}/postgres`
  const service = await startTestService({ url }, 'http://127.0.0.1:9')
  onTestFinished(() => service.stop())
  const send = async (id: string) =>
    (await postIpn(service.url, signIpn({ svc_TransactionID: id }))).status
  const ready = async () => (await fetch(`${service.url}/readyz`)).status

  expect(await send('T-1')).toBe(200)
  expect(await ready()).toBe(200)
  await primary.kill()
  await waitUntil(async () => (await ready()) === 503, { what: 'it is not ready' })
  expect(await send('T-2')).toBeGreaterThanOrEqual(500)
  const read = await fetch(`${service.url}/v1/payments`, withKey())
  expect([read.status, read.headers.get('retry-after')]).toEqual([503, '1'])

  await ask(standby.url, 'select pg_promote()')
  await waitUntil(async () => (await ready()) === 200, { what: 'it is ready' })
  await waitUntil(async () => (await send('T-2')) === 200, { what: 'notifications are stored' })
  const listens = async () => {
    const found = await ask(
      standby.url,
      `select from pg_stat_activity where query ilike 'listen%' and application_name = 'ipn-processor'`,
    )
    return found.length > 0
  }
  await waitUntil(listens, { what: 'it listens on the new primary' })
  expect(await ask(standby.url, 'select transaction_id as id from ipn_events')).toEqual([
    { id: 'T-2' },
  ])
}, 90_000)
