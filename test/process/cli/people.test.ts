import { randomUUID } from 'node:crypto'
import { expect, it, vi } from 'vitest'
import { z } from 'zod'
import { signIn } from '../../../src/access/sessions.ts'
import { createRateLimiter } from '../../../src/platform/concurrency/rate-limiter.ts'
import { createLog } from '../../../src/platform/telemetry/log.ts'
import { withKey } from '../../support/api.ts'
import { runCli } from '../../support/cli.ts'
import { MERCHANT } from '../../support/service.ts'
import { useRig } from '../../support/use-started.ts'

const Invited = z.strictObject({
  id: z.uuid(),
  name: z.string(),
  email: z.string().nullable(),
  roles: z.array(z.string()),
  merchants: z.array(z.string()),
  language: z.enum(['en', 'vi']).nullable(),
  timeZone: z.string().nullable(),
  link: z.string(),
  linkExpiresAt: z.iso.datetime(),
})

const rig = useRig({ settings: { ROLE: 'web' } })

const people = (args: readonly string[], env: Record<string, string> = {}) =>
  runCli(['people', ...args], { DATABASE_URL: rig.database.url, ...env })
const keys = (...args: string[]) => runCli(['keys', ...args], { DATABASE_URL: rig.database.url })
const Created = z.object({ id: z.uuid(), key: z.string() })
const newName = () => `Mai ${randomUUID()}`
const use = (link: string) =>
  signIn(
    { db: rig.database, rates: createRateLimiter(), log: createLog('silent') },
    {
      token: link.split('/').at(-1) ?? '',
      ...{ address: '192.0.2.7', userAgent: '', requestId: 'r' },
    },
  )

it('a person is added with roles, accounts and an e-mail address, and gets a link', async () => {
  const name = newName()
  const email = `${randomUUID()}@shop.example`
  const { code, out, err } = await people([
    ...['add', name, '--role', 'agent', '--role', 'approver', '--email', email],
    ...['--merchant', MERCHANT.merchantCode, '--language', 'vi'],
    ...['--time-zone', 'Asia/Ho_Chi_Minh', '--json'],
  ])
  expect({ code, err }).toEqual({ code: 0, err: '' })
  const added = Invited.parse(JSON.parse(out))
  expect(added).toMatchObject({ name, email, roles: ['agent', 'approver'] })
  expect(added).toMatchObject({ language: 'vi', timeZone: 'Asia/Ho_Chi_Minh' })
  const wrong = await people(['add', newName(), '--role', 'agent', '--time-zone', 'Mars'])
  expect(wrong).toMatchObject({ code: 2, err: expect.stringContaining('time zone') })
  expect(added.merchants).toEqual([MERCHANT.merchantCode])
  expect((await use(added.link)).kind).toBe('opened')
  const listed = await people(['list', '--json'])
  expect(JSON.parse(listed.out)).toContainEqual(
    expect.objectContaining({ name, email, sessions: 1, endedAt: null }),
  )
  // A column is as wide as the longest name.
  expect((await people(['list'])).out).toMatch(new RegExp(`^${name} {2,}${email} `, 'm'))
})

it('without --merchant a person has every account', async () => {
  const { out } = await people(['add', newName(), '--role', 'viewer', '--json'])
  expect(Invited.parse(JSON.parse(out)).merchants).toEqual(['*'])
})

it('with --link-only the link stands alone, at the origin of the settings or on this machine', async () => {
  const name = newName()
  const add = ['add', name, '--role', 'viewer', '--link-only']
  const { out } = await people(add, { PORT: '3456' })
  expect(out).toMatch(/^http:\/\/localhost:3456\/console\/sign-in\/[\w-]{43}\n$/)
  const base = { CONSOLE_BASE_URL: 'https://console.shop.example/' }
  const second = await people(['link', name.toUpperCase(), '--link-only'], base)
  expect(second.out).toMatch(/^https:\/\/console\.shop\.example\/console\/sign-in\/[\w-]{43}\n$/)
  const explained = await people(['link', name])
  expect(explained.out).toMatch(
    /^http:\/\/localhost:3000\/console\/sign-in\/[\w-]{43}\n\nThis link/,
  )
})

it('a removed person has no way in, and the name is free again', async () => {
  const name = newName()
  const add = ['add', name, '--role', 'admin', '--link-only']
  const { out: link } = await people(add)
  expect(await people(['remove', name])).toMatchObject({
    code: 0,
    out: `the access of ${name} has ended\n`,
    err: '',
  })
  expect((await use(link.trim())).kind).toBe('refused')
  expect((await people(['remove', name])).code).toBe(1)
  expect((await people(['link', name])).code).toBe(1)
  expect((await people(add)).code).toBe(0)
})

