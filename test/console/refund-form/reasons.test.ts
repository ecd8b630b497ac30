import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { makeFormToken } from '../../../src/console/forms/form-token.ts'
import { findText, listKeys } from '../../../src/console/texts/text.ts'
import { seedPaid } from '../../support/ask.ts'
import { type PageForm, readForms, readText } from '../../support/forms.ts'
import { waitUntilBlocked, whileUncommitted } from '../../support/locks.ts'
import {
  type Clerk,
  enter,
  openRefundForm,
  refundPathOf,
  SAME_ORIGIN,
} from '../../support/refund-form.ts'
import { MERCHANT } from '../../support/service.ts'
import { useRefundRig } from '../../support/use-started.ts'

const DEFAULT_REASONS = listKeys('reasons.default').map((key) => findText('en', key) ?? '')

const rig = useRefundRig({ settings: { ROLE: 'web' } })
let admin: Clerk
let agent: Clerk
beforeAll(async () => {
  admin = await enter(rig, 'admin', { name: 'Hoa' })
  agent = await enter(rig, 'agent')
})
afterEach(async () => {
  await rig.database.sql`truncate refund_reasons`
})

const PATH = '/console/reasons'
const { merchantCode: merchant } = MERCHANT

async function change(person: Clerk, fields: Record<string, string>): Promise<Response> {
  const formToken = makeFormToken(person.token)
  const body = new URLSearchParams({ formToken, merchant, ...fields })
  return await person.visit(PATH, { method: 'POST', headers: SAME_ORIGIN, body })
}

async function expectDone(response: Response, notice: string) {
  const text = await response.text()
  expect({ status: response.status, text }).toMatchObject({ status: 303 })
  const location = `${PATH}?merchant=${merchant}&notice=${notice}`
  expect(response.headers.get('location')).toBe(location)
}

const add = async (label: string) =>
  await expectDone(await change(admin, { action: 'add', label }), 'reasonAdded')

/** The list as admins see it, with the ids of the reasons. */
async function readList() {
  const forms = readForms(await admin.read(`${PATH}?merchant=${merchant}`))
  const renames = forms.filter(({ buttons }) => buttons.includes('Rename'))
  return renames.map(({ fields }: PageForm) => {
    const { id = '' } = fields
    return { id, label: fields[`label-${id}`] }
  })
}

const readLabels = async () => (await readList()).map(({ label }) => label)

async function findId(label: string): Promise<string> {
  const found = (await readList()).find((one) => one.label === label)
  if (!found) throw new Error(`no reason ${label}`)
  return found.id
}

describe('the reasons of an account', () => {
  it('are the usual ones until an admin adds one, which the form of a refund then offers', async () => {
    expect(await readLabels()).toEqual([])
    const text = readText(await admin.read(PATH))
    for (const label of DEFAULT_REASONS) expect(text).toContain(label)
    const path = refundPathOf(await seedPaid(rig.database))
    const usual = ['', ...DEFAULT_REASONS, 'other']
    expect((await openRefundForm(agent, path)).options.reason).toEqual(usual)
    await add('Fraud reported')
    await add('  Goods returned ')
    expect(await readLabels()).toEqual(['Fraud reported', 'Goods returned'])
    const own = ['', 'Fraud reported', 'Goods returned', 'other']
    expect((await openRefundForm(agent, path)).options.reason).toEqual(own)
  })

  it('are renamed in their place, moved up, and removed', async () => {
    for (const label of ['One', 'Two', 'Three']) await add(label)
    const two = await findId('Two')
    const renamed = { action: 'rename', id: two, [`label-${two}`]: 'Second' }
    await expectDone(await change(admin, renamed), 'reasonRenamed')
    expect(await readLabels()).toEqual(['One', 'Second', 'Three'])
    const raised = { action: 'raise', id: await findId('Three') }
    await expectDone(await change(admin, raised), 'reasonRaised')
    expect(await readLabels()).toEqual(['One', 'Three', 'Second'])
    const ended = { action: 'end', id: await findId('One') }
    await expectDone(await change(admin, ended), 'reasonEnded')
    expect(await readLabels()).toEqual(['Three', 'Second'])
    // What was renamed or removed stays in the history.
    const rows = await rig.database.sql`
      select label from refund_reasons where ended_at is not null order by id`
    expect(rows).toEqual([{ label: 'One' }, { label: 'Two' }])
  })

  it('are changed under the name of the admin', async () => {
    await add('One')
    const [entry] = await rig.database.sql`
      select actor, operation, merchant_code as merchant, object_id as object from audit_entries
      order by id desc limit 1`
    const operation = 'POST /console/reasons'
    expect(entry).toEqual({ actor: 'Hoa', operation, merchant, object: await findId('One') })
  })

  it.each([
    ['', 'Write one line'],
    ['   ', 'Write one line'],
    ['x'.repeat(81), 'Write one line'],
    ['two\nlines', 'Write one line'],
    ['one', 'in the list already'],
  ])('are not called %j', async (label, words) => {
    await add('One')
    for (const name of ['add', 'rename']) {
      await rig.database.sql`
        insert into refund_reasons (merchant_code, label, position)
        values (${merchant}, ${`Other ${name}`}, 5)`
      const id = await findId(`Other ${name}`)
      const response = await change(admin, { action: name, id, label, [`label-${id}`]: label })
      const html = await response.text()
      expect(response.status).toBe(422)
      expect(readText(html)).toContain(words)
      expect(html.match(/ autofocus/g)).toHaveLength(1)
      const [only] = readForms(html).filter(({ fields }) =>
        name === 'add' ? 'label' in fields : fields.id === id && `label-${id}` in fields,
      )
      expect(only?.fields[name === 'add' ? 'label' : `label-${id}`]).toBe(label)
    }
    expect(await readLabels()).toEqual(['One', 'Other add', 'Other rename'])
  })

  it('are at most 50, also when two are added at once', async () => {
    await rig.database.sql`
      insert into refund_reasons (merchant_code, label, position)
      select ${merchant}, 'Reason ' || n, n from generate_series(1, 49) as n`
    const answers = await whileUncommitted(
      rig.database,
      (held) =>
        held`select from merchant_accounts where merchant_code = ${merchant} for no key update`,
      async (commit) => {
        const sent = ['A', 'B'].map((label) => change(admin, { action: 'add', label }))
        await waitUntilBlocked(rig.database, 2)
        await commit()
        return await Promise.all(sent)
      },
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([303, 422])
    expect(await readLabels()).toHaveLength(50)
    const refused = answers.find(({ status }) => status === 422)
    expect(readText((await refused?.text()) ?? '')).toContain('at most 50 reasons')
  })

  it.each(['rename', 'raise', 'end'])(
    'that are gone cannot be changed any more: %s',
    async (action) => {
      await add('One')
      const id = await findId('One')
      await expectDone(await change(admin, { action: 'end', id }), 'reasonEnded')
      for (const one of [id, '999999', '', 'x', '9'.repeat(30)]) {
        const response = await change(admin, { action, id: one, [`label-${one}`]: 'New' })
        expect([409, 422]).toContain(response.status)
      }
      const rows = await rig.database.sql`select label from refund_reasons`
      expect(rows).toEqual([{ label: 'One' }])
    },
  )

  it('are shown as text, whatever they say', async () => {
    const label = '"><script>alert(1)</script>'
    await add(label)
    expect(await admin.read(PATH)).not.toContain('<script>alert')
    expect(await readLabels()).toEqual([label])
    const form = await openRefundForm(agent, refundPathOf(await seedPaid(rig.database)))
    expect(form.options.reason).toContain(label)
  })
})
