import { Readable } from 'node:stream'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { runCli as runStreams } from '../../../src/cli/run.ts'
import { OTHER, seedTransaction, writeMerchantsFile } from '../../support/api.ts'
import { ask, expectTaken, payQuietly } from '../../support/ask.ts'
import { runCli } from '../../support/cli.ts'
import { emptyTables } from '../../support/database.ts'
import { MERCHANT, postIpn, signIpn } from '../../support/service.ts'
import { countQueries, makeTransaction, notifyOf, waitForQueries } from '../../support/sync.ts'
import { useRig } from '../../support/use-started.ts'

const accounts = writeMerchantsFile([MERCHANT, OTHER])
afterAll(() => accounts.remove())

describe('requeue', () => {
  const rig = useRig({ settings: { ROLE: 'web', MERCHANTS_FILE: accounts.path } })
  const run = (...args: string[]) =>
    runCli(['requeue', ...args], { DATABASE_URL: rig.database.url })
  const listDue = async () => {
    const rows = await rig.database.sql<{ name: string }[]>`
      select merchant_code || ' ' || transaction_id as name from transactions
      where due_at <= now() and abandoned_at is null and attempts = 0 order by 1`
    return rows.map(({ name }) => name)
  }

  beforeEach(async () => {
    await emptyTables(rig.database)
    for (const { merchantCode } of [MERCHANT, OTHER]) {
      for (const n of [1, 2, 3]) {
        const firstSeenAt = `2026-03-0${n}T09:00:00Z`
        await seedTransaction(rig.database, { transactionId: `T-${n}`, merchantCode, firstSeenAt })
      }
    }
    await rig.database.sql`
      update transactions set abandoned_at = now(), attempts = 30, last_error = 'refused'
      where transaction_id in ('T-1', 'T-2')`
  })

  it('makes those of a filter due, and leaves other accounts alone', async () => {
    const { code, out, err, entries } = await run('--sync', 'abandoned', '--merchant', 'UFLIYL')
    expect({ code, out, err }).toEqual({
      code: 0,
      out: '2 transactions: the gateway is asked about them\n',
      err: '',
    })
    expect(await listDue()).toEqual(['UFLIYL T-1', 'UFLIYL T-2'])
    expect(entries.map((line) => JSON.parse(line))).toEqual([
      expect.objectContaining({
        ...{ operation: 'requeue', merchantCode: 'UFLIYL', objectId: '2 transactions' },
      }),
    ])
  })

  it.each([
    ['a time', ['--from', '2026-03-02T00:00:00Z', '--to', '2026-03-03T00:00:00Z'], 2],
    ['a time and a state of sync', ['--from', '2026-03-02T00:00:00Z', '--sync', 'idle'], 2],
    ['an id of an account', ['T-3', '--merchant', 'OTHER1'], 1],
    ['a state', ['--state', 'pending', '--merchant', 'OTHER1'], 3],
    ['a state that none has', ['--state', 'refunded'], 0],
  ])('finds those of %s; a dry run only counts them', async (_, args, count) => {
    const dry = await run(...args, '--dry-run', '--json')
    expect(dry.code).toBe(0)
    expect(JSON.parse(dry.out)).toEqual({ transactions: count, requeued: 0 })
    expect(await listDue()).toEqual([])
    const done = await run(...args, '--json')
    expect(JSON.parse(done.out)).toEqual({ transactions: count, requeued: count })
    expect(await listDue()).toHaveLength(count)
  })

  it.each([
    ['no filter', [], 2, 'name transactions, or a filter'],
    ['ids and a filter', ['T-1', '--sync', 'idle'], 2, 'not both'],
    ['a state of sync', ['--sync', 'abandond'], 2, 'Did you mean abandoned?'],
    ['an id that is not known', ['T-1', 'T-9', '--merchant', 'OTHER1'], 1, 'No transaction T-9'],
    [
      'an id of two accounts',
      ['T-1'],
      1,
      'Several merchant accounts have a transaction with this id',
    ],
  ])('refuses %s, and changes nothing', async (_, args, code, words) => {
    const refused = await run(...args)
    expect(refused).toMatchObject({ code, out: '', err: expect.stringContaining(words) })
    expect(await listDue()).toEqual([])
  })

  describe('of more than 1,000', () => {
    beforeEach(async () => {
      await rig.database.sql`
        insert into transactions (merchant_code, transaction_id, state, first_seen_at)
        select 'OTHER1', 'M-' || n, 'failed', now() - n * interval '1 s' from generate_series(1, 1001) as n`
    })
    const args = ['--state', 'failed']

    /** Answers on a terminal. */
    const answer = async (text: string, more: string[] = []) => {
      let err = ''
      const input = Object.assign(Readable.from([Buffer.from(text)]), { isTTY: true })
      const code = await runStreams(['requeue', ...args, ...more], {
        ...{ name: 'cli', env: { DATABASE_URL: rig.database.url }, input, print: () => {} },
        printError: (line) => {
          err += line
        },
      })
      return { code, err, due: (await listDue()).length }
    }

    it('wants --yes where nobody can be asked', async () => {
      const refused = await run(...args)
      expect(refused).toMatchObject({ code: 2, err: expect.stringContaining('need --yes') })
      expect(await listDue()).toEqual([])
      expect(await run(...args, '--yes')).toMatchObject({ code: 0 })
      expect(await listDue()).toHaveLength(1001)
    })

    it('asks on a terminal, but not with --no-input', async () => {
      const question = expect.stringContaining('about 1001 transactions. Go on? [y/N] ')
      expect(await answer('n\n')).toEqual({ code: 1, err: question, due: 0 })
      expect(await answer('y\n', ['--no-input'])).toMatchObject({ code: 2, due: 0 })
      expect(await answer('y\n')).toEqual({ code: 0, err: question, due: 1001 })
    })
  })
})

