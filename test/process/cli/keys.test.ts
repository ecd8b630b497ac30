import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { migrateDatabase } from '../../../src/db/migrate.ts'
import { expectProblem, withKey } from '../../support/api.ts'
import { runCli } from '../../support/cli.ts'
import { createOwnDatabase } from '../../support/database.ts'
import { makeFolder, startHere } from '../../support/embedded.ts'
import { MERCHANT } from '../../support/service.ts'
import { useRig } from '../../support/use-started.ts'

const Made = z.object({ id: z.uuid(), key: z.string().regex(/^ipn_[\w-]{43}$/) })
const Rotated = Made.extend({ replaces: z.uuid(), oldKeyEndsAt: z.iso.datetime() })
const Listed = z.array(z.looseObject({ id: z.uuid() }))

const rig = useRig({ settings: { ROLE: 'web' } })

const keys = (...args: string[]) => runCli(['keys', ...args], { DATABASE_URL: rig.database.url })
/** Makes a write, because reads accept a cached key for a second. */
const use = (key: string) =>
  fetch(`${rig.service.url}/v1/transactions/T-1/sync`, { method: 'POST', ...withKey(key) })

async function make(name: string, ...more: string[]) {
  const args = ['create', name, '--scopes', 'payments:read', '--merchant', '*', '--json', ...more]
  const { code, out, err } = await keys(...args)
  expect({ code, err }).toEqual({ code: 0, err: '' })
  return Made.parse(JSON.parse(out))
}

async function findListed(id: string) {
  const { out } = await keys('list', '--json')
  return Listed.parse(JSON.parse(out)).find((key) => key.id === id)
}

it('a key is created with scopes, account, caps, rate and expiry, shown once, and only its hash is stored', async () => {
  const name = `shop-${randomUUID()}`
  const { code, out, err } = await keys(
    ...['create', name, '--scopes', 'payments:read,refunds:write'],
    ...['--merchant', MERCHANT.merchantCode, '--refund-max', '500000'],
    ...['--refund-daily-max', '2000000.50', '--rate', '600', '--expires', '90d'],
  )
  expect({ code, err }).toEqual({ code: 0, err: '' })
  const key = /^(ipn_[\w-]{43})\n/.exec(out)?.[1] ?? ''
  const id = /key ([0-9a-f-]{36}) /.exec(out)?.[1] ?? ''
  expect((await use(key)).status).toBe(202)
  expect(await findListed(id)).toMatchObject({
    name,
    state: 'live',
    merchantCode: MERCHANT.merchantCode,
    scopes: ['payments:read', 'refunds:write'],
    refundMax: '500000',
    refundDailyMax: '2000000.50',
    ratePerMinute: 600,
    replaces: null,
  })
  const [row] = await rig.database.sql<{ row: string; right: boolean; days: number }[]>`
    select to_jsonb(k)::text as row, hash = sha256(${key}::bytea) as right,
      extract(day from expires_at - now())::int as days from actors k where id = ${id}`
  expect(row).toMatchObject({ right: true, days: 89 })
  expect(row?.row).not.toContain(key.slice(4))
  const list = await keys('list')
  expect(list.out).toContain(name)
  expect(list.out).toMatch(/ 500000 +2000000\.50 /)
  expect(list.out).not.toContain(key.slice(4))
})

it('a key made for a person belongs to it, and so does its successor', async () => {
  const { id } = await make(`desk-${randomUUID()}`, '--person', ' Tran Thi B ')
  const { out } = await keys('rotate', id, '--json')
  const successor = Rotated.parse(JSON.parse(out))
  for (const one of [id, successor.id]) {
    expect(await findListed(one)).toMatchObject({ person: 'Tran Thi B' })
  }
  const wrong = await keys('create', 'x', '--scopes', 'ops', '--merchant', '*', '--person', ' ')
  expect(wrong).toMatchObject({ code: 2, err: expect.stringContaining('printable characters') })
})

it('rotated, two keys are live until the grace is over; a second rotation in between is refused', async () => {
  const old = await make('rotated')
  const rotated = Rotated.parse(
    JSON.parse((await keys('rotate', old.id, '--grace', '2h', '--json')).out),
  )
  expect(rotated.replaces).toBe(old.id)
  expect([(await use(old.key)).status, (await use(rotated.key)).status]).toEqual([202, 202])
  const again = await keys('rotate', old.id)
  expect(again).toMatchObject({ code: 1, out: '' })
  expect(again.err).toBe(`error: the key was already rotated; its successor is ${rotated.id}\n`)
  // Two hours later.
  await rig.database.sql`
    update actors set expires_at = expires_at - interval '2 hours' where id = ${old.id}`
  await expectProblem(await use(old.key), 401, 'unauthenticated')
  expect((await use(rotated.key)).status).toBe(202)
  expect(await findListed(old.id)).toMatchObject({ state: 'expired' })
})

