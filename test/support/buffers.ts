import { drizzle } from 'drizzle-orm/postgres-js'
import postgres from 'postgres'
import { z } from 'zod'
import type { Database } from '../../src/db/client.ts'
import type { TestDatabase } from './database.ts'

/** A statement that ran, and the 8 KiB pages it touched, whether they were in memory or read. */
export type Touched = { statement: string; buffers: number }

/** A connection with the service's session settings that measures every statement it runs. */
export type MeasuredConnection = Pick<Database, 'sql' | 'drizzle'> & {
  /** Returns the statements since the last call, those of foreign keys included. */
  takeTouched(): Touched[]
  close(): Promise<void>
}

const Node = z.object({
  'Node Type': z.string(),
  'Subplan Name': z.string().optional(),
  'CTE Name': z.string().optional(),
  'Shared Hit Blocks': z.number(),
  'Shared Read Blocks': z.number(),
  get Plans() {
    return z.array(Node).default([])
  },
})
type Node = z.infer<typeof Node>
const Explained = z.object({ 'Query Text': z.string(), Plan: Node })

/**
 * Opens one connection. The server reports each statement's plan as executed (`auto_explain`), so a plan that the
 * connection has cached is measured, not one made for the measurement.
 */
export function measureConnection({ url, sql: service }: TestDatabase): MeasuredConnection {
  let touched: Touched[] = []
  const { connection, types } = service.options
  const sql = postgres(url, {
    max: 1,
    types: { int8: { to: 20, from: [20], serialize: types.int8?.serialize, parse: Number } },
    connection: {
      ...connection,
      session_preload_libraries: 'auto_explain',
      'auto_explain.log_min_duration': '0',
      'auto_explain.log_analyze': 'on',
      'auto_explain.log_buffers': 'on',
      'auto_explain.log_timing': 'off',
      'auto_explain.log_nested_statements': 'on',
      'auto_explain.log_format': 'json',
      'auto_explain.log_level': 'notice',
      client_min_messages: 'notice',
    },
    onnotice: ({ message = '' }) => {
      const json = message.split('plan:\n')[1]
      if (json === undefined) return
      const { 'Query Text': statement, Plan } = Explained.parse(JSON.parse(json))
      touched.push({ statement, buffers: countBuffers(Plan) })
    },
  })
  return {
    sql,
    drizzle: drizzle(sql),
    takeTouched() {
      const taken = touched
      touched = []
      return taken
    },
    close: () => sql.end(),
  }
}

/** A step's count includes the steps below it, but not writing `with` queries that nothing reads. */
function countBuffers(plan: Node): number {
  const all = list(plan)
  const scanned = new Set(all.map((node) => `CTE ${node['CTE Name']}`))
  const unread = all.filter(
    (node) => node['Node Type'] === 'ModifyTable' && !scanned.has(node['Subplan Name'] ?? ''),
  )
  const counted = unread.includes(plan) ? unread : [plan, ...unread]
  return counted.reduce(
    (sum, node) => sum + node['Shared Hit Blocks'] + node['Shared Read Blocks'],
    0,
  )
}

function list(node: Node): Node[] {
  return [node, ...node.Plans.flatMap(list)]
}
