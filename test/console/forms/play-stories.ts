import { setTimeout as pause } from 'node:timers/promises'
import type { Locator, Page } from 'playwright-core'
import { afterEach, expect, it } from 'vitest'
import type { Role } from '../../../src/access/types.ts'
import { findText, type Language, type TextKey } from '../../../src/console/texts/text.ts'
import { seedDiscrepancy } from '../../support/api.ts'
import { openIn } from '../../support/approvals.ts'
import { moveTo } from '../../support/ask.ts'
import { describeInBrowser, openProfile, openSessionIn, watchPage } from '../../support/browser.ts'
import {
  addTestPerson,
  addVisitor,
  makeLink,
  openTestSession,
  type Visitor,
} from '../../support/console.ts'
import { emptyTables } from '../../support/database.ts'
import { refundPathOf } from '../../support/refund-form.ts'
import type { RefundLab } from '../../support/refund-lab.ts'
import { MERCHANT } from '../../support/service.ts'
import { useRefundLab } from '../../support/use-started.ts'

type Typed = Readonly<Record<string, string>>

/** A form, what is typed into it, and what its page says then. */
type Row = {
  name: string
  role: Role
  /** Makes what it is about. @returns its page, and where it is sent; empty for the page itself, by GET */
  make(lab: RefundLab, person: Visitor): Promise<[page: string, action: string]>
  button: TextKey
  typed?: (person: Visitor) => Typed
  /** What is not taken, and why. */
  wrong?: [typed: Typed, problem: TextKey]
  said: TextKey
  /** What is said in a tab that was filled in before, and how often it is done then; nothing is done by a question. */
  late: [said: TextKey, done: 0 | 1 | 2]
}

const { merchantCode } = MERCHANT
const pathOf = (kind: string, id: string) => `/console/${kind}/${merchantCode}/${id}`
const on = (page: string, action: string): [string, string] => [page, page + action]

/** A refund of 30, or of 60, which has to be approved. */
async function askRefund(lab: RefundLab, amount = '30') {
  return pathOf('refunds', await lab.ask(await openIn(lab, 'VND'), amount))
}

async function makeReview(lab: RefundLab) {
  const id = await lab.send(await openIn(lab, 'VND'), '30')
  await moveTo(lab.database, id, 'needs_review')
  return pathOf('refunds', id)
}

const makeDiscrepancy = async ({ database }: RefundLab) =>
  pathOf('discrepancies', String(await seedDiscrepancy(database, 'amount_mismatch')))

/** A refund made elsewhere that the refunded amount does not show in time. */
async function makeExternal(lab: RefundLab) {
  const payment = await lab.open()
  await lab.notify(payment, crypto.randomUUID(), '20')
  for (let pass = 0; pass < 2; pass += 1) {
    await lab.database.sql`update external_refunds set first_seen_at = now() - interval '30 days'`
    await lab.pass(payment)
  }
  const [row] = await lab.database.sql<{ id: string }[]>`
    select id::text from discrepancies where kind = 'external_refund_unmatched'`
  return pathOf('discrepancies', row?.id ?? '')
}

async function makeHeld(lab: RefundLab): Promise<[string, string]> {
  const { id, transactionId } = await lab.open()
  await lab.hold(`payment/${id}`, 'fraud?')
  return [pathOf('transactions', transactionId), `${pathOf('payments', id)}/hold`]
}

async function makeEndpoint({ database: { sql } }: RefundLab): Promise<[string, string]> {
  const [row] = await sql<{ id: string }[]>`
    insert into webhook_endpoints (key_chain_id, merchant_code, url, types, api_version, secret, cursor, due_at,
      disabled_at, disabled_reason)
    values (gen_random_uuid(), ${merchantCode}, 'https://shop.example/hooks', '{payment.updated}', '', '', 0, now(),
      now(), 'failing') returning id`
  return ['/console/tasks', `/console/webhooks/${row?.id}/enable`]
}

