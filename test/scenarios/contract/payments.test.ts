import { afterEach, describe, expect, it } from 'vitest'
import { emptyTables } from '../../support/database.ts'
import { startListingGateway } from '../../support/listing-gateway.ts'
import { useRig } from '../../support/use-started.ts'
import { matching } from './matching.ts'
import { ANSWER_ROWS, ENTRY_ROWS, type Form, type Row } from './payment-tables.ts'

const rig = useRig({ settings: { ROLE: 'web' } })
afterEach(() => emptyTables(rig.database))

const ENTRY = {
  id: '"1439211"',
  status: '"SUCCESS"',
  amount: '20000000',
  paymentMethod: '"QR"',
  refundedAmount: '0',
}

/** An object as JSON, with other members where they are given; null leaves one out. */
function write(members: Readonly<Record<string, string>>, change: Form['change']): string {
  const present = Object.entries({ ...members, ...change }).filter(([, value]) => value !== null)
  return `{${present.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`
}

const writeEntry = (change: Form['change']) =>
  write(
    {
      svc_ResponseCode: '0',
      svc_ResponseData: `[${write(ENTRY, change)}]`,
      svc_ResponseMsg: '"ok"',
    },
    {},
  )

const writeAnswer = (change: Form['change']) =>
  write(
    { svc_ResponseCode: '0', svc_ResponseData: `[${write(ENTRY, {})}]`, svc_ResponseMsg: '"ok"' },
    change,
  )

async function expectSeen(body: string, { sees, finds = [] }: Form) {
  const gateway = await startListingGateway(rig)
  gateway.answer('QUERY_PT', body)
  await gateway.sync('T-CONTRACT')
  expect(await rig.transaction('T-CONTRACT')).toMatchObject(matching(sees))
  const found = await rig.database.sql`select kind from discrepancies order by id`
  expect(found.map(({ kind }) => kind)).toEqual(finds)
}

const forms = ({ documented, odd }: Row) => [documented, ...odd]

describe.each(ENTRY_ROWS)('$row', (row) => {
  it('has at least three odd forms', () => expect(row.odd.length).toBeGreaterThanOrEqual(3))
  it.each(forms(row))('$given', async (form) => {
    await expectSeen(writeEntry(form.change), form)
  })
})

describe.each(ANSWER_ROWS)('$row', (row) => {
  it('has at least three odd forms', () => expect(row.odd.length).toBeGreaterThanOrEqual(3))
  it.each(forms(row))('$given', async (form) => {
    await expectSeen(writeAnswer(form.change), form)
  })
})
