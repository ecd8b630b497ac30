import type { Hono } from 'hono'
import { isUuid } from '../http/fields.ts'
import { Card } from '../platform/html/components.tsx'
import { enableEndpoint } from '../webhooks/changes.ts'
import { endpointNotFound, listVisibleOwners } from '../webhooks/endpoints.ts'
import type { ConsoleContext } from './context.ts'
import type { ConsoleEnv, ConsoleRequest } from './env.ts'
import { renderConsolePage } from './layout.tsx'
import { defineAction } from './page.ts'
import { TASKS_PATH } from './paths.ts'
import { type Loaded, SECTIONS, type Section, type SectionName } from './task-sections.tsx'
import { t } from './view.ts'

/** What the page of all sections shows of each. */
const SHOWN = 10

/** Shows what waits for the person: every section with its oldest entries, or one section page by page. */
export async function showTasks(ctx: ConsoleContext, c: ConsoleRequest): Promise<Response> {
  const access = c.get('access')
  const visible = SECTIONS.filter(({ scopes }) =>
    scopes.some((scope) => access.scopes.includes(scope)),
  )
  const { section: named, ...start } = c.req.query()
  const only = visible.find(({ name }) => name === named)
  const sections = await ctx.reads.run(access.chainId, (database) =>
    Promise.all(
      (only ? [only] : visible).map(async (section) => ({
        section,
        loaded: await section.load({ ...ctx, ...database }, access, only ? start : {}),
      })),
    ),
  )
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
        <SectionCard {...{ section, loaded, limit, isFirst }} lead={section.lead(ctx)} />
      ))}
      {only ? (
        <p>
          <a href={TASKS_PATH}>{t('tasks.back')}</a>
        </p>
      ) : null}
    </>,
  )
}

function SectionCard(props: {
  section: Section
  loaded: Loaded
  limit: number
  isFirst: boolean
  lead: string
}) {
  const { section, loaded, limit, isFirst, lead } = props
  const { name } = section
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
          <Further {...{ name, n, next, limit }} />
        </>
      )}
    </Card>
  )
}

/** Leads on: from the first entries of a section to the section, from there to its next page. */
function Further(props: { name: SectionName; n: number; next: Loaded['next']; limit: number }) {
  const { name, n, next, limit } = props
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

/** Serves what waits for a person. */
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
