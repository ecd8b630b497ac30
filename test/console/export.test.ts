import { readFileSync } from 'node:fs'
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import type { Page } from 'playwright-core'
import readExcel from 'read-excel-file/node'
import { beforeAll, describe, expect, it } from 'vitest'
import { text } from '../../src/console/cells.tsx'
import type { ConsoleEnv } from '../../src/console/env.ts'
import { respondCsvFile } from '../../src/console/export.ts'
import { requireSession } from '../../src/console/session.ts'
import { findText, type Language, type TextKey } from '../../src/console/texts/text.ts'
import { requireScope, showTo } from '../../src/console/view.ts'
import { addAmounts } from '../../src/money.ts'
import { createLog } from '../../src/platform/telemetry/log.ts'
import { OTHER, seedPayment, seedTransaction, TWO_ACCOUNTS } from '../support/api.ts'
import { ask, expectTaken } from '../support/ask.ts'
import { describeInBrowser, openProfile, openSessionIn } from '../support/browser.ts'
import { addVisitor, type Visitor, visitAs } from '../support/console.ts'
import { readText } from '../support/read-html.ts'
import { MERCHANT } from '../support/service.ts'
import { useRig } from '../support/use-started.ts'

const MONTH = 'from=2026-11-01&to=2026-11-30'
const MOST = '999999999999999999.9999'
const settings = { ROLE: 'web', ...TWO_ACCOUNTS, CAPS_TIME_ZONE: 'Asia/Ho_Chi_Minh' }
const rig = useRig({ settings })
let operator: Visitor
beforeAll(async () => {
  const { database } = rig
  operator = await addVisitor(database, { roles: ['operator'], merchants: [MERCHANT.merchantCode] })
  // The month of Vietnam begins seven hours before that of UTC, and ends as much earlier.
  const outside = ['2026-10-31T16:59:59Z', '2026-11-30T17:00:00Z']
  const inside = ['2026-10-31T17:00:00Z', '2026-11-30T16:59:59Z']
  const busy = Array.from(
    { length: 60 },
    (_, n) => `2026-11-15T10:00:${String(n).padStart(2, '0')}Z`,
  )
  for (const [n, firstSeenAt] of [...outside, ...inside, ...busy].entries()) {
    const transactionId = `T-${n}`
    const orderId = n === 3 ? '=1+1' : n === 4 ? 'a;"b"' : `DH-${n}`
    await seedTransaction(database, { transactionId, orderId, state: 'paid', firstSeenAt })
    const amount = n === 5 ? MOST : `${n}000.50`
    await seedPayment(database, {
      paymentId: `P-${n}`,
      transactionId,
      amount,
      paymentMethod: 'ATM',
      firstSeenAt,
    })
  }
  await database.sql`update transactions as t set paid_amount = p.amount from payments as p
    where p.transaction_id = t.transaction_id`
  await database.sql`update transactions set merchant_txn_id = 'x' || chr(9) || 'y' where transaction_id = 'T-6'`
  await seedTransaction(database, { ...OTHER, transactionId: 'T-THEIRS' })
  const asked = { url: rig.service.url, query: `?merchantCode=${MERCHANT.merchantCode}` }
  await expectTaken(await ask(asked, 'P-9', { amount: '77', reason: '=SUM(A1);1' }))
})

const download = (path: string) => visitAs(rig, operator, `/console/${path}`)

