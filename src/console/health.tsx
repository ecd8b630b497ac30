import type { Child } from 'hono/jsx'
import { rateKind } from '../discrepancies/kinds.ts'
import { type Figures, POINTS, readFigures } from '../health/figures.ts'
import {
  isWaiting,
  LATE_MS,
  OUTAGE_MS,
  OVERLOOKED_MS,
  type Overview,
  rateProcesses,
  readOverview,
  type SeenProcess,
} from '../health/overview.ts'
import { Card } from '../platform/html/components.tsx'
import { listVisibleOwners } from '../webhooks/endpoints.ts'
import { cell, Rows, State, TableCard, Time, text, time } from './cells.tsx'
import type { ConsoleContext } from './env.ts'
import { definePage } from './page.ts'
import { listKeys, type NameIn } from './texts/text.ts'
import { count, nameIn, t } from './view.ts'
import { formatDuration } from './words.ts'

type LineName = NameIn<'health.lines'>

/** The state of one thing. `runbook` is the anchor of a heading in docs/operations.md. */
type Line = {
  name: LineName
  tone: 'bad' | 'warn' | 'good'
  now: Child
  path?: string
  runbook: string
}

type Measured = Overview & {
  now: number
  sendsRefunds: boolean
  paused: ReturnType<ConsoleContext['gateway']['breakers']['list']>
}

const UNANSWERED_PERCENT = 5

const judge = (isBad: boolean, isDoubtful: boolean) =>
  isBad ? 'bad' : isDoubtful ? 'warn' : 'good'

const LINES: readonly ((of: Measured) => Line)[] = [
  ({ stop, sendsRefunds }) => ({
    name: 'sending',
    tone: judge(stop !== undefined, !sendsRefunds),
    now: stop ? t('health.stopped', stop) : t(sendsRefunds ? 'health.sent' : 'health.refundsOff'),
    runbook: stop || sendsRefunds ? 'after-a-restore' : 'when-a-refund-waits',
  }),
  ({ processes }) => {
    const { hasWorker, isMixed } = rateProcesses(processes)
    return {
      name: 'processes',
      tone: judge(!hasWorker, isMixed),
      now: hasWorker
        ? count(isMixed ? 'health.mixed' : 'health.running', processes.length)
        : t('health.noWorker'),
      path: '#processes',
      runbook: 'when-a-process-is-down-or-overloaded',
    }
  },
  ({ lastNotificationAt: at }) => ({
    name: 'notifications',
    tone: judge(false, at === null),
    now: at === null ? t('health.noNotification') : <Time iso={at} />,
    path: '/console/transactions',
    runbook: 'when-notifications-are-not-taken',
  }),
  ({ due, lagMs }) => ({
    name: 'backlog',
    tone: judge(lagMs > OUTAGE_MS, lagMs > LATE_MS),
    now: `${count('health.due', due)}${lagMs > LATE_MS ? ` ${t('health.oldest', { duration: formatDuration(lagMs) })}` : ''}`,
    path: '/console/transactions?state=pending',
    runbook: 'when-transactions-are-not-queried',
  }),
  ({ paused, answered, unanswered }) => ({
    name: 'gateway',
    tone: judge(paused.length > 0, unanswered * 100 > (answered + unanswered) * UNANSWERED_PERCENT),
    now: [
      ...paused.map(({ merchantCode, operation }) =>
        t('health.paused', { merchantCode, operation: nameIn('health.operations', operation) }),
      ),
      t('health.calls', { answered, unanswered }),
    ].join(' '),
    runbook: 'when-the-gateway-does-not-answer',
  }),
  ({ refunds, now }) => {
    const waiting = refunds.filter(isWaiting)
    return {
      name: 'refunds',
      tone: judge(
        waiting.some(({ since }) => now - Date.parse(since) > OVERLOOKED_MS),
        waiting.length > 0,
      ),
      now:
        refunds.length === 0
          ? t('health.noRefunds')
          : refunds
              .map(({ status, count: n, since }) => {
                const age = formatDuration(now - Date.parse(since))
                return t('health.refunds', { n, status: nameIn('states.refund', status), age })
              })
              .join(' '),
      path: '/console',
      runbook: 'when-a-refund-waits',
    }
  },
  ({ discrepancies }) => {
    const sum = (some: typeof discrepancies) => some.reduce((n, { count: more }) => n + more, 0)
    const all = sum(discrepancies)
    const severe = sum(discrepancies.filter(({ kind }) => rateKind(kind) === 'high'))
    return {
      name: 'discrepancies',
      tone: judge(severe > 0, all > 0),
      now: t('health.discrepancies', { all, severe }),
      path: '/console/discrepancies',
      runbook: 'when-the-sides-disagree',
    }
  },
  ({ endpoints: { disabled, failing } }) => ({
    name: 'webhooks',
    tone: judge(false, disabled + failing > 0),
    now:
      disabled + failing === 0
        ? t('health.webhooksWell')
        : count('health.webhooks', disabled + failing),
    path: '/console#endpoints',
    runbook: 'when-changes-do-not-arrive',
  }),
  ({ held }) => ({
    name: 'holds',
    tone: judge(false, held.length > 0),
    now: held.length === 0 ? t('health.noHolds') : held.join(', '),
    runbook: 'holds',
  }),
]

