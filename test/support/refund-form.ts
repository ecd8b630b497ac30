import { expect } from 'vitest'
import type { Role } from '../../src/access/types.ts'
import { makeFormToken } from '../../src/console/session.ts'
import { addVisitor, type Visitor, visitAs } from './console.ts'
import type { TestDatabase } from './database.ts'
import { findForm, type PageForm, readText } from './forms.ts'
import { MERCHANT, type Rig } from './service.ts'
import { useStarted } from './use-started.ts'

/** A person who is signed in. */
export type Clerk = Visitor & {
  visit(path: string, init?: RequestInit): Promise<Response>
  read(path: string): Promise<string>
}

/** Adds a person with a role, and signs them in. */
export async function enter(
  rig: Pick<Rig, 'service'> & { database: TestDatabase },
  role: Role,
  more: { name?: string; merchants?: string[] } = {},
): Promise<Clerk> {
  return act(rig, await addVisitor(rig.database, { ...more, roles: [role] }))
}

/** Lets a person who is signed in act. */
export function act(rig: Pick<Rig, 'service'>, visitor: Visitor): Clerk {
  const visit: Clerk['visit'] = (path, init) => visitAs(rig, visitor, path, init)
  const { personId, name, token } = visitor
  return { personId, name, token, visit, read: async (path) => await (await visit(path)).text() }
}

/** A person with a role who is signed in while the tests of a file run. */
export const useClerk = (...given: Parameters<typeof enter>): Clerk =>
  useStarted(
    () => enter(...given),
    async () => {},
  )

/** What a browser sends with the forms of its own page. */
export const SAME_ORIGIN = { 'sec-fetch-site': 'same-origin' }

/** The path of the form that refunds a payment. */
export const refundPathOf = ({ id }: { id: string }, merchantCode = MERCHANT.merchantCode) =>
  `/console/payments/${merchantCode}/${id}/refund`

/** The path of the form that refunds the surplus of a transaction. */
export const surplusPathOf = (
  { transactionId }: { transactionId: string },
  merchantCode = MERCHANT.merchantCode,
) => `/console/transactions/${merchantCode}/${transactionId}/surplus`

/** What a person fills in to refund a part. */
export const PART = { amountKind: 'part', amount: '30', reason: 'Paid twice' }
export const ALL = { reason: 'Paid twice' }

/** Opens a form to refund, which has to be there. */
export async function openRefundForm(person: Clerk, path: string): Promise<PageForm> {
  const response = await person.visit(path)
  const html = await response.text()
  expect({ status: response.status, html }).toMatchObject({ status: 200 })
  return findForm(html, 'Preview')
}

/** Sends a form in the session of this person, and opens the page of it where it leads back or to the check. */
export async function sendForm(
  person: Clerk,
  form: PageForm,
  fields: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const formToken = makeFormToken(person.token)
  const response = await person.visit(form.action, {
    method: 'POST',
    headers: SAME_ORIGIN,
    body: new URLSearchParams({ ...form.fields, formToken, ...fields }),
  })
  const location = response.headers.get('location') ?? ''
  return /[?&](kept|check)=/.test(location) ? await person.visit(location) : response
}

/** Sends a form for a preview, and returns the page, and the form that confirms it. */
export async function previewForm(
  person: Clerk,
  form: PageForm,
  fields: Readonly<Record<string, string>>,
): Promise<PageForm & { html: string; text: string }> {
  const response = await sendForm(person, form, fields)
  const html = await response.text()
  expect({ status: response.status, text: readText(html) }).toMatchObject({ status: 200 })
  return { ...findForm(html, 'Confirm refund'), html, text: readText(html) }
}

/** Opens a form, fills it in and previews it. */
export async function prepareRefund(
  person: Clerk,
  path: string,
  fields: Readonly<Record<string, string>> = PART,
) {
  return await previewForm(person, await openRefundForm(person, path), fields)
}

/** Where a confirmation led: the id of the refund in its story, and the notice. */
export function readConfirmed(response: Response): { refundId: string; notice: string | null } {
  const location = response.headers.get('location') ?? ''
  expect({ status: response.status, location }).toMatchObject({ status: 303 })
  const url = new URL(location, 'http://localhost')
  expect(url.pathname).toMatch(/^\/console\/transactions\/[^/]+\/[^/]+$/)
  expect(url.hash).toMatch(/^#refund-[0-9a-f-]{36}$/)
  const notice = url.searchParams.get('notice')?.split('.')[0] ?? null
  return { refundId: url.hash.slice('#refund-'.length), notice }
}
