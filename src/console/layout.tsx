import type { Child } from 'hono/jsx'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { Scope } from '../access/keys.ts'
import type { Role } from '../access/types.ts'
import { Notice } from '../platform/html/components.tsx'
import { Document } from '../platform/html/document.tsx'
import { ASSETS } from './assets.ts'
import type { ConsoleRequest } from './env.ts'
import { Form } from './forms/form.tsx'
import { TASKS_PATH } from './paths.ts'
import { hasRole, hasScope } from './permissions.ts'
import { readNotice } from './redirect.ts'
import { TEXTS } from './texts/en.ts'
import { ForView } from './view.tsx'

const { keys } = TEXTS.frame

/** What the script uses on every page: where it speaks, and the keys, which can be turned off. */
export function ScriptParts() {
  return (
    <>
      <footer>
        <button id="keys" class="quiet" type="button" hidden>
          {keys.title}
        </button>
      </footer>
      <div
        id="status"
        class="hidden"
        role="status"
        data-text-copy={keys.copy}
        data-text-copied={keys.copied}
      />
      <dialog aria-labelledby="keys-title">
        <h2 id="keys-title">{keys.title}</h2>
        <dl>
          {keys.list.map(([key, meaning]) => (
            <>
              <dt>
                <kbd>{key}</kbd>
              </dt>
              <dd>{meaning}</dd>
            </>
          ))}
        </dl>
        <label class="choice">
          <input type="checkbox" checked />
          {keys.use}
        </label>
        <form method="dialog">
          <button type="submit">{keys.close}</button>
        </form>
      </dialog>
    </>
  )
}

export type PageName = keyof typeof TEXTS.frame.pages

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
  { name: 'search', path: '/console' },
  { name: 'tasks', path: TASKS_PATH },
  { name: 'transactions', path: '/console/transactions', scope: 'payments:read' },
  { name: 'payments', path: '/console/payments', scope: 'payments:read' },
  { name: 'refunds', path: '/console/refunds', scope: 'refunds:read' },
  { name: 'discrepancies', path: '/console/discrepancies', scope: 'ops' },
  { name: 'people', path: '/console/people', role: 'admin' },
  { name: 'reasons', path: '/console/reasons', role: 'admin' },
]

/** Answers with a page: the frame around a body whose headings begin with `<h2>`. */
export function renderConsolePage(
  c: ConsoleRequest,
  options: PageOptions,
  body: Child,
): Response | Promise<Response> {
  const { title, status = 200, refreshS, refreshTo } = options
  const notice = c.get('draft') ? TEXTS.frame.restored : readNotice(c)
  const to = refreshTo === undefined ? '' : `; url=${refreshTo}`
  return c.html(
    <Document
      title={TEXTS.frame.titleOf(title)}
      styles={[ASSETS.style]}
      scripts={[ASSETS.script]}
      refresh={refreshS === undefined ? undefined : `${refreshS}${to}`}
    >
      <a class="skip" href="#main">
        {TEXTS.frame.skip}
      </a>
      <Bar c={c} current={options.current} />
      <main id="main" tabindex={-1}>
        {notice === undefined ? null : <Notice tone="good">{notice}</Notice>}
        <h1>{title}</h1>
        <ForView view={c.get('view')}>{body}</ForView>
      </main>
      {c.get('session') ? <ScriptParts /> : null}
    </Document>,
    status,
  )
}

function Bar({ c, current }: { c: ConsoleRequest; current: PageName | undefined }) {
  const session = c.get('session')
  if (!session) return null
  const shown = PAGES.filter(
    ({ scope, role }) =>
      (scope === undefined || hasScope(c, scope)) && (role === undefined || hasRole(c, role)),
  )
  return (
    <header class="bar">
      <div>
        <strong>{TEXTS.frame.product}</strong>
        <a href="/console/account">{session.name}</a>
        <Form c={c} action="/console/sign-out">
          <button class="quiet" type="submit">
            {TEXTS.frame.signOut}
          </button>
        </Form>
        <nav aria-label={TEXTS.frame.navigation}>
          <ul>
            {shown.map(({ name, path }) => (
              <li>
                <a href={path} aria-current={name === current ? 'page' : undefined}>
                  {TEXTS.frame.pages[name]}
                </a>
              </li>
            ))}
          </ul>
        </nav>
      </div>
    </header>
  )
}