const TONES: readonly Line['tone'][] = ['bad', 'warn', 'good']

const COLUMNS = [
  cell<Line>('state', ({ tone }) => <State of={[t(`health.${tone}`), tone]} />),
  cell<Line>('what', ({ name, path }) => {
    const title = t(`health.lines.${name}`)
    return path === undefined ? title : <a href={path}>{title}</a>
  }),
  cell<Line>('now', ({ now }) => now),
  text<Line>('runbook', ({ tone, runbook }) => (tone === 'good' ? '' : `operations.md#${runbook}`)),
]

const PROCESSES = [
  text<SeenProcess>('role', ({ role }) => role),
  text<SeenProcess>('version', ({ version, commit }) =>
    [version, commit?.slice(0, 8)].filter(Boolean).join(' '),
  ),
  time<SeenProcess>('startedAt', ({ startedAt }) => startedAt),
  text<SeenProcess>('process', ({ id }) => id, { wide: true }),
]

type Series = { tone: Line['tone'] | 'soft'; read: (of: Figures) => number }

const PLOTS: Readonly<Record<NameIn<'health.plots'>, readonly Series[]>> = {
  notifications: [{ tone: 'soft', read: ({ notifications }) => notifications }],
  lag: [{ tone: 'warn', read: ({ lagMs }) => Math.round(lagMs / 1000) }],
  calls: [
    { tone: 'good', read: ({ answered }) => answered },
    { tone: 'bad', read: ({ unanswered }) => unanswered },
  ],
  refunds: [
    { tone: 'soft', read: ({ refundsOpen, refundsToDecide }) => refundsOpen - refundsToDecide },
    { tone: 'bad', read: ({ refundsToDecide }) => refundsToDecide },
  ],
}

const HEIGHT = 40

function Plot({ name, figures }: { name: keyof typeof PLOTS; figures: readonly Figures[] }) {
  const series = PLOTS[name]
  const sums = figures.map((one) => series.reduce((sum, { read }) => sum + read(one), 0))
  const most = Math.max(0, ...sums)
  const scale = HEIGHT / Math.max(1, most)
  const heights = new Map<number, number>()
  const paths = series.map(({ tone, read }) => {
    const bars = figures.map((one) => {
      const below = heights.get(one.ago) ?? 0
      const height = read(one) * scale
      heights.set(one.ago, below + height)
      return `M${POINTS - 1 - one.ago} ${(HEIGHT - below).toFixed(2)}v${(-height).toFixed(2)}h1v${height.toFixed(2)}z`
    })
    return <path class={tone} d={bars.join('')} />
  })
  const title = t(`health.plots.${name}`)
  const words = t('health.most', { most })
  return (
    <figure class="plot">
      <figcaption>
        {title} <small class="soft">{words}</small>
      </figcaption>
      <svg
        viewBox={`0 0 ${POINTS} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${title}: ${words}`}
      >
        {paths}
      </svg>
    </figure>
  )
}

export const healthPage = definePage<Overview>({
  path: '/console/health',
  scope: 'ops',
  load: (ctx, c) => {
    const access = c.get('access')
    const owners = listVisibleOwners(access, undefined)
    return ctx.db.reads.run(access.chainId, ({ sql }) =>
      readOverview(sql, ctx.config, access.merchants, owners),
    )
  },
  async show(ctx, c, overview) {
    const { merchants, chainId } = c.get('access')
    const figures = await ctx.db.reads.run(chainId, ({ sql }) => readFigures(sql, merchants))
    const paused = ctx.gateway.breakers
      .listPaused()
      .filter(({ merchantCode }) => merchants.includes(merchantCode))
    const { REFUNDS_ENABLED: sendsRefunds } = ctx.config
    const measured = { ...overview, paused, sendsRefunds, now: Date.parse(overview.at) }
    const lines = LINES.map((look) => look(measured))
    const sorted = TONES.flatMap((tone) => lines.filter((line) => line.tone === tone))
    const title = t('frame.pages.health')
    return {
      title,
      current: 'health',
      body: (
        <>
          <section>
            <Rows caption={title} columns={COLUMNS} rows={sorted} isCompact />
            <p class="soft">{t('health.runbooks')}</p>
          </section>
          <Card title={t('health.day')} note={t('health.dayNote')}>
            <div class="sides">
              {listKeys('health.plots').map((name) => (
                <Plot {...{ name, figures }} />
              ))}
            </div>
          </Card>
          <TableCard
            {...{ id: 'processes', title: t('health.processes'), columns: PROCESSES }}
            {...{ rows: overview.processes, empty: t('health.noWorker') }}
          />
        </>
      ),
    }
  },
})
