import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import {
  afterAll,
  beforeAll,
  beforeEach,
  describe,
  expect,
  inject,
  it,
  onTestFinished,
} from 'vitest'
import { z } from 'zod'
import { openExportFile } from '../../../src/cli/export-file.ts'
import { raiseEpoch } from '../../../src/db/installation.ts'
import { publishEvents } from '../../../src/feed/publish-events.ts'
import { OTHER, seedPayment, seedTransaction, writeMerchantsFile } from '../../support/api.ts'
import { ask, expectTaken, RECEIVER } from '../../support/ask.ts'
import { runCli } from '../../support/cli.ts'
import { fillRows } from '../../support/fill.ts'
import type { Rig } from '../../support/service.ts'
import { MERCHANT } from '../../support/service.ts'
import { useRig } from '../../support/use-started.ts'

const accounts = writeMerchantsFile([MERCHANT, OTHER])
const rig = useRig({ settings: { ROLE: 'web', MERCHANTS_FILE: accounts.path } })
const DATA_ENCRYPTION_KEY = Buffer.alloc(32, 7).toString('base64')
const environment = ({ database }: Pick<Rig, 'database'> = rig) => ({
  DATABASE_URL: database.url,
  DATA_ENCRYPTION_KEY,
})
const run = (...args: string[]) => runCli(['export', ...args], environment())
const folder = mkdtempSync(join(tmpdir(), 'ipn-export-'))
afterAll(() => {
  accounts.remove()
  rmSync(folder, { recursive: true })
})

/** Stores events of a payment that is there. */
async function insertEvents(
  { api, database }: Rig,
  { transactionId, paymentId }: { transactionId: string; paymentId: string },
): Promise<void> {
  const payment = await (await api(`/v1/payments/${paymentId}`)).json()
  await database.sql`
    insert into events (merchant_code, transaction_id, type, data, at)
    select ${MERCHANT.merchantCode}, ${transactionId}, 'payment.created', ${JSON.stringify(payment)}::json, now()
    from generate_series(1, 430)`
}

beforeAll(async () => {
  const { database } = rig
  await fillRows(database, 1, 430)
  const of = { transactionId: 'T-elsewhere', merchantCode: OTHER.merchantCode }
  await seedTransaction(database, { ...of, orderId: '=1+1', state: 'paid' })
  const amount = { amount: '100.50', paymentMethod: 'QR' }
  await seedPayment(database, { ...of, paymentId: 'P-elsewhere', ...amount })
  await seedPayment(database, { transactionId: 'T-000001', paymentId: 'P-refunded', ...amount })
  await expectTaken(
    await ask({ url: rig.service.url }, 'P-refunded', { receiver: RECEIVER, amount: '5' }),
  )
  // One of a refund, which holds an encrypted receiver, and many of a payment.
  await database.sql`delete from event_outbox where data::text = '{}'`
  await database.sql`delete from events`
  await insertEvents(rig, { transactionId: 'T-000001', paymentId: 'P-000001' })
  await publishEvents(database.sql)
})

const Page = z.object({ data: z.array(z.object({})), nextCursor: z.string().nullable() })
const Loose = z.object({ data: z.array(z.looseObject({})), nextCursor: z.string().nullable() })

/** All rows of a list as the API has them. The feed ends with a page that is empty. */
async function readApi(list: string, query = ''): Promise<object[]> {
  const rows: object[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const from: string = list === 'events' ? 'after' : 'cursor'
    const more: string = cursor === '' ? '' : `&${from}=${cursor}`
    const response = await rig.api(`/v1/${list}?limit=200${query}${more}`)
    const { data, nextCursor } = Loose.parse(await response.json())
    rows.push(...data)
    cursor = list === 'events' && data.length === 0 ? null : nextCursor
  }
  return rows
}

/** The same as CSV, with the header once. */
async function readApiCsv(list: string, query = ''): Promise<string> {
  let all = ''
  let path: string | undefined = `/v1/${list}?limit=200${query}`
  while (path !== undefined) {
    const response = await rig.api(path, { headers: { accept: 'text/csv' } })
    const text = await response.text()
    const body = text.slice(text.indexOf('\r\n') + 2)
    all += all === '' ? text : body
    const next: string | undefined = /^<([^>]+)>/.exec(response.headers.get('link') ?? '')?.[1]
    path = body === '' ? undefined : next
  }
  return all
}