it('a removed person has no key left: each is named, and is in the audit log', async () => {
  const name = newName()
  const { sql } = rig.database
  await people(['add', name, '--role', 'operator'])
  const add = async (...more: string[]) =>
    Created.parse(JSON.parse((await keys('create', 'k', '--scopes', 'all', ...more, '--json')).out))
  const own = await add('--merchant', '*', '--person', name.toUpperCase())
  const other = await add('--merchant', MERCHANT.merchantCode, '--person', newName())
  const rotated = await keys('rotate', own.id, '--json')
  const next = Created.parse(JSON.parse(rotated.out))
  const isLive = async ({ key }: z.infer<typeof Created>) =>
    (await fetch(`${rig.service.url}/v1/payments`, withKey(key))).status === 200
  const [endpoint] = await sql<{ id: string }[]>`
    insert into webhook_endpoints (merchant_code, url, types, secret, key_chain_id, cursor, api_version)
    values ('*', 'https://shop.example/hook', '{payment.updated}', '', ${own.id}, 0, '')
    returning id`
  expect(await isLive(next)).toBe(true)
  const { out } = await people(['remove', name])
  expect(out).toMatch(new RegExp(`^the access of ${name} has ended, and 2 API keys with it:\\n`))
  for (const { id } of [own, next, endpoint ?? expect.fail()]) expect(out).toContain(id)
  await vi.waitFor(async () => {
    expect(await Promise.all([own, next, other].map(isLive))).toEqual([false, false, true])
  })
  for (const { id } of [own, next]) {
    expect((await keys('revoke', id)).out).toContain('was already revoked')
    const [entry] = await sql`
      select operation, merchant_code as "merchantCode", outcome from audit_entries
      where object_id = ${id} order by id desc`
    expect(entry).toEqual({ operation: 'people remove', merchantCode: '*', outcome: 'done' })
  }
  expect((await keys('list')).out).toMatch(new RegExp(`^${other.id} .* Mai `, 'm'))
})

it('each command is in the audit log, and a key of a person in no list of keys', async () => {
  const name = newName()
  await people(['add', name, '--role', 'viewer'])
  await people(['link', name])
  await people(['remove', name])
  const rows = await rig.database.sql<{ operation: string }[]>`
    select operation from audit_entries
    where object_id = (select id::text from actors where name = ${name}) and actor like 'cli (%' order by id`
  const operations = rows.map(({ operation }) => operation)
  expect(operations).toEqual(['people add', 'people link', 'people link', 'people remove'])
  const keys = await runCli(['keys', 'list'], { DATABASE_URL: rig.database.url })
  expect(keys.out).not.toContain(name)
  for (const command of ['rotate', 'revoke']) {
    const other = await people(['add', `${name} ${command}`, '--role', 'viewer', '--json'])
    expect(Invited.parse(JSON.parse(other.out)).merchants).toEqual(['*'])
    const [row] = await rig.database.sql<{ keyId: string }[]>`
      select id as "keyId" from actors where id = ${Invited.parse(JSON.parse(other.out)).id}`
    for (const ref of [`${name} ${command}`, row?.keyId ?? '']) {
      const refused = await runCli(['keys', command, ref], { DATABASE_URL: rig.database.url })
      expect(refused).toMatchObject({ code: 1, out: '' })
    }
  }
})

it('a taken name is refused with exit code 1, wrong use with 2', async () => {
  const name = newName()
  const add = (...more: string[]) => people(['add', ...more])
  expect((await add(name, '--role', 'viewer')).code).toBe(0)
  expect(await add(name.toLowerCase(), '--role', 'viewer')).toMatchObject({
    ...{ code: 1, out: '' },
    err: 'error: another person has this name; see people list\n',
  })
  for (const wrong of [
    [newName()],
    [newName(), '--role', 'king'],
    [newName(), '--role', 'viewer', '--merchant', 'NOBODY'],
    [newName(), '--role', 'viewer', '--email', 'mai'],
    ['demo', '--role', 'viewer'],
    ['a\u202eb', '--role', 'viewer'],
    [' ', '--role', 'viewer'],
  ]) {
    expect(await add(...wrong)).toMatchObject({ code: 2, out: '' })
  }
})

it('what names one person and is the address of another is ambiguous', async () => {
  const email = `${randomUUID()}@shop.example`
  await people(['add', newName(), '--role', 'viewer', '--email', email])
  await people(['add', email, '--role', 'viewer'])
  expect(await people(['link', email])).toMatchObject({
    ...{ code: 1, out: '' },
    err: expect.stringContaining('the e-mail address of another'),
  })
})
