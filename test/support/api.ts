import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished } from 'vitest'
import { z } from 'zod'
import { Problem } from '../../src/http/problems.ts'
import type { TestDatabase } from './database.ts'
import { KEY, MERCHANT } from './service.ts'

export const OTHER = { merchantCode: 'OTHER1', secret: 'secret-of-the-other-account' }

/** The setting for the account of the tests and `OTHER`. */
export const TWO_ACCOUNTS = {
  MERCHANTS_FILE: fileURLToPath(new URL('../fixtures/two-accounts.json', import.meta.url)),
}

/** Writes a `MERCHANTS_FILE` with the accounts; call `remove` after the tests. */
export function writeMerchantsFile(accounts: readonly object[]): { path: string; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), 'ipn-merchants-'))
  const path = join(folder, 'merchants.json')
  writeFileSync(path, JSON.stringify(accounts))
  return { path, remove: () => rmSync(folder, { recursive: true, force: true }) }
}

export function withKey(key = KEY, headers: Record<string, string> = {}) {
  return { headers: { authorization: `Bearer ${key}`, ...headers } }
}

/**
 * Path segments that are no valid id of a refund or an endpoint, and that no numbered row has: a shared database may have
 * seen any smaller number. One looks like a UUID but has no valid variant.
 */
export const NO_IDS = [
  '11111111-1111-1111-1111-111111111111',
  'nope',
  '9223372036854775807',
  '%00',
  'x'.repeat(4_000),
]

/** Checks that a response is a problem with all required members, and returns it. */
export async function expectProblem(response: Response, status: number, code: string) {
  const text = await response.text()
  expect({ status: response.status, text }).toMatchObject({ status })
  expect(response.headers.get('content-type')).toBe('application/problem+json')
  const problem = Problem.strict().parse(JSON.parse(text))
  expect(problem).toMatchObject({ status, code })
  for (const member of [problem.type, problem.title, problem.detail]) expect(member).not.toBe('')
  expect(problem.requestId).toBe(response.headers.get('x-request-id'))
  return problem
}

/** Checks that a response is a 422 that names exactly this field. */
export async function expectInvalid(response: Response, field: string) {
  const problem = await expectProblem(response, 422, 'invalid_request')
  expect(problem.errors?.map(({ path }) => path)).toEqual([field])
  expect(problem.detail).toContain(field)
  return problem
}

type Seed = {
  transactionId: string
  merchantCode?: string
  orderId?: string
  currency?: string
  state?: string
  final?: boolean
  firstSeenAt?: string
  dueAt?: string | null
}

/** Inserts a transaction as a query would leave it, with nothing due. */
export async function seedTransaction(
  database: Pick<TestDatabase, 'sql'>,
  seed: Seed,
): Promise<void> {
  const { transactionId, merchantCode = MERCHANT.merchantCode, state = 'pending' } = seed
  await database.sql`
    insert into transactions
      (merchant_code, transaction_id, order_id, currency, state, final, first_seen_at, due_at)
    values (${merchantCode}, ${transactionId}, ${seed.orderId ?? null}, ${seed.currency ?? 'VND'}, ${state},
      ${seed.final ?? state !== 'pending'}, coalesce(${seed.firstSeenAt ?? null}::timestamptz, now()),
      ${seed.dueAt ?? null})`
}

/** Inserts, for one test, a transaction of an account that left the settings; due so many minutes ago, if at all. */
export async function seedGone(
  { sql }: Pick<TestDatabase, 'sql'>,
  dueMinutesAgo: number | null = null,
): Promise<void> {
  onTestFinished(async () => {
    await sql`delete from transactions where merchant_code = 'GONE01'`
    await sql`delete from merchant_accounts where merchant_code = 'GONE01'`
  })
  await sql`insert into merchant_accounts (merchant_code) values ('GONE01')`
  await sql`
    insert into transactions (merchant_code, transaction_id, due_at)
    values ('GONE01', 'T-GONE', now() - ${dueMinutesAgo}::float8 * interval '1 minute')`
}

type PaymentSeed = {
  paymentId: string
  transactionId: string
  merchantCode?: string
  status?: string
  amount?: string
  refundedAmount?: string
  paymentMethod?: string
  missing?: boolean
  unreadable?: boolean
  firstSeenAt?: string
}

/** Inserts a payment of an existing transaction. */
export async function seedPayment(
  database: Pick<TestDatabase, 'sql'>,
  seed: PaymentSeed,
): Promise<void> {
  const { merchantCode = MERCHANT.merchantCode, refundedAmount = '0' } = seed
  await database.sql`
    insert into payments (first_as_of, merchant_code, payment_id, transaction_id, status, amount, refunded_amount,
      refunded_at_first, payment_method, missing, unreadable, as_of, first_seen_at)
    values (now(), ${merchantCode}, ${seed.paymentId}, ${seed.transactionId}, ${seed.status ?? 'SUCCESS'},
      ${seed.amount ?? '1000'}, ${refundedAmount}, ${refundedAmount}, ${seed.paymentMethod ?? 'QR'},
      ${seed.missing ?? false}, ${seed.unreadable ?? false}, now(), coalesce(${seed.firstSeenAt ?? null}::timestamptz, now()))`
}

/** Inserts an open discrepancy of the test's account. @returns its id */
export async function seedDiscrepancy(
  { sql }: Pick<TestDatabase, 'sql'>,
  kind: string,
  more: { transactionId?: string; merchantCode?: string; theirs?: string; daysAgo?: number } = {},
): Promise<number> {
  const { transactionId = 'T-1', merchantCode = MERCHANT.merchantCode, daysAgo = 0 } = more
  const [row] = await sql<{ id: number }[]>`
    insert into discrepancies (merchant_code, transaction_id, kind, ours, theirs, at)
    values (${merchantCode}, ${transactionId}, ${kind}, ${`ours ${daysAgo}`}, ${more.theirs ?? 'theirs'},
      now() - ${daysAgo} * interval '1 day')
    returning id`
  return row?.id ?? 0
}

const Page = z.object({
  data: z.array(z.record(z.string(), z.unknown())),
  nextCursor: z.string().nullable(),
})

/** A page of any list. */
export async function readPage(response: Response): Promise<z.infer<typeof Page>> {
  const text = await response.text()
  expect({ status: response.status, text }).toMatchObject({ status: 200 })
  return Page.strict().parse(JSON.parse(text))
}

/** Reads all pages of a list; `between` runs after every page. */
export async function readAll(
  get: (query: string) => Promise<Response>,
  query: Record<string, string>,
  between: (page: number) => Promise<void> = async () => {},
): Promise<Record<string, unknown>[]> {
  const all: Record<string, unknown>[] = []
  let cursor: string | null = null
  for (let page = 1; page <= 100; page += 1) {
    const parameters: Record<string, string> = cursor === null ? query : { ...query, cursor }
    const answer: z.infer<typeof Page> = await readPage(
      await get(`?${new URLSearchParams(parameters)}`),
    )
    all.push(...answer.data)
    cursor = answer.nextCursor
    if (cursor === null) return all
    await between(page)
  }
  throw new Error('the list has no end')
}