describe.each(['transactions', 'payments', 'refunds', 'events', 'discrepancies'])('%s', (list) => {
  it('as lines of JSON are the objects of the API, and as CSV its rows', async () => {
    const wanted = await readApi(list)
    expect(wanted.length).toBeGreaterThan(40)
    const lines = await run(list, '--format', 'jsonl')
    expect(lines).toMatchObject({ code: 0, err: `${wanted.length} ${list}\n` })
    expect(lines.out).toBe(wanted.map((row) => `${JSON.stringify(row)}\n`).join(''))
    // As every command takes it.
    expect(await run(list, '--json')).toEqual(lines)
    const csv = await run(list)
    expect(csv).toMatchObject({ code: 0, out: await readApiCsv(list) })
    expect(csv.out + lines.out).not.toContain(RECEIVER.accountNumber)
  })
})

it.each([
  ['payments', '&amount=100.5&merchantCode=OTHER1', ['--amount', '100.5', '--merchant', 'OTHER1']],
  ['refunds', '&status=pending', ['--status', 'pending']],
  ['transactions', '&orderId=O-000007', ['--order-id', 'O-000007']],
  ['discrepancies', '&kind=ipn_missing', ['--kind', 'ipn_missing']],
  ['events', '&merchantCode=OTHER1', ['--merchant', 'OTHER1']],
])('%s filtered by %s are those of the API', async (list, query, args) => {
  const { code, out } = await run(list, '--format', 'jsonl', ...args)
  expect(code).toBe(0)
  const rows = out
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => Page.shape.data.element.loose().parse(JSON.parse(line)))
  expect(rows).toEqual(await readApi(list, query))
})

it.each(['payments', 'discrepancies'])('%s of a time are those of the API', async (list) => {
  const [, , third, , fifth] = await readApi(list)
  const times = z.object({ firstSeenAt: z.string() })
  const [from, to] = [times.parse(fifth).firstSeenAt, times.parse(third).firstSeenAt]
  const { out } = await run(list, '--format', 'jsonl', '--from', from, '--to', to)
  const wanted = await readApi(list, `&from=${from}&to=${to}`)
  expect(wanted.length).toBeGreaterThan(0)
  expect(out).toBe(wanted.map((row) => `${JSON.stringify(row)}\n`).join(''))
})

it('events of a time are found without reading those before and after', async () => {
  const { sql } = rig.database
  await sql`update events set at = at - (1000 - id) * interval '1 hour'`
  onTestFinished(async () => {
    await sql`update events set at = at + (1000 - id) * interval '1 hour'`
  })
  const rows = await sql<{ id: number; at: string }[]>`select id, at::text from events order by id`
  const [from, to] = [rows.at(-40)?.at ?? '', rows.at(-30)?.at ?? '']
  const iso = (at: string) => new Date(at).toISOString()
  const { out } = await run('events', '--format', 'jsonl', '--from', iso(from), '--to', iso(to))
  const Id = z.object({ id: z.string() })
  const ids = out
    .trim()
    .split('\n')
    .map((line) => Id.parse(JSON.parse(line)).id)
  expect(ids).toEqual(rows.slice(-40, -30).map(({ id }) => String(id)))
})