it('rotated without grace, the old key ends at once', async () => {
  const old = await make('leaked')
  const { out } = await keys('rotate', 'leaked', '--grace', '0')
  expect(out).toContain(`replacing ${old.id}.`)
  await expectProblem(await use(old.key), 401, 'unauthenticated')
  expect((await use(/^(ipn_\S+)/.exec(out)?.[1] ?? '')).status).toBe(202)
})

it('a revoked key is refused from the next write on, and a second revocation is reported as such', async () => {
  const { id, key } = await make('revoked')
  expect((await use(key)).status).toBe(202)
  expect(await keys('revoke', 'revoked')).toMatchObject({ code: 0, err: '' })
  await expectProblem(await use(key), 401, 'unauthenticated')
  expect((await keys('revoke', id)).out).toContain('was already revoked')
  expect(await findListed(id)).toMatchObject({ state: 'revoked' })
})

it('the list shows where a key comes from, when and from where it was last used, and what ends soon', async () => {
  const { id, key } = await make('used', '--expires', '3d', '--network', '127.0.0.0/8')
  expect(await findListed(id)).toMatchObject({ lastUsedAt: null, origin: 'command_line' })
  expect((await use(key)).status).toBe(202)
  await rig.service.ctx.access.uses.flush()
  expect(await findListed(id)).toMatchObject({
    lastUsedAt: expect.stringMatching(/^20/),
    lastUsedFrom: '127.0.0.1',
    networks: ['127.0.0.0/8'],
    expiresSoon: true,
  })
  const { out, err } = await keys('list')
  expect(err).toContain(`warning: used ends at `)
  expect(err).toContain(`keys rotate ${id}`)
  expect(out).toMatch(/first .+ setting /)
  const metrics = await (await fetch(`${rig.service.url}/metrics`)).text()
  expect(metrics).toMatch(/^api_keys_expiring [1-9]\d*$/m)
  const successor = Rotated.parse(JSON.parse((await keys('rotate', id, '--json')).out))
  expect(await findListed(successor.id)).toMatchObject({
    origin: 'rotation',
    networks: ['127.0.0.0/8'],
  })
  expect((await keys('list')).err).not.toContain(`keys rotate ${id}`)
})

it('a key bound to networks is refused from others, behind a proxy or not, with an entry in the audit log', async () => {
  const { id, key } = await make('bound', '--network', '192.0.2.0/24', '--network', '2001:db8::/32')
  await expectProblem(await use(key), 403, 'network_not_allowed')
  const headers = { authorization: `Bearer ${key}`, 'x-forwarded-for': '192.0.2.7' }
  const url = `${rig.service.url}/v1/transactions/T-1`
  // The proxy is not trusted here: the header is the client's own.
  await expectProblem(await fetch(url, { headers }), 403, 'network_not_allowed')
  await expectProblem(await fetch(url, { headers }), 403, 'network_not_allowed')
  const env = { DATABASE_URL: rig.database.url }
  const { out } = await runCli(['audit', '--object', id, '--json'], env)
  expect(JSON.parse(out)).toMatchObject([
    { outcome: 'network_not_allowed', actor: 'bound', operation: expect.stringMatching('/sync$') },
    { operation: 'keys create' },
  ])
  const wrong = await keys('create', 'x', '--scopes', 'ops', '--merchant', '*', '--network', 'lan')
  expect(wrong).toMatchObject({ code: 2, err: expect.stringContaining('203.0.113.0/24') })
})

it('changes to keys are audited with the user, and without the key', async () => {
  const { id, key } = await make('audited')
  await keys('revoke', id)
  const env = { DATABASE_URL: rig.database.url }
  const { out } = await runCli(['audit', '--object', id, '--json'], env)
  expect(JSON.parse(out)).toMatchObject([
    { operation: 'keys revoke', objectId: id, outcome: 'done', keyId: null },
    { operation: 'keys create', objectId: id, actor: expect.stringMatching(/^cli \(.+\)$/) },
  ])
  const table = await runCli(['audit', '--limit', '5'], env)
  expect(table.out.split('\n')[1]).toContain('keys revoke')
  expect(out + table.out).not.toContain(key)
})

it('a key is created with caps by currency, which its successor keeps', async () => {
  const caps = ['--refund-max', 'VND:500000,USD:20.50', '--refund-daily-max', 'VND:2000000']
  const made = await make(`shop-${randomUUID()}`, ...caps)
  const { code, out } = await keys('rotate', made.id, '--json')
  expect(code).toBe(0)
  expect(await findListed(Made.parse(JSON.parse(out)).id)).toMatchObject({
    refundMax: null,
    refundDailyMax: null,
    refundMaxByCurrency: { VND: '500000', USD: '20.50' },
    refundDailyMaxByCurrency: { VND: '2000000' },
    replaces: made.id,
  })
  expect((await keys('list')).out).toMatch(/ USD 20\.50, VND 500000 +VND 2000000 /)
})

