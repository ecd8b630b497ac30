import { z } from 'zod'
import { findStop } from '../db/installation.ts'
import { isSchemaCurrent } from '../db/migration-state.ts'
import { UNSEEN_MS } from '../db/processes.ts'
import { confirmNothingLost } from '../maintenance/restore.ts'
import { openSession, PLANS } from '../platform/postgres/pool.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { type Cli, command, RefusedError } from './command.ts'
import { readActor, withDatabaseUrl } from './database.ts'
import { formatTable } from './print.ts'

/** A server that a cell can live on: `host:port`. */
type Node = { node: string; takesCells: boolean }

/** Opens a session without a limit, since a move may take hours. The schema may be outdated or empty. */
async function withCells<T>({ env }: Cli, work: (sql: Sql) => Promise<T>): Promise<T> {
  return await withDatabaseUrl(async (url) => {
    const { sql, close } = openSession(url, 'ipn-processor cells')
    return await work(sql).finally(close)
  }, env)
}

async function hasCitus(sql: Sql): Promise<boolean> {
  const [row] = await sql`select from pg_extension where extname = 'citus'`
  return row !== undefined
}

async function listNodes(sql: Sql): Promise<Node[]> {
  return await sql<Node[]>`
    select nodename || ':' || nodeport as node, shouldhaveshards and isactive as "takesCells"
    from pg_dist_node where noderole = 'primary' order by groupid`
}

/** Finds the servers of distributed schemas; the others are on the server that is asked. */
async function findPlaces(sql: Sql): Promise<Map<string, string>> {
  const rows = await sql<{ schema: string; node: string }[]>`
    select distinct d.schemaid::regnamespace::text as schema, n.nodename || ':' || n.nodeport as node
    from pg_dist_schema as d join pg_dist_partition as p using (colocationid)
      join pg_dist_shard as s on s.logicalrelid = p.logicalrelid join pg_dist_placement using (shardid)
      join pg_dist_node as n using (groupid)
    where n.noderole = 'primary'`
  return new Map(rows.map(({ schema, node }) => [schema, node]))
}

async function measureSizes(sql: Sql, isDistributed: boolean): Promise<Map<string, number>> {
  const rows = await sql<{ schema: string; bytes: number }[]>`
    select relnamespace::regnamespace::text as schema, sum(bytes)::bigint as bytes
    from (
      select relnamespace, pg_total_relation_size(oid) as bytes from pg_class where relkind = 'r'
      ${isDistributed ? sql`union all select relnamespace, shard_size from citus_shards join pg_class as c on c.oid = table_name` : sql``}
    ) as sized group by 1`
  return new Map(rows.map(({ schema, bytes }) => [schema, bytes]))
}

type Work = { processes: number; notificationsAnHour: number; stopped: boolean }

async function measureWork(sql: Sql, schema: string): Promise<Work | undefined> {
  const [row] = await sql<Work[]>`
    select (select count(*) from ${sql(schema)}.processes
        where seen_at > now() - ${UNSEEN_MS} * interval '1 millisecond')::int as processes,
      coalesce((select sum(notifications) from ${sql(schema)}.minute_figures
        where at > now() - interval '1 hour'), 0)::int as "notificationsAnHour",
      exists (select from ${sql(schema)}.installation where stopped_at is not null) as stopped`
  return row
}

const LIST = command({
  name: 'cells list',
  description:
    'list the schemas of the database that hold an installation: where, how large and how busy each is',
  input: {},
  async run(cli) {
    const value = await withCells(cli, async (sql) => {
      const isDistributed = await hasCitus(sql)
      const found = await sql<{ schema: string }[]>`
        select schemaname as schema from pg_tables where tablename in ('installation', 'migrations', 'minute_figures')
        group by 1 having count(*) = 3 order by 1`
      const sizes = await measureSizes(sql, isDistributed)
      const places = isDistributed ? await findPlaces(sql) : new Map<string, string>()
      return await Promise.all(
        found.map(async ({ schema }) => ({
          schema,
          node: places.get(schema) ?? null,
          bytes: sizes.get(schema) ?? 0,
          ...(await measureWork(sql, schema)),
        })),
      )
    })
    const columns = [
      'schema',
      'node',
      'bytes',
      'processes',
      'notificationsAnHour',
      'stopped',
    ] as const
    return { value, text: formatTable(value, columns) }
  },
})

