import { emptyTables } from '../../support/database.ts'
import { checkStep } from './read-ledgers.ts'
import { closeWorld, type World } from './world.ts'

/** Two accounts side by side, whose transactions, payments and some refunds have the same ids. */
export type Worlds = readonly [World, World]

/**
 * Audits the accounts after a step.
 * @param active whose step it was, which may have changed nothing of the other one; undefined if it was of both
 */
export async function checkAccounts(worlds: Worlds, active: World | undefined): Promise<void> {
  const marks = await markRows(worlds)
  for (const world of worlds) {
    const rows = marks.get(world.account.merchantCode) ?? new Map<string, string>()
    const tables = new Set([...rows.keys(), ...world.rows.keys()])
    const changed = [...tables].filter((table) => rows.get(table) !== world.rows.get(table))
    world.rows = rows
    if (active && world !== active) world.changedByOther.push(...changed)
    await checkStep(world, changed.length > 0)
  }
}

/** Leaves nothing behind for the next worlds. */
export async function closeAccounts(worlds: Worlds): Promise<void> {
  for (const world of worlds) await closeWorld(world)
  const [{ rig }] = worlds
  await emptyTables(rig.database)
  await rig.database.sql.unsafe(
    'delete from event_outbox; delete from events; delete from audit_entries',
  )
}

type Mark = { merchantCode: string; table: string; mark: string }

/** Marks every row of the accounts, by account and table: a change of a row, even to the same values, changes its mark. */
async function markRows(worlds: Worlds): Promise<Map<string, Map<string, string>>> {
  const [{ rig }] = worlds
  const { sql } = rig.database
  const codes = worlds.map(({ account }) => account.merchantCode)
  const tables = await listTables(sql)
  const statements = tables.map(
    (table) => `select merchant_code as "merchantCode", '${table}' as "table",
      md5(string_agg(ctid::text || xmin, ' ' order by ctid)) as mark
      from ${table} where merchant_code = any($1) group by merchant_code`,
  )
  const found = await sql.unsafe<Mark[]>(statements.join(' union all '), [codes], {
    prepare: true,
  })
  const marks = new Map(codes.map((code) => [code, new Map<string, string>()]))
  for (const { merchantCode, table, mark } of found) marks.get(merchantCode)?.set(table, mark)
  return marks
}

const listed = new WeakMap<object, string[]>()

/** Every table whose rows belong to an account. */
async function listTables(sql: World['rig']['database']['sql']): Promise<string[]> {
  const known = listed.get(sql)
  if (known) return known
  const rows = await sql<{ table: string }[]>`
    select table_name as "table" from information_schema.columns
    where table_schema = 'public' and column_name = 'merchant_code' order by table_name`
  const tables = rows.map(({ table }) => table)
  listed.set(sql, tables)
  return tables
}
