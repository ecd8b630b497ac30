import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Hono } from 'hono'
import { BASE_STYLE } from '../platform/html/style.ts'

/** The style of the console: that of every page, and its frame. */
export const CONSOLE_STYLE = `${BASE_STYLE}
.bar { background: var(--card); border-bottom: 1px solid var(--line); }
.bar > div { display: flex; flex-wrap: wrap; gap: .3rem 1rem; align-items: center; max-width: 68rem; margin: 0 auto; padding: .6rem 1rem; }
.bar strong { flex: 1 1 auto; }
.bar nav { flex: 1 0 100%; }
.bar ul { display: flex; flex-wrap: wrap; gap: .2rem 1rem; margin: 0; padding: 0; list-style: none; }
.bar nav a { display: inline-block; padding: .15rem 0; min-height: 1.75rem; text-decoration: none; }
.bar nav a[aria-current=page] { color: var(--ink); font-weight: 600; border-bottom: 2px solid currentColor; }
.sides { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 18rem), 1fr)); gap: .5rem 1.5rem; }
label.choice input { flex: none; }
h1 + .notice, dl + form, fieldset .field { margin-top: .8rem; }
.timeline { margin: 0; padding: 0; list-style: none; }
.timeline > li { padding: .5rem 0; border-top: 1px solid var(--line); }
.timeline > li:first-child { border-top: 0; }
article { padding: .8rem 0; border-top: 1px solid var(--line); }
article:first-of-type { border-top: 0; padding-top: 0; }
article h3 { display: flex; flex-wrap: wrap; gap: .3rem .6rem; align-items: center; margin: 0 0 .5rem; }
.row { margin-top: .6rem; }
summary { cursor: pointer; color: var(--accent); min-height: 1.75rem; }
details[open] { flex-basis: 100%; margin-bottom: .6rem; }
/* Its own parts take the focus one by one. */
input[type=date]:focus-within { outline: 3px solid var(--accent); outline-offset: 2px; }
[data-live]:focus { outline: none; }
.copy { min-width: 1.75rem; min-height: 1.5rem; padding: 0 .4rem; font-size: .8125rem; }
footer { max-width: 68rem; margin: 0 auto; padding: 0 1rem 2rem; }
`

type Asset = { path: string; type: string; body: string }

/** Names a file by its content, so that browsers may keep it for ever. */
function nameAsset(name: string, extension: string, type: string, body: string): Asset {
  const hash = createHash('sha256').update(body).digest('hex').slice(0, 16)
  return { path: `/console/assets/${name}.${hash}.${extension}`, type, body }
}

const style = nameAsset('console', 'css', 'text/css; charset=utf-8', CONSOLE_STYLE)
const script = nameAsset(
  'console',
  'js',
  'text/javascript; charset=utf-8',
  readFileSync(new URL('./assets/console.js', import.meta.url), 'utf8'),
)

export const ASSETS = { style: style.path, script: script.path }

/** Serves the style sheet and the script, to anybody: they hold no data. */
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
  return app
}
