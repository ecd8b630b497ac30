import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { describe, expect, it, onTestFinished } from 'vitest'
import { prepareAccess } from '../../../src/access/prepare-access.ts'
import { readConfig } from '../../../src/config/config.ts'
import { openDatabase } from '../../../src/db/client.ts'
import { FIRST_KEY_LOCK } from '../../../src/db/locks.ts'
import { createLog } from '../../../src/platform/telemetry/log.ts'
import { type Sandbox, startSandbox } from '../../../src/sandbox/start-sandbox.ts'
import { createReloader, reloadSettings } from '../../../src/start/reload.ts'
import { waitUntilBlocked, whileUncommitted } from '../../support/locks.ts'
import {
  buildTestEnvironment,
  KEY,
  MERCHANT,
  postIpn,
  signIpn,
  startTestService,
} from '../../support/service.ts'
import { useTestDatabase } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

const database = useTestDatabase()

const OTHER = { merchantCode: 'OTHER', secret: 'a0c1f4e2b6d85937c1e20f4ab3d6598e' }
const NEW_SECRET = 'c4e1d05a9b7f4e62a8d31f60b5c7e924'
const makeKey = () => `key-of-the-setting-${randomUUID()}`

/** Starts a service whose settings are in files, beside a gateway that knows both accounts. */
async function start(
  files: Record<string, string>,
  { accounts = [MERCHANT], ...settings }: { accounts?: object[] } & Record<string, unknown> = {},
) {
  const folder = mkdtempSync(join(tmpdir(), 'ipn-reload-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const write = (name: string, text: string) => {
    writeFileSync(join(folder, name), text)
    return join(folder, name)
  }
  const configure = (list: object[]) => write('merchants.json', JSON.stringify(list))
  const sandbox = await startSandbox({ accounts: [MERCHANT, OTHER], refundMs: 50 })
  onTestFinished(() => sandbox.stop())
  const lines: string[] = []
  const stream = new Writable({
    write(chunk, _, done) {
      lines.push(String(chunk))
      done()
    },
  })
  const given = {
    MERCHANTS_FILE: configure(accounts),
    LOG_LEVEL_FILE: write('LOG_LEVEL', 'info\n'),
    ...Object.fromEntries(
      Object.entries(files).map(([name, text]) => [`${name}_FILE`, write(name, text)]),
    ),
    ...Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, String(value)])),
  }
  const log = createLog('info', stream)
  const service = await startTestService(database, sandbox.url, {
    settings: given,
    log,
    prepare: prepareAccess,
  })
  onTestFinished(() => service.stop())
  sandbox.setIpnUrl(`${service.url}/ipn`)
  lines.splice(0)
  const read = () => readConfig(buildTestEnvironment(sandbox.url, given))
  const entries = () => lines.map((line): Record<string, unknown> => JSON.parse(line))
  const find = (text: string) => entries().find(({ msg }) => String(msg).includes(text))
  const reload = async () => {
    await reloadSettings(service.ctx, read)
    // As for every key of a test service: see startTestService.
    await database.sql`update api_keys set rate_per_minute = 100000000 where from_setting`
  }
  return { service, sandbox, write, configure, read, reload, find, lines, log }
}

