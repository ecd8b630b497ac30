import { createRoute, z } from '@hono/zod-openapi'
import { describeStop, findStop } from '../db/installation.ts'
import { isSchemaCurrent } from '../db/migration-state.ts'
import { isWithoutWorker, NO_WORKER } from '../db/processes.ts'
import { DomainError } from '../errors.ts'
import { createRouter } from '../http/app.ts'
import { describePublicRefusals, describeResponse } from '../http/describe.ts'
import { shareRuns, withTimeout } from '../platform/concurrency/timing.ts'
import { describeOutage } from '../platform/postgres/describe-outage.ts'
import { findWeakCommits } from '../platform/postgres/pool.ts'
import { listOutages, noteOutage } from '../platform/telemetry/outage-log.ts'
import { clearStoredGauges, type HealthContext, setStoredGauges } from './gauges.ts'
import { proveWrites } from './watch-outages.ts'

const PHASE_REASONS = {
  starting: 'the process is starting: it has not begun all of its work yet',
  ready: undefined,
  stopping: 'the process is stopping',
}

/** While a database server starts up, the driver delays queries until it accepts connections (ms). */
const PROBE_TIMEOUT_MS = 2_000

const OTHER_REASON =
  'the database does not answer in time, reports commits that are not durable, or its schema is older than this version'

/** The outage in which some statements still succeed, so that the probe alone does not always show it. */
const STOPS_WRITES = 'disk'

/**
 * Serves orchestrators and Prometheus, without an API key. However many ask, the database is asked at most once every
 * `healthReuseMs`, and the text of the metrics is built as often.
 * @param showsMetrics false where another listener has `/metrics`
 */
export function healthRoutes(ctx: HealthContext, showsMetrics: boolean) {
  const { healthReuseMs } = ctx.config
  const readMetrics = shareRuns(() => renderMetrics(ctx), healthReuseMs)
  const checkDatabase = shareRuns(() => findFault(ctx), healthReuseMs)
  const checkWorkers = shareRuns(() => findNotes(ctx), healthReuseMs)
  const describePhase = () => PHASE_REASONS[ctx.lifecycle.phase]
  return createRouter()
    .openapi(liveness, (c) => c.json({ status: 'ok' as const }, 200))
    .openapi(readiness, async (c) => {
      // The signal to stop may arrive while the database is being asked.
      const starting = describePhase()
      const { why: fault, stopped } = starting === undefined ? await checkDatabase() : {}
      const why = starting ?? fault ?? describePhase()
      if (why !== undefined) return c.json({ status: 'not ready' as const, why }, 503)
      // An unresponsive gateway does not make this process unready: other processes use the same gateway.
      const paused = ctx.gateway.breakers.listPaused()
      const { verbose } = c.req.valid('query')
      const notes = verbose === undefined ? [] : await checkWorkers()
      const waits = { ...(paused.length > 0 ? { paused } : {}), ...(stopped ? { stopped } : {}) }
      const noted = notes.length > 0 ? { notes } : {}
      return c.json({ status: 'ready' as const, ...waits, ...noted }, 200)
    })
    .openapi(metrics, async (c) => {
      if (!showsMetrics) throw new DomainError('not_found', `There is no path ${c.req.path}`)
      return c.text(await readMetrics(), 200, { 'content-type': ctx.metrics.registry.contentType })
    })
}

/** Why the database cannot take requests, and why nothing is sent, if so. */
type Fault = { why?: string | undefined; stopped?: string | undefined }

/** Finds what the probe meets, or what other statements met and still lasts. */
async function findFault({ db: { sql }, log }: Pick<HealthContext, 'db' | 'log'>): Promise<Fault> {
  const probe = async () => {
    await proveWrites(sql)
    return (await isSchemaCurrent(sql)) && (await findWeakCommits(sql)) === undefined
  }
  try {
    if (!(await withTimeout(PROBE_TIMEOUT_MS, probe()))) return { why: OTHER_REASON }
    const stop = await withTimeout(PROBE_TIMEOUT_MS, findStop(sql))
    const why = listOutages(log).find(({ name }) => name === STOPS_WRITES)?.what
    return { why, stopped: stop && describeStop(stop) }
  } catch (error) {
    noteOutage(log, error, 'probes')
    return { why: describeOutage(error)?.what ?? OTHER_REASON }
  }
}

