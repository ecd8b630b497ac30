import { createMiddleware } from 'hono/factory'
import type { Access } from '../access/types.ts'
import { isUuid } from '../http/fields.ts'
import { Card } from '../platform/html/components.tsx'
import { enableEndpoint } from '../webhooks/changes.ts'
import { endpointNotFound, listVisibleOwners } from '../webhooks/endpoints.ts'
import type { ConsoleContext, ConsoleEnv, ConsoleRequest } from './env.ts'
import { renderConsolePage } from './layout.tsx'
import { defineAction, type Mount } from './page.ts'
import { TASKS_PATH } from './paths.ts'
import { isUnsafe } from './session.ts'
import { SECTIONS, type Section } from './task-sections.tsx'
import { t, usePerson } from './view.ts'

const SHOWN = 10

const COUNTED_FOR_MS = 15_000

/** Counts what waits for a person, as far as the sections show it, for the navigation of every page. */
export function createTaskCount(ctx: ConsoleContext) {
  const counted = new Map<string, { until: number; count: Promise<string | undefined> }>()
  return createMiddleware<ConsoleEnv>(async (c, next) => {
    const person = usePerson()
    const now = ctx.now().getTime()
    person.countTasks = () => {
      for (const [id, { until }] of counted) if (until <= now) counted.delete(id)
      const known = counted.get(person.id)?.count
      // A page without the count is better than none, for example while the database is away.
      const count = known ?? countTasks(ctx, c.get('access')).catch(() => undefined)
      if (!known) counted.set(person.id, { until: now + COUNTED_FOR_MS, count })
      return count
    }
    await next()
    // What the person has just done no longer waits.
    if (isUnsafe(c)) counted.delete(person.id)
  })
}

async function countTasks(ctx: ConsoleContext, access: Access): Promise<string | undefined> {
  const sections = await loadSections(ctx, access, listVisible(access))
  const sum = sections.reduce((total, { count }) => total + count, 0)
  const isMore = sections.some(({ nextCursor }) => nextCursor !== null)
  return sum === 0 ? undefined : `${sum}${isMore ? '+' : ''}`
}

const listVisible = ({ scopes: own }: Access) =>
  SECTIONS.filter(({ scopes }) => scopes.some((scope) => own.includes(scope)))

type Shown = Omit<Section, 'load'> & Awaited<ReturnType<Section['load']>>

async function loadSections(
  ctx: ConsoleContext,
  access: Access,
  sections: readonly Section[],
  cursor?: string,
): Promise<Shown[]> {
  return await ctx.db.reads.run(access.chainId, (database) => {
    const given = { ctx: { ...ctx, db: { ...ctx.db, ...database } }, access, cursor }
    return Promise.all(
      sections.map(async ({ load, ...section }) => ({ ...section, ...(await load(given)) })),
    )
  })
}

export async function showTasks(ctx: ConsoleContext, c: ConsoleRequest): Promise<Response> {
  const access = c.get('access')
  const visible = listVisible(access)
  const { section: named, cursor } = c.req.query()
  const only = visible.find(({ name }) => name === named)
  const sections = only
    ? await loadSections(ctx, access, [only], cursor)
    : await loadSections(ctx, access, visible)
  const isIdle = !only && visible.length > 0 && sections.every(({ count }) => count === 0)
  const title = t(only ? `tasks.sections.${only.name}.title` : 'frame.pages.tasks')
  return await renderConsolePage(
    c,
    { title, current: 'tasks' },
    <>
      {visible.length === 0 && (
        <Card title={t('tasks.nothingToDo.title')}>
          <p>{t('tasks.nothingToDo.body')}</p>
        </Card>
      )}
      {isIdle && <p>{t('tasks.allDone')}</p>}
      {sections.map((of) => (
        <SectionCard {...{ of, lead: of.lead(ctx), isWhole: only !== undefined, cursor }} />
      ))}
      {only && (
        <p>
          <a href={TASKS_PATH}>{t('tasks.back')}</a>
        </p>
      )}
    </>,
  )
}

function SectionCard(props: {
  of: Shown
  lead: string
  isWhole: boolean
  cursor: string | undefined
}) {
  const { lead, isWhole, cursor } = props
  const { name, count: n, nextCursor, table } = props.of
  const note = cursor === undefined ? `${n}${nextCursor === null ? '' : '+'}` : undefined
  const link = (more: Record<string, string>, words: string, rel?: string) => (
    <p>
      <a href={`${TASKS_PATH}?${new URLSearchParams({ section: name, ...more })}`} rel={rel}>
        {words}
      </a>
    </p>
  )
  const rest = t(nextCursor === null ? 'tasks.more' : 'tasks.moreThan', { count: n - SHOWN })
  return (
    <Card {...{ id: name, title: t(`tasks.sections.${name}.title`), note }}>
      {n === 0 ? (
        <p>{t(`tasks.sections.${name}.empty`)}</p>
      ) : (
        <>
          <p class="soft">{lead}</p>
          {table(isWhole ? n : SHOWN)}
          {!isWhole && n > SHOWN && link({}, rest)}
          {isWhole && nextCursor !== null && link({ cursor: nextCursor }, t('tasks.next'), 'next')}
        </>
      )}
    </Card>
  )
}

export const taskRoutes: Mount = (app, ctx) => {
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
