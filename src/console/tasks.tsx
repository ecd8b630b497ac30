import type { Hono } from 'hono'
import { createMiddleware } from 'hono/factory'
import type { Access } from '../access/types.ts'
import { isUuid } from '../http/fields.ts'
import { Card } from '../platform/html/components.tsx'
import { enableEndpoint } from '../webhooks/changes.ts'
import { endpointNotFound, listVisibleOwners } from '../webhooks/endpoints.ts'
import type { ConsoleContext, ConsoleEnv, ConsoleRequest } from './env.ts'
import { isUnsafe } from './form-guard.ts'
import { renderConsolePage } from './layout.tsx'
import { defineAction } from './page.ts'
import { TASKS_PATH } from './paths.ts'
import { type Loaded, SECTIONS, type Section, type SectionName } from './task-sections.tsx'
import { t, usePerson } from './view.ts'

const SHOWN = 10

const COUNTED_FOR_MS = 15_000

/** Counts what waits for a person, for the navigation of every page: as far as the sections count, and not more often. */
export function createTaskCount(ctx: ConsoleContext) {
  const counted = new Map<string, { until: number; count: Promise<string | undefined> }>()
  return createMiddleware<ConsoleEnv>(async (c, next) => {
    const person = usePerson()
    const now = ctx.now().getTime()
    person.countTasks = () => {
      for (const [id, { until }] of counted) if (until <= now) counted.delete(id)
      const known = counted.get(person.id)?.count
      // A page without its count is better than none, as where the database is away.
      const count = known ?? countTasks(ctx, c.get('access')).catch(() => undefined)
      if (!known) counted.set(person.id, { until: now + COUNTED_FOR_MS, count })
      return count
    }
    await next()
    // What the person has just done does not wait any more.
    if (isUnsafe(c)) counted.delete(person.id)
  })
}

async function countTasks(ctx: ConsoleContext, access: Access): Promise<string | undefined> {
  const sections = await loadSections(ctx, access, listVisible(access))
  const sum = sections.reduce((total, { loaded }) => total + loaded.count, 0)
  const isMore = sections.some(({ loaded }) => loaded.next !== null)
  return sum === 0 ? undefined : `${sum}${isMore ? '+' : ''}`
}

const listVisible = ({ scopes: own }: Access) =>
  SECTIONS.filter(({ scopes }) => scopes.some((scope) => own.includes(scope)))

async function loadSections(
  ctx: ConsoleContext,
  access: Access,
  sections: readonly Section[],
  start: Record<string, string> = {},
): Promise<{ section: Section; loaded: Loaded }[]> {
  return await ctx.reads.run(access.chainId, (database) =>
    Promise.all(
      sections.map(async (section) => {
        return { section, loaded: await section.load({ ...ctx, ...database }, access, start) }
      }),
    ),
  )
}

/** Shows what waits for the person: every section with its oldest entries, or one section page by page. */
export async function showTasks(ctx: ConsoleContext, c: ConsoleRequest): Promise<Response> {
  const access = c.get('access')
  const visible = listVisible(access)
  const { section: named, ...start } = c.req.query()
  const only = visible.find(({ name }) => name === named)
  const sections = only
    ? await loadSections(ctx, access, [only], start)
    : await loadSections(ctx, access, visible)
  const limit = only ? Number.POSITIVE_INFINITY : SHOWN
  const isFirst = start.cursor === undefined
  const isIdle = !only && visible.length > 0 && sections.every(({ loaded }) => loaded.count === 0)
  return await renderConsolePage(
    c,
    {
      title: t(only ? `tasks.sections.${only.name}.title` : 'frame.pages.tasks'),
      current: 'tasks',
    },
    <>
      {visible.length === 0 ? (
        <Card title={t('tasks.nothingToDo.title')}>
          <p>{t('tasks.nothingToDo.body')}</p>
        </Card>
      ) : null}
      {isIdle ? <p>{t('tasks.allDone')}</p> : null}
      {sections.map(({ section, loaded }) => (
        <SectionCard {...{ name: section.name, lead: section.lead(ctx), loaded, limit, isFirst }} />
      ))}
      {only ? (
        <p>
          <a href={TASKS_PATH}>{t('tasks.back')}</a>
        </p>
      ) : null}
    </>,
  )
}

type SectionProps = { name: SectionName; lead: string; loaded: Loaded; limit: number }

function SectionCard({ name, lead, loaded, limit, isFirst }: SectionProps & { isFirst: boolean }) {
  const { count: n, next, table } = loaded
  return (
    <Card
      id={name}
      title={t(`tasks.sections.${name}.title`)}
      note={isFirst ? `${n}${next === null ? '' : '+'}` : undefined}
    >
      {n === 0 ? (
        <p>{t(`tasks.sections.${name}.empty`)}</p>
      ) : (
        <>
          <p class="soft">{lead}</p>
          {table(limit)}
          <Further {...{ name, loaded, limit }} />
        </>
      )}
    </Card>
  )
}

/** Leads on: from the first entries of a section to the section, from there to its next page. */
function Further({ name, loaded: { count: n, next }, limit }: Omit<SectionProps, 'lead'>) {
  const isMore = n > limit
  if (!isMore && (next === null || limit === SHOWN)) return null
  const query = new URLSearchParams({ section: name, ...(isMore ? {} : next) })
  const rest = t(next === null ? 'tasks.more' : 'tasks.moreThan', { count: n - limit })
  return (
    <p>
      <a href={`${TASKS_PATH}?${query}`} rel={isMore ? undefined : 'next'}>
        {isMore ? rest : t('tasks.next')}
      </a>
    </p>
  )
}

export function taskRoutes(app: Hono<ConsoleEnv>, ctx: ConsoleContext): void {
  app.get(TASKS_PATH, (c) => showTasks(ctx, c))
  defineAction<string>({
    path: '/console/webhooks/:endpointId/enable',
    scope: 'webhooks:write',
    load(_, c) {
      const id = c.req.param('endpointId') ?? ''
      if (!isUuid(id)) throw endpointNotFound(id)
      return id.toLowerCase()
    },
    pageOf: () => TASKS_PATH,
    async run({ access, of: id }) {
      await enableEndpoint(ctx, { access, owners: listVisibleOwners(access, undefined), id })
      return { to: `${TASKS_PATH}#endpoints`, notice: 'endpointEnabled' }
    },
  })(app, ctx)
}