async function makeSession({ database }: RefundLab, { personId }: Visitor) {
  await openTestSession(database, personId)
  const [row] = await database.sql<{ id: string }[]>`
    select id from sessions where person_id = ${personId} order by signed_in_at desc limit 1`
  return on('/console/account', `/sessions/${row?.id}/end`)
}

const makePerson = async ({ database }: RefundLab) =>
  `/console/people/${(await addTestPerson(database)).personId}`

const BLANK = { reason: ' ' }
const REASON = 'decisions.problems.reason'
const CHANGED = 'decisions.refused.changed'

const ROWS: readonly Row[] = [
  {
    ...{ name: 'a search', role: 'viewer', make: async () => ['/console', '/console'] },
    ...{ button: 'search.submit', typed: () => ({ q: 'DH-9999' }) },
    ...{ said: 'search.none.advice.1', late: ['search.none.advice.1', 0] },
  },
  {
    ...{ name: 'the filters of a list', role: 'viewer' },
    make: async () => ['/console/transactions', ''],
    typed: () => ({ state: 'paid', from: '2026-11-01', amount: '1.110.000' }),
    wrong: [{ orderId: 'DH-1', amount: 'much' }, 'lists.problems.amount'],
    ...{ button: 'lists.submit', said: 'lists.none', late: ['lists.none', 0] },
  },
  {
    ...{ name: 'a question about an unknown id', role: 'viewer' },
    make: async () => [`/console?q=T-${crypto.randomUUID()}`, '/console/transactions'],
    ...{ button: 'search.none.askNow', said: 'notice.asked', late: ['notice.asked', 2] },
  },
  {
    ...{ name: 'a question about a transaction', role: 'viewer' },
    make: async (lab) => on(pathOf('transactions', (await lab.open()).transactionId), '/sync'),
    ...{ button: 'story.actions.ask', said: 'notice.asked', late: ['notice.asked', 2] },
  },
  {
    ...{ name: 'what is to be refunded', role: 'agent' },
    make: async (lab) => on(refundPathOf(await lab.open()), ''),
    typed: () => ({
      amountKind: 'part',
      amount: '30',
      reason: 'Goods returned',
      reasonText: 'one',
    }),
    wrong: [{ amountKind: 'part', amount: '0', reasonText: 'x' }, 'refundForm.problems.amount'],
    ...{ button: 'refundForm.form.preview', said: 'refundForm.preview.card' },
    late: ['refundForm.preview.card', 0],
  },
  {
    ...{ name: 'the approval of a refund', role: 'approver' },
    make: async (lab) => on(await askRefund(lab, '60'), '/approval'),
    ...{ button: 'decisions.approve.approve', typed: () => ({ reason: 'compared' }) },
    ...{ said: 'notice.refundApproved', late: [CHANGED, 1] },
  },
  {
    ...{ name: 'the decline of a refund', role: 'approver' },
    make: async (lab) => on(await askRefund(lab, '60'), '/approval'),
    ...{ button: 'decisions.approve.decline', typed: () => ({ reason: 'not theirs' }) },
    ...{ said: 'notice.refundDeclined', late: [CHANGED, 1] },
  },
  {
    ...{ name: 'the cancellation of a refund', role: 'agent' },
    make: async (lab) => on(await askRefund(lab), '/cancellation'),
    ...{ button: 'decisions.cancel.submit', typed: () => ({ cancelReason: 'a mistake' }) },
    wrong: [{ cancelReason: ' ' }, REASON],
    ...{ said: 'notice.refundCancelled', late: [CHANGED, 1] },
  },
  {
    ...{ name: 'the outcome of a refund', role: 'operator' },
    make: async (lab) => on(await makeReview(lab), '/resolution'),
    typed: () => ({ outcome: 'succeeded', reason: 'ticket 4711' }),
    wrong: [{ reason: 'ticket 4711' }, 'decisions.problems.outcome'],
    ...{ button: 'decisions.decide.submit', said: 'notice.refundDecided', late: [CHANGED, 1] },
  },
  {
    ...{ name: 'the hold of a refund', role: 'operator' },
    make: async (lab) => on(await askRefund(lab), '/hold'),
    ...{ button: 'story.actions.holdRefund', typed: () => ({ reason: 'fraud?' }) },
    ...{ wrong: [BLANK, REASON], said: 'notice.held', late: [CHANGED, 1] },
  },
  {
    ...{ name: 'the release of a payment', role: 'operator', make: makeHeld },
    ...{ button: 'story.actions.release', typed: () => ({ reason: 'no fraud' }) },
    ...{ wrong: [BLANK, REASON], said: 'notice.released' },
    late: ['decisions.refused.not_held', 1],
  },
  {
    ...{ name: 'a note on a refund', role: 'operator' },
    make: async (lab) => on(await makeReview(lab), '/note'),
    ...{ button: 'decisions.review.add', typed: () => ({ text: 'asked their support' }) },
    wrong: [{ text: ' ' }, 'decisions.problems.text'],
    ...{ said: 'notice.noteAdded', late: ['notice.noteAdded', 2] },
  },
  {
    ...{ name: 'who takes care of a discrepancy', role: 'operator' },
    make: async (lab) => on(await makeDiscrepancy(lab), '/assignee'),
    ...{ button: 'decisions.review.assign', typed: ({ name }) => ({ name }) },
    ...{ said: 'notice.assigned', late: ['notice.assigned', 2] },
  },
  {
    ...{ name: 'the resolution of a discrepancy', role: 'operator' },
    make: async (lab) => on(await makeDiscrepancy(lab), '/resolution'),
    ...{ button: 'discrepancyPage.resolve.submit', typed: () => ({ reason: 'accepted' }) },
    ...{ wrong: [BLANK, REASON], said: 'notice.discrepancyResolved' },
    late: ['decisions.refused.discrepancy_resolved', 1],
  },
  {
    ...{ name: 'what a refund made elsewhere was', role: 'operator' },
    make: async (lab) => on(await makeExternal(lab), '/external'),
    typed: () => ({ externalOutcome: 'never_happened', externalReason: 'ticket 4711' }),
    wrong: [{ externalReason: 'ticket 4711' }, 'decisions.problems.outcome'],
    ...{ button: 'decisions.decide.submit', said: 'notice.externalDecided', late: [CHANGED, 1] },
  },
  {
    ...{ name: 'an endpoint that is enabled again', role: 'operator', make: makeEndpoint },
    ...{ button: 'tasks.endpoint.enable', said: 'notice.endpointEnabled' },
    late: ['notice.endpointEnabled', 2],
  },
  {
    ...{ name: 'language and time', role: 'viewer' },
    make: async () => on('/console/account', '/reading'),
    ...{ button: 'account.reading.save', typed: () => ({ timeZone: 'Asia/Tokyo' }) },
    wrong: [{ timeZone: 'Mars' }, 'account.reading.problem'],
    ...{ said: 'notice.saved', late: ['notice.saved', 2] },
  },
  {
    ...{ name: 'the end of a session', role: 'viewer', make: makeSession },
    ...{ button: 'account.sessions.end', said: 'notice.sessionEnded' },
    late: ['notice.sessionEnded', 2],
  },
  {
    ...{ name: 'a new person', role: 'admin', make: async () => on('/console/people', '') },
    typed: ({ name }) => ({
      ...{ name: `Hoa, of ${name}`, email: '', 'role-viewer': 'on', 'merchant-*': 'on' },
    }),
    wrong: [
      { name: 'Hoa', email: 'hoa@shop.example', 'merchant-*': 'on' },
      'people.add.problems.roles',
    ],
    ...{ button: 'people.add.button', said: 'notice.personAdded' },
    late: ['people.add.problems.nameTaken', 1],
  },
  {
    ...{ name: 'a sign-in link', role: 'admin' },
    make: async (lab) => on(await makePerson(lab), '/link'),
    ...{ button: 'people.link.button', said: 'field.validUntil', late: ['field.validUntil', 2] },
  },
  {
    ...{ name: 'the end of an access', role: 'admin' },
    make: async (lab) => on(await makePerson(lab), '/end'),
    // The notice of the first one begins with the same words.
    ...{ button: 'people.end.title', said: 'notice.personEndedBefore' },
    late: ['notice.personEndedBefore', 2],
  },
  {
    ...{ name: 'the reasons of an account', role: 'admin' },
    make: async () => on('/console/reasons', ''),
    ...{ button: 'account.reading.save', typed: () => ({ reasons: 'Broken\nToo late' }) },
    wrong: [{ reasons: 'Broken\nbroken' }, 'reasons.problems.exists'],
    ...{ said: 'notice.saved', late: ['notice.saved', 2] },
  },
]