describe('to a file', () => {
  it('goes on where it was cut off, with each row once, and then keeps no place', async () => {
    const file = join(folder, 'cut.csv')
    const whole = await readApiCsv('transactions')
    const page = await rig.api('/v1/transactions?limit=200', { headers: { accept: 'text/csv' } })
    const begun = await page.text()
    const cursor = /cursor=([^&>]+)/.exec(page.headers.get('link') ?? '')?.[1] ?? ''
    const of = JSON.stringify({ list: 'transactions', format: 'csv', filter: {} })
    const place = {
      of,
      cursor: decodeURIComponent(cursor),
      rows: 200,
      bytes: Buffer.byteLength(begun),
    }
    writeFileSync(`${file}.cursor`, JSON.stringify(place))
    // Rows of the next page were written, but not the place behind them.
    writeFileSync(file, begun + whole.slice(begun.length, begun.length + 700))
    const { code, out, err } = await run('transactions', '--output', file)
    expect({ code, out }).toEqual({ code: 0, out: '' })
    expect(err).toBe('goes on behind 200 transactions\n431 transactions\n')
    expect(readFileSync(file, 'utf8')).toBe(whole)
    expect(existsSync(`${file}.cursor`)).toBe(false)
    // A complete file is never taken for one to go on with.
    const again = await run('transactions', '--output', file)
    expect(again).toMatchObject({ code: 2, err: expect.stringContaining('is there already') })
  })

  it('saves its place after each page, and none behind the last one', async () => {
    const file = join(folder, 'places')
    const first = openExportFile(file, 'it')
    expect(first).toMatchObject({ cursor: null, bytes: 0, rows: 0 })
    await first.write('ä\n', { cursor: 'c1', rows: 1 })
    await first.write('b\n', { cursor: null, rows: 2 })
    appendFileSync(file, 'torn')
    const second = openExportFile(file, 'it')
    expect(second).toMatchObject({ cursor: 'c1', bytes: 3, rows: 1 })
    expect(readFileSync(file, 'utf8')).toBe('ä\n')
  })

  it('ends as a failure where the disk takes no more, and goes on once it does', async () => {
    const file = join(folder, 'full.csv')
    const whole = await readApiCsv('transactions')
    const most = Math.ceil(whole.length / 2_048)
    const command = `ulimit -f ${most}; exec "$0" "$@"`
    const args = [inject('programs').cli, 'export', 'transactions', '--output', file]
    const child = spawn('bash', ['-c', command, process.execPath, ...args], { env: environment() })
    const [err] = await Promise.all([text(child.stderr), once(child, 'close')])
    expect({ code: child.exitCode, err }).toEqual({
      code: 1,
      err: expect.stringMatching(/full\.csv cannot be written: EFBIG/),
    })
    const { code, err: progress } = await run('transactions', '--output', file)
    expect({ code, progress }).toEqual({
      code: 0,
      progress: expect.stringMatching(/^goes on behind/),
    })
    expect(readFileSync(file, 'utf8')).toBe(whole)
  })

  it.each([
    ['another filter', ['--state', 'paid'], 'is not this export'],
    ['another format', ['--format', 'jsonl'], 'is not this export'],
    ['a file that has become shorter', [], 'is shorter than it was'],
  ])('refuses to go on with %s', async (_, args, words) => {
    const file = join(folder, `other${args.length}${args.at(-1)}`)
    const of = JSON.stringify({ list: 'transactions', format: 'csv', filter: {} })
    writeFileSync(`${file}.cursor`, JSON.stringify({ of, cursor: null, rows: 9, bytes: 9 }))
    writeFileSync(file, 'short')
    const { code, err } = await run('transactions', '--output', file, ...args)
    expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(words) })
    expect(readFileSync(file, 'utf8')).toBe('short')
  })

  it('refuses a folder that is not there, and a place that is none', async () => {
    const nowhere = await run('payments', '--output', join(folder, 'no', 'file.csv'))
    expect(nowhere).toMatchObject({ code: 2, err: expect.stringContaining('no such file') })
    writeFileSync(join(folder, 'odd.cursor'), 'x')
    const odd = await run('payments', '--output', join(folder, 'odd'))
    expect(odd).toMatchObject({ code: 2, err: expect.stringContaining('delete it') })
  })
})

it('as a process, it ends without a word when whoever reads has read enough', async () => {
  const args = ['export', 'transactions', '--format', 'jsonl']
  const child = spawn(process.execPath, [inject('programs').cli, ...args], { env: environment() })
  const ended = once(child, 'close')
  child.stdout.once('data', () => child.stdout.destroy())
  expect(await text(child.stderr)).toBe('')
  await ended
  expect(child.exitCode).toBe(0)
})

