import type { Child } from 'hono/jsx'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { Scope } from '../access/keys.ts'
import type { Role } from '../access/types.ts'
import { Notice } from '../platform/html/components.tsx'
import { Document } from '../platform/html/document.tsx'
import { ASSETS } from './assets.ts'
import type { ConsoleRequest } from './env.ts'
import { Form } from './forms.tsx'
import type { NameIn } from './texts/text.ts'
import { can, hasRole, listTexts, t, useView } from './view.ts'

export type PageName = NameIn<'frame.pages'>

export type PageOptions = {
  /** The text of the page's only `<h1>`, and of the browser's tab. */
  title: string
  /** The entry of the navigation that this page belongs to. */
  current?: PageName
  status?: ContentfulStatusCode
  /** Reloads the page after so many seconds, or opens another one of the console. */
  refreshS?: number
  refreshTo?: string
}

/** The pages of the navigation: a person sees those of their scope or role. */
const PAGES: readonly { name: PageName; path: string; scope?: Scope; role?: Role }[] = [
  { name: 'tasks', path: '/console' },
  { name: 'transactions', path: '/console/transactions', scope: 'payments:read' },
  { name: 'payments', path: '/console/payments', scope: 'payments:read' },
  { name: 'refunds', path: '/console/refunds', scope: 'refunds:read' },
  { name: 'discrepancies', path: '/console/discrepancies', scope: 'ops' },
  { name: 'audit', path: '/console/audit', scope: 'ops' },
  { name: 'people', path: '/console/people', role: 'admin' },
  { name: 'reasons', path: '/console/reasons', role: 'admin' },
]

export async function renderConsolePage(
  c: ConsoleRequest,
  options: PageOptions,
  body: Child,
): Promise<Response> {
  const { title, status = 200, refreshS, refreshTo } = options
  const { language, kept, person } = useView()
  const waiting = await person?.countTasks?.()
  const code = c.req.query('notice')
  const named = listTexts('notice').find(([known]) => known === code)?.[1]
  const notice = kept?.isUnsent ? t('frame.restored') : named
  const to = refreshTo === undefined ? '' : `; url=${refreshTo}`
  return c.html(
    <Document
      language={language}
      title={t('frame.titleOf', { page: title })}
      styles={[ASSETS.style]}
      scripts={[ASSETS.script]}
      refresh={refreshS === undefined ? undefined : `${refreshS}${to}`}
    >
      <a class="skip" href="#main">
        {t('frame.skip')}
      </a>
      <Bar {...{ c, current: options.current, waiting }} />
      <main id="main" tabindex={-1}>
        {notice === undefined ? null : <Notice tone="good">{notice}</Notice>}
        <h1>{title}</h1>
        {kept?.alerts.map((alert) => (
          <Notice tone="bad">{alert}</Notice>
        ))}
        {kept?.links.map(({ text, href }) => (
          <p>
            <a href={href}>{text}</a>
          </p>
        ))}
        {body}
      </main>
      {person ? (
        <div
          {...{ id: 'status', class: 'hidden', role: 'status' }}
          data-text-copy={t('frame.copy')}
          data-text-copied={t('frame.copied')}
        />
      ) : null}
    </Document>,
    status,
  )
}

function Bar(props: {
  c: ConsoleRequest
  current: PageName | undefined
  waiting: string | undefined
}) {
  const { c, current, waiting } = props
  const { person } = useView()
  if (!person) return null
  const shown = PAGES.filter(
    ({ scope, role }) =>
      (scope === undefined || can(scope)) && (role === undefined || hasRole(role)),
  )
  return (
    <header class="bar">
      <div>
        <strong>{t('frame.product')}</strong>
        <a href="/console/account">{person.name}</a>
        <Form action="/console/sign-out">
          <button class="quiet" type="submit">
            {t('frame.signOut')}
          </button>
        </Form>
        <search>
          <form method="get" action="/console">
            <label class="hidden" for="q">
              {t('search.label')}
            </label>
            <input
              id="q"
              type="search"
              name="q"
              value={c.req.query('q')}
              placeholder={t('search.label')}
              maxlength={128}
              autocomplete="off"
            />
            <button class="quiet" type="submit">
              {t('search.submit')}
            </button>
          </form>
        </search>
        <nav aria-label={t('frame.navigation')}>
          <ul>
            {shown.map(({ name, path }) => (
              <li>
                <a href={path} aria-current={name === current ? 'page' : undefined}>
                  {t(`frame.pages.${name}`)}
                  {name === 'tasks' && waiting !== undefined ? ` (${waiting})` : null}
                </a>
              </li>
            ))}
          </ul>
        </nav>
      </div>
    </header>
  )
}