/** The field of a name, or of several buttons the one with this value. */
async function findField(form: Locator, name: string, value: string) {
  const fields = form.locator(`[name="${name}"]:not([type=hidden])`)
  const type = await fields.first().getAttribute('type')
  const field = type === 'radio' ? form.locator(`[name="${name}"][value="${value}"]`) : fields
  const isSelect = (await form.locator(`select[name="${name}"]`).count()) > 0
  return { field, isSelect, isTicked: type === 'radio' || type === 'checkbox' }
}

async function fill(form: Locator, typed: Typed): Promise<void> {
  const folded = form.page().locator('details:not([open])', { has: form })
  if ((await folded.count()) > 0) await folded.locator('summary').click()
  for (const [name, value] of Object.entries(typed)) {
    const { field, isSelect, isTicked } = await findField(form, name, value)
    if (isTicked) await field.check()
    else await (isSelect ? field.selectOption(value) : field.fill(value))
  }
}

async function readTyped(form: Locator, typed: Typed): Promise<Typed> {
  const read: Record<string, string> = {}
  for (const [name, value] of Object.entries(typed)) {
    const { field, isTicked } = await findField(form, name, value)
    if ((await field.count()) === 0) continue
    if (!isTicked) read[name] = await field.inputValue()
    else if (await field.isChecked()) read[name] = value
  }
  return read
}

