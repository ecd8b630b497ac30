import { gzipSync } from 'node:zlib'
import type { Page } from 'playwright-core'
import { beforeAll, expect, it } from 'vitest'
import { type ListedPage, listPages } from '../console/pages/list-pages.ts'
import { playSample } from '../console/pages/play-sample.ts'
import { describeInBrowser, openProfile, openSessionIn, watchPage } from '../support/browser.ts'
import { findBarriers, findMisfits, findUnreachable } from '../support/check-page.ts'
import { addVisitor, visitAs } from '../support/console.ts'
import { MERCHANT } from '../support/service.ts'
import { useRefundRig } from '../support/use-started.ts'

const VIEWS = [
  { colorScheme: 'light', width: 1280 },
  { colorScheme: 'dark', width: 1280 },
  { colorScheme: 'light', width: 390 },
  { colorScheme: 'dark', width: 390 },
] as const

/** Checks an open page in one of its views. */
async function checkView(page: Page, { colorScheme, width }: (typeof VIEWS)[number]) {
  await page.emulateMedia({ colorScheme })
  await page.setViewportSize({ width, height: 900 })
  const problems = [...(await findBarriers(page)), ...(await findMisfits(page))]
  return problems.map((problem) => `${colorScheme}, ${width} px: ${problem}`)
}

const SETTINGS = { REFUND_APPROVAL_ABOVE: 'VND:5000000', REFUND_CONFIRM_FAILED_MS: '200' }

const ADMIN = { roles: ['admin' as const] }

describeInBrowser('every page', () => {
  const rig = useRefundRig({ settings: SETTINGS })
  let pages: ListedPage[] = []

  beforeAll(async () => {
    pages = listPages(await playSample(rig), MERCHANT.merchantCode)
  })

  it.each(['en', 'vi'] as const)(
    'has no barrier, fits and loads only its own files: light and dark, 1,280 and 390 px wide: %s',
    async (language) => {
      const context = await openProfile()
      try {
        const visitor = await addVisitor(rig.database, { ...ADMIN, language })
        await openSessionIn(context, rig.service.url, visitor)
        const page = await context.newPage()
        const watched = watchPage(page, rig.service.url)
        const found: string[] = []
        const others = [
          { name: 'person', path: `/console/people/${visitor.personId}` },
          { name: 'sign-in-link', path: '/console/sign-in/unknown' },
        ]
        for (const { name, path } of [...pages, ...others]) {
          const answer = await page.goto(rig.service.url + path)
          const expected = name === 'not-found' ? 404 : 200
          const problems = answer?.status() === expected ? [] : [`status ${answer?.status()}`]
          if ((await page.locator('h1').count()) !== 1) problems.push('not one h1')
          for (const view of VIEWS) problems.push(...(await checkView(page, view)))
          found.push(...[...problems, ...watched.splice(0)].map((problem) => `${name}: ${problem}`))
        }
        expect(found).toEqual([])
      } finally {
        await context.close()
      }
    },
    240_000,
  )

  it('is short: a story on two screens, every list on a phone', async () => {
    const context = await openProfile()
    try {
      await openSessionIn(context, rig.service.url, await addVisitor(rig.database, ADMIN))
      const page = await context.newPage()
      const measure = async (name: string, width: number) => {
        await page.setViewportSize({ width, height: 900 })
        await page.goto(rig.service.url + (pages.find((one) => one.name === name)?.path ?? ''))
        return await page.evaluate<number>('document.documentElement.scrollHeight')
      }
      expect(await measure('transaction', 1280)).toBeLessThanOrEqual(1_800)
      for (const fact of ['of 250,000 refunded', 'DH1001', 'What happens next']) {
        const box = await page.getByRole('main').getByText(fact).first().boundingBox()
        expect(box?.y).toBeLessThan(900)
      }
      const copies = {
        transactions: `'transaction_id', 'T-2026-11-27-LONG-' || i, 'order_id', 'DH-LONG-' || i`,
        payments: `'payment_id', 'P-LONG-' || i, 'transaction_id', 'T-2026-11-27-LONG-' || i`,
        refunds: `'refund_id', gen_random_uuid(), 'idempotency_key', 'long-' || i, 'payment_id', 'P-LONG-' || i,
          'transaction_id', 'T-2026-11-27-LONG-' || i, 'reason', 'Goods returned: one of two'`,
        discrepancies: `'id', 1000 + i, 'transaction_id', 'T-2026-11-27-LONG-' || i`,
        audit_entries: `'id', 1000000 + i, 'object_id', gen_random_uuid(), 'actor', 'Nguyen Thi Mai'`,
      }
      for (const [table, values] of Object.entries(copies)) {
        await rig.database.sql.unsafe(`
          insert into ${table} select (jsonb_populate_record(one, jsonb_build_object(${values}))).*
          from ${table} as one, generate_series(1, 40) as i where one.ctid = (select ctid from ${table} limit 1)`)
      }
      // The longest state, whichever refund was copied.
      await rig.database.sql`
        insert into refunds select (jsonb_populate_record(one, jsonb_build_object(
          'refund_id', gen_random_uuid(), 'idempotency_key', 'longest-' || i, 'payment_id', 'P-LONG-' || i,
          'transaction_id', 'T-2026-11-27-LONG-' || i, 'requested_at', now()))).*
        from refunds as one, generate_series(1, 40) as i
        where one.ctid = (select ctid from refunds where status = 'awaiting_approval' limit 1)`
      const long: Record<string, number> = {}
      for (const name of ['transactions', 'payments', 'refunds', 'discrepancies', 'audit']) {
        const height = await measure(name, 390)
        if (height > 3_000) long[name] = height
      }
      expect(long).toEqual({})
    } finally {
      await context.close()
    }
  }, 120_000)

  it('is reached by the tab key alone, with a visible focus', async () => {
    const context = await openProfile()
    try {
      await openSessionIn(context, rig.service.url, await addVisitor(rig.database, ADMIN))
      const found: string[] = []
      for (const { name, path } of pages) {
        const page = await context.newPage()
        await page.goto(rig.service.url + path)
        found.push(...(await findUnreachable(page)).map((one) => `${name}: ${one}`))
        await page.close()
      }
      expect(found).toEqual([])
    } finally {
      await context.close()
    }
  }, 120_000)

  it('loads at most 25 KB, compressed', async () => {
    const visitor = await addVisitor(rig.database, ADMIN)
    for (const { path } of pages) {
      const html = await (await visitAs(rig, visitor, path)).text()
      const files = [...html.matchAll(/(?:href|src)="(\/console\/assets\/[^"]+)"/g)]
      const bodies = await Promise.all(
        files.map(async ([, file = '']) => await (await visitAs(rig, visitor, file)).text()),
      )
      const size = [html, ...bodies].reduce((sum, text) => sum + gzipSync(text).byteLength, 0)
      expect(size).toBeLessThan(25 * 1024)
    }
  })
})