it.each([
  [
    'a date without a time',
    ['payments', '--from', '2026-11-21'],
    'It must be a time like 2026-11-21T09:00:00Z',
  ],
  [
    'a status',
    ['payments', '--status', 'SUCESS'],
    'Did you mean SUCCESS? It is one of SUCCESS, FAILED',
  ],
  ['a kind', ['discrepancies', '--kind', 'ipn_mising'], 'Did you mean ipn_missing?'],
  ['a type', ['events', '--types', 'payment.upated'], 'It must be one of payment.created'],
  ['an amount', ['payments', '--amount', '1,5'], 'It must be a decimal like 10000.50'],
  ['a format', ['payments', '--format', 'xml'], 'It is one of csv, jsonl'],
  ['two formats', ['payments', '--json', '--format', 'csv'], 'name one format'],
  ['a list', ['paymets'], "unknown command 'paymets' (did you mean payments?)"],
  [
    'an option',
    ['payments', '--formt', 'csv'],
    "unknown option '--formt' (did you mean --format?)",
  ],
  ['an account', ['payments', '--merchant', 'UFLIYI'], 'known accounts: '],
  ['no list', [], 'see npm run -s cli -- --help'],
])('exits with 2 and the right spelling for %s', async (_, args, words) => {
  const { code, out, err } = await run(...args)
  expect({ code, out, err }).toEqual({ code: 2, out: '', err: expect.stringContaining(words) })
})

it('needs the key of the service for what is encrypted, and for nothing else', async () => {
  const env = { DATABASE_URL: rig.database.url }
  expect(await runCli(['export', 'payments'], env)).toMatchObject({ code: 0 })
  const refused = await runCli(['export', 'refunds'], env)
  expect(refused).toMatchObject({ code: 2, err: expect.stringContaining('DATA_ENCRYPTION_KEY') })
})

describe('what is sealed under a data key that is lost', () => {
  beforeAll(async () => {
    const { sql } = rig.database
    await sql`create table kept_refunds as select * from refunds`
    await sql`create table kept_events as select * from events`
    const lost = Buffer.alloc(8, 9)
    await sql`update refunds set receiver_shown = overlay(receiver_shown placing ${lost} from 5 for 8)`
    await sql`
      update events set data = replace(data::text, data -> 'receiver' ->> 'sealed', translate(encode(
        overlay(decode(data -> 'receiver' ->> 'sealed', 'base64') placing ${lost} from 5 for 8), 'base64'), E'\\n', ''))::json
      where type = 'refund.created'`
  })

  afterAll(async () => {
    const { sql } = rig.database
    await sql`
      update refunds set receiver_shown = k.receiver_shown from kept_refunds as k
      where k.merchant_code = refunds.merchant_code and k.refund_id = refunds.refund_id`
    await sql`update events set data = k.data from kept_events as k where k.id = events.id`
    await sql`drop table kept_refunds, kept_events`
  })

  it.each(['events', 'refunds'])('does not end the export of %s', async (list) => {
    expect(await run(list, '--format', 'jsonl')).toMatchObject({ code: 0 })
  })

  it('does not end a story', async () => {
    const shown = await runCli(['show', 'T-000001', '--json'], environment())
    expect(shown).toMatchObject({ code: 0 })
  })
})

describe('events', () => {
  /** A database of their own: a restore is not undone. */
  const rig = useRig({ settings: { ROLE: 'web', MERCHANTS_FILE: accounts.path } })
  const of = { transactionId: 'T-1', paymentId: 'P-1' }
  beforeAll(async () => {
    await seedTransaction(rig.database, of)
    await seedPayment(rig.database, of)
  })
  beforeEach(() => insertEvents(rig, of))

  const listIds = async () => {
    const args = ['export', 'events', '--format', 'jsonl']
    const { code, out, err } = await runCli(args, environment(rig))
    const lines = out.split('\n').filter((line) => line !== '')
    const Id = z.object({ id: z.string() })
    return { code, err, ids: lines.map((line) => Id.parse(JSON.parse(line)).id) }
  }

  it('from before a confirmed restore are written as well as those since', async () => {
    const { sql } = rig.database
    const cursor = (await listIds()).ids.at(-1)
    await sql.begin(raiseEpoch)
    await sql`
      insert into events (merchant_code, transaction_id, type, data, at)
      select merchant_code, transaction_id, type, data, at from events order by id desc limit 1`
    expect((await rig.api(`/v1/events?after=${cursor}`)).status).toBe(410)
    const stored = await sql<{ id: number }[]>`select id from events order by id`
    const ids = stored.map(({ id }) => String(id))
    expect(ids.length).toBeGreaterThan(400)
    expect(await listIds()).toEqual({ code: 0, err: `${ids.length} events\n`, ids })
  })

  it('of which none is kept are an empty file', async () => {
    await rig.database.sql`delete from events`
    expect(await listIds()).toMatchObject({ code: 0, ids: [] })
  })
})