/** What does not make this process unready, but somebody should know. */
async function findNotes(ctx: HealthContext): Promise<string[]> {
  try {
    return (await withTimeout(PROBE_TIMEOUT_MS, isWithoutWorker(ctx))) ? [NO_WORKER] : []
  } catch (error) {
    noteOutage(ctx.log, error, 'probes')
    return []
  }
}

const common = { method: 'get' as const, tags: ['Operations'], security: [] }

const Alive = z.strictObject({ status: z.literal('ok') }).openapi('Liveness')

const liveness = createRoute({
  ...common,
  path: '/healthz',
  operationId: 'checkLiveness',
  summary: 'Check that the process is running',
  description: 'Does not access the database.',
  responses: {
    200: describeResponse('The process is running', Alive),
    ...describePublicRefusals('rate_limited'),
  },
})

const Paused = z.strictObject({
  merchantCode: z.string(),
  operation: z.enum(['query', 'refund', 'cards']),
  state: z.enum(['closed', 'half-open', 'open']),
  waitMs: z.number().openapi({ description: 'Time until the next call (ms)' }),
})

const Ready = z
  .strictObject({
    status: z.literal('ready'),
    paused: z.array(Paused).optional().openapi({
      description: 'Gateway calls that are paused because the gateway does not answer',
    }),
    notes: z.array(z.string()).optional().openapi({
      description: 'With `verbose`: what somebody should know, such as that no worker runs',
    }),
    stopped: z.string().optional().openapi({
      description:
        'Why nothing is sent, and what to run: the database may have lost commits. Notifications are stored all the same',
    }),
  })
  .openapi('Readiness')

const NotReady = z
  .strictObject({ status: z.literal('not ready'), why: z.string() })
  .openapi('NoReadiness')

const verbose = z
  .string()
  .optional()
  .openapi({
    param: { name: 'verbose', in: 'query' },
    description: 'With any value: `notes` as well',
    example: '',
  })

const readiness = createRoute({
  ...common,
  path: '/readyz',
  operationId: 'checkReadiness',
  summary: 'Check that the process can take requests',
  description:
    '200 once everything has started, until the process is asked to stop, while the database accepts writes, with free space on its disk, and its schema is current. A gateway that does not answer does not make the process unready; it is listed in `paused`.',
  request: { query: z.object({ verbose }) },
  responses: {
    200: describeResponse('The process can take requests', Ready),
    ...describePublicRefusals('rate_limited'),
    503: describeResponse('Not ready: route requests to another process', NotReady),
  },
})

const metrics = createRoute({
  ...common,
  path: '/metrics',
  operationId: 'readMetrics',
  summary: 'Read the metrics',
  description:
    'Each process reports its own values, at most a second old. With `METRICS_PORT` they are served there, and here is nothing.',
  responses: {
    200: {
      description: 'The metrics in Prometheus text format',
      content: { 'text/plain': { schema: z.string().openapi({ example: 'sync_due 0\n' }) } },
    },
    ...describePublicRefusals('not_found', 'rate_limited'),
  },
})

/** Renders the metrics in Prometheus text format; the gauges of a silent database are NaN. */
async function renderMetrics(ctx: HealthContext): Promise<string> {
  const isUp = await refreshDatabaseGauges(ctx)
  ctx.metrics.databaseUp.set(isUp ? 1 : 0)
  ctx.measure()
  return await ctx.metrics.registry.metrics()
}

/** @returns whether the database answered in time */
async function refreshDatabaseGauges(ctx: HealthContext): Promise<boolean> {
  const reads = ctx.db.reads.run('metrics', ({ sql }) => setStoredGauges(sql, ctx))
  try {
    await withTimeout(PROBE_TIMEOUT_MS, reads)
    return true
  } catch (err) {
    // Metrics matter most while the database is unavailable: still serve the rest.
    clearStoredGauges(ctx)
    if (!noteOutage(ctx.log, err, 'scrapes')) {
      ctx.log.warn({ err }, 'the database gauges could not be read; they are reported as NaN')
    }
    return false
  }
}
