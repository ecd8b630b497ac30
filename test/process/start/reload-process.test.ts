import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { FIRST_KEY_LOCK } from '../../../src/db/locks.ts'
import { makeFolder } from '../../support/embedded.ts'
import { waitUntilBlocked, whileUncommitted } from '../../support/locks.ts'
import { runMain, settingsFor } from '../../support/process.ts'
import { MERCHANT, postIpn, signIpn } from '../../support/service.ts'
import { useTestDatabase } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

const database = useTestDatabase()

const OTHER = { merchantCode: 'OTHER', secret: 'a0c1f4e2b6d85937c1e20f4ab3d6598e' }

it('SIGHUP reads the accounts again, also when it comes before the process is ready', async () => {
  const file = join(makeFolder(), 'merchants.json')
  const configure = (accounts: object[]) => writeFileSync(file, JSON.stringify(accounts))
  configure([MERCHANT])
  const {
    GATEWAY_MERCHANT_CODE: _,
    GATEWAY_SECRET: __,
    ...settings
  } = settingsFor(database.url, 'http://127.0.0.1:9')
  const { child, output, ended } = await whileUncommitted(
    database,
    (held) => held`select pg_advisory_xact_lock(${FIRST_KEY_LOCK})`,
    async () => {
      const main = runMain({ ...settings, ROLE: 'web', MERCHANTS_FILE: file })
      await waitUntilBlocked(database)
      configure([MERCHANT, OTHER])
      main.child.kill('SIGHUP')
      return main
    },
  )
  const reloads = () => output().out.match(/"msg":"settings reloaded/g)?.length ?? 0
  await waitUntil(() => reloads() === 1, { what: 'the reload that was requested during the start' })
  const url = /"url":"([^"]+)".*"ready"/.exec(output().out)?.[1] ?? ''
  const notify = (secret: string) =>
    postIpn(url, signIpn({ svc_TransactionID: 'T-1', svc_MerchantCode: 'OTHER' }, { secret }))
  expect((await notify(OTHER.secret)).status).toBe(200)
  configure([MERCHANT, { ...OTHER, secret: `${OTHER.secret}ff` }])
  child.kill('SIGHUP')
  await waitUntil(() => reloads() === 2, { what: 'the second reload' })
  expect((await notify(OTHER.secret)).status).toBe(401)
  expect((await notify(`${OTHER.secret}ff`)).status).toBe(200)
  child.kill('SIGTERM')
  expect(await ended).toBe(0)
})