/** The cells of a CSV file (RFC 4180). */
function readCsv(csv: string): string[][] {
  const lines = csv.split('\r\n').slice(0, -1)
  const cells = (line: string) => [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)]
  return lines.map((line) =>
    cells(line).map(([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain ?? ''),
  )
}

/** A spreadsheet keeps a time as a fraction of a day. */
function toSecond(time: Date): string {
  const rounded = new Date(Math.round(time.getTime() / 1000) * 1000)
  return rounded.toISOString().slice(0, 19).replace('T', ' ')
}

/** A number as people read it, or a time, as files have them. */
function toPlain(language: Language, text: string): string {
  const [, clock, day, month, year] = /^([\d:]{8}) (\d\d)\/(\d\d)\/(\d{4})/.exec(text) ?? []
  if (clock !== undefined) return `${year}-${month}-${day} ${clock}`
  if (!text.endsWith(' VND')) return text.replace(/^(\d{4}-\S+ \S+) \(.*/, '$1')
  const number = text.slice(0, -4).replaceAll(language === 'vi' ? '.' : ',', '')
  return number.replace(',', '.')
}

/** The list as a person reads it, page by page. */
async function readPages(page: Page, older: string, language: Language): Promise<string[][]> {
  const html = await page.content()
  const rows = [...html.matchAll(/<tr><td.*?<\/tr>/gs)].map(([row]) =>
    [...row.matchAll(/<td.*?<\/td>/gs)].map(([cell]) => toPlain(language, readText(cell))),
  )
  const link = page.getByRole('link', { name: older })
  if (!(await link.isVisible())) return rows
  const from = page.url()
  await link.click()
  await page.waitForURL((url) => url.href !== from)
  return [...rows, ...(await readPages(page, older, language))]
}

describeInBrowser('a month as a file', () => {
  it.each([
    ['en', true],
    ['vi', false],
  ] as const)(
    'of CSV and of Excel is the list, page by page, also added up, in %s',
    async (language, script) => {
      const say = (key: TextKey) => findText(language, key) ?? key
      const merchants = [MERCHANT.merchantCode]
      const person = await addVisitor(rig.database, { roles: ['operator'], merchants, language })
      const context = await openProfile({ script })
      await openSessionIn(context, rig.service.url, person)
      const page = await context.newPage()
      await page.goto(`${rig.service.url}/console/transactions`)
      await page.getByLabel(say('field.from'), { exact: true }).fill('2026-11-01')
      await page.getByLabel(say('field.to'), { exact: true }).fill('2026-11-30')
      await page.getByRole('button', { name: say('lists.submit'), exact: true }).click()
      await page.waitForURL(/to=2026-11-30/)
      const press = async (name: TextKey) => {
        const begun = page.waitForEvent('download')
        await page.getByRole('link', { name: say(name), exact: true }).click()
        const file = await begun
        return { name: file.suggestedFilename(), bytes: readFileSync(await file.path()) }
      }
      const [csv, excel] = [await press('lists.csv'), await press('lists.xlsx')]
      expect([csv.name, excel.name]).toEqual(['transactions.csv', 'transactions.xlsx'])

      const names = ['order', 'state', 'amount', 'paid', 'refunded', 'currency'] as const
      const titles = names.map((name) => say(`field.${name}`)).join()
      const text = csv.bytes.toString()
      expect(text.slice(0, titles.length + 20)).toContain(
        `\ufeff${titles},${say('field.time')} (GMT+7),`,
      )
      const [head, ...rows] = readCsv(text.slice(1))
      const listed = await readPages(page, say('lists.next'), language)
      expect(listed).toHaveLength(62)
      expect(
        rows.map(([order, state, amount, , refunded, , time, account, , id]) => [
          order?.replace(/^'/, ''),
          ...[state, amount, refunded, time, account, id],
        ]),
      ).toEqual(listed)
      expect(listed.at(0)?.[4]).toBe('2026-11-30 23:59:59')
      expect(listed.at(-1)?.[4]).toBe('2026-11-01 00:00:00')

      const [sheet] = await readExcel(excel.bytes)
      const [titlesOfSheet, ...cells] = sheet?.data ?? []
      expect(titlesOfSheet).toEqual(head)
      // Numbers that can be added up, where they are exact.
      expect(
        cells.map((row) => row.map((one) => (one instanceof Date ? toSecond(one) : (one ?? '')))),
      ).toEqual(
        rows.map(([order, state, amount, paid, refunded, ...others]) => [
          ...[order?.replace(/^'/, ''), state, amount === MOST ? MOST : Number(amount)],
          ...[paid === MOST ? MOST : Number(paid), Number(refunded), ...others],
        ]),
      )
      const sums = [listed, rows, cells].map((of) => addAmounts(of.map(([, , one]) => String(one))))
      expect(new Set(sums)).toEqual(
        new Set([addAmounts(listed.map(([, , amount]) => amount ?? ''))]),
      )
    },
  )
})

describe('a month as a file', () => {
  it('begins and ends by the clock of a person who has a time zone of their own', async () => {
    const merchants = [MERCHANT.merchantCode]
    const abroad = await addVisitor(rig.database, { merchants, timeZone: 'UTC' })
    const response = await visitAs(rig, abroad, `/console/transactions?${MONTH}&format=csv`)
    const [titles, ...rows] = readCsv(await response.text())
    expect(titles).toContain('Since (UTC)')
    expect(rows.at(0)?.[6]).toBe('2026-11-30 17:00:00')
    expect(rows.at(-1)?.[6]).toBe('2026-11-15 10:00:00')
  })

  it('that has more rows than Excel is given is refused, and is whole as CSV', async () => {
    const { merchantCode } = MERCHANT
    await rig.database.sql`
      insert into transactions (merchant_code, transaction_id, state, final, currency, first_seen_at)
      select ${merchantCode}, 'M-' || n, 'paid', true, 'VND', '2026-06-01'::timestamptz + n * interval '1 s'
      from generate_series(1, 10001) as n`
    const june = 'transactions?from=2026-06-01&to=2026-06-30'
    const response = await download(`${june}&format=xlsx`)
    expect(response.status).toBe(422)
    expect(readText(await response.text())).toContain('More than 10000 rows fit')
    const rows = readCsv(await (await download(`${june}&format=csv`)).text())
    expect(new Set(rows.map((cells) => cells.at(-1))).size).toBe(10_002)
  })

  it('keeps formulas out of spreadsheets, and every separator in quotes', async () => {
    const orders = await (await download(`transactions?${MONTH}&format=csv`)).text()
    expect(orders).toContain("\r\n'=1+1,Paid,")
    expect(orders).toContain('\r\n"a;""b""",Paid,')
    expect(orders).toContain('"x\ty"')
    expect(await (await download('refunds?format=csv')).text()).toContain(`"'=SUM(A1);1"`)
  })

  it("holds no other account's rows, and nothing for who may not read the list", async () => {
    const csv = await (await download('transactions?format=csv')).text()
    expect(csv).not.toContain('T-THEIRS')
    const viewer = await addVisitor(rig.database)
    for (const format of ['csv', 'xlsx']) {
      const response = await visitAs(rig, viewer, `/console/discrepancies?format=${format}`)
      expect(response.status).toBe(403)
    }
  })
})

describe('a download is cut off', () => {
  /** Downloads two pages as a person who may read discrepancies; `between` happens before the second is there. */
  async function readBetween(
    visitor: Visitor,
    between: () => PromiseLike<unknown>,
  ): Promise<string> {
    async function* pages() {
      yield ['first']
      await between()
      yield ['second']
    }
    const log = createLog('silent')
    const columns = [text<string>('order', (row) => row)]
    const app = new Hono<ConsoleEnv>()
      .use((_, next) => showTo({ language: 'en', zone: 'UTC' }, next))
      .use(requireSession(rig.service.ctx))
      .get('/', (c) => {
        requireScope(c, 'ops')
        return respondCsvFile(log, c, { name: 'x', columns }, pages())
      })
    const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' })
    try {
      await new Promise((resolve) => server.once('listening', resolve))
      const address = server.address()
      const port = typeof address === 'object' ? address?.port : undefined
      const headers = { cookie: `session=${visitor.token}` }
      const response = await fetch(`http://127.0.0.1:${port}/`, { headers })
      expect(response.status).toBe(200)
      return await response.text()
    } finally {
      server.close()
    }
  }

  it('not while nothing changes', async () => {
    const csv = await readBetween(operator, () => Promise.resolve())
    expect(csv).toContain('first\r\nsecond\r\n')
  })

  it('when its rows cannot be read to the end', async () => {
    const lost = () => Promise.reject(new Error('the database went away'))
    await expect(readBetween(operator, lost)).rejects.toThrow()
  })

  it('when the session has ended', async () => {
    const leaver = await addVisitor(rig.database, { roles: ['operator'] })
    const end = () =>
      rig.database.sql`update sessions set ended_at = now() where person_id = ${leaver.personId}`
    await expect(readBetween(leaver, end)).rejects.toThrow()
  })

  it('when the role has been taken away', async () => {
    const leaver = await addVisitor(rig.database, { roles: ['operator'] })
    const change = () =>
      rig.database.sql`update actors set roles = '{viewer}' where id = ${leaver.personId}`
    await expect(readBetween(leaver, change)).rejects.toThrow()
  })
})
