import type { Child } from 'hono/jsx'
import type { Access } from '../../../access/types.ts'
import { Card } from '../../../platform/html/components.tsx'
import type { ConsoleContext } from '../../context.ts'
import type { ConsoleRequest } from '../../env.ts'
import { renderConsolePage } from '../../layout.tsx'
import { TASKS_PATH } from '../../paths.ts'
import { t } from '../../view.ts'
import { formatDuration } from '../../words.ts'
import { DiscrepancyTable, EndpointTable } from './other-tables.tsx'
import { ApprovalTable, OverdueTable, ReviewTable } from './refund-table.tsx'
import {
  listVisibleSections,
  readOverdueMs,
  readSection,
  type Section,
  type SectionName,
} from './sections.ts'

/** What the page of all sections shows of each. */
const SHOWN = 10

/** Shows what waits for the person: every section with its oldest entries, or one section page by page. */
export async function showTasks(ctx: ConsoleContext, c: ConsoleRequest): Promise<Response> {
  const access = c.get('access')
  const visible = listVisibleSections(access)
  const { section: named, cursor, kind } = c.req.query()
  const only = visible.find((name) => name === named)
  const names: readonly SectionName[] = only === undefined ? visible : [only]
  const start = only === undefined ? {} : { cursor, kind }
  const sections = await ctx.reads.run(access.chainId, (database) =>
    Promise.all(names.map((name) => readSection({ ...ctx, ...database }, access, name, start))),
  )
  const isFirst = cursor === undefined
  const of = {
    ctx,
    c,
    viewer: access,
    isFirst,
    limit: only === undefined ? SHOWN : Number.POSITIVE_INFINITY,
  }
  const idle = sections.every(({ page }) => page.rows.length === 0)
  return await renderConsolePage(
    c,
    {
      title: only === undefined ? t('frame.pages.tasks') : t(`tasks.sections.${only}.title`),
      current: 'tasks',
    },
    <>
      {visible.length === 0 ? (
        <Card title={t('tasks.nothingToDo.title')}>
          <p>{t('tasks.nothingToDo.body')}</p>
        </Card>
      ) : null}
      {only === undefined && visible.length > 0 && idle ? <p>{t('tasks.allDone')}</p> : null}
      {sections.map((section) => (
        <SectionCard section={section} of={of} />
      ))}
      {only === undefined ? null : (
        <p>
          <a href={TASKS_PATH}>{t('tasks.back')}</a>
        </p>
      )}
    </>,
  )
}

type Environment = {
  ctx: ConsoleContext
  c: ConsoleRequest
  viewer: Access
  isFirst: boolean
  limit: number
}

function SectionCard({ section, of }: { section: Section; of: Environment }) {
  const { name, page } = section
  const { rows, next } = page
  const count = rows.length
  return (
    <Card
      id={name}
      title={t(`tasks.sections.${name}.title`)}
      note={of.isFirst ? (next === null ? count : `${count}+`) : undefined}
    >
      {count === 0 ? (
        <p>{t(`tasks.sections.${name}.empty`)}</p>
      ) : (
        <>
          <p class="soft">{describeSection(name, of.ctx)}</p>
          {renderRows(section, of)}
          <Further section={section} limit={of.limit} />
        </>
      )}
    </Card>
  )
}

function describeSection(name: SectionName, ctx: ConsoleContext): string {
  if (name === 'overdue')
    return t('tasks.sections.overdue.lead', { age: formatDuration(readOverdueMs(ctx)) })
  return t(`tasks.sections.${name}.lead`)
}

function renderRows(section: Section, of: Environment): Child {
  const { c, limit } = of
  switch (section.name) {
    case 'approvals':
      return <ApprovalTable rows={section.page.rows.slice(0, limit)} of={of} />
    case 'reviews':
      return <ReviewTable rows={section.page.rows.slice(0, limit)} of={of} />
    case 'overdue':
      return <OverdueTable rows={section.page.rows.slice(0, limit)} of={of} />
    case 'discrepancies':
      return <DiscrepancyTable rows={section.page.rows.slice(0, limit)} />
    case 'endpoints':
      return <EndpointTable c={c} rows={section.page.rows.slice(0, limit)} />
  }
}

/** Leads on: from the first entries of a section to the section, from there to its next page. */
function Further({ section: { name, page }, limit }: { section: Section; limit: number }) {
  const { rows, next } = page
  if (rows.length > limit) {
    return (
      <p>
        <a href={sectionPath(name, {})}>
          {t(next === null ? 'tasks.more' : 'tasks.moreThan', { count: rows.length - limit })}
        </a>
      </p>
    )
  }
  if (next === null || limit === SHOWN) return null
  return (
    <p>
      <a href={sectionPath(name, next)} rel="next">
        {t('tasks.next')}
      </a>
    </p>
  )
}

function sectionPath(section: SectionName, start: Readonly<Record<string, string>>): string {
  return `${TASKS_PATH}?${new URLSearchParams({ section, ...start })}`
}
