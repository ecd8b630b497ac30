import { drizzle } from 'drizzle-orm/postgres-js'
import { z } from 'zod'
import type { Drizzle } from '../../../../src/db/client.ts'
import type { TestDatabase } from '../../../support/database.ts'

type Statement = { query: string; params: unknown[] }

/** Creates a query builder over a pool that records every statement it sends. */
export function recordStatements({ sql }: TestDatabase): { drizzle: Drizzle; sent: Statement[] } {
  const sent: Statement[] = []
  const logger = { logQuery: (query: string, params: unknown[]) => sent.push({ query, params }) }
  return { drizzle: drizzle(sql, { logger }), sent }
}

const Step = z.object({
  'Node Type': z.string(),
  'Relation Name': z.string().optional(),
  'Index Name': z.string().optional(),
  'Actual Rows': z.number(),
  'Actual Loops': z.number(),
  'Rows Removed by Filter': z.number().default(0),
  get Plans() {
    return z.array(Step).default([])
  },
})
const Explained = z.tuple([z.object({ 'QUERY PLAN': z.tuple([z.object({ Plan: Step })]) })])

/** Reads every step of the plan the service's connections use for a statement, with the rows each step read. */
export async function explain({ sql }: TestDatabase, { query, params }: Statement) {
  const quoted = params.map((one) => `'${Array.isArray(one) ? `{${one.join()}}` : one}'`)
  const held = await sql.reserve()
  try {
    await held.unsafe(`prepare explained as ${query}`)
    const values = quoted.length > 0 ? `(${quoted.join()})` : ''
    const answer = await held.unsafe(`explain (analyze, format json) execute explained${values}`)
    await held.unsafe('deallocate explained')
    return list(Explained.parse([...answer])[0]['QUERY PLAN'][0].Plan)
  } finally {
    held.release()
  }
}

type Met = { node: string; table?: string | undefined; index?: string | undefined; rows: number }

function list(step: z.infer<typeof Step>): Met[] {
  const { Plans: below, 'Actual Loops': loops } = step
  const met = {
    node: step['Node Type'],
    table: step['Relation Name'],
    index: step['Index Name'],
    rows: (step['Actual Rows'] + step['Rows Removed by Filter']) * loops,
  }
  return [met, ...below.flatMap(list)]
}