describeInBrowser("the sandbox's page", () => {
  const rig = useRefundRig({ settings: SETTINGS })

  beforeAll(async () => {
    await playSample(rig)
  })

  it('has no barrier and fits: light and dark, 1,280 and 390 px wide', async () => {
    const context = await openProfile()
    try {
      const page = await context.newPage()
      const problems = watchPage(page, rig.sandbox.url)
      await page.goto(`${rig.sandbox.url}/?still`)
      for (const view of VIEWS) problems.push(...(await checkView(page, view)))
      expect(problems).toEqual([])
    } finally {
      await context.close()
    }
  }, 120_000)
})

describeInBrowser('the checks', () => {
  it('find planted barriers, misfits and what the tab key does not reach', async () => {
    const context = await openProfile({ width: 390 })
    try {
      const page = await context.newPage()
      await page.setContent(`<html lang="en"><title>x</title><main><h1>x</h1><input>
        <p style="color:#aaa">pale</p><div style="width:900px">wide</div>
        <p style="overflow:hidden;width:40px;white-space:nowrap">clipped text</p>
        <button style="outline:none">unseen</button><button tabindex="-1">skipped</button>
        <button style="position:absolute;top:0;left:0">one</button>
        <button style="position:absolute;top:0;left:0">other</button></main>`)
      const barriers = await findBarriers(page)
      expect(barriers.join()).toMatch(/color-contrast/)
      expect(barriers.join()).toMatch(/label/)
      const misfits = await findMisfits(page)
      for (const kind of ['sideways', 'beyond the edge', 'clipped', 'overlapping']) {
        expect(misfits.join()).toContain(kind)
      }
      const unreached = await findUnreachable(page)
      expect(unreached.join()).toMatch(/unseen: <button/)
      expect(unreached.join()).toMatch(/not reached: <button/)
    } finally {
      await context.close()
    }
  })
})
