import { createRoute, z } from '@hono/zod-openapi'
import { describeStop, findStop } from '../db/installation.ts'
import { isSchemaCurrent } from '../db/migration-state.ts'
import { NO_WORKER } from '../db/processes.ts'
import { DomainError } from '../errors.ts'
import { createRouter } from '../http/app.ts'
import { describePublicRefusals, describeResponse } from '../http/describe.ts'
import { shareRuns, withTimeout } from '../platform/concurrency/timing.ts'
import { DISK, describeOutage } from '../platform/postgres/describe-outage.ts'
import { findWeakCommits } from '../platform/postgres/pool.ts'
import { listOutages, noteOutage } from '../platform/telemetry/outage-log.ts'
import { clearStoredGauges, type HealthContext, setStoredGauges } from './gauges.ts'
import { proveWrites } from './watch-outages.ts'

const PHASE_REASONS = {
  starting: 'the process is starting: it has not begun all of its work yet',
  ready: undefined,
  stopping: 'the process is stopping',
}

/** While a database server starts up, the driver delays queries: no probe waits longer than this (ms). */
const PROBE_TIMEOUT_MS = 2_000

const OTHER_REASON =
  'the database does not answer in time, reports commits that are not durable, or its schema is older than this version'

/**
 * Serves orchestrators and Prometheus, without an API key. However many requests come, the database is asked and the
 * metrics are written at most once every `healthReuseMs`.
 * @param showsMetrics false if another listener serves `/metrics`
 */
export function healthRoutes(ctx: HealthContext, showsMetrics: boolean) {
  const { healthReuseMs } = ctx.config
  const readMetrics = shareRuns(() => renderMetrics(ctx), healthReuseMs)
  const checkDatabase = shareRuns(() => findFault(ctx), healthReuseMs)
  const describePhase = () => PHASE_REASONS[ctx.lifecycle.phase]
  return createRouter()
    .openapi(liveness, (c) => c.json({ status: 'ok' as const }, 200))
    .openapi(readiness, async (c) => {
      // The phase is read again at the end, as the signal to stop may arrive while the database is being asked.
      const starting = describePhase()
      const { why: fault, stopped } = starting === undefined ? await checkDatabase() : {}
      const why = starting ?? fault ?? describePhase()
      if (why !== undefined) return c.json({ status: 'not ready' as const, why }, 503)
      // An unresponsive gateway does not make this process unready, because all others use the same gateway.
      const paused = ctx.gateway.breakers.listPaused()
      const { verbose } = c.req.valid('query')
      const waits = { ...(paused.length > 0 ? { paused } : {}), ...(stopped ? { stopped } : {}) }
      const isNoted = verbose !== undefined && ctx.lifecycle.isWithoutWorker
      const noted = isNoted ? { notes: [NO_WORKER] } : {}
      return c.json({ status: 'ready' as const, ...waits, ...noted }, 200)
    })
    .openapi(metrics, async (c) => {
      if (!showsMetrics) throw new DomainError('not_found', `There is no path ${c.req.path}`)
      return c.text(await readMetrics(), 200, { 'content-type': ctx.metrics.registry.contentType })
    })
}

type Fault = { why?: string | undefined; stopped?: string | undefined }

/** Finds a fault that the probe meets, or that other statements have met and that still lasts. */
async function findFault({ db: { sql }, log }: Pick<HealthContext, 'db' | 'log'>): Promise<Fault> {
  const probe = async () => {
    await proveWrites(sql)
    return (await isSchemaCurrent(sql)) && (await findWeakCommits(sql)) === undefined
  }
  try {
    if (!(await withTimeout(PROBE_TIMEOUT_MS, probe()))) return { why: OTHER_REASON }
    const stop = await withTimeout(PROBE_TIMEOUT_MS, findStop(sql))
    // Some statements still succeed, so the probe alone does not always show it.
    const why = listOutages(log).find(({ name }) => name === DISK)?.what
    return { why, stopped: stop && describeStop(stop) }
  } catch (error) {
    noteOutage(log, error, 'probes')
    return { why: describeOutage(error)?.what ?? OTHER_REASON }
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

/** Writes the metrics in Prometheus text format. If the database does not answer, its gauges are NaN. */
async function renderMetrics(ctx: HealthContext): Promise<string> {
  const { metrics, log } = ctx
  const reads = ctx.db.reads.run('metrics', ({ sql }) => setStoredGauges(sql, ctx))
  try {
    await withTimeout(PROBE_TIMEOUT_MS, reads)
    metrics.databaseUp.set(1)
  } catch (err) {
    // Metrics matter most while the database is unavailable, so the rest is still served.
    clearStoredGauges(ctx)
    metrics.databaseUp.set(0)
    if (!noteOutage(log, err, 'scrapes')) {
      log.warn({ err }, 'the database gauges could not be read; they are reported as NaN')
    }
  }
  ctx.measure()
  return await metrics.registry.metrics()
}
