import { expect, it } from 'vitest'
import { makeFormToken, TOKEN_FIELD } from '../../src/console/session.ts'
import { addVisitor, visitAs } from '../support/console.ts'
import { useRig } from '../support/use-started.ts'

const rig = useRig({ settings: { ROLE: 'web' } })

const LISTS = ['transactions', 'payments', 'refunds', 'discrepancies', 'audit']
const DAYS = [
  '9999-12-31',
  '9999-12-30',
  '0000-01-01',
  '0001-01-01',
  '+10000-01-01',
  '2026-02-30',
  '%00',
]

it('a day that no database knows is a wrong filter, not a failure', async () => {
  const visitor = await addVisitor(rig.database, { roles: ['admin'] })
  const failed: string[] = []
  for (const list of LISTS) {
    for (const day of DAYS) {
      for (const query of [`from=${day}`, `to=${day}`, `to=${day}&format=csv`]) {
        const path = `/console/${list}?${query}`
        const { status } = await visitAs(rig, visitor, path)
        if (status >= 500) failed.push(`${status} ${path}`)
      }
    }
  }
  expect(failed).toEqual([])
})

const PATHS = [
  '/%00',
  '/docs/%00',
  '/console/%00',
  '/console/sign-in/%00',
  '/console/assets/%00',
  '/console/transactions/%00/T',
  '/console/transactions/UFLIYL/T%00',
  '/console/transactions/UFLIYL/%2500',
  '/console/payments/UFLIYL/%00/refund',
  '/console/refunds/UFLIYL/%00',
  '/console/people/%00',
  '/console/discrepancies/UFLIYL/%00',
  '/console/transactions?cursor=%00',
  '/console?q=%00',
  '/console?q=a%00b',
  '/console/transactions?orderId=%00',
  '/console/transactions/UFLIYL/T?view=%00',
  '/console/health?x=%00',
  '/console/account?x=%00',
  '/console/reasons?merchant=%00',
  '/console/reasons/%00',
]

it.each(['%FF%FEx', 'x%', '%C3(', '%ED%A0%80'])(
  'a form with %s, which is no UTF-8 text, is refused, and changes nothing',
  async (reasons) => {
    const visitor = await addVisitor(rig.database, { roles: ['admin'] })
    const proof = new URLSearchParams({ [TOKEN_FIELD]: makeFormToken(visitor.token) })
    const { status } = await visitAs(rig, visitor, '/console/reasons', {
      method: 'POST',
      headers: {
        ...{ 'content-type': 'application/x-www-form-urlencoded' },
        ...{ 'sec-fetch-site': 'same-origin' },
      },
      body: `${proof}&reasons=${reasons}`,
    })
    expect(status).toBe(400)
    const { sql } = rig.database
    expect(await sql`select from audit_entries where operation = 'POST /console/reasons'`).toEqual(
      [],
    )
  },
)

it('a NUL in an address names nothing, signed in or not', async () => {
  const visitor = await addVisitor(rig.database, { roles: ['admin'] })
  const failed: string[] = []
  for (const path of PATHS) {
    for (const response of [
      await visitAs(rig, visitor, path),
      await fetch(rig.service.url + path, { redirect: 'manual' }),
      await fetch(rig.service.url + path, {
        redirect: 'manual',
        method: 'POST',
        headers: { 'sec-fetch-site': 'same-origin' },
      }),
    ]) {
      if (response.status >= 500) failed.push(`${response.status} ${path}`)
    }
  }
  expect(failed).toEqual([])
})
