import { beforeEach, expect, it } from 'vitest'
import { seedPaid } from '../../support/ask.ts'
import { runCli } from '../../support/cli.ts'
import { emptyTables } from '../../support/database.ts'
import { useRig } from '../../support/use-started.ts'

const rig = useRig({ settings: { ROLE: 'web' } })
let payment: { id: string; transactionId: string }
beforeEach(async () => {
  await emptyTables(rig.database)
  payment = await seedPaid(rig.database)
})

const run = (...args: string[]) => runCli(['holds', ...args], { DATABASE_URL: rig.database.url })

it('holds sets, lists and releases a hold, and shows it on the payment', async () => {
  const set = await run('set', 'payment', payment.id, '--reason', 'fraud?', '--json')
  expect(set).toMatchObject({ code: 0, err: '' })
  const { hold } = JSON.parse(set.out)
  expect(hold).toMatchObject({ reason: 'fraud?', by: expect.stringMatching(/^cli \(.+\)$/) })
  const shown = await rig.api(`/v1/payments/${payment.id}`)
  expect(await shown.json()).toMatchObject({ hold })
  await run('set', 'merchant', 'UFLIYL', '--reason', 'all of them')
  const listed = await run('list', '--json')
  expect(JSON.parse(listed.out)).toMatchObject([
    { target: 'payment', id: payment.id, reason: 'fraud?' },
    { target: 'merchant', id: 'UFLIYL', reason: 'all of them' },
  ])
  expect((await run('list')).out).toContain('fraud?')
  const released = await run('release', 'payment', payment.id, '--reason', 'was none')
  expect(released).toMatchObject({ code: 0, out: `payment ${payment.id} is no longer held\n` })
  // The entry leaves the database at once: nobody can change it unseen before its checkpoint.
  expect(released.entries.map((line) => JSON.parse(line))).toEqual([
    expect.objectContaining({ operation: 'holds release', objectId: payment.id, outcome: 'done' }),
  ])
  expect(JSON.parse((await run('list', '--json')).out)).toHaveLength(1)
  const [audited] = await rig.database.sql`
    select operation, key_id as key, actor from audit_entries where object_id = ${payment.id} order by id desc`
  expect(audited).toMatchObject({ operation: 'holds release', key: null })
})

it('holds names the option that tells two payments of one id apart', async () => {
  await rig.database.sql`insert into merchant_accounts (merchant_code) values ('OTHER2')`
  await seedPaid(rig.database, { merchantCode: 'OTHER2', paymentId: payment.id })
  const set = await run('set', 'payment', payment.id, '--reason', 'x')
  const several = 'Several merchant accounts have a payment with this id'
  expect(set).toMatchObject({ code: 1, err: `error: ${several}: name one with --merchant\n` })
  const one = ['--reason', 'x', '--merchant', 'OTHER2']
  expect(await run('set', 'payment', payment.id, ...one)).toMatchObject({ code: 0 })
})

it('holds exits with 1 for what is not there or not held, and with 2 for wrong use', async () => {
  expect(await run('set', 'payment', 'nope', '--reason', 'x')).toMatchObject({
    code: 1,
    err: expect.stringContaining('No payment nope'),
  })
  expect(await run('release', 'payment', payment.id, '--reason', 'x')).toMatchObject({ code: 1 })
  const elsewhere = ['payment', payment.id, '--reason', 'x', '--merchant', 'OTHER1']
  expect(await run('set', ...elsewhere)).toMatchObject({ code: 2 })
  expect(await run('set', 'payment', payment.id)).toMatchObject({ code: 2 })
  expect(await run('set', 'payment', payment.id, '--reason', ' ')).toMatchObject({ code: 2 })
  expect(await run('set', 'shop', 'x', '--reason', 'x')).toMatchObject({ code: 2 })
})