/** Reload, Back and Forward: each shows a page of the console. */
async function moveAbout(page: Page): Promise<void> {
  await page.reload()
  await page.goBack()
  await page.getByRole('heading', { level: 1 }).waitFor()
  await page.goForward()
  await page.reload()
  await page.getByRole('heading', { level: 1 }).waitFor()
}

/**
 * @param script whether scripts run in the browser
 * @param only the forms that are played, by their names
 */
export function playFormStories(script: boolean, language: Language, only = /./): void {
  const rows = ROWS.filter(({ name }) => only.test(name))
  describeInBrowser(`a form, in ${language}`, () => {
    const lab = useRefundLab({ settings: { REFUND_APPROVAL_ABOVE: 'VND:50' } })
    afterEach(async () => {
      await emptyTables(lab.database)
      await lab.database.sql`update merchant_accounts set refund_reasons = '{}'`
    })

    const say = (key: TextKey) => findText(language, key) ?? key
    const see = async (page: Page, key: TextKey) =>
      await page.getByRole('main').getByText(say(key)).first().waitFor()
    const press = async (form: Locator, name: TextKey) => {
      const button = form.getByRole('button', { name: say(name), exact: true })
      // Without a script a double click sends it twice.
      await (script ? button.dblclick({ delay: 60 }) : button.click())
    }

    async function signIn(role: Role) {
      const person = await addVisitor(lab.database, { roles: [role], language })
      const context = await openProfile({ script, locale: language })
      // The second click of a double click comes before the answer.
      await context.route('**', async (route, request) => {
        if (script && request.method() === 'POST') await pause(200)
        await route.continue().catch(() => {})
      })
      await openSessionIn(context, lab.service.url, person)
      const watched: string[][] = []
      return {
        person,
        /** Opens a page in a tab of its own; `sent` is what its forms send. */
        async open(path: string) {
          const page = await context.newPage()
          const sent: string[] = []
          page.on('request', (one) => one.method() === 'POST' && sent.push(one.url()))
          watched.push(watchPage(page, lab.service.url))
          await page.goto(lab.service.url + path)
          return { page, sent }
        },
        /** How much the person has done. */
        async countDone() {
          const done = await lab.database.sql`
            select from audit_entries
            where actor = ${person.name} and outcome = 'done' and operation <> 'sign in'`
          return done.length
        },
        listProblems: () => watched.flat(),
      }
    }

    it.each(rows)(
      'loses nothing and is sent once, with Back, reload and a second tab: $name',
      async (row) => {
        const { button, typed: choose, wrong, said, late } = row
        const { person, open, countDone, listProblems } = await signIn(row.role)
        const typed = choose?.(person) ?? {}
        const [path, action] = await row.make(lab, person)
        const openForm = async () => {
          const tab = await open(path)
          const forms = tab.page.locator(
            action ? `form[action="${action}"]` : 'main form:not([action])',
          )
          return { ...tab, form: forms.filter({ hasText: say(button) }).last() }
        }
        const [first, second] = [await openForm(), await openForm()]
        await fill(second.form, typed)
        if (wrong) {
          await fill(first.form, wrong[0])
          await press(first.form, button)
          await see(first.page, wrong[1])
          await moveAbout(first.page)
          await see(first.page, wrong[1])
          expect(await readTyped(first.form, wrong[0])).toEqual(wrong[0])
          expect(await countDone()).toBe(0)
        }
        await fill(first.form, typed)
        await press(first.form, button)
        await see(first.page, said)
        await moveAbout(first.page)
        const isQuestion = late[1] === 0
        expect(await countDone()).toBe(isQuestion ? 0 : 1)
        if (isQuestion && (await first.form.isVisible())) {
          expect(await readTyped(first.form, typed)).toEqual(typed)
        }
        await press(second.form, button)
        await see(second.page, late[0])
        await moveAbout(second.page)
        expect(await countDone()).toBe(late[1])
        // What was not taken is still there, unless the form is not.
        if (late[0] !== said && (await second.form.isVisible())) {
          expect(typed).toMatchObject(await readTyped(second.form, typed))
        } else if (late[0] !== said) {
          const others = second.page.locator(`form[action="${action}"] [name=reason]`)
          for (const one of await others.all()) expect(await one.inputValue()).toBe('')
        }
        const isPosted = first.sent.length > 0
        await second.page.goBack()
        // Without a script no browser gives back what it is told not to remember.
        if (script && isPosted && (await second.form.isVisible())) {
          expect(typed).toMatchObject(await readTyped(second.form, typed))
        }
        expect([first.sent.length, second.sent.length]).toEqual(
          isPosted ? [wrong ? 2 : 1, 1] : [0, 0],
        )
        expect(listProblems()).toEqual([])
      },
    )

    it('that was sent after the session had ended is there after the sign-in, and was not sent', async () => {
      const { person, open, countDone, listProblems } = await signIn('operator')
      const { page, sent } = await open(await makeDiscrepancy(lab))
      const form = page.locator('form', { hasText: say('decisions.review.add') })
      await fill(form, { text: 'asked the customer' })
      await lab.database
        .sql`update sessions set ended_at = now() where person_id = ${person.personId}`
      await press(form, 'decisions.review.add')
      await see(page, 'signIn.returning')
      await moveAbout(page)
      const link = `${lab.service.url}/console/sign-in/${await makeLink(lab.database, person.personId)}`
      await page.goto(link)
      await press(page.locator('main'), 'signIn.invitation')
      await see(page, 'frame.unsent')
      await moveAbout(page)
      expect(await readTyped(form, { text: '' })).toEqual({ text: 'asked the customer' })
      expect(await countDone()).toBe(0)
      await press(form, 'decisions.review.add')
      await see(page, 'notice.noteAdded')
      await press(page.locator('header'), 'frame.signOut')
      await see(page, 'notice.signedOut')
      await moveAbout(page)
      // The link works once, whatever is pressed again.
      await page.goto(link)
      await press(page.locator('main'), 'signIn.invitation')
      await see(page, 'signIn.why')
      await moveAbout(page)
      expect(sent).toHaveLength(5)
      expect(await countDone()).toBe(2)
      expect(listProblems()).toEqual([])
    })
  })
}
