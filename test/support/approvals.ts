import { randomUUID } from 'node:crypto'
import { foldName } from '../../src/access/principal.ts'
import { seedCurrency } from './ask.ts'
import type { TestDatabase } from './database.ts'
import type { LabPayment, RefundLab } from './refund-lab.ts'
import { MERCHANT } from './service.ts'

/** The scopes of someone who asks for refunds, approves them and decides about them. */
const EVERYTHING = '{refunds:read,refunds:write,refunds:approve,ops,payments:read}'

/** A key of a principal: its id, and the text to send. */
export type TestKey = { id: string; key: string; name: string }

/** Adds a key that may ask for refunds and approve them, by default of a principal of its own. */
export async function addPrincipal(
  { sql }: TestDatabase,
  more: {
    name?: string
    person?: string
    rotates?: TestKey
    scopes?: string
    merchantCode?: string
  } = {},
): Promise<TestKey> {
  const [id, key] = [randomUUID(), `approver-${randomUUID()}`]
  const { name = `key-${key.slice(-12)}`, person = null, rotates, scopes = EVERYTHING } = more
  const [row] = await sql<{ id: string }[]>`
    insert into actors (id, kind, name, folded_name, hash, scopes, merchants, person, folded_person, replaces, chain_id)
    select ${id}, 'key', ${name}, ${foldName(name)}, sha256(${key}::bytea), ${scopes}::text[],
      ${[more.merchantCode ?? MERCHANT.merchantCode]}, ${person}, ${person === null ? null : foldName(person)},
      ${rotates?.id ?? null}, coalesce((select chain_id from actors where id = ${rotates?.id ?? null}), ${id}::uuid)
    returning id`
  if (!row) throw new Error('no key was stored')
  return { id: row.id, key, name }
}

/** Creates a payment in a currency that a verified notification names: refunds of it are compared with its threshold. */
export async function openIn(
  lab: RefundLab,
  currency: string,
  options?: Parameters<RefundLab['open']>[0],
): Promise<LabPayment> {
  const payment = await lab.open(options)
  await seedCurrency(lab.database, payment.transactionId, currency)
  return payment
}
