import { beforeEach, expect } from 'vitest'
import { z } from 'zod'
import { withKey } from './api.ts'
import { addPrincipal, type TestKey } from './approvals.ts'
import { ask, expectTaken } from './ask.ts'
import type { LabPayment, RefundLab } from './refund-lab.ts'

/** The reason of everything that people do in a lab. */
export const REASON = 'ticket 4711'

export const AGAINST = { againstEvidence: true }

/** Somebody with a key of their own; what they do over the API leads to its response. */
export type Person = TestKey & ReturnType<typeof act>

/** Lets somebody act with a key. */
export function act(lab: RefundLab, { key }: Pick<TestKey, 'key'>) {
  const call = (method: string, path: string, body: object = {}) =>
    fetch(`${lab.service.url}/v1/${path}`, {
      method,
      ...withKey(key, { 'content-type': 'application/json' }),
      body: JSON.stringify({ reason: REASON, ...body }),
    })
  const post = (path: string, body?: object) => call('POST', path, body)
  return {
    call,
    post,
    /** Requests a refund, without a sync. */
    ask: async ({ id }: LabPayment, amount: string, more: object = {}) =>
      (await expectTaken(await ask({ url: lab.service.url, key }, id, { amount, ...more }))).id,
    decide: (refundId: string, outcome: string, more: object = {}) =>
      post(`refunds/${refundId}/resolution`, { outcome, ...more }),
    approve: (refundId: string, more?: object) => post(`refunds/${refundId}/approval`, more),
    decline: (refundId: string, more?: object) => post(`refunds/${refundId}/decline`, more),
    cancel: (refundId: string, more?: object) => post(`refunds/${refundId}/cancellation`, more),
    decideExternal: (id: string, outcome: string, more: object = {}) =>
      post(`external-refunds/${id}/resolution`, { outcome, ...more }),
    /** @param target such as `payment/P-1` */
    hold: (target: string, more?: object) => call('PUT', `holds/${target}`, more),
    release: (target: string, more?: object) => call('DELETE', `holds/${target}`, more),
    /** Enters growth of the payment that nothing explains as a refund made elsewhere. */
    async enterGrowth({ id }: LabPayment) {
      const [found] = await lab.database.sql<{ id: string }[]>`
        select id::text from discrepancies
        where kind = 'unexplained_growth' and payment_id = ${id} and resolved_at is null`
      return await post(`discrepancies/${found?.id}/resolution`)
    },
  }
}

/** Somebody who may ask for refunds, approve them and decide about them: in each test another one. */
export function usePerson(lab: RefundLab): Person {
  let current: Person | undefined
  beforeEach(async () => {
    const key = await addPrincipal(lab.database)
    current = { ...key, ...act(lab, key) }
  })
  return new Proxy<Person>(Object.create(null), {
    get: (_, member) => Reflect.get(current ?? expect.fail('there is nobody yet'), member),
  })
}

/** Nobody else may decide for a merchant while this runs. */
export const whileAlone = <T>(lab: RefundLab, one: Pick<Person, 'id'>, run: () => Promise<T>) =>
  whileOnly(lab, [one], run)

/** Nobody but these may decide for a merchant while this runs. */
export async function whileOnly<T>(
  { database: { sql } }: RefundLab,
  people: readonly Pick<Person, 'id'>[],
  run: () => Promise<T>,
): Promise<T> {
  await sql`update actors set ended_at = now() where id <> all(${people.map(({ id }) => id)})`
  return await run().finally(() => sql`update actors set ended_at = null`)
}

/** Requires that what somebody did is done, and returns what is shown of it. */
export async function done<T = unknown>(
  asked: Promise<Response>,
  shape: z.ZodType<T> = z.custom<T>(),
): Promise<T> {
  const response = await asked
  const text = await response.text()
  expect({ status: response.status, text }).toMatchObject({ status: 200 })
  return shape.parse(JSON.parse(text))
}
