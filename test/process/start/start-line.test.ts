import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { hashKey } from '../../../src/access/keys.ts'
import { readConfig } from '../../../src/config/config.ts'
import { openDatabase } from '../../../src/db/client.ts'
import { describeStart } from '../../../src/start/start.ts'
import { PACKAGE } from '../../../src/version.ts'
import { settingsFor, startServiceProcess } from '../../support/process.ts'
import { MERCHANT } from '../../support/service.ts'
import { useTestDatabase } from '../../support/use-started.ts'

const database = useTestDatabase()

const WEAK_KEY = 'x'.repeat(32)

const Line = z.looseObject({ msg: z.string() })

it('a start logs in one line what runs, and of keys and secrets only ids', async () => {
  const settings = settingsFor(database.url, 'http://127.0.0.1:9/api')
  const previous = Buffer.alloc(32, 8).toString('base64')
  const more = { DATA_ENCRYPTION_KEY_PREVIOUS: previous, METRICS_PORT: '0', ROLE: 'web' }
  const unused = { OIDC_ISSUER: 'https://id.shop.example', DATABASE_READ_URL: database.url }
  const doubtful = { TRUSTED_PROXIES: '::/0', DATABASE_POOL: '500', API_KEY: WEAK_KEY, ...unused }
  const injected = { GATEWAY_PORT: 'tcp://10.0.0.1:443', GATEWAY_SERVICE_HOST: '10.0.0.1' }
  const { url, output } = await startServiceProcess({
    ...settings,
    ...more,
    ...injected,
    ...doubtful,
  })
  const text = output().out
  const lines = text.split('\n').flatMap((line) => (line ? [Line.parse(JSON.parse(line))] : []))
  const [key] = await database.sql<
    { id: string }[]
  >`select id from actors where hash = ${hashKey(WEAK_KEY)}`
  const migrations = readdirSync(fileURLToPath(new URL('../../../migrations', import.meta.url)))
  const newest = migrations
    .filter((file) => file.endsWith('.sql'))
    .toSorted()
    .at(-1)
  expect(lines.filter(({ msg }) => msg === 'ready')).toEqual([
    expect.objectContaining({
      url,
      metricsUrl: expect.stringMatching(/^http:/),
      version: PACKAGE.version,
      schema: newest?.replace('.sql', ''),
      role: 'web',
      demo: false,
      accounts: [MERCHANT.merchantCode],
      gateway: '127.0.0.1:9',
      keyIds: {
        dataEncryption: expect.stringMatching(/^[0-9a-f]{16}$/),
        dataEncryptionPrevious: expect.stringMatching(/^[0-9a-f]{16}$/),
        api: key?.id,
      },
    }),
  ])
  const secrets = [WEAK_KEY, MERCHANT.secret, settings.DATA_ENCRYPTION_KEY ?? '', previous]
  expect(secrets.filter((secret) => text.includes(secret))).toEqual([])
  expect(lines).toContainEqual(
    expect.objectContaining({
      msg: expect.stringMatching(/^these settings have no effect/),
      settings: expect.toSatisfy((names: string[]) => names.length === 2),
    }),
  )
  expect(lines.map(({ msg }) => msg)).toContainEqual(
    expect.stringMatching(/^API_KEY may be guessed/),
  )
  expect(lines.map(({ msg }) => msg)).toContainEqual(
    expect.stringMatching(/^TRUSTED_PROXIES trusts every address/),
  )
  expect(lines.map(({ msg }) => msg)).toContainEqual(
    expect.stringMatching(/^DATABASE_POOL is more than the connections/),
  )
})

it('a database that is lost when everything runs costs the line what only the database knows', async () => {
  const config = readConfig(settingsFor(database.url, 'http://127.0.0.1:9'))
  const { sql, close } = openDatabase(database.url, 1)
  await close()
  const encryptionKey = config.DATA_ENCRYPTION_KEY ?? ''
  const started = { config, sql, gatewayBaseUrl: 'http://127.0.0.1:9', encryptionKey }
  expect(await describeStart(started)).toMatchObject({
    version: PACKAGE.version,
    schema: undefined,
    keyIds: { dataEncryption: expect.stringMatching(/^[0-9a-f]{16}$/), api: undefined },
  })
})