describe('a command that cannot run prints one line with exit code 2, and changes nothing', () => {
  const create = 'create x --merchant * --scopes ops'
  it.each([
    ['no scopes', 'create x --merchant *', /--scopes <value>' not specified/],
    ['no account', 'create x --scopes all', /--merchant <value>' not specified/],
    ['an unknown scope', `${create},gods`, /some of payments:read,/],
    [
      'an unknown account',
      'create x --scopes ops --merchant NOBODY',
      /unknown merchant account NOBODY; known accounts: UFLIYL/,
    ],
    ['a cap of nothing', `${create} --refund-max 0`, /It must be an amount like 500000/],
    ['a cap of a currency twice', `${create} --refund-max VND:1,VND:2`, /It must be an amount/],
    ['a cap of nothing in a currency', `${create} --refund-max VND:0`, /It must be an amount/],
    ['a cap too exact', `${create} --refund-daily-max 0.00001`, /It must be an amount/],
    ['no rate', `${create} --rate 0`, /It must be a whole number/],
    ['an expiry in the past', `${create} --expires 2020-01-01T00:00:00Z`, /It is in the past/],
    ['an expiry that is no time', `${create} --expires soon`, /It must be a duration like 90d/],
    ['the name of the demo', create.replace('x', 'demo'), /other than demo/],
  ])('%s', async (_, args, words) => {
    const before = await rig.database.sql`select count(*) from actors`
    const { code, out, err } = await keys(...args.split(' '))
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err.trimEnd()).toMatch(words)
    expect(err.trimEnd().split('\n')).toHaveLength(1)
    expect(err).not.toContain('ipn_')
    expect(await rig.database.sql`select count(*) from actors`).toEqual(before)
  })

  it('a missing, unreachable, refusing, empty or invalid database', async () => {
    const list = (env: Record<string, string>) => runCli(['keys', 'list'], env)
    const empty = await createOwnDatabase({ empty: true })
    const refusing = new URL(rig.database.url)
    refusing.pathname = '/nothing_here'
    const tries = [
      await list({ DATA_DIR: makeFolder() }),
      await list({ DATABASE_URL: 'postgres://127.0.0.1:1/x' }),
      await list({ DATABASE_URL: refusing.href }),
      await list({ DATABASE_URL: empty.url }),
      await list({ DATABASE_URL: 'mysql://db' }),
    ]
    // Only a wrong setting is a wrong use: of any other database the command may be right.
    const codes = [1, 1, 1, 1, 2]
    const words = [
      /^error: there is no database in DATA_DIR; start the service once .*, or set DATABASE_URL\n$/,
      /^error: The database at DATABASE_URL is unreachable \(\w+\): check its address .*\n$/,
      /^error: The database at DATABASE_URL refused the connection \(3D000\): check .*\n$/,
      /^error: the schema public holds no installation: set DATABASE_SCHEMA .* cells list" .*\n$/,
      /^error: DATABASE_URL must be a URL that starts with postgres:.*\n$/,
    ]
    for (const [at, { code, out, err }] of tries.entries()) {
      expect({ code, out }).toEqual({ code: codes[at], out: '' })
      expect(err).toMatch(words[at] ?? /never/)
    }
  })
})

it('the command line uses the embedded database whether it is running or not', async () => {
  const folder = makeFolder()
  const database = await startHere(folder)
  await migrateDatabase(database.url)
  const create = ['keys', 'create', 'mine', '--scopes', 'all', '--merchant', '*', '--json']
  const made = await runCli(create, { DATA_DIR: folder })
  expect(made).toMatchObject({ code: 0, err: '' })
  await database.stop()
  const { code, out, err } = await runCli(['keys', 'list'], { DATA_DIR: folder })
  expect({ code, err }).toEqual({ code: 0, err: '' })
  expect(out).toContain(Made.parse(JSON.parse(made.out)).id)
})

describe('a change of a key that is refused exits with 1, and changes nothing, of', () => {
  it.each(['revoke', 'rotate'])('an unknown key: %s', async (change) => {
    const { code, out, err } = await keys(change, 'ipn_something')
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err).toBe('error: no key has this id and no live key has this name; see keys list\n')
  })

  it('a name that two live keys have', async () => {
    await make('twice')
    await make('twice')
    const { code, err } = await keys('revoke', 'twice')
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining('several live keys') })
  })

  it('a key that has ended', async () => {
    const { id } = await make('ended')
    await keys('revoke', id)
    const { code, err } = await keys('rotate', id)
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining('expired or revoked') })
  })
})