describe('replay', () => {
  const rig = useRig({ settings: { REFUND_APPROVAL_ABOVE: 'VND:1' } })
  const run = (...args: string[]) => runCli(['replay', ...args], { DATABASE_URL: rig.database.url })
  let refund: Awaited<ReturnType<typeof expectTaken>>
  beforeAll(async () => {
    await makeTransaction(rig, 'A-1', [{ id: 'AP-1' }])
    await notifyOf(rig, 'A-1')
    await waitForQueries(rig, 'A-1', 1)
    const paid = await payQuietly(rig)
    refund = await expectTaken(
      await ask({ url: rig.service.url }, paid.id, {
        amount: '5',
        receiver: { accountName: 'A', accountNumber: '123456', swiftCode: 'ASCBVNVX' },
      }),
    )
    expect(refund.status).toBe('awaiting_approval')
    const ofRefund = (requestId: string, paymentId: string) =>
      postIpn(
        rig.service.url,
        signIpn({ svc_Command: 'REFUND', svc_RequestID: requestId, svc_PaymentID: paymentId }),
      )
    await ofRefund('somebody-else', paid.id)
    await ofRefund('of-nothing', 'P-unknown')
  })

  it('asks again about what notifications name, counts nothing twice and sends no refund', async () => {
    const before = await countQueries(rig, 'A-1')
    const counts = { notifications: 3, ofUnknownPayments: 1, transactions: 2 }
    const dry = await run('--from', '2020-01-01T00:00:00Z', '--dry-run', '--json')
    expect(JSON.parse(dry.out)).toEqual({ ...counts, requeued: 0 })
    const done = await run('--from', '2020-01-01T00:00:00Z', '--json')
    expect(done).toMatchObject({ code: 0 })
    expect(JSON.parse(done.out)).toEqual({ ...counts, requeued: 2 })
    await waitForQueries(rig, 'A-1', before + 1)
    expect(await rig.transaction('A-1')).toMatchObject({ ipnCount: 1 })
    expect(await rig.control('GET', '/calls?command=REFUND')).toEqual({ data: [] })
    const kept = await rig.api(`/v1/refunds/${refund.id}`)
    expect(await kept.json()).toMatchObject({ status: refund.status })
  })

  it.each([
    [['--kind', 'payment'], 1],
    [['--kind', 'refund'], 2],
    [['--signature', 'wrong'], 0],
    [['--to', '2020-01-01T00:00:00Z'], 0],
    [['--merchant', 'UFLIYL'], 3],
  ])('with %j takes up %i', async (args, notifications) => {
    const { out } = await run(...args, '--dry-run', '--json')
    expect(JSON.parse(out)).toMatchObject({ notifications })
  })
})
