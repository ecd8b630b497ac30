import { connect, Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import postgres from 'postgres'
import { UnreplicatedError } from './errors.ts'
import { guardSession, type Servers } from './guard.ts'
import { type DatabaseAddress, parseDatabaseUrl, readSchema } from './hosts.ts'
import { nameChannel } from './notify.ts'
import { createLine, type Line, limitStatements } from './statement-limits.ts'
import {
  type Address,
  createConnectionError,
  isReachable,
  negotiateTls,
  readTlsMode,
} from './tls.ts'
import type { Sql } from './types.ts'

export type DriverOptions = {
  connections: number
  servers: Servers
  readOnly: boolean
  /** Time limits for opening a session, a silent server, and waiting for a connection (ms; without `waitMs` none). */
  limits: { connectMs: number; silenceMs: number; waitMs?: number | undefined }
  /** The application name in `pg_stat_activity`, unless the URL has one. */
  name: string
  /** Settings of the sessions, which override those of the server, the database and the role. */
  settings: Readonly<Record<string, string | number>>
}

export type Driver = { sql: Sql; close(): Promise<void> }

const INT8 = { to: 20, from: [20], serialize: String, parse: Number }

/** The settings of every session. `synchronous_commit` is left to the guard. */
const SETTINGS = {
  TimeZone: 'UTC',
  // The warning that a commit did not wait must be sent.
  client_min_messages: 'warning',
  // Above 1 KiB the driver writes at once. A short startup message could queue behind leftovers of the last session.
  options: ' '.repeat(1024),
}

/** Creates the state of a database's servers before anything has connected. */
export function createServers(url: string): Servers {
  const count = Math.max(1, parseDatabaseUrl(url)?.hosts.length ?? 0)
  return { count, preferred: 0, failures: 0, failedAt: 0, refusals: 0, open: new Set() }
}

/** A connection that the server has cut off may never close. */
const CLOSE_TIMEOUT_S = 1

/** Opens the driver on guarded sockets. It gets the URL without parameters, which would override the settings. */
export function openDriver(
  url: string,
  { connections, name, settings, ...options }: DriverOptions,
): Driver {
  let isClosed = false
  const line = createLine()
  const address = parseDatabaseUrl(url) ?? { hosts: [], parameters: new URLSearchParams() }
  const [first] = address.hosts
  const schema = readSchema(address)
  // A variable, because the driver's types omit `socket`.
  const own = {
    // The driver sees one server. With several it would retry at once and report no failure.
    ...(first ? { host: first.host } : {}),
    socket: createSockets(address, { ...options, line, isClosed: () => isClosed }),
    ssl: false,
    max: connections,
    // The sockets take care of both.
    connect_timeout: 0,
    backoff: () => 0,
    types: { int8: INT8 },
    onnotice: rejectUnreplicated,
    connection: {
      ...settings,
      ...(schema === null ? {} : { search_path: schema }),
      application_name: address.parameters.get('application_name') ?? name,
      ...SETTINGS,
    },
  }
  const sql = postgres(url.replace(/[?#].*$/s, ''), own)
  const { listen } = sql
  sql.listen = (channel, ...on) => listen(nameChannel(schema, channel), ...on)
  return {
    sql: limitStatements(sql, line, options.limits.waitMs),
    async close() {
      // Otherwise a connection attempt under way would continue.
      isClosed = true
      line.release()
      // Without a session nothing is in flight, but the driver would wait for those it is still trying to open.
      await sql.end({ timeout: options.servers.open.size === 0 ? 0 : CLOSE_TIMEOUT_S })
    },
  }
}

/** The server function whose warnings are about the standby. Their text depends on `lc_messages`. */
const SYNC_WAIT = 'SyncRepWaitForLSN'

/**
 * Rejects a commit whose wait for the standby was cancelled, so that it exists only on the primary. What is thrown
 * here rejects the statement whose answer the driver (3.4.9) awaits.
 * @throws UnreplicatedError
 */
function rejectUnreplicated({ routine, message = '' }: postgres.Notice): void {
  if (routine === SYNC_WAIT || message.includes('synchronous replication')) {
    throw new UnreplicatedError(message)
  }
}

type Parsed = {
  host: readonly string[]
  port: readonly number[]
  path?: string | false
  /** Set for the connection that listens, which the driver opens beside the pool. */
  onnotify?: unknown
}

type SocketOptions = Pick<DriverOptions, 'servers' | 'limits' | 'readOnly'> & {
  line: Line
  isClosed: () => boolean
}

/** Creates the sockets of a pool. Each connects to the server that is to be tried next. */
function createSockets(
  { hosts, parameters }: DatabaseAddress,
  { servers, limits, readOnly, line, isClosed }: SocketOptions,
) {
  const mode = readTlsMode(parameters)
  /** Never rejects, because the driver would then lose the connection's place in its pool. */
  return async ({ host: [host = 'localhost'], port: [port = 5432], path, onnotify }: Parsed) => {
    const own = onnotify ? undefined : line
    await pace(servers, own)
    const index = servers.preferred
    const named = hosts[index]
    // The driver's port is that of the first server: from the URL, from PGPORT, or 5432.
    const fallback = hosts[0]?.port === undefined && port > 0 ? port : 5432
    const address: Address = path
      ? { path }
      : { host: named?.host ?? host, port: named ? (named.port ?? fallback) : port }
    const guard = (socket: Socket) =>
      guardSession(socket, {
        ...limits,
        readOnly,
        servers,
        index,
        address,
        line: isClosed() ? undefined : own,
        isReachable: () => isReachable(address, limits.connectMs),
      })
    try {
      if (isClosed()) throw createConnectionError('CONNECTION_ENDED', address)
      const socket = connect(address)
      // Guarded at once: without a route to the server it fails before anybody could listen.
      if (mode === 'off' || 'path' in address) return guard(socket)
      return guard(await negotiateTls(socket, address, mode, limits.connectMs))
    } catch (error) {
      const failed = guard(new Socket())
      // Before the driver writes to it, which fails as well.
      failed.emit('error', error)
      setImmediate(() => failed.destroy())
      return failed
    }
  }
}

/** Delays an attempt after failures, longer after each, until a session is needed. The driver would wait up to 20 s. */
async function pace(servers: Servers, line: Line | undefined): Promise<void> {
  // The servers of a list are tried one after the other without a delay.
  if (servers.failures === 0 || servers.refusals % servers.count > 0) return
  await line?.isNeeded()
  const delayMs = (0.5 + Math.random() / 2) * Math.min(2 ** servers.failures * 10, 500)
  await sleep(Math.max(0, servers.failedAt + delayMs - performance.now()))
}