/** Finds the cell of `DATABASE_SCHEMA`. @throws RefusedError if it can be neither distributed nor moved */
async function requireCell(sql: Sql): Promise<{ schema: string; node: string | undefined }> {
  if (!(await hasCitus(sql))) {
    throw new RefusedError(
      'Citus is not installed in this database: run "create extension citus" there first',
    )
  }
  const [row] = await sql<{ schema: string | null }[]>`select current_schema()::text as schema`
  const schema = row?.schema ?? null
  if (schema === null || !(await isSchemaCurrent(sql))) {
    throw new RefusedError(
      'DATABASE_SCHEMA holds no installation of this version: migrate it first',
    )
  }
  if (schema === 'public') {
    throw new RefusedError(
      'the schema public stays where it is: a cell has a schema of its own, set DATABASE_SCHEMA',
    )
  }
  if (await findStop(sql)) {
    throw new RefusedError(
      'nothing is sent in this cell since commits may have been lost: say first what was lost, with the command restored',
    )
  }
  return { schema, node: (await findPlaces(sql)).get(schema) }
}

/**
 * Sets for the role what the service's sessions set, which Citus does not pass on to its sessions on the workers.
 * @throws RefusedError if commits there would still be reported before they are durable
 */
async function prepareWorkers(sql: Sql): Promise<void> {
  const { plan_cache_mode: _, ...plans } = PLANS
  const [names] = await sql<{ role: string; database: string }[]>`
    select quote_ident(current_user) as role, quote_ident(current_database()) as database`
  for (const [name, value] of Object.entries({ ...plans, synchronous_commit: 'on' })) {
    await sql.unsafe(
      `alter role ${names?.role} in database ${names?.database} set ${name} = '${value}'`,
    )
  }
  const weak = await sql<{ node: string; level: string }[]>`
    select nodename || ':' || nodeport as node, result as level
    from run_command_on_workers('show synchronous_commit') where result not in ('on', 'remote_apply')`
  const [found] = weak
  if (found)
    throw new RefusedError(
      `synchronous_commit is ${found.level} on ${found.node}: set it to on for the role there`,
    )
}

const DISTRIBUTE = command({
  name: 'cells distribute',
  description:
    'hand the schema of DATABASE_SCHEMA to Citus, which keeps all of it on one server; stop its processes before',
  input: {},
  async run(cli) {
    const value = await withCells(cli, async (sql) => {
      const { schema, node } = await requireCell(sql)
      if (node !== undefined) return { schema, node, distributed: false }
      const work = await measureWork(sql, schema)
      if (work && work.processes > 0) {
        throw new RefusedError(
          `${work.processes} processes of ${schema} run: stop them first, it takes seconds`,
        )
      }
      if (!(await listNodes(sql)).some(({ takesCells }) => takesCells)) {
        throw new RefusedError('no server takes cells: add one with citus_add_node')
      }
      await prepareWorkers(sql)
      await sql`select citus_schema_distribute(${schema}::regnamespace)`
      await confirmNothingLost(sql, cli.log, readActor())
      return { schema, node: (await findPlaces(sql)).get(schema) ?? null, distributed: true }
    })
    const { schema, node, distributed } = value
    return {
      value,
      text: `${schema} ${distributed ? 'is distributed: it lives' : 'lives already'} on ${node}\n`,
    }
  },
})

const MOVE = command({
  name: 'cells move',
  description:
    'move the cell of DATABASE_SCHEMA to another server while it runs; writes wait for the last moment of it',
  args: ['node'],
  input: { node: z.string().describe('the server, as cells list has it: host:port') },
  async run(cli, { node: to }) {
    const value = await withCells(cli, async (sql) => {
      const { schema, node: from } = await requireCell(sql)
      if (from === undefined)
        throw new RefusedError(`${schema} is not distributed: run cells distribute first`)
      const nodes = await listNodes(sql)
      const target = nodes.find(({ node }) => node === to)
      if (!target?.takesCells) {
        const known = nodes.flatMap(({ node, takesCells }) => (takesCells ? [node] : []))
        throw new RefusedError(
          `${to} is no server that takes cells; those are ${known.join(', ') || 'none'}`,
        )
      }
      if (from === to) return { schema, from, to, moved: false, seconds: 0 }
      await prepareWorkers(sql)
      const startedAt = performance.now()
      const [, host = '', port = ''] = /^(.*):(\d+)$/.exec(to) ?? []
      await sql`select citus_schema_move(${schema}::regnamespace, ${host}::text, ${Number(port)}::int)`
      // The cell now lives on another server, which has every commit.
      await confirmNothingLost(sql, cli.log, readActor())
      const seconds = Math.round((performance.now() - startedAt) / 100) / 10
      return { schema, from, to, moved: true, seconds }
    })
    const { schema, from, moved, seconds } = value
    return {
      value,
      text: moved
        ? `${schema} moved from ${from} to ${to} in ${seconds} s\n`
        : `${schema} is on ${to} already\n`,
    }
  },
})

export const CELLS = [LIST, DISTRIBUTE, MOVE]