/** Makes a payment at the gateway, without a notification. */
async function makePayment({ url }: Pick<Sandbox, 'url'>, { merchantCode } = MERCHANT) {
  const transactionId = `T-${randomUUID()}`
  const payments = [{ amount: '1', paymentMethod: 'QR', status: 'SUCCESS' }]
  const response = await fetch(`${url}/sandbox/transactions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ transactionId, merchantCode, payments, ipn: false }),
  })
  expect(response.status).toBe(201)
  return transactionId
}

const notify = async (url: string, id: string, { merchantCode, secret } = MERCHANT) =>
  (
    await postIpn(
      url,
      signIpn({ svc_TransactionID: id, svc_MerchantCode: merchantCode }, { secret }),
    )
  ).status

const ask = async (url: string, key: string, method = 'GET') =>
  (await fetch(`${url}/v1/transactions`, { method, headers: { authorization: `Bearer ${key}` } }))
    .status

describe('a reload', () => {
  it('applies a changed signing secret to the next notification and the next call', async () => {
    const stale = { ...MERCHANT, secret: NEW_SECRET }
    const { service, sandbox, configure, reload, find, lines } = await start(
      {},
      { accounts: [stale] },
    )
    const transactionId = await makePayment(sandbox)
    expect(await notify(service.url, transactionId)).toBe(401)
    configure([{ ...MERCHANT, previousSecret: NEW_SECRET }])
    await reload()
    expect(await notify(service.url, 'T-PREVIOUS', stale)).toBe(200)
    expect(await notify(service.url, transactionId)).toBe(200)
    const read = () =>
      fetch(`${service.url}/v1/transactions/${transactionId}?wait=20`, {
        headers: { authorization: `Bearer ${KEY}` },
      })
    expect(await (await read()).json()).toMatchObject({ state: 'paid' })
    expect(find('settings reloaded')).toMatchObject({
      level: 30,
      accounts: { added: [], changed: [MERCHANT.merchantCode], removed: [] },
    })
    configure([MERCHANT])
    await reload()
    expect(await notify(service.url, 'T-PREVIOUS', stale)).toBe(401)
    expect(lines.join()).not.toMatch(new RegExp(`${NEW_SECRET}|${MERCHANT.secret}`))
  })

  it('serves an added account at once: notifications, queries, keys for all, and its share of the calls', async () => {
    const { service, sandbox, configure, reload, find } = await start({})
    const { url, ctx } = service
    const transactionId = await makePayment(sandbox, OTHER)
    expect(await notify(url, transactionId, OTHER)).toBe(404)
    expect(ctx.limiter.maxPerHolder).toBe(16)
    configure([MERCHANT, OTHER])
    await reload()
    expect(await notify(url, transactionId, OTHER)).toBe(200)
    const response = await fetch(`${url}/v1/transactions/${transactionId}?wait=20`, {
      headers: { authorization: `Bearer ${KEY}` },
    })
    expect(await response.json()).toMatchObject({ state: 'paid', merchantCode: 'OTHER' })
    expect(ctx.limiter.maxPerHolder).toBe(14)
    const unnamed = await postIpn(url, { svc_TransactionID: 'T-1', svc_Command: 'PAY' })
    expect(unnamed.status).toBe(400)
    expect(find('settings reloaded')).toMatchObject({ accounts: { added: ['OTHER'] } })
  })

  it('keeps serving an account that is gone from the file, and says that this needs a restart', async () => {
    const accounts = [MERCHANT, OTHER]
    const { service, configure, reload, find } = await start({}, { accounts })
    configure([MERCHANT])
    await reload()
    await reload()
    expect(await notify(service.url, 'T-KEPT', OTHER)).toBe(200)
    expect(find('no longer configured')).toMatchObject({ level: 40, accounts: ['OTHER'] })
    configure([MERCHANT, { ...OTHER, secret: NEW_SECRET }])
    await reload()
    expect(await notify(service.url, 'T-KEPT', { ...OTHER, secret: NEW_SECRET })).toBe(200)
    expect(await notify(service.url, 'T-KEPT', OTHER)).toBe(401)
  })

  it('has one account again when another replaces it: notifications without a merchant code are those of the new one', async () => {
    const { service, configure, reload, find } = await start({})
    const post = async ({ secret }: { secret: string }, id: string) =>
      (
        await postIpn(
          service.url,
          signIpn({ svc_TransactionID: id, svc_MerchantCode: '' }, { secret }),
        )
      ).status
    expect(await post(MERCHANT, 'T-UNNAMED')).toBe(200)
    configure([OTHER])
    await reload()
    expect(find('are refused with 400')).toBeUndefined()
    expect(await post(OTHER, 'T-UNNAMED-2')).toBe(200)
    expect(await post(MERCHANT, 'T-UNNAMED-3')).toBe(401)
    expect(await notify(service.url, 'T-NAMED', MERCHANT)).toBe(200)
    configure([OTHER, MERCHANT])
    await reload()
    expect(await post(OTHER, 'T-UNNAMED-4')).toBe(400)
    expect(find('are refused with 400')).toMatchObject({
      level: 40,
      msg: expect.stringContaining('without svc_MerchantCode'),
    })
  })

  it.each([
    ['an account is removed', [MERCHANT, OTHER], [MERCHANT]],
    ['an account is replaced', [MERCHANT], [OTHER]],
  ])('keeps one token shared when %s', async (_, accounts, next) => {
    const token = { GATEWAY_ACCESS_TOKEN: 'access-token-1' }
    const { service, configure, write, reload } = await start(token, { accounts })
    write('GATEWAY_ACCESS_TOKEN', 'access-token-2')
    configure(next)
    await reload()
    const shared = { kind: 'static', accessToken: 'access-token-2' }
    expect(Object.values(service.ctx.config.sharedToken ?? {})).toEqual(Object.values(shared))
    configure([MERCHANT, OTHER])
    await reload()
    expect(Object.values(service.ctx.config.sharedToken ?? {})).toEqual(Object.values(shared))
  })

  it('rotates API_KEY as a restart does: the new key is valid at once, the old one ends', async () => {
    const [oldKey, newKey] = [makeKey(), makeKey()]
    const keys = { API_KEY: oldKey }
    const { service, write, reload, find, lines } = await start(keys, { API_KEY_GRACE_MS: 0 })
    await database.sql`update api_keys set expires_at = null where from_setting`
    write('API_KEY', newKey)
    await reload()
    expect(await ask(service.url, newKey)).toBe(200)
    expect(await ask(service.url, oldKey, 'POST')).toBe(401)
    expect(find('API_KEY has changed')).toMatchObject({ level: 40 })
    expect(find('settings reloaded')).toMatchObject({ secrets: ['API_KEY'] })
    const rotated = lines.length
    await reload()
    expect(lines.slice(rotated).join()).toContain('nothing has changed')
    expect(lines.join()).not.toMatch(/key-of-the-setting/)
  })

  it('with an invalid file is an error with its lines, and applies nothing, of no other file either', async () => {
    const { service, write, reload, find, configure } = await start({ API_KEY: makeKey() })
    const newKey = makeKey()
    const { config } = service.ctx
    const before = { ...config }
    write('API_KEY', newKey)
    write('LOG_LEVEL', 'debug')
    write('merchants.json', '[{"merchantCode":"OTHER"}]')
    await reload()
    const error = find('were not reloaded')
    expect(error).toMatchObject({ level: 50 })
    expect(JSON.stringify(error?.problems)).toMatch(/MERCHANTS_FILE .*secret/)
    expect(config).toEqual(before)
    expect(await ask(service.url, newKey)).toBe(401)
    expect(await notify(service.url, 'T-SAME')).toBe(200)
    configure([MERCHANT])
    await reload()
    expect(await ask(service.url, newKey)).toBe(200)
  })

  it('applies nothing while the database is unreachable', async () => {
    const { service, configure, read } = await start({})
    const closed = openDatabase(database.url, 2)
    await closed.close()
    configure([{ ...MERCHANT, secret: NEW_SECRET }, OTHER])
    const ctx = { ...service.ctx, sql: closed.sql }
    await expect(reloadSettings(ctx, read)).rejects.toThrow()
    expect(service.ctx.config.accounts).toEqual([MERCHANT])
  })

  it('changes the log level, and names what needs a restart, without any value', async () => {
    const files = { DATABASE_URL: 'postgres://ipn:hunter2@db/ipn' }
    const { write, reload, find, log, lines } = await start(files)
    write('DATABASE_URL', 'postgres://ipn:hunter3@db/ipn')
    write('LOG_LEVEL', 'warn')
    await reload()
    expect(log.level).toBe('warn')
    expect(find('settings reloaded')).toMatchObject({ logLevel: { from: 'info', to: 'warn' } })
    expect(find('which needs a restart')).toMatchObject({ settings: ['DATABASE_URL'] })
    write('LOG_LEVEL', 'debug')
    lines.splice(0)
    await reload()
    expect(find('settings reloaded')).toMatchObject({ logLevel: { from: 'warn', to: 'debug' } })
    expect(lines.join()).not.toContain('hunter')
  })
})

describe('the reloader', () => {
  it('runs one reload after the other, and those requested before the start when it is over', async () => {
    const { service, configure, write, read, find, lines, log } = await start({
      API_KEY: makeKey(),
    })
    const reloads = () => lines.filter((line) => line.includes('settings reloaded')).length
    let reads = 0
    const reloader = createReloader(log, () => {
      reads += 1
      return read()
    })
    reloader.request()
    configure([MERCHANT, OTHER])
    write('API_KEY', makeKey())
    const { accounts } = service.ctx.config
    expect(accounts).toEqual([MERCHANT])
    await whileUncommitted(
      database,
      (held) => held`select pg_advisory_xact_lock(${FIRST_KEY_LOCK})`,
      async () => {
        reloader.attach(service.ctx)
        await waitUntilBlocked(database)
        configure([MERCHANT, { ...OTHER, secret: NEW_SECRET }])
        reloader.request()
        await waitUntilBlocked(database)
        expect([reads, reloads()]).toEqual([1, 0])
      },
    )
    await waitUntil(() => reloads() === 2, { what: 'two reloads' })
    expect(find('settings reloaded')).toMatchObject({ accounts: { added: ['OTHER'] } })
    expect(await notify(service.url, 'T-LAST', { ...OTHER, secret: NEW_SECRET })).toBe(200)
  })
})
