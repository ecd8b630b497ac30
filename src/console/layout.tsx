import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Hono } from 'hono'
import type { Child } from 'hono/jsx'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { Scope } from '../access/keys.ts'
import type { Role } from '../access/types.ts'
import { Notice } from '../platform/html/components.tsx'
import { Document } from '../platform/html/document.tsx'
import { BASE_STYLE } from '../platform/html/style.ts'
import type { ConsoleRequest } from './env.ts'
import { Form } from './forms.tsx'
import type { NameIn } from './texts/text.ts'
import { can, hasRole, t, useView } from './view.ts'

type PageName = NameIn<'frame.pages'>

export type PageOptions = {
  /** The text of the only `<h1>` and of the browser's tab. */
  title: string
  current?: PageName
  status?: ContentfulStatusCode
  notice?: string | undefined
  /** After this time the page is loaded again, or another one of the console is. */
  refreshS?: number
  refreshTo?: string
}

/** The pages of the navigation, by default at `/console/{name}`. */
const PAGES: readonly { name: PageName; path?: string; scope?: Scope; role?: Role }[] = [
  { name: 'tasks', path: '/console' },
  { name: 'transactions', scope: 'payments:read' },
  { name: 'payments', scope: 'payments:read' },
  { name: 'refunds', scope: 'refunds:read' },
  { name: 'discrepancies', scope: 'ops' },
  { name: 'health', scope: 'ops' },
  { name: 'audit', scope: 'ops' },
  { name: 'people', role: 'admin' },
  { name: 'reasons', role: 'admin' },
]

export async function renderConsolePage(
  c: ConsoleRequest,
  options: PageOptions,
  body: Child,
): Promise<Response> {
  const { title, status = 200, refreshS, refreshTo } = options
  const { language, kept, person, notice: done } = useView()
  const waiting = await person?.countTasks?.()
  const said = options.notice ?? (done && t(`notice.${done.code}`, { count: done.count }))
  const notice = kept?.returned ? t(`frame.${kept.returned}`) : said
  const to = refreshTo === undefined ? '' : `; url=${refreshTo}`
  return c.html(
    <Document
      language={language}
      title={t('frame.titleOf', { page: title })}
      styles={[style.path]}
      scripts={[script.path]}
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
          {...{ id: 'announcer', class: 'hidden', role: 'status' }}
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
              size={30}
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
            {shown.map(({ name, path = `/console/${name}` }) => (
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

const CONSOLE_STYLE = `${BASE_STYLE}
.bar { background: var(--card); border-bottom: 1px solid var(--line); }
.bar > div { display: flex; flex-wrap: wrap; gap: .3rem 1rem; align-items: center; max-width: 68rem; margin: 0 auto; padding: .6rem 1rem; }
.bar strong { flex: 1 1 auto; }
.bar nav { flex: 1 0 100%; }
.bar ul { display: flex; flex-wrap: wrap; gap: .2rem 1rem; margin: 0; padding: 0; list-style: none; }
.bar nav a { display: inline-block; padding: .15rem 0; min-height: 1.75rem; text-decoration: none; }
.bar search, .bar search input { min-width: 0; }
.bar search form { flex-wrap: nowrap; }
.sides { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 18rem), 1fr)); gap: .5rem 1.5rem; }
label.choice input { flex: none; }
h1 + .notice, dl + form, fieldset .field { margin-top: .8rem; }
.timeline { margin: 0; padding: 0; list-style: none; }
.timeline > li { padding: .5rem 0; border-top: 1px solid var(--line); }
.timeline > li:first-child { border-top: 0; }
.row { margin-top: .6rem; }
summary { cursor: pointer; color: var(--accent); min-height: 1.75rem; }
details[open] { flex-basis: 100%; margin-bottom: .6rem; }
/* Its own parts take the focus one by one. */
input[type=date]:focus-within { outline: 3px solid var(--accent); outline-offset: 2px; }
[data-live]:focus { outline: none; }
.plot { margin: 0; }
.plot svg { display: block; width: 100%; height: 5rem; border-bottom: 1px solid var(--line); fill: currentColor; }
.copy { min-width: 1.75rem; min-height: 1.5rem; padding: 0 .4rem; font-size: .8125rem; }
`

/** Names a file by its content, so that browsers may keep it forever. */
function nameAsset(extension: string, type: string, body: string) {
  const hash = createHash('sha256').update(body).digest('hex').slice(0, 16)
  return { path: `/console/assets/console.${hash}.${extension}`, type, body }
}

const style = nameAsset('css', 'text/css; charset=utf-8', CONSOLE_STYLE)
const code = readFileSync(new URL('./assets/console.js', import.meta.url), 'utf8')
const script = nameAsset('js', 'text/javascript; charset=utf-8', code)

export function assetRoutes(): Hono {
  const app = new Hono()
  for (const { path, type, body } of [style, script]) {
    app.get(path, (c) =>
      c.body(body, 200, {
        'content-type': type,
        'cache-control': 'public, max-age=31536000, immutable',
      }),
    )
  }
  // Pages of another version name other files, which must not lead to the sign-in.
  return app.get('/console/assets/*', (c) => c.notFound())
}
